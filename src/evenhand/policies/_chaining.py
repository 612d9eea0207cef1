"""Chains of overlapping intervals, for rules that have a field `two_passes`.

The interval of an arm is that of its score: estimate and correction, with the widths of both.
"""

from __future__ import annotations

import numpy as np

from evenhand._compile import compiled, woven
from evenhand.policies._defaults import best
from evenhand.policies._state import CORRECTION, CORRECTION_WIDTH, ESTIMATE, UPPER, WIDTH


@woven
def chained_arms(rule, memory, allowed):  # type: ignore[no-untyped-def]
    """The allowed arms whose intervals are chained to the highest of them, as a mask."""
    return _chain(rule.two_passes, memory.work, allowed, best(memory, allowed, 0.0))


@compiled
def _chain(two_passes, work, available, top):  # type: ignore[no-untyped-def]
    """The arms linked by overlapping intervals to the one with the highest upper end."""
    n = available.size
    lower, upper = np.empty(n), work[UPPER]
    for i in range(n):
        middle = work[ESTIMATE, i] + work[CORRECTION, i]
        lower[i] = middle - (work[WIDTH, i] + work[CORRECTION_WIDTH, i])
    if two_passes:
        return _two_passes(lower, upper, available, top)
    return _closure(lower, upper, available, top)


@compiled
def _closure(lower, upper, available, top):  # type: ignore[no-untyped-def]
    """No upper end is above the top one's, so an arm joins if it reaches the chain's lower end."""
    chained = np.zeros(available.size, dtype=np.bool_)
    chained[top] = True
    low, grew = lower[top], True
    while grew:
        grew = False
        for i in range(available.size):
            if available[i] and not chained[i] and upper[i] >= low:
                chained[i] = True
                if lower[i] < low:
                    low, grew = lower[i], True
    return chained


@compiled
def _two_passes(lower, upper, available, top):  # type: ignore[no-untyped-def]
    """The chain of the authors' code: two passes over the arms by index, with a span [low, high].

    If an interval overlaps the lower end of the span, that end becomes the interval's *upper* end.
    So the span shrinks where it should grow, and links are missed.
    """
    chained = np.zeros(available.size, dtype=np.bool_)
    chained[top] = True
    low, high = lower[top], upper[top]
    for _ in range(2):
        for i in range(available.size):
            if not available[i]:
                continue
            if low <= lower[i] <= high:
                high = max(high, upper[i])
            elif low <= upper[i] <= high:
                low = upper[i]
            elif upper[i] >= high and lower[i] <= low:
                low, high = lower[i], upper[i]
            else:
                continue
            chained[i] = True
    return chained
