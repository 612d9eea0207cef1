"""The bias of groups at contexts: a difference of the groups' vectors, and its interval.

Here are also the largest difference and the smallest ratio between groups at a context.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from evenhand.bias._fit import Fit
from evenhand.bias.statistics import Array, Bools

if TYPE_CHECKING:
    from evenhand.bias.report import BiasReport


NOT = "not identified: "
POWER = 0.8  # of the test for a bias of the size that is called detectable


class Comparison(NamedTuple):
    """A row per question "how much is this group's feedback distorted at this context?".

    `low` and `high` are an interval for its row alone; `all_low` and `all_high` hold for all rows
    at once. `detectable` is the smallest size that these tell from zero with 80 % power.
    Where `why` starts with "not identified", all numbers are NaN.
    """

    estimate: Array
    error: Array
    freedom: Array
    low: Array
    high: Array
    all_low: Array
    all_high: Array
    p_value: Array
    all_p_value: Array
    detectable: Array
    why: list[str]

    @property
    def identified(self) -> Bools:
        """Where there is a number."""
        return ~np.isnan(self.estimate)


def contrasts(fit: Fit, reference: int | None) -> Array:
    """The contrast that is the bias of each group (row): a weight for each group's vector (column).

    Without a reference it is the vector less the mean of all groups that are known at all; NaN if
    no other group is.
    """
    own: Array = np.eye(len(fit.blocked))
    if reference is not None:
        against: Array = own - own[reference]
        return against
    weights: Array = own - fit.usable / max(int(fit.usable.sum()), 1)
    weights[~weights.any(axis=1)] = np.nan  # a group that would be compared with itself
    return weights


def compare(
    fit: Fit,
    weights: Array,
    contexts: Array,
    level: float,
    features: tuple[str, ...],
) -> Comparison:
    """The bias with these weights of the groups' vectors at these contexts, row by row.

    With weights w_g at a context x, the estimate is sum w_g x'b_g. Its variance is the sum of
    v_g = w_g^2 x'V_g x, plus the covariances where the fit says that groups are dependent. Degrees
    of freedom are Welch's and Satterthwaite's, (sum v_g)^2 / sum (v_g^2 / f_g); for dependent
    groups they are the fewest. The intervals for all rows at once are Bonferroni's: valid however
    the rows depend on each other. Rows that say the same, up to the sign, count once.

    Args:
        fit: the groups' vectors.
        weights: (rows, groups).
        contexts: (rows, features).
        level: of the intervals.
        features: their names, for the reasons.
    """
    needed = weights != 0.0
    empty = ~needed.any(axis=1)
    shown = fit.designs.reaches(contexts)
    reached = fit.reaches(shown).T
    # A group with the weight 0 need not be known there.
    known = (reached | ~needed).all(axis=1) & ~np.isnan(weights).any(axis=1)
    estimate = np.sum(np.where(needed, weights * (contexts @ fit.vectors.T), 0.0), axis=1)
    spread = np.einsum("gqi,qi->qg", contexts @ fit.covariances, contexts)
    # A variance may come out slightly negative where columns are almost collinear.
    parts = np.where(needed & reached, weights**2 * np.maximum(spread, 0.0), 0.0)
    variance = parts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = parts / variance[:, None]
        freedom = 1.0 / np.sum(np.where(parts > 0.0, share**2 / fit.freedom, 0.0), axis=1)
    if fit.between is not None:
        used = np.where(needed & reached, weights, 0.0)
        whole = np.einsum("qg,qh,qi,ghij,qj->q", used, used, contexts, fit.between, contexts)
        # Covariances that cancel do not make an estimate certain.
        variance = np.maximum(whole, 1e-12 * variance)
        freedom = np.min(np.where(parts > 0.0, fit.freedom, np.inf), axis=1)
    error = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(error > 0.0, np.abs(estimate) / error, np.where(estimate == 0.0, 0, np.inf))
    estimate, error, freedom, size = (
        np.where(known, column, np.nan) for column in (estimate, error, freedom, size)
    )
    many = how_many(weights[known & ~empty], contexts[known & ~empty])
    alpha = 1.0 - level
    half_width = stdtrit(freedom, 1.0 - alpha / 2.0) * error
    reach_all = -stdtrit(freedom, alpha / (2.0 * max(many, 1))) * error
    # An estimate of this size is beyond the critical value with probability POWER: the critical
    # value and a quantile of the estimate's own error on top.
    detectable = reach_all + stdtrit(freedom, POWER) * error
    detectable[empty] = np.nan
    p_value = 2.0 * stdtr(freedom, -size)
    p_value[empty] = freedom[empty] = np.nan  # 0 by definition: there is nothing to test
    return Comparison(
        estimate,
        error,
        freedom,
        estimate - half_width,
        estimate + half_width,
        estimate - reach_all,
        estimate + reach_all,
        p_value,
        np.minimum(many * p_value, 1.0),
        detectable,
        [
            "" if known[q] else NOT + why_not(fit, weights[q], contexts[q], shown[:, q], features)
            for q in range(len(contexts))
        ],
    )


def how_many(weights: Array, contexts: Array) -> int:
    """How many rows differ. Rows that differ only in their sign, as of two groups, are the same."""
    if not len(weights):
        return 0
    # Multiplied by the sign of their first weight, A less B and B less A become the same row.
    leading = np.take_along_axis(weights, np.argmax(weights != 0.0, axis=1)[:, None], axis=1)
    _, first = np.unique((weights * np.sign(leading)).round(12), axis=0, return_inverse=True)
    _, second = np.unique(contexts, axis=0, return_inverse=True)
    return len(np.unique(np.stack([first.ravel(), second.ravel()]), axis=1).T)


def why_not(
    fit: Fit, weights: Array, context: Array, shown: Bools, features: tuple[str, ...]
) -> str:
    """Why the bias is not known here, in words: the group's own reason before another's."""
    if np.isnan(weights).any():
        return "no other group to compare with"
    group = int(np.argmax(weights))
    for g in [group, *np.flatnonzero(weights).tolist()]:
        if fit.blocked[g]:
            return fit.blocked[g] + ("" if g == group else ", and the reference needs it")
    unseen = np.flatnonzero(~shown & (weights[fit.of] != 0.0))
    first = min(unseen, key=lambda row: bool(fit.of[row] != group))
    unseen_group = fit.of[first]
    everywhere = not shown[fit.of == unseen_group].any()  # then there is no need to name an arm
    where = fit.homes[unseen_group] if everywhere else fit.labels[first]
    return _gap(fit, int(first), where, context, features)


def _gap(fit: Fit, row: int, where: str, context: Array, features: tuple[str, ...]) -> str:
    """Why a regression says nothing about a context."""
    designs = fit.designs
    wanted = np.flatnonzero(context).astype(np.int64)
    zero = [k for k in wanted if designs.absent[row, k]]
    if zero:
        return f"{features[zero[0]]} is always 0 in {where}"
    linked = designs.partners(row, wanted)
    if wanted.size == 1:
        others = [features[k] for k in linked if k != wanted[0]]
        return f"collinear with {few(others)} in {where}"
    names = few([features[k] for k in linked])
    return f"{names} are collinear in {where}, which was never observed at such a context"


def few(names: list[str], most: int = 6) -> str:
    """The first names of a list, and how many more there are."""
    left = len(names) - most
    return ", ".join(names) if left <= 1 else f"{', '.join(names[:most])} and {left} more"


class Gap(NamedTuple):
    """Two groups, and how far the feedback for them is apart.

    `why` says why numbers are NaN, and which groups were left out.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> policy = eh.TopInterval(["F", "F", "M", "M"], n_features=1, seed=1)
        >>> policy.absorb([0, 0, 1, 1, 2, 2, 3, 3], np.ones((8, 1)), [1, 2, 2, 3, 5, 6, 6, 7])
        >>> gap = policy.bias().difference()
        >>> gap.lower, gap.higher, round(gap.estimate, 9)
        ('F', 'M', 4.0)
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
    identity = np.eye(len(report.groups))
    weights = np.array([identity[a] - identity[b] for a, b in pairs])
    rows = np.tile(place, (len(pairs), 1))
    gaps = compare(report._fit, weights, rows, report.level, report.features)
    far = int(np.argmax(np.abs(gaps.estimate)))
    higher, lower = pairs[far]
    ends = gaps.all_low[far], gaps.all_high[far]
    # Turned around, the interval is mirrored and its ends change places.
    if gaps.estimate[far] < 0.0:
        higher, lower, ends = lower, higher, (-ends[1], -ends[0])
    return Gap(
        report.groups[lower],
        report.groups[higher],
        float(abs(gaps.estimate[far])),
        float(ends[0]),
        float(ends[1]),
        why,
    )


