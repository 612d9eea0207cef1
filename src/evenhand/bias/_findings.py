"""The findings of a report: which comparisons are worth a sentence, and which exclude zero.

`_sentences` puts them into words, and audits compare those of two reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenhand._columns.column import FLAGS
from evenhand.bias._contexts import INTERCEPT
from evenhand.bias.statistics import Array

if TYPE_CHECKING:
    from evenhand.bias.report import BiasReport


def spoken_of(report: BiasReport) -> list[tuple[int, int]]:
    """Group and feature of every comparison worth a sentence; of two that mirror each other, one.

    If the average context is known, the intercept is left out: it is the gap where everything else
    is 0, and nobody may be there.
    """
    d = len(report.features)
    rows = [
        (g, k)
        for g, k in unmirrored(report, report._by_feature.estimate.reshape(-1, d))
        if not is_code(report, k)
    ]
    if report.overall is None or d == 1:
        return rows
    return [(g, k) for g, k in rows if report._contexts.kinds[k] != INTERCEPT]


def clear_features(report: BiasReport) -> list[tuple[int, int]]:
    """The comparisons whose interval, for all features and groups at once, excludes zero.

    Where another model of the same rewards was fitted, only those that it confirms.
    """
    d = len(report.features)
    spoken = [row for row in spoken_of(report) if row not in report._second.changes]
    clear = [(g, k) for g, k in spoken if _outside(report, g * d + k)]
    return sorted(clear, key=lambda row: -_importance(report, *row))


def clear_totals(report: BiasReport) -> dict[str, float]:
    """The groups whose gap at the average context excludes zero: their estimates."""
    if report.overall is None:
        return {}
    table = report.by_group
    ends = table[["estimate", "simultaneous_low", "simultaneous_high"]].to_numpy(dtype=float)
    return {
        report.groups[g]: float(ends[g, 0])
        for g, _ in unmirrored(report, ends[:, :1])
        if g not in report._second.gaps and not ends[g, 1] <= 0.0 <= ends[g, 2]
    }


def same_findings(report: BiasReport, other: BiasReport) -> bool:
    """Whether two reports of the same groups and features find the same, in the same direction."""

    def findings(report: BiasReport) -> set[tuple[object, ...]]:
        d, estimate = len(report.features), report._by_feature.estimate
        features = {(g, k, estimate[g * d + k] > 0.0) for g, k in clear_features(report)}
        return features | {(name, size > 0.0) for name, size in clear_totals(report).items()}

    return findings(report) == findings(other)


def is_code(report: BiasReport, k: int) -> bool:
    """Whether a feature is a code of more than two categories; of two, 1 is just the other."""
    return len(report.codes.get(report.features[k], FLAGS)) != 2


def unmirrored(report: BiasReport, estimates: Array) -> list[tuple[int, int]]:
    """Group and feature of every row worth a sentence; of two mirror images, the lower one."""
    rows: dict[tuple[object, ...], tuple[int, int]] = {}
    for g, k in np.argwhere(~np.isnan(estimates)):
        weights = report._weights[g].round(12)
        if not weights.any():  # the reference itself
            continue
        mirrored = min(tuple(weights), tuple(-weights))
        before = rows.get((*mirrored, k))
        if before is None or estimates[g, k] < estimates[before]:
            rows[(*mirrored, k)] = (int(g), int(k))
    return list(rows.values())


def _outside(report: BiasReport, row: int) -> bool:
    """Whether zero is outside the interval of a row."""
    bias = report._by_feature
    return bool(bias.all_low[row] > 0.0 or bias.all_high[row] < 0.0)


def _importance(report: BiasReport, g: int, k: int) -> float:
    """The bias times the root mean square of the feature: its size in units of reward."""
    spread, overall = report._contexts.spread[k], report._contexts.overall
    size = np.hypot(spread, 0.0 if overall is None else overall[k])
    return float(abs(report._by_feature.estimate[g * len(report.features) + k]) * size)
