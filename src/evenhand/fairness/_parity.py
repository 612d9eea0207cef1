"""Shares beside what parity asks, and selection rates beside the highest one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand.fairness._comparisons import divided
from evenhand.fairness.metrics import SELECTION, SUFFICIENT, UNKNOWN, Row, compared, rows

if TYPE_CHECKING:
    from evenhand.fairness.report import FairnessReport

NOTE = "a screening value, not a verdict"


def parity(report: FairnessReport) -> pd.DataFrame:
    """A row per group and kind of parity: the share, what is asked, difference and ratio."""
    size = len(report.groups)
    asked = {"equal": np.full(size, 1.0 / size)}
    if report.sums.has("arms"):
        arms = report.sums.column("arms")
        asked = {"proportional": arms / arms.sum(), **asked}
    shares = report.by_group.loc["share"]
    found = []
    for kind, targets in asked.items():
        for group, target in zip(report.groups, targets, strict=True):
            share = shares.loc[group].to_dict()
            ends = [share[end] for end in ("estimate", "low", "high")]
            found.append(
                {
                    "parity": kind,
                    "group": group,
                    "share": ends[0],
                    "asked": target,
                    "difference": ends[0] - target,
                    "difference_low": ends[1] - target,
                    "difference_high": ends[2] - target,
                    "ratio": ends[0] / target,
                    "ratio_low": ends[1] / target,
                    "ratio_high": ends[2] / target,
                    "n": share["n"],
                    "evidence": share["evidence"],
                    "why": share["why"],
                }
            )
    return pd.DataFrame(found)


def screening(report: FairnessReport) -> pd.DataFrame:
    """A row per selection rate and group: its ratio to the highest rate, and what a screen says."""
    found: list[dict[str, Any]] = []
    for name in [name for name in SELECTION if name in report.metrics]:
        measure = report._measure(name)
        own = rows(measure, report.level, report.least)
        known = [g for g, row in enumerate(own) if row.evidence != UNKNOWN]
        if not known:
            continue
        # A handful of lucky ones is no yardstick, unless nobody else is known any better.
        sure = [g for g in known if own[g].evidence == SUFFICIENT]
        top = max(sure or known, key=lambda g: own[g].estimate)
        # Any of the pairs might have been the one with the highest rate in it.
        level = divided(report.level, len(known) * (len(known) - 1) // 2)
        for g, group in enumerate(report.groups):
            if g == top:
                row = Row(1.0, 1.0, 1.0, own[g].n, own[g].evidence, own[g].why)
                says = "the highest rate"
            else:
                names = group, report.groups[top]
                row = compared(measure.ratio(g, top, level), own[g], own[top], names)
                says = _says(row, report.threshold)
            found.append(
                {
                    "selection": name,
                    "group": group,
                    "beside": report.groups[top],
                    **row._asdict(),
                    "threshold": report.threshold,
                    "screen": says,
                    "note": NOTE,
                }
            )
    columns = ["selection", "group", "beside", *Row._fields, "threshold", "screen", "note"]
    return pd.DataFrame(found, columns=columns)


def _says(row: Row, threshold: float) -> str:
    if row.evidence != SUFFICIENT:
        return row.evidence
    if row.high < threshold:
        return "below"
    return "above" if row.low >= threshold else "cannot be told"
