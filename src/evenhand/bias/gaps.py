"""The largest difference and the smallest ratio between groups at one context."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import stdtrit

from evenhand.bias.comparing import NOT, compare
from evenhand.bias.statistics import Array

if TYPE_CHECKING:
    from evenhand.bias.report import BiasReport


class Gap(NamedTuple):
    """Two groups, and how far the feedback for them is apart.

    `why` says what is in the way where the numbers are NaN, and which groups were left out.
    """

    lower: str
    higher: str
    estimate: float
    low: float
    high: float
    why: str = ""


def largest_difference(report: BiasReport, place: Array | None) -> Gap:
    """Higher less lower, of the pair that is furthest apart."""
    known, why = _known(report, place)
    if place is None or len(known) < 2:
        return Gap("", "", np.nan, np.nan, np.nan, why)
    pairs = list(combinations(known, 2))
    own = np.eye(len(report.groups))
    weights = np.array([own[a] - own[b] for a, b in pairs])
    rows = np.tile(place, (len(pairs), 1))
    found = compare(report._fit, weights, rows, report.level, report.features)
    far = int(np.argmax(np.abs(found.estimate)))
    higher, lower = pairs[far]
    ends = found.all_low[far], found.all_high[far]
    if found.estimate[far] < 0.0:
        higher, lower, ends = lower, higher, (-ends[1], -ends[0])
    return Gap(
        report.groups[lower],
        report.groups[higher],
        float(abs(found.estimate[far])),
        float(ends[0]),
        float(ends[1]),
        why,
    )


def smallest_ratio(report: BiasReport, place: Array | None) -> Gap:
    """Lowest over highest, with Fieller's interval: exact for a ratio of two normal estimates.

    Degrees of freedom are the smaller of the two; the level makes up for having picked the pair.
    """
    known, why = _known(report, place)
    if place is None or len(known) < 2:
        return Gap("", "", np.nan, np.nan, np.nan, why)
    fit, own = report._fit, np.eye(len(report.groups))[known]
    found = compare(fit, own, np.tile(place, (len(known), 1)), report.level, report.features)
    if not (found.all_low > 0.0).all():
        why = NOT + "the feedback is not positive beyond doubt at this context"
        return Gap("", "", np.nan, np.nan, np.nan, why)
    lower, higher = int(np.argmin(found.estimate)), int(np.argmax(found.estimate))
    pairs = len(known) * (len(known) - 1) / 2
    freedom = min(found.freedom[lower], found.freedom[higher])
    t = float(stdtrit(freedom, 1.0 - (1.0 - report.level) / (2.0 * pairs)))
    a, b = float(found.estimate[lower]), float(found.estimate[higher])
    # (a - r b)^2 <= t^2 (Va - 2 r C + r^2 Vb), solved for r.
    outer = b**2 - (t * float(found.error[higher])) ** 2
    inner = a**2 - (t * float(found.error[lower])) ** 2
    cross = a * b - t**2 * fit.covariance(known[lower], known[higher], place)
    root = math.sqrt(max(cross**2 - outer * inner, 0.0))
    names = report.groups[known[lower]], report.groups[known[higher]]
    if outer <= 0.0:
        return Gap(*names, np.nan, np.nan, np.nan, NOT + "the highest feedback may be zero")
    return Gap(*names, a / b, (cross - root) / outer, (cross + root) / outer, why)


def _known(report: BiasReport, place: Array | None) -> tuple[list[int], str]:
    """The groups whose feedback is known at a context, and what is to be said of the others."""
    if place is None:
        return [], NOT + "the average context is not known; give context"
    fit = report._fit
    reached = fit.reaches(fit.designs.reaches(place[None]))[:, 0]
    known = [int(g) for g in np.flatnonzero(reached)]
    if len(known) < 2:
        return known, NOT + "fewer than two groups are known at this context"
    left_out = [name for name, ok in zip(report.groups, reached, strict=True) if not ok]
    return known, f"without group {', '.join(left_out)}" if left_out else ""
