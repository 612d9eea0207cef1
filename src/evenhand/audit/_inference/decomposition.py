"""The gap explained: which part of an unadjusted gap the features account for, and what is left.

After Kitagawa (1955), Oaxaca (1973) and Blinder (1973). With the average context of everyone c, and
the average m and the vector b of a group g and of the reference r:

    mean reward of g less that of r  =  c'(b_g - b_r)  +  (m_g - c)'b_g + (c - m_r)'b_r
            the unadjusted gap             what is left        explained by the features

What is left is the gap at the average context, the number that the rest of the audit reports. The
features' part is a sum over columns: how far the groups differ in each, valued by the groups' own
coefficients. (With two groups, each one's coefficients are weighted by the size of the other.)

Where arms weigh the same, or the time window is held constant, the vectors no longer reproduce the
mean rewards: the difference is a part of its own, for who met which arm, or who came when.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from evenhand._columns.column import Column
from evenhand.audit._inference.group_averages import Averages
from evenhand.bias._contrasts import compare
from evenhand.bias._fit import ARMS
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Array
from evenhand.fairness._comparisons import divided
from evenhand.fairness._group_metrics import BY_REWARD as SELECTED

if TYPE_CHECKING:
    from evenhand.fairness import FairnessReport

UNADJUSTED, EXPLAINED, FEATURE, LEFT = "unadjusted", "explained", "feature", "left"
ARMS_PART, TIME, BOTH = "arms", "time", "arms and time"
MEAN_REWARD = "mean_reward"
COLUMNS = ["group", "part", "column", "estimate", "low", "high", "why"]
LINEAR_MODEL, LOGISTIC_MODEL = "straight lines", "logistic"

Interval = tuple[float, float, float]
Unadjusted = Callable[[int, int, float], Interval]  # group, reference and level
Part = tuple[str, str, str, float, float, float, str]  # a row, as COLUMNS says


def welch(means: Averages) -> Unadjusted:
    """The difference of two mean rewards, with Welch's interval.

    The groups' variances need not be equal. The degrees of freedom are Welch's and Satterthwaite's,

        (v_1 + v_2)^2 / (v_1^2 / f_1 + v_2^2 / f_2)

    with v the variance of a mean and f its degrees of freedom. Rewards that do not vary in either
    group leave no error, and the interval is a point.
    """

    def interval(group: int, reference: int, level: float) -> Interval:
        pair = [group, reference]
        parts, own = np.diag(means.of_rewards)[pair], means.freedom[pair]
        estimate = float(means.reward[group] - means.reward[reference])
        total = parts.sum() - 2.0 * means.of_rewards[group, reference]
        if np.isnan(total):  # a single row or cluster says nothing about the error
            return estimate, np.nan, np.nan
        if total <= 0.0:
            return estimate, estimate, estimate
        # Satterthwaite's sum is for independent variances.
        freedom = own.min() if means.shared else parts.sum() ** 2 / np.sum(parts**2 / own)
        half_width = float(stdtrit(freedom, (1.0 + level) / 2.0) * np.sqrt(total))
        return estimate, estimate - half_width, estimate + half_width

    return interval


def unadjusted_by(
    metrics: FairnessReport, groups: tuple[str, ...], means: Averages, *, weighted: bool
) -> Unadjusted:
    """The interval that the metrics give for the same number, so that there is only one.

    Args:
        metrics: of the same log.
        groups: in the order of `means`.
        means: for rows with weights, which the metrics do not know.
        weighted: whether rows have weights.
    """
    rate = SELECTED in metrics.metrics
    if weighted or not (rate or MEAN_REWARD in metrics.metrics):
        return welch(means)
    measure = metrics._measure(SELECTED if rate else MEAN_REWARD)
    at = [metrics.groups.index(name) for name in groups]
    # Where a higher reward is worse, rewards of 0 are selected, and the gap is one of rewards.
    sign = -1.0 if rate and metrics.sums.has("favourable") else 1.0

    def interval(group: int, reference: int, level: float) -> Interval:
        ends = measure.difference(at[group], at[reference], level)
        estimate, low, high = (sign * float(np.squeeze(end)) for end in ends)
        return estimate, min(low, high), max(low, high)

    return interval


def decomposition(
    report: BiasReport,
    means: Averages,
    columns: tuple[Column, ...],
    unadjusted: Unadjusted,
    within: bool = False,
) -> pd.DataFrame:
    """A row per part and per group except the reference: all intervals of a kind hold at once.

    The averages of the groups are estimates, and the intervals of what is explained say so. The
    average context of everyone is taken as given, as everywhere in a report.

    Args:
        report: about the centres, as `means` are.
        means: of the groups.
        columns: with the features that each became.
        unadjusted: the interval of the unadjusted gap.
        within: whether the report has the time window held constant.
    """
    names, overall = report.groups, report.overall
    reference = reference_of(report)
    others = [g for g in range(len(names)) if g != reference]
    left = _left(report, reference)
    table: list[Part] = []
    level = divided(report.level, len(others))
    by_arms = report.weighting == ARMS
    otherwise = BOTH if by_arms and within else TIME if within else ARMS_PART if by_arms else ""
    for g in others:
        raw = unadjusted(g, reference, level)
        table.append((names[g], UNADJUSTED, "", *raw, ""))
        rest, low, high, why = left[g]
        if overall is None or np.isnan(rest):
            table.append((names[g], LEFT, "", np.nan, np.nan, np.nan, why))
            continue
        away = np.array([means.context[g] - overall, overall - means.context[reference]])
        away[:, 0] = 0.0  # the intercept is the same for all
        pair = (g, reference)
        whole = part_of(report, means, pair, away, range(len(overall)), level)
        if not otherwise:  # the identity holds, and keeps every digit
            # The sum of the parts is the gap, exactly. What is explained is taken as the
            # difference, and its interval moves along by rounding.
            moved = raw[0] - rest - whole[0]
            whole = (raw[0] - rest, whole[1] + moved, whole[2] + moved)
        table.append((names[g], EXPLAINED, "", *whole, ""))
        narrow = divided(level, len(columns))
        for column in columns:
            single = part_of(report, means, pair, away, column.features, narrow)
            unknown = "" if np.isfinite(single[0]) else "not known apart from other features"
            table.append((names[g], FEATURE, column.name, *single, unknown))
        if otherwise:
            remains = raw[0] - rest - whole[0]
            table.append((names[g], otherwise, "", remains, np.nan, np.nan, "no interval"))
        table.append((names[g], LEFT, "", rest, low, high, why))
    return pd.DataFrame(table, columns=COLUMNS).assign(model=LINEAR_MODEL)


def reference_of(report: BiasReport) -> int:
    """The group to compare with; the largest where that is the mean of all."""
    if report.reference is not None:
        return report.groups.index(report.reference)
    return int(np.argmax(report.observations))


def _left(report: BiasReport, reference: int) -> dict[int, tuple[float, float, float, str]]:
    """The gap of each group at the average context of everyone: the headline's own numbers."""
    if report.reference is not None:
        rows = report.by_group
        ends = rows[["estimate", "simultaneous_low", "simultaneous_high", "why"]]
        return {
            g: (float(row[0]), float(row[1]), float(row[2]), str(row[3]))
            for g, row in enumerate(ends.itertuples(index=False))
        }
    if report.overall is None:
        return dict.fromkeys(range(len(report.groups)), (np.nan, np.nan, np.nan, ""))
    identity = np.eye(len(report.groups))
    contexts = np.tile(report.overall, (len(identity), 1))
    gaps = compare(
        report._fit, identity - identity[reference], contexts, report.level, report.features
    )
    return {
        g: (float(gaps.estimate[g]), float(gaps.all_low[g]), float(gaps.all_high[g]), gaps.why[g])
        for g in range(len(identity))
    }


