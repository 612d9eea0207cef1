"""Values as people write them, names made from columns and values, and warnings about them.

Each is here once, so that a world, an audit and an experiment file use the same names for the same
things. The words for outcomes that are bad for people are only a reason to ask the user.
"""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evenhand._prose import quoted
from evenhand.errors import InputWarning

INTERCEPT = "intercept"
MISSING, OTHER = "missing", "other"  # categories of their own
# What every engine reads as a number; they differ in what else they accept.
NUMBER = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"


def word(value: Any) -> str:
    """A value in a name: whole numbers without a decimal point.

    Example:
        >>> from evenhand._columns.words import word
        >>> word(2.0), word(2.5), word("F ")
        ('2', '2.5', 'F ')
    """
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return str(int(value)) if whole else str(value)


def written(value: Any) -> str:
    """A value as text without the spaces around it, to be compared with what a user wrote."""
    return word(value).strip()


def as_written(text: str) -> float | int | None:
    """The number that a text stands for; None if it is not a number.

    Example:
        >>> from evenhand._columns.words import as_written
        >>> as_written("-9"), as_written("2.50"), as_written("nan"), as_written("1_000")
        (-9, 2.5, None, None)
    """
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number) or "_" in text:
        return None
    return int(text) if text.strip().lstrip("+-").isdigit() else number


def shown(names: Iterable[str]) -> str:
    """A list of names or values, in quotes where a blank or comma would be ambiguous.

    Example:
        >>> from evenhand._columns.words import shown
        >>> shown(["age", "home town", ""])
        "age, 'home town', ''"
    """
    return ", ".join(quoted(name) for name in names)


def category(column: str, value: Any) -> str:
    """The name of a category as a feature, or as a group.

    Example:
        >>> from evenhand._columns.words import category
        >>> category("job", "cook"), category("black", 1.0)
        ('job=cook', 'black=1')
    """
    return f"{column}={word(value)}"


def meant(value: object, names: Iterable[str], column: str | None = None) -> str | None:
    """The group that a value stands for: 0 for "black=0", "black=0" for "0", True for "true".

    None if there is no such group, or if several could be meant.

    Args:
        value: the group, as its number or with the name of its column in front.
        names: those of all groups.
        column: that of the groups, if it is known: then no other may stand in front.

    Example:
        >>> from evenhand._columns.words import meant
        >>> meant(0, ["black=0", "black=1"]), meant("black=0", ["0", "1"]), meant("M", ["F"])
        ('black=0', '0', None)
        >>> meant("sex=F", ["F", "M"], column="gender") is None
        True
    """
    known, given = {name: _truth(name) for name in names}, _truth(word(value))
    if word(value) in known:
        return word(value)
    tests: list[Callable[[str], bool]] = [
        lambda name: name == given,
        lambda name: name.endswith(f"={given}"),
        lambda name: given.endswith(f"={name}") if column is None else given == f"{column}={name}",
    ]
    for fits in tests:
        close = [name for name, alike in known.items() if fits(alike)]
        if close:
            return close[0] if len(close) == 1 else None
    return None


def _truth(name: str) -> str:
    """A name with true and false in one spelling."""
    front, sign, value = name.rpartition("=")
    return f"{front}{sign}{value.lower() if value.lower() in ('true', 'false') else value}"


def gap(column: str) -> str:
    """The name of the 0/1 feature that says where a number was filled in.

    Example:
        >>> from evenhand._columns.words import gap
        >>> gap("age")
        'age is missing'
    """
    return f"{column} is {MISSING}"


def other(column: str, known: Iterable[str]) -> str:
    """The name of the feature of all merged categories; "other" may be a category already."""
    return category(column, OTHER if OTHER not in known else f"({OTHER})")


# The beginnings of words.
BAD = (
    "abandon", "accident", "arrest", "attrition", "bad", "bankrupt", "chargeoff", "churn",
    "convict", "death", "declin", "default", "delinq", "denial", "denie", "deny", "deport",
    "detain", "detention", "dismiss", "dropout", "evict", "expell", "fail", "fatal",
    "fired", "foreclos", "fraud", "incarcerat", "injur", "jail", "mortality", "offend", "overdue",
    "penalt", "prison", "readmi", "recid", "refus", "reincarcerat", "reject", "reoffen",
    "suspend", "suspension", "terminated", "unemploy", "unpaid", "violat",
)  # fmt: skip
YES = ("yes", "y", "true", "t", "1", "x")
WORDS = re.compile(rf"^(?:{'|'.join(BAD)})")


def bad_outcome(reward: str, values: Mapping[str, float] | None = None) -> str | None:
    """The word that says that a high reward is bad: the reward's name or its highest value.

    Args:
        reward: the name of the column.
        values: the numbers for a reward in words.

    Example:
        >>> from evenhand._columns.words import bad_outcome
        >>> bad_outcome("deny"), bad_outcome("two_year_recid"), bad_outcome("isDefault")
        ('deny', 'two_year_recid', 'isDefault')
        >>> bad_outcome("paid"), bad_outcome("mortgage")
        (None, None)
        >>> bad_outcome("action", {"denied": 1.0, "approved": 0.0})
        'denied'
        >>> bad_outcome("deny", {"yes": 1.0, "no": 0.0})
        'deny'
    """
    best = max((values or {}).values(), default=0.0)
    top = [word for word, worth in (values or {}).items() if worth == best]
    for word in top:
        if is_bad(word):
            return word
    # "yes" says nothing by itself, and so do numbers: then the name does.
    return reward if is_bad(reward) and all(word.lower() in YES for word in top) else None


def is_bad(name: str) -> bool:
    """Whether a name contains a word for an outcome that is bad for people.

    Example:
        >>> from evenhand._columns.words import is_bad
        >>> is_bad("denied"), is_bad("loan_default"), is_bad("approved")
        (True, True, False)
    """
    parts = re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()
    return any(WORDS.match(part) for part in re.split(r"[^a-z]+", parts))


PACKAGE = str(Path(__file__).parents[1])


def tell(text: str) -> None:
    """Warn, at the line outside evenhand that gave the table.

    Args:
        text: one line; settings in it are written with `evenhand.errors.setting`.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(InputWarning(text), stacklevel=level)
