"""Checks of input: errors name the parameter, the value and what is allowed."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, InputError, as_given, literal, setting

LARGEST = 1e100  # larger numbers would make sums of squares overflow
LARGEST_WHOLE = 2**53  # beyond it, floats do not hold every whole number
LARGEST_SEED = 2**128 - 1  # as long as the seeds that NumPy draws
# Taking a malformed value apart may raise any of these. They are caught there and nowhere else:
# what raises them later is a mistake in code, and must be seen as one.
MALFORMED = (ValueError, TypeError, LookupError, OverflowError, AttributeError)


def whole(name: str, value: Any, least: int = 1, most: int = LARGEST_WHOLE) -> int:
    """`value` as an int of at least `least` and at most `most`."""
    if isinstance(value, bool) or not _is_whole(value) or value < least:
        raise _refusal(name, value, f"a whole number of at least {least}")
    if value > most:
        raise _refusal(name, value, f"a whole number {_up_to(most)}")
    return int(value)


def _is_whole(value: Any) -> bool:
    if isinstance(value, int):
        return True
    try:
        return bool(math.isfinite(value) and int(value) == value)
    except (TypeError, ValueError, OverflowError):
        return False


def _up_to(most: int) -> str:
    """A limit in words; powers of two are written as such."""
    if most >= 2**32:
        for limit, words in ((most, "up to"), (most + 1, "below")):
            if limit & (limit - 1) == 0:
                return f"{words} 2^{limit.bit_length() - 1}"
    return f"up to {most}"


shown = as_given


def kind(value: Any) -> str:
    """What a value is, for messages about values of the wrong kind.

    Example:
        >>> from evenhand._checks import kind
        >>> kind(3), kind({}), kind(None)
        ('an int', 'a dict', 'None')
    """
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _refusal(name: str, value: Any, allowed: str) -> InputError:
    message = f"{setting(name)} is {as_given(value)}; allowed is {allowed}"
    return InputError(message, parameter=name, value=value, allowed=allowed)


def number(name: str, value: Any, low: float, high: float, *, open_ends: bool = False) -> float:
    """`value` as a finite float between `low` and `high`."""
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    inside = low < result < high if open_ends else low <= result <= high
    if isinstance(value, (bool, str)) or not (math.isfinite(result) and inside):
        raise _refusal(name, value, _range(low, high, open_ends))
    return result


def _range(low: float, high: float, open_ends: bool) -> str:
    strict = " (not equal)" if open_ends else ""
    if high == math.inf:
        return (
            "any finite number"
            if low == -math.inf
            else (f"a finite number {'above' if open_ends else 'of at least'} {low:g}")
        )
    return f"a number between {low:g} and {high:g}{strict}"


def yes_or_no(name: str, value: Any) -> bool:
    """`value` if it is True or False: "no" would count as True.

    Example:
        >>> from evenhand._checks import yes_or_no
        >>> yes_or_no("logistic", "no")
        Traceback (most recent call last):
        evenhand.errors.InputError: logistic is 'no'; allowed is True or False
    """
    if not isinstance(value, (bool, np.bool_)):
        raise _refusal(name, value, f"{literal(True)} or {literal(False)}")
    return bool(value)


def column_name(name: str, value: Any) -> str:
    """The name of one column; a number may be the name of a column of a frame."""
    if not _is_name(value):
        raise _refusal(name, value, "the name of one column")
    return str(value)


def _is_name(value: Any) -> bool:
    return isinstance(value, (str, int, np.integer)) and not isinstance(value, bool)


def column_names(name: str, values: Any, *, alone: bool = False) -> tuple[str, ...]:
    """The names of columns, each once.

    Args:
        name: the setting that lists them.
        values: the names.
        alone: whether a single name may be given as it is, and not in a list.

    Example:
        >>> from evenhand._checks import column_names
        >>> column_names("features", ["age", 3])
        ('age', '3')
        >>> column_names("features", "age")
        Traceback (most recent call last):
        evenhand.errors.InputError: features is 'age'; allowed is a list of columns
    """
    if _is_name(values) and alone:
        return (column_name(name, values),)
    try:
        listed = [None] if isinstance(values, (str, bytes, Mapping)) else list(values)
    except TypeError:
        listed = [None]
    if not all(map(_is_name, listed)):
        raise _refusal(name, values, f"{'a column or ' if alone else ''}a list of columns")
    names = [str(value) for value in listed]
    twice = next((value for value in names if names.count(value) > 1), None)
    if twice is not None:
        raise InputError(
            f"{setting(name)} names column {twice!r} twice; name each once",
            parameter=name,
            value=twice,
        )
    return tuple(names)


def one_of(name: str, value: Any, allowed: Iterable[str]) -> str:
    """`value` if it is one of the allowed words."""
    words = list(allowed)
    if value not in words:
        raise _refusal(name, value, f"one of {', '.join(words)}")
    return str(value)


def numbers(
    name: str, values: Any, shape: tuple[int, ...] | None = None, *, missing: bool = False
) -> NDArray[np.float64]:
    """`values` as an array of finite numbers of this shape.

    Args:
        name: their name in the error.
        values: the numbers.
        shape: the shape that they must have; by default any.
        missing: whether NaN is allowed.
    """
    unmasked(name, values)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f"{setting(name)} is not a table of numbers; allowed are finite numbers"
        ) from None
    if shape is not None and array.shape != shape:
        raise DataError(
            f"{setting(name)} has shape {array.shape}; allowed is {shape}", value=array.shape
        )
    bad = np.isinf(array) if missing else ~np.isfinite(array)
    if bad.any():
        problem = "an infinity" if missing else "a NaN or an infinity"
        exception = ", and NaN where it is missing" if missing else ""
        raise DataError(
            f"{setting(name)} has {problem}; allowed are finite numbers{exception}",
            value=float(array[bad][0]),
        )
    return array


def unmasked(name: str, values: Any) -> None:
    """Refuse masked values, because NumPy would use the numbers below the mask.

    Args:
        name: their name in the error.
        values: anything, also lists of masked arrays or masked values.

    Example:
        >>> import numpy as np
        >>> from evenhand._checks import unmasked
        >>> unmasked("x", np.ma.array([1.0, 99.0], mask=[False, True]))
        Traceback (most recent call last):
        evenhand.errors.DataError: x has masked values; allowed are numbers: leave these rows out
    """
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values):
            raise DataError(
                f"{setting(name)} has masked values; allowed are numbers: leave these rows out"
            )
    elif isinstance(values, (list, tuple)):
        for value in values:
            if isinstance(value, (np.ma.MaskedArray, list, tuple)):
                unmasked(name, value)


def is_missing(label: object) -> bool:
    """Whether a label is missing: None, NaN, or pandas' NA or NaT.

    Example:
        >>> import pandas as pd
        >>> from evenhand._checks import is_missing
        >>> [is_missing(label) for label in (None, float("nan"), pd.NA, pd.NaT, "F", 0)]
        [True, True, True, True, False, False]
    """
    # A live policy does not need pandas otherwise, and importing it is a third of its start-up.
    pandas_na = getattr(sys.modules.get("pandas"), "NA", None)
    return label is None or label is pandas_na or bool(label != label)


Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Whole = NDArray[np.int64]


def whole_numbers(name: str, values: Any, rows: int, below: int) -> Whole:
    """`values` as numbers of arms or groups: whole, from 0 to `below` - 1, one per row."""
    array = numbers(name, values, (rows,))
    wrong = (array != np.floor(array)) | (array < 0) | (array >= below)
    if wrong.any():
        raise DataError(
            f"{setting(name)} has {array[wrong][0]:g}; allowed are whole numbers from 0 to "
            f"{below - 1}",
            value=float(array[wrong][0]),
        )
    return array.astype(np.int64)
