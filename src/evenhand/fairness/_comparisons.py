"""Comparisons of groups: with each other, with parity, and with all groups together."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand.errors import InputError, setting
from evenhand.fairness._group_metrics import (
    BY_PULLS,
    METRICS,
    SELECTION,
    SUFFICIENT,
    UNKNOWN,
    MetricRow,
    compared,
    judged,
    noted,
    rows,
)
from evenhand.fairness._measures import Measure
from evenhand.fairness.intervals import Ends
from evenhand.fairness.sums import GroupSums

if TYPE_CHECKING:
    from evenhand.fairness.report import FairnessReport

NOTE = "a screening value, not a verdict"


def parity(report: FairnessReport) -> pd.DataFrame:
    """A row per group and kind of parity: the share, the share at parity, difference and ratio."""
    size = len(report.groups)
    parities = {"equal": np.full(size, 1.0 / size)}
    if report.sums.has("arms"):
        arms = report.sums.column("arms")
        parities = {"proportional": arms / arms.sum(), **parities}
    shares = report.by_group.loc["share"]
    lines = []
    for kind, targets in parities.items():
        for group, target in zip(report.groups, targets, strict=True):
            share = shares.loc[group].to_dict()
            ends = [share[end] for end in ("estimate", "low", "high")]
            lines.append(
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
    return pd.DataFrame(lines)


def screening(report: FairnessReport) -> pd.DataFrame:
    """A row per selection rate and group: its ratio to the highest rate, and the screen."""
    lines: list[dict[str, Any]] = []
    for name in [name for name in SELECTION if name in report.metrics]:
        measure = report._measure(name)
        own = rows(measure, report.level, report.least)
        known = [g for g, row in enumerate(own) if row.evidence != UNKNOWN]
        if not known:
            continue
        # A few lucky decisions are no yardstick, unless no other group is known better.
        sure = [g for g in known if own[g].evidence == SUFFICIENT]
        top = max(sure or known, key=lambda g: own[g].estimate)
        # Any pair might have been the one that has the highest rate.
        level = divided(report.level, len(known) * (len(known) - 1) // 2)
        for g, group in enumerate(report.groups):
            if g == top:
                row = MetricRow(1.0, 1.0, 1.0, own[g].n, own[g].evidence, own[g].why)
                says = "the highest rate"
            else:
                names = group, report.groups[top]
                row = compared(measure.ratio(g, top, level), own[g], own[top], names)
                says = _says(row, report.threshold)
            lines.append(
                {
                    "selection": name,
                    "group": group,
                    "beside": report.groups[top],
                    **noted(row, report._note(name))._asdict(),
                    "threshold": report.threshold,
                    "screen": says,
                    "note": NOTE,
                }
            )
    columns = ["selection", "group", "beside", *MetricRow._fields, "threshold", "screen", "note"]
    return pd.DataFrame(lines, columns=columns)


def _says(row: MetricRow, threshold: float) -> str:
    if row.evidence != SUFFICIENT:
        return row.evidence
    if row.high < threshold:
        return "below"
    return "above" if row.low >= threshold else "cannot be told"


METHODS = ("between_groups", "to_overall")


def divided(level: float, many: int) -> float:
    """The level of each of many intervals that hold simultaneously (Bonferroni)."""
    return 1.0 - (1.0 - level) / max(many, 1)


def all_pairs(report: FairnessReport, name: str) -> list[dict[str, Any]]:
    """Every pair of groups with known numbers: the lower, the higher, difference and ratio.

    The intervals hold for all pairs at once.
    """
    measure = report._measure(name)
    by_group = rows(measure, report.level, report.least)
    known = [g for g, row in enumerate(by_group) if row.evidence != UNKNOWN]
    level = divided(report.level, len(known) * (len(known) - 1) // 2)
    out = []
    for a, b in combinations(known, 2):
        lower, higher = (a, b) if by_group[a].estimate <= by_group[b].estimate else (b, a)
        names = report.groups[lower], report.groups[higher]
        gap = measure.difference(higher, lower, level)
        part = measure.ratio(lower, higher, level)
        difference, ratio = (
            noted(compared(ends, by_group[lower], by_group[higher], names), report._note(name))
            for ends in (gap, part)
        )
        out.append(
            {"lower": names[0], "higher": names[1], "difference": difference, "ratio": ratio}
        )
    return out


def extreme(report: FairnessReport, kind: str, method: str, sufficient_only: bool) -> pd.DataFrame:
    """A row per metric: the largest difference or the smallest ratio."""
    if method not in METHODS:
        raise InputError(
            f"{setting('method')} is {method!r}; allowed is one of {', '.join(METHODS)}",
            value=method,
        )
    out = {}
    for name in report.metrics:
        if method == "between_groups":
            pairs = all_pairs(report, name)
        else:
            pairs = _overall_pairs(report, name)
        if sufficient_only:
            pairs = [pair for pair in pairs if pair["difference"].evidence == SUFFICIENT]
        out[name] = _picked(pairs, kind, method, sufficient_only)
    return pd.DataFrame.from_dict(out, orient="index").rename_axis("metric")


def _picked(
    pairs: list[dict[str, Any]], kind: str, method: str, sufficient_only: bool
) -> dict[str, Any]:
    known = [pair for pair in pairs if pair[kind].evidence != UNKNOWN]
    if not known:
        why = "fewer than two groups are known" + (" well enough" if sufficient_only else "")
        if pairs:
            why = pairs[0][kind].why
        elif method == "to_overall":
            why = "the number of all groups is not an average of theirs"
        nothing = MetricRow(np.nan, np.nan, np.nan, 0, UNKNOWN, why)
        return {**nothing._asdict(), "lower": "", "higher": ""}
    # Among equal ratios, such as those of groups with a rate of 0, the largest difference.
    first = "ratio" if kind == "ratio" else "difference"
    sign = 1.0 if kind == "ratio" else -1.0
    best = min(known, key=lambda p: (sign * p[first].estimate, -p["difference"].estimate))
    return {**best[kind]._asdict(), "lower": best["lower"], "higher": best["higher"]}


def _overall_pairs(report: FairnessReport, name: str) -> list[dict[str, Any]]:
    """Every group compared with all groups together.

    A group is part of the whole: if it has a share w of the decisions, its number minus the overall
    one is 1 - w times its number minus that of the others, which are independent of it.
    """
    if not METRICS[name].average and name != BY_PULLS:
        return []
    by_group = rows(report._measure(name), report.level, report.least)
    known = [g for g, row in enumerate(by_group) if row.evidence != UNKNOWN]
    level = divided(report.level, len(known))
    whole = rows(report._together(name, None), level, report.least)[0]
    out = []
    for g in known:
        if name == BY_PULLS:
            gap, part = _beside_constant(report._measure(name), g, whole.estimate, level)
        else:
            gap, part = _beside_rest(report._together(name, g), level)
        names = report.groups[g], "overall"
        below = by_group[g].estimate <= whole.estimate
        if below:  # the difference is higher less lower, the ratio lower over higher
            gap = Ends(-gap.estimate, -gap.high, -gap.low)
        else:
            with np.errstate(divide="ignore"):
                part = Ends(1.0 / part.estimate, 1.0 / part.high, 1.0 / part.low)
        out.append(
            {
                "lower": names[0] if below else names[1],
                "higher": names[1] if below else names[0],
                "difference": noted(compared(gap, by_group[g], whole, names), report._note(name)),
                "ratio": noted(compared(part, by_group[g], whole, names), report._note(name)),
            }
        )
    return out


def _beside_constant(measure: Measure, g: int, whole: float, level: float) -> tuple[Ends, Ends]:
    """All pulls over all chances is a constant, not an estimate: every round has one pull."""
    ends = measure.ends(level)
    own = [np.asarray(end[g]) for end in ends]
    return Ends(*(end - whole for end in own)), Ends(*(end / whole for end in own))


def _beside_rest(measure: Measure, level: float) -> tuple[Ends, Ends]:
    """Group 0 compared with all, itself and the rest, group 1; a group alone is the whole."""
    weight = measure.n[0] / max(measure.n.sum(), 1.0)
    if weight >= 1.0:
        zero, unity = np.asarray(0.0), np.asarray(1.0)
        return Ends(zero, zero, zero), Ends(unity, unity, unity)
    gap = Ends(*((1.0 - weight) * end for end in measure.difference(0, 1, level)))
    # group / whole = 1 / (w + (1 - w) rest / group), which falls as rest / group grows.
    rest = measure.ratio(1, 0, level)
    with np.errstate(divide="ignore"):
        part = [1.0 / (weight + (1.0 - weight) * end) for end in rest]
    return gap, Ends(part[0], part[2], part[1])


def collapsed(sums: GroupSums, group: int | None) -> GroupSums:
    """All groups as one; or one group, and the others together."""
    table = sums.table
    if group is None:
        return GroupSums(table.sum().to_frame("all").T)
    rest = table.drop(index=table.index[group]).sum()
    own = table.iloc[group]
    return GroupSums(
        pd.DataFrame([own.to_numpy(), rest.to_numpy()], ["own", "rest"], table.columns)
    )


def overall(report: FairnessReport) -> pd.DataFrame:
    """A row per metric, for all groups together. Shares, which add up to 1, are left out."""
    out = {}
    for name in report.metrics:
        if name in ("share", "exposure_share"):
            continue
        row = rows(report._together(name, None), report.level, report.least)[0]
        if name == BY_PULLS:  # a constant: every round has one pull
            rate = np.asarray(row.estimate)
            row = judged(Ends(rate, rate, rate), row.n, report.least)
        out[name] = noted(row, report._note(name))._asdict()
    return pd.DataFrame.from_dict(out, orient="index", columns=list(MetricRow._fields)).rename_axis(
        "metric"
    )
