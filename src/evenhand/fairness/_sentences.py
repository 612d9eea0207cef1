"""The fairness report in sentences."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand.fairness._group_metrics import (
    BY_REWARD,
    INSUFFICIENT,
    MISSING,
    SELECTION,
    SUFFICIENT,
    UNKNOWN,
    WITH_CLUSTERS,
    words_of,
)

if TYPE_CHECKING:
    from evenhand.fairness.report import FairnessReport

Named = Callable[[str], str]  # a metric in words
SCREENS = {
    "below": "this is below the screening value of {}",
    "above": "this is not below the screening value of {}",
    "cannot be told": "it is not clear whether this is below the screening value of {}",
}


def sentences(report: FairnessReport, outcome: str = "") -> list[str]:
    """Shares, then every metric, the screen, what is not known, and what is assumed."""
    named = partial(words_of, sums=report.sums, outcome=outcome)
    sentences = [*_shares(report), *_metrics(report, named)]
    sentences += [*_screening(report, named), *_too_little(report, named)]
    single = "for all groups at once" if report.simultaneous else "each by itself"
    sentences.append(
        f"Intervals are at {percent(report.level)}: those of differences and ratios hold for all "
        f"pairs of groups at once, those of single groups {single}. {_belonging(report, named)} "
        "If a policy learns from its decisions, they are only approximate; repeated runs say more."
    )
    return sentences


def _belonging(report: FairnessReport, named: Named) -> str:
    """Which intervals allow for rows that belong together."""
    if report.clusters is None:
        return (
            "All of them treat the rows as independent. If a person has several rows, they are too "
            "narrow."
        )
    ignoring = [named(name) for name in report.metrics if report._note(name)]
    allowing = ", ".join(named(name) for name in report.metrics if name in WITH_CLUSTERS)
    said = f"Those of {allowing} allow for rows of the same cluster."
    if ignoring:
        names = ", ".join(ignoring)
        said += f" Those of other metrics ignore clusters, and may be too narrow: {names}."
    return said


def _shares(report: FairnessReport) -> list[str]:
    """The shares of the decisions; without arms, only of the rows in the file."""
    sentences = []
    shares, table = report.by_group.loc["share"], report.parity()
    of_arms = report.sums.chances() is not None
    for group in report.groups:
        row = shares.loc[group].to_dict()
        if row["evidence"] == UNKNOWN:
            return ["There are no decisions."]
        share, ends = rate(row["estimate"]), f"({rate(row['low'])} to {rate(row['high'])})"
        if not of_arms:
            sentences.append(f"Group {group} has {share} of the {row['n']:,} rows {ends}.")
            continue
        parities = ", ".join(
            f"{row['parity']} parity asks for {rate(row['asked'])}"
            for row in table[table["group"] == group].to_dict("records")
        )
        sentences.append(f"Group {group} got {share} of {row['n']:,} decisions {ends}; {parities}.")
    return sentences


def _metrics(report: FairnessReport, named: Named) -> list[str]:
    """The largest difference of each metric, among groups with sufficient evidence."""
    gaps = report.difference(sufficient_only=True)
    sentences = []
    for name in report.metrics:
        binary = report.sums.has("positives")
        if name == "share" or (name == "mean_reward" and binary and BY_REWARD in report.metrics):
            continue  # said already
        if name == MISSING and not (report.by_group.loc[name]["estimate"] > 0.0).any():
            continue  # nothing to say
        row = {str(key): value for key, value in gaps.loc[name].items()}
        if row["evidence"] == SUFFICIENT:
            words = _apart(row, _is_rate(name, report), len(report.groups) > 2)
            sentences.append(f"{_start(named(name))}: {words}.")
    return sentences


def _apart(row: dict[str, Any], is_rate: bool, picked: bool) -> str:
    """Which group is higher and by how much; `picked` if there are other pairs."""
    show, unit = (points, " percentage points") if is_rate else (amount, "")
    if not is_rate:  # no more digits than the interval justifies
        places = 3 - int(np.floor(np.log10(max(row["high"] - row["low"], 1e-300))))
        row = {**row, **{key: round(row[key], places) for key in ("estimate", "low", "high")}}
    size, ends = f"{show(row['estimate'])}{unit}", f"({show(row['low'])} to {show(row['high'])})"
    lower, higher = row["lower"], row["higher"]
    if row["low"] <= 0.0 <= row["high"]:
        pair = f"groups {lower} and {higher}{', the furthest apart,' if picked else ''}"
        return f"{pair} cannot be distinguished; {higher} minus {lower} is {size} {ends}"
    largest = ", the largest difference between two groups" if picked else ""
    return f"group {higher} is {size} higher than group {lower} {ends}{largest}"


def _screening(report: FairnessReport, named: Named) -> list[str]:
    sentences = []
    for row in report.screening().to_dict("records"):
        if row["screen"] not in SCREENS:
            continue
        high = " or more" if np.isinf(row["high"]) else f" to {row['high']:.2f}"
        sentences.append(
            f"{_start(named(row['selection']))}: group {row['group']} has "
            f"{row['estimate']:.2f} times the rate of group {row['beside']} ({row['low']:.2f}"
            f"{high}); {SCREENS[row['screen']].format(format(row['threshold'], '.4g'))}."
        )
    if sentences:
        sentences.append("The screening value says where to look closer; it is not a verdict.")
    return sentences


def _too_little(report: FairnessReport, named: Named) -> list[str]:
    table = report.to_frame()
    sentences = []
    for evidence, words in ((INSUFFICIENT, "Insufficient evidence on"), (UNKNOWN, "Not known for")):
        for group in report.groups:
            rows = table[(table["group"] == group) & (table["evidence"] == evidence)]
            for why, part in _by(rows, "why"):
                names = ", ".join(named(str(name)) for name in part["metric"])
                sentences.append(f"{words} group {group} ({why}): {names}.")
    return sentences


def _by(rows: pd.DataFrame, column: str) -> list[tuple[str, pd.DataFrame]]:
    return [(str(why), rows[rows[column] == why]) for why in dict.fromkeys(rows[column])]


def _is_rate(name: str, report: FairnessReport) -> bool:
    binary = name == "mean_reward" and report.sums.has("positives")
    return binary or name.endswith(("_rate", "_share")) or name in SELECTION


def rate(value: float) -> str:
    """0.123 as 12.3 %."""
    return f"{100.0 * value:.1f} %"


def points(value: float) -> str:
    """A difference of rates in percentage points; one that is not 0 is never shown as 0."""
    size = 100.0 * value
    if abs(size) < 1e-9:
        return "0.0"
    return f"{size:.1f}" if abs(size) >= 0.1 else f"{size:.1g}"


def amount(value: float) -> str:
    """A number with four significant digits; thousands are written out."""
    rounded = float(f"{value:.4g}")
    if 1e3 <= abs(rounded) < 1e15:
        return f"{rounded:,.0f}"
    return f"{rounded + 0.0:.4g}"  # -0 becomes 0


def percent(level: float) -> str:
    """The level of an interval."""
    return f"{100.0 * level:.6g} %"


def _start(text: str) -> str:
    return text[0].upper() + text[1:]
