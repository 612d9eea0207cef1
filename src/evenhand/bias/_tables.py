"""The tables of a bias report: a row per group and feature, group and context, or gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand.bias._contexts import places_of
from evenhand.bias._contrasts import NOT, Comparison, compare
from evenhand.bias.statistics import Array, Bools, Whole

if TYPE_CHECKING:
    from evenhand.bias.report import BiasReport

# The columns that all tables share, and the fields of a comparison that they show.
NUMBERS = {
    "estimate": "estimate",
    "standard_error": "error",
    "freedom": "freedom",
    "low": "low",
    "high": "high",
    "simultaneous_low": "all_low",
    "simultaneous_high": "all_high",
    "p_value": "p_value",
    "simultaneous_p_value": "all_p_value",
    "detectable": "detectable",
}


def by_feature(report: BiasReport) -> pd.DataFrame:
    """A row per group and feature: the bias, and what it contributes at the average context."""
    bias = report._by_feature
    mean = np.full(len(bias.estimate), np.nan)
    if report.average is not None:
        mean = report.average.ravel()
    ends = np.sort([mean * bias.low, mean * bias.high], axis=0)
    return pd.DataFrame(
        {
            **_labels(report),
            **_columns(bias),
            "mean": mean,
            "contribution": mean * bias.estimate,
            "contribution_low": ends[0],
            "contribution_high": ends[1],
            "disagrees": pd.array(report._disagrees, dtype="boolean"),
            "why": _notes(report),
        }
    )


def by_group(report: BiasReport) -> pd.DataFrame:
    """A row per group: observations, arms, and the bias at the average context of everyone."""
    m, d = len(report.groups), len(report.features)
    place = np.full(d, np.nan) if report.overall is None else report.overall
    table = at(report, np.tile(place, (m, 1)), np.arange(m)).set_index("group")
    table.insert(0, "observations", list(report.observations))
    if report.arms is not None:
        table.insert(1, "arms", list(report.arms))
    return table


def totals(report: BiasReport) -> pd.DataFrame:
    """Two rows per group: the bias at its own average context, and at everyone's."""
    m, d = len(report.groups), len(report.features)
    nowhere = np.full((m, d), np.nan)
    own = nowhere if report.average is None else report.average
    overall = nowhere if report.overall is None else np.tile(report.overall, (m, 1))
    table = at(report, np.vstack([own, overall]), np.tile(np.arange(m), 2))
    table.insert(1, "context", np.repeat(["own", "overall"], m).astype(object))
    return table


def gaps(report: BiasReport, values: Mapping[str, Sequence[float]] | None) -> pd.DataFrame:
    """A row per group, except the reference, and place: a category, or a value of a number."""
    others = [g for g, row in enumerate(report._weights) if np.nan_to_num(row, nan=1.0).any()]
    places = []
    if report.overall is not None:
        places = places_of(report._columns, report.overall, report._contexts.spread, values)
    if not places:
        names = ["column", "at", "group", *NUMBERS, "why"]
        return pd.DataFrame(columns=names).astype(dict.fromkeys(NUMBERS, float))
    contexts = np.repeat([place.context for place in places], len(others), axis=0)
    table = at(report, contexts, np.tile(np.array(others, dtype=np.int64), len(places)))
    table.insert(0, "column", np.repeat([place.column for place in places], len(others)))
    table.insert(1, "at", np.repeat([place.at for place in places], len(others)))
    return table.astype({"column": object, "at": object})


def weightings(report: BiasReport) -> pd.DataFrame:
    """A row per group and feature: the bias by pulls less the bias by arms."""
    between = report._between
    why = "rows have weights or belong together, and the check does not allow for that"
    unknown = NOT + ("the arms are not known" if report.arms is None else why)
    return pd.DataFrame(
        {
            **_labels(report),
            "difference": np.nan if between is None else between.estimate,
            "standard_error": np.nan if between is None else between.error,
            "low": np.nan if between is None else between.all_low,
            "high": np.nan if between is None else between.all_high,
            "disagrees": pd.array(report._disagrees, dtype="boolean"),
            "why": unknown if between is None else between.why,
        }
    )


def at(report: BiasReport, contexts: Array, groups: Whole) -> pd.DataFrame:
    """A row per context, of the group with that number; NaN if the context is not known."""
    known: Bools = ~np.asarray(np.isnan(contexts).any(axis=1))
    places, weights = np.where(known[:, None], contexts, 0.0), report._weights[groups]
    bias = compare(report._fit, weights[known], places[known], report.level, report.features)
    columns = {"group": np.array(report.groups, dtype=object)[groups]}
    for name, column in _columns(bias).items():
        columns[name] = np.full(len(groups), np.nan)
        columns[name][known] = column
    unknown = "the average context is not known; give average"
    why = np.array([NOT + (report._fit.blocked[g] or unknown) for g in groups], dtype=object)
    why[known] = [
        reason or _overlap_of(report, int(g))
        for reason, g in zip(bias.why, groups[known], strict=True)
    ]
    return pd.DataFrame({**columns, "why": why})


def _labels(report: BiasReport) -> dict[str, Any]:
    return {
        "group": np.repeat(report.groups, len(report.features)).astype(object),
        "feature": np.tile(report.features, len(report.groups)).astype(object),
    }


def _columns(comparison: Comparison) -> dict[str, Array]:
    return {name: getattr(comparison, field) for name, field in NUMBERS.items()}


def _overlap_of(report: BiasReport, group: int) -> str:
    weak = report._weak[group]
    return "weak overlap in " + ", ".join(report.features[k] for k in weak) if weak else ""


def _notes(report: BiasReport) -> list[str]:
    """Per group and feature: why there is no number, or what to know about it."""
    notes = list(report._by_feature.why)
    d = len(report.features)
    for g, weak in enumerate(report._weak):
        for k, (other, distance) in weak.items():
            more = "more" if distance > 0.0 else "less"
            size = f"{abs(distance):.1f} standard deviations {more} than"
            if not np.isfinite(distance):
                size = "another value throughout than"
            notes[g * d + k] = notes[g * d + k] or (
                f"weak overlap: on average {size} in group {report.groups[other]}"
            )
        if report.groups[g] == report.reference and not report._fit.blocked[g]:
            notes[g * d : (g + 1) * d] = ["the reference"] * d
    return notes
