"""Checks at the border, each once: errors name the parameter, the value and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

LARGEST_WHOLE = 2**53  # beyond, a float does not hold every whole number
LARGEST_SEED = 2**128 - 1  # as long as those that NumPy draws


def whole(name: str, value: Any, least: int = 1, most: int = LARGEST_WHOLE) -> int:
    """`value` as an int of at least `least` and at most `most`."""
    if isinstance(value, bool) or not _is_whole(value) or value < least:
        raise ValueError(f"{name} is {shown(value)}; allowed is a whole number of at least {least}")
    if value > most:
        raise ValueError(f"{name} is {shown(value)}; allowed is a whole number {_up_to(most)}")
    return int(value)


def _is_whole(value: Any) -> bool:
    if isinstance(value, int):
        return True
    try:
        return bool(math.isfinite(value) and int(value) == value)
    except (TypeError, ValueError, OverflowError):
        return False


def _up_to(most: int) -> str:
    """A limit in words: powers of two are easier to read as such."""
    if most >= 2**32:
        for limit, words in ((most, "up to"), (most + 1, "below")):
            if limit & (limit - 1) == 0:
                return f"{words} 2^{limit.bit_length() - 1}"
    return f"up to {most}"


def shown(value: Any) -> str:
    """`value` for an error of one line, however long it is."""
    if isinstance(value, int) and not -(10**30) < value < 10**30:
        digits = int((abs(value).bit_length() - 1) * math.log10(2.0)) + 1  # or one too few
        return f"a whole number of about {digits} digits"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def number(name: str, value: Any, low: float, high: float, *, open_ends: bool = False) -> float:
    """`value` as a finite float between `low` and `high`."""
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    inside = low < result < high if open_ends else low <= result <= high
    if isinstance(value, (bool, str)) or not (math.isfinite(result) and inside):
        raise ValueError(f"{name} is {shown(value)}; allowed is {_range(low, high, open_ends)}")
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
        raise ValueError(f"{name} is {shown(value)}; allowed is one of {', '.join(words)}")
    return str(value)
