"""Values as people write them: marks that stand for a missing value, and words for a reward.

A value is compared with a word by what the column is: text without the spaces around it, numbers
as numbers, so that "-9" is the -9 of a column of whole numbers and the -9.0 of one of doubles.

Values in an engine: constants, numbers, and what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from evenhand import _checks
from evenhand.errors import InputError, literal, setting
from evenhand.prose import quoted

# What every engine reads as a number; casts differ in what else they take for one.
NUMBER = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
EVERY = "*"  # in place of a column's name: marks of all columns
# What people write where they have no value; a hint in messages and nothing more.
LIKELY = ("", "?", "-", "--", ".", "na", "n/a", "nan", "null", "none", "unknown")


def split_marks(given: Any) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """The marks of all columns, and those of single columns by name, as words, checked.

    Args:
        given: a list, or lists by column, {"*": ["?"], "age": [-1]}, with "*" for all columns.

    Example:
        >>> from evenhand.audit.input.expressions import split_marks
        >>> split_marks({"*": ["?"], "age": [-1.0]})
        (('?',), {'age': ('-1',)})
    """
    if not isinstance(given, Mapping):
        return marks_of(given), {}
    for name in given:
        if not isinstance(name, str):
            raise InputError(
                f"{setting('missing_marks')} has {name!r} for a column; allowed are names of "
                f"columns, and {EVERY!r} for all of them"
            )
    own = {
        name: marks_of([marks] if isinstance(marks, Real) else marks)
        for name, marks in given.items()
    }
    every = own.pop(EVERY, ())
    return every, {name: marks for name, marks in own.items() if marks}


def marks_of(given: Any) -> tuple[str, ...]:
    """Marks of a list as words, checked."""
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, Collection) or isinstance(listed, Mapping):
        raise InputError(
            f"{setting('missing_marks')} is {given!r}; allowed is a list of texts and numbers, "
            f"such as {literal(['?', 'NA', -9])}, or such lists by column, "
            f"{literal({'age': [-1]})}",
            value=given,
        )
    for one in listed:
        if isinstance(one, bool) or not isinstance(one, (str, Real)):
            raise InputError(
                f"{setting('missing_marks')} has {one!r}; allowed are texts and numbers"
            )
    return tuple(dict.fromkeys(word(one) for one in listed))


def numbers_for(values: Any) -> dict[str, float] | None:
    """What every value of a reward in words is worth, checked."""
    if values is None:
        return None
    if not isinstance(values, Mapping) or not values:
        raise InputError(
            f"{setting('reward_values')} is {values!r}; allowed is a number for every value of the "
            f"reward, such as {literal({'approved': 1, 'denied': 0})}",
            value=values,
        )
    found = {
        word(name): _checks.number(f"reward_values[{name!r}]", worth, -1e100, 1e100)
        for name, worth in values.items()
    }
    if len(found) < len(values):
        raise InputError(
            f"{setting('reward_values')} is {values!r}; it has the same value twice", value=values
        )
    return found


def word(value: Any) -> str:
    """A value as text, without spaces around it; whole numbers without a decimal point."""
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return (str(int(value)) if whole else str(value)).strip()


def shown(names: Iterable[str]) -> str:
    """Names or values in a row, in quotes where a blank or comma would run them together.

    Example:
        >>> from evenhand.audit.input.expressions import shown
        >>> shown(["age", "home town", ""])
        "age, 'home town', ''"
    """
    return ", ".join(quoted(one) for one in names)


def as_written(text: str) -> float | int | None:
    """The number that a word is, if it is one."""
    try:
        found = float(text)
    except ValueError:
        return None
    if not math.isfinite(found) or "_" in text:
        return None
    return int(text) if text.lstrip("+-").isdigit() else found


def equals(column: Any, words: Sequence[str]) -> Any | None:
    """Whether a value is one of the words; None where no value of such a column can be."""
    kind = column.type()
    if kind.is_string():
        return column.strip().isin(list(words))
    if kind.is_boolean():
        known = [one.lower() == "true" for one in words if one.lower() in ("true", "false")]
        return column.isin(known) if known else None
    if not kind.is_numeric():
        return None
    found = [one for one in map(as_written, words) if one is not None]
    if kind.is_integer():
        low, high = kind.bounds
        whole = [int(one) for one in found if one == int(one) and low <= one <= high]
        return column.isin(whole) if whole else None
    if kind.is_float32():
        found += [_single(one) for one in found]
    return as_number(column).isin([number(one) for one in found]) if found else None


def _single(value: float) -> float:
    """The number that a column of single precision holds in its place."""
    with np.errstate(over="ignore"):
        near = float(np.float32(value))
    return near if math.isfinite(near) else value


def without(column: Any, words: Sequence[str]) -> Any:
    """A column with nothing where it had one of the words; with words also for empty text."""
    import ibis

    here = equals(column, ("", *words)) if words else None
    return column if here is None else here.ifelse(ibis.null(column.type()), column)


def number(value: float) -> Any:
    """A constant as a double: as a decimal number it would lose digits."""
    import ibis

    return ibis.literal(float(value), type="float64")


def as_number(column: Any) -> Any:
    """A column as doubles; PostgreSQL turns true and false into nothing but integers."""
    return (column.cast("int32") if column.type().is_boolean() else column).cast("float64")


def is_missing(column: Any) -> Any:
    """Whether a value is missing: NULL, or NaN in columns that can hold it."""
    gone = column.isnull()
    return gone | column.isnan().coalesce(False) if column.type().is_floating() else gone
