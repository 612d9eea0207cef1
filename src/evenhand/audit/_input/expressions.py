"""Expressions that mean the same in all engines: constants, casts, missing values, marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from evenhand._columns.words import as_written


def equals(column: Any, words: Sequence[str]) -> Any | None:
    """Whether a value is one of the words; None if no value of such a column can be one."""
    kind = column.type()
    if kind.is_string():
        return column.strip().isin(list(words))
    if kind.is_boolean():
        known = [word.lower() == "true" for word in words if word.lower() in ("true", "false")]
        return column.isin(known) if known else None
    if not kind.is_numeric():
        return None
    values = [value for value in map(as_written, words) if value is not None]
    if kind.is_integer():
        low, high = kind.bounds
        whole = [int(value) for value in values if value == int(value) and low <= value <= high]
        return column.isin(whole) if whole else None
    if kind.is_float32():
        values += [_single(value) for value in values]
    return as_number(column).isin([number(value) for value in values]) if values else None


def _single(value: float) -> float:
    """The number that a column of single precision holds in its place."""
    with np.errstate(over="ignore"):
        near = float(np.float32(value))
    return near if math.isfinite(near) else value


def without(column: Any, words: Sequence[str]) -> Any:
    """A column with null for any of the words, and for empty text too if there are words."""
    import ibis

    here = equals(column, ("", *words)) if words else None
    return column if here is None else here.ifelse(ibis.null(column.type()), column)


def number(value: float) -> Any:
    """A constant as a double: as a decimal number it would lose digits."""
    import ibis

    return ibis.literal(float(value), type="float64")


def as_number(column: Any) -> Any:
    """A column as doubles; PostgreSQL casts true and false only to integers."""
    return (column.cast("int32") if column.type().is_boolean() else column).cast("float64")


def is_missing(column: Any) -> Any:
    """Whether a value is missing: NULL, or NaN in columns that can hold it."""
    is_null = column.isnull()
    return is_null | column.isnan().coalesce(False) if column.type().is_floating() else is_null


def in_words(kind: Any) -> str:
    """What a column holds, as messages say it.

    Example:
        >>> import ibis.expr.datatypes as dt
        >>> from evenhand.audit._input.expressions import in_words
        >>> in_words(dt.string), in_words(dt.Timestamp(scale=6)), in_words(dt.Array(dt.int64))
        ('text', 'times', 'lists')
    """
    kinds = {
        "text": kind.is_string(),
        "true and false": kind.is_boolean(),
        "numbers": kind.is_numeric(),
        "dates": kind.is_date(),
        "times": kind.is_temporal(),
        "lists": kind.is_array(),
        "tables": kind.is_struct() or kind.is_map() or kind.is_json(),
        "bytes": kind.is_binary(),
    }
    return next((words for words, here in kinds.items() if here), str(kind))