def part_of(
    report: BiasReport,
    means: Averages,
    pair: tuple[int, int],
    away: Array,
    numbers: Sequence[int],
    level: float,
    slopes: Sequence[float] = (1.0, 1.0),
) -> Interval:
    """What some features explain: the estimate and its interval, by the delta method.

    Its variance is that of the coefficients at these averages, plus that of the averages at these
    coefficients; that of the product of both errors is smaller than either by 1 / n. `away` is how
    far the averages of the pair are from everyone's, and `slopes` multiplies it.
    """
    features = np.array(numbers, dtype=np.int64)
    contexts = np.zeros_like(away)
    contexts[:, features] = np.array(slopes)[:, None] * away[:, features]
    if not contexts.any():
        return 0.0, 0.0, 0.0
    weights = np.eye(len(report.groups))[list(pair)]
    weights[~contexts.any(axis=1)] = 0.0
    parts = compare(report._fit, weights, contexts, report.level, report.features)
    estimate = float(parts.estimate.sum())
    variance = float(np.sum(parts.error**2))
    # The average of the reference counts with a minus: what is explained is (m_g - c)'b_g + (c -
    # m_r)'b_r. Where clusters have rows in both groups, the two averages move together.
    inside = np.ix_(features, features)
    own = [
        sign * slope * report._fit.vectors[g][features]
        for sign, slope, g in zip((1.0, -1.0), slopes, pair, strict=True)
    ]
    for i, g in enumerate(pair):
        for j, h in enumerate(pair):
            variance += float(own[i] @ means.of_contexts(g, h)[inside] @ own[j])
    freedom = float(np.nanmin([*parts.freedom, means.freedom[list(pair)].min()]))
    half_width = float(stdtrit(freedom, (1.0 + level) / 2.0)) * np.sqrt(max(variance, 0.0))
    return estimate, estimate - half_width, estimate + half_width
