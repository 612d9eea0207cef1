"""Values in an engine: constants, numbers, and what is missing."""

from __future__ import annotations

from typing import Any


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
