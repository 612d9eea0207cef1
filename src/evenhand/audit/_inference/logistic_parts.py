"""The gap explained by logistic models, where these fit the outcomes and straight lines do not.

The mean over a group's own rows of the chances of its logistic model is its mean reward. So with
P_g the mean chance over the rows of everyone, as if all of them were of group g:

    mean reward of g less that of r  =  P_g - P_r  +  (mean reward of g - P_g) + (P_r - that of r)
            the unadjusted gap         what is left         explained by the features

What is left is the average gap of the logistic models. What is explained is divided among the
features by their parts of the difference in log-odds (Yun 2004), group by group. That needs a slope
between log-odds and chances that a logistic curve has, above 0 and at most a quarter. Where the
averages imply another, as the groups differ in more than their averages, no feature is named.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from evenhand._columns.column import Column
from evenhand.audit._inference.decomposition import (
    COLUMNS,
    EXPLAINED,
    FEATURE,
    LEFT,
    LOGISTIC_MODEL,
    UNADJUSTED,
    Part,
    Unadjusted,
    part_of,
    reference_of,
)
from evenhand.audit._inference.group_averages import Averages
from evenhand.audit._inference.logistic_groups import LogisticFit
from evenhand.bias._contrasts import compare
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Array
from evenhand.fairness._comparisons import divided

STEEPEST = 0.25  # slope of a logistic curve
NOT_SHARED = "not known apart from other features: the groups differ in more than their averages"


def by_logistic(
    lines: pd.DataFrame,
    report: BiasReport,
    fit: LogisticFit,
    means: Averages,
    columns: tuple[Column, ...],
    unadjusted: Unadjusted,
) -> pd.DataFrame:
    """The table of gaps explained, with the logistic models' parts of each group that has them.

    Args:
        lines: the same table by straight lines, for the other groups.
        report: of the straight lines, about the centres.
        fit: the logistic models.
        means: of the groups; rewards are 0 and 1, and their centre is 0.
        columns: with the features that each became.
        unadjusted: the interval of the unadjusted gap.
    """
    reference, many = reference_of(report), len(report.groups)
    identity = np.eye(many)
    left = compare(
        fit.chances, identity - identity[reference], np.ones((many, 1)), report.level, ("chance",)
    )
    odds = replace(report, _fit=fit.odds)
    chance = fit.chances.vectors[:, 0]
    level = divided(report.level, many - 1)
    tables = []
    for g, name in enumerate(report.groups):
        known = np.isfinite(left.estimate[g]) and report.overall is not None
        if g == reference or not known:
            tables.append(lines[lines["group"] == name])
            continue
        raw = unadjusted(g, reference, level)
        rest = (float(left.estimate[g]), float(left.all_low[g]), float(left.all_high[g]))
        away, slopes, shared = _slopes(odds, means, chance, (g, reference))
        parts = _explained(odds, means, (g, reference), away, slopes, columns, level, shared)
        whole = parts[0][2]
        moved = raw[0] - rest[0] - whole[0]  # the identity keeps every digit
        total = (raw[0] - rest[0], whole[1] + moved, whole[2] + moved)
        rows: list[Part] = [
            (name, UNADJUSTED, "", *raw, ""),
            (name, EXPLAINED, "", *total, ""),
            *((name, FEATURE, column, *ends, why) for _, column, ends, why in parts[1:]),
            (name, LEFT, "", *rest, left.why[g]),
        ]
        tables.append(pd.DataFrame(rows, columns=COLUMNS).assign(model=LOGISTIC_MODEL))
    return pd.concat([table for table in tables if len(table)], ignore_index=True)


def _slopes(
    odds: BiasReport, means: Averages, chance: Array, pair: tuple[int, int]
) -> tuple[Array, list[float], bool]:
    """How far the averages of two groups are from everyone's, and the slopes of their chances.

    The last value is whether a logistic curve can have these slopes.
    """
    overall = odds.overall
    assert overall is not None
    g, reference = pair
    away = np.array([means.context[g] - overall, overall - means.context[reference]])
    away[:, 0] = 0.0  # the intercept is the same for all
    vectors = odds._fit.vectors[list(pair)]
    in_odds = np.einsum("ij,ij->i", away, vectors)
    in_chance = np.array([means.reward[g] - chance[g], chance[reference] - means.reward[reference]])
    # The slope of the curve at the mean chance, for parts that are 0 / 0.
    usual = np.clip(chance[list(pair)] * (1.0 - chance[list(pair)]), 1e-12, STEEPEST)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = in_chance / in_odds
    negligible = np.maximum(np.abs(in_odds), np.abs(in_chance)) < 1e-9
    slope = np.where(negligible, usual, slope)
    possible = (slope > 0.0) & (slope <= STEEPEST * (1.0 + 1e-9))
    return away, np.where(possible, slope, usual).tolist(), bool(possible.all())


def _explained(
    odds: BiasReport,
    means: Averages,
    pair: tuple[int, int],
    away: Array,
    slopes: list[float],
    columns: tuple[Column, ...],
    level: float,
    shared: bool,
) -> list[tuple[str, str, tuple[float, float, float], str]]:
    """What all features explain, and each of them where it can be divided among them."""
    whole = part_of(odds, means, pair, away, range(away.shape[1]), level, slopes)
    parts = [(EXPLAINED, "", whole, "")]
    narrow, unknown = divided(level, len(columns)), (np.nan, np.nan, np.nan)
    for column in columns:
        ends = unknown
        if shared:
            ends = part_of(odds, means, pair, away, column.features, narrow, slopes)
        why = "" if np.isfinite(ends[0]) else NOT_SHARED
        parts.append((FEATURE, column.name, ends, why))
    return parts
