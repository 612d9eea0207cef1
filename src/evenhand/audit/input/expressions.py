"""Values in an engine: constants, numbers, what is missing, and whether one is a word.

A value is compared with a word as `evenhand.columns.marks` does it in a frame.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from evenhand.columns.words import as_written


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
