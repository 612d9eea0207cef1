"""Checks at the border, each once: errors name the parameter, the value and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


def whole(name: str, value: Any, least: int = 1) -> int:
    """`value` as an int of at least `least`."""
    if isinstance(value, bool) or not _is_whole(value) or value < least:
        raise ValueError(f"{name} is {value!r}; allowed is a whole number of at least {least}")
    return int(value)


def _is_whole(value: Any) -> bool:
    try:
        return bool(math.isfinite(value) and int(value) == value)
    except (TypeError, ValueError, OverflowError):
        return False


def number(name: str, value: Any, low: float, high: float, *, open_ends: bool = False) -> float:
    """`value` as a finite float between `low` and `high`."""
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    inside = low < result < high if open_ends else low <= result <= high
    if isinstance(value, (bool, str)) or not (math.isfinite(result) and inside):
        raise ValueError(f"{name} is {value!r}; allowed is {_range(low, high, open_ends)}")
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


def one_of(name: str, value: Any, allowed: Iterable[str]) -> str:
    """`value` if it is one of the allowed words."""
    words = list(allowed)
    if value not in words:
        raise ValueError(f"{name} is {value!r}; allowed is one of {', '.join(words)}")
    return str(value)
