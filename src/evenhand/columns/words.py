"""Values as people write them, and the names that are made of columns and values.

There is one of each, so that a world, an audit and an experiment file speak of the same things by
the same names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from evenhand.prose import quoted

INTERCEPT = "intercept"
MISSING, OTHER = "missing", "other"  # categories of their own
# What everybody reads as a number; engines differ in what else they take for one.
NUMBER = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"


def word(value: Any) -> str:
    """A value in a name: whole numbers without a decimal point.

    Example:
        >>> from evenhand.columns.words import word
        >>> word(2.0), word(2.5), word("F ")
        ('2', '2.5', 'F ')
    """
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return str(int(value)) if whole else str(value)


def written(value: Any) -> str:
    """A value to be compared with what somebody wrote: without the spaces around it."""
    return word(value).strip()


def as_written(text: str) -> float | int | None:
    """The number that a text is, if it is one.

    Example:
        >>> from evenhand.columns.words import as_written
        >>> as_written("-9"), as_written("2.50"), as_written("nan"), as_written("1_000")
        (-9, 2.5, None, None)
    """
    try:
        found = float(text)
    except ValueError:
        return None
    if not math.isfinite(found) or "_" in text:
        return None
    return int(text) if text.strip().lstrip("+-").isdigit() else found


def shown(names: Iterable[str]) -> str:
    """Names or values in a row, in quotes where a blank or comma would run them together.

    Example:
        >>> from evenhand.columns.words import shown
        >>> shown(["age", "home town", ""])
        "age, 'home town', ''"
    """
    return ", ".join(quoted(one) for one in names)


def category(column: str, value: Any) -> str:
    """The name of a category as a feature, or as a group.

    Example:
        >>> from evenhand.columns.words import category
        >>> category("job", "cook"), category("black", 1.0)
        ('job=cook', 'black=1')
    """
    return f"{column}={word(value)}"


def gap(column: str) -> str:
    """The name of the 0/1 feature that says where a number was filled in.

    Example:
        >>> from evenhand.columns.words import gap
        >>> gap("age")
        'age is missing'
    """
    return f"{column} is {MISSING}"


def other(column: str, known: Iterable[str]) -> str:
    """The name of the feature of all merged categories, where "other" may be one of the known."""
    return category(column, OTHER if OTHER not in known else f"({OTHER})")