def smallest_ratio(report: BiasReport, place: Array | None) -> Gap:
    """Lowest over highest, with Fieller's interval: exact for a ratio of two normal estimates.

    Degrees of freedom are the smaller of the two; the level allows for having picked the pair.
    """
    known, why = _known(report, place)
    if place is None or len(known) < 2:
        return Gap("", "", np.nan, np.nan, np.nan, why)
    fit, identity = report._fit, np.eye(len(report.groups))[known]
    feedback = compare(
        fit, identity, np.tile(place, (len(known), 1)), report.level, report.features
    )
    if not (feedback.all_low > 0.0).all():
        why = NOT + "the feedback is not positive beyond doubt at this context"
        return Gap("", "", np.nan, np.nan, np.nan, why)
    lower, higher = int(np.argmin(feedback.estimate)), int(np.argmax(feedback.estimate))
    pairs = len(known) * (len(known) - 1) / 2
    freedom = min(feedback.freedom[lower], feedback.freedom[higher])
    t = float(stdtrit(freedom, 1.0 - (1.0 - report.level) / (2.0 * pairs)))
    a, b = float(feedback.estimate[lower]), float(feedback.estimate[higher])
    # (a - r b)^2 <= t^2 (Va - 2 r C + r^2 Vb), solved for r.
    outer = b**2 - (t * float(feedback.error[higher])) ** 2
    inner = a**2 - (t * float(feedback.error[lower])) ** 2
    cross = a * b - t**2 * fit.covariance(known[lower], known[higher], place)
    root = math.sqrt(max(cross**2 - outer * inner, 0.0))
    names = report.groups[known[lower]], report.groups[known[higher]]
    # Then no r is excluded far out: the interval is open, or everything.
    if outer <= 0.0:
        return Gap(*names, np.nan, np.nan, np.nan, NOT + "the highest feedback may be zero")
    return Gap(*names, a / b, (cross - root) / outer, (cross + root) / outer, why)


def _known(report: BiasReport, place: Array | None) -> tuple[list[int], str]:
    """The groups whose feedback is known at a context, and a note about the others."""
    if place is None:
        return [], NOT + "the average context is not known; give context"
    fit = report._fit
    reached = fit.reaches(fit.designs.reaches(place[None]))[:, 0]
    known = [int(g) for g in np.flatnonzero(reached)]
    if len(known) < 2:
        return known, NOT + "fewer than two groups are known at this context"
    left_out = [name for name, ok in zip(report.groups, reached, strict=True) if not ok]
    return known, f"without group {', '.join(left_out)}" if left_out else ""
