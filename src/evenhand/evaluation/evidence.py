"""Whether a number rests on enough: three words, and why."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand.evaluation.intervals import Ends
from evenhand.evaluation.measures import Means, Measure

SUFFICIENT, INSUFFICIENT, UNKNOWN = "sufficient", "insufficient evidence", "not known"
ORDER = (SUFFICIENT, INSUFFICIENT, UNKNOWN)


class Row(NamedTuple):
    """A number with its interval, what it rests on, and whether that is enough."""

    estimate: float
    low: float
    high: float
    n: int
    evidence: str
    why: str


def judged(ends: Ends, n: float, least: int, flat: bool = False) -> Row:
    """One number.

    Args:
        ends: the number and its interval.
        n: what it rests on.
        least: fewer than this many are not enough.
        flat: whether all values are equal, so that their spread says nothing of their noise.
    """
    estimate, low, high = (float(end) for end in ends)
    if np.isnan(estimate):
        why = "there are no values" if n == 0 else "it is not defined for these values"
        return Row(np.nan, np.nan, np.nan, int(n), UNKNOWN, why)
    if n < least:
        return Row(estimate, low, high, int(n), INSUFFICIENT, f"n is {n:.0f}, less than {least}")
    if flat:
        why = "all values are equal, so their spread is not known"
        return Row(estimate, low, high, int(n), INSUFFICIENT, why)
    return Row(estimate, low, high, int(n), SUFFICIENT, "")


def rows(measure: Measure, level: float, least: int) -> list[Row]:
    """The numbers of all groups."""
    ends = measure.ends(level)
    return [
        judged(Ends(*(end[g] for end in ends)), measure.n[g], least, is_flat(measure, g))
        for g in range(len(measure.n))
    ]


def is_flat(measure: Measure, group: int) -> bool:
    """Whether a mean is one of equal values."""
    return isinstance(measure, Means) and not measure.error[group] > 0.0


def compared(ends: Ends, one: Row, two: Row, names: tuple[str, str]) -> Row:
    """A difference or ratio of two groups: no better known than the worse of them."""
    worst, whose = max(
        ((one, names[0]), (two, names[1])), key=lambda pair: ORDER.index(pair[0].evidence)
    )
    n = min(one.n, two.n)
    estimate, low, high = (float(end) for end in ends)
    if np.isnan(estimate):
        why = f"group {whose}: {worst.why}" if worst.why else "it is not above 0 beyond doubt"
        return Row(np.nan, np.nan, np.nan, n, UNKNOWN, why)
    why = f"group {whose}: {worst.why}" if worst.why else ""
    return Row(estimate, low, high, n, worst.evidence, why)
