"""The fairness report in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from evenhand.evaluation.evidence import INSUFFICIENT, SUFFICIENT, UNKNOWN
from evenhand.evaluation.metrics import BY_REWARD, METRICS, SELECTION

if TYPE_CHECKING:
    from evenhand.evaluation.report import FairnessReport


def sentences(report: FairnessReport) -> list[str]:
    """Shares, then every metric, then the screen, then what is not known, then what it assumes."""
    said = [*_shares(report), *_metrics(report), *_screening(report), *_too_little(report)]
    held = "differences and ratios hold for all pairs of groups at once"
    own = "those of single groups for all groups at once" if report.simultaneous else ""
    said.append(
        f"Intervals are at {percent(report.level)}; {held}{', ' if own else ''}{own}. They take "
        "decisions as independent: a policy that learns makes them depend on each other, and "
        "repeated runs tell more then."
    )
    return said


def _shares(report: FairnessReport) -> list[str]:
    said = []
    shares, table = report.by_group.loc["share"], report.parity()
    for group in report.groups:
        row = shares.loc[group].to_dict()
        if row["evidence"] == UNKNOWN:
            return ["There are no decisions."]
        asked = ", ".join(
            f"{one['parity']} parity asks for {rate(one['asked'])}"
            for one in table[table["group"] == group].to_dict("records")
        )
        said.append(
            f"Group {group} got {rate(row['estimate'])} of {row['n']:,} decisions "
            f"({rate(row['low'])} to {rate(row['high'])}); {asked}."
        )
    return said


def _metrics(report: FairnessReport) -> list[str]:
    every, sure = report.difference(), report.difference(sufficient_only=True)
    said = []
    for name in report.metrics:
        binary = report.sums.has("positives")
        if name == "share" or (name == "mean_reward" and binary and BY_REWARD in report.metrics):
            continue  # said already
        show = points if _is_rate(name, report) else amount
        for row in (sure.loc[name].to_dict(), every.loc[name].to_dict()):
            if row["evidence"] == SUFFICIENT:
                ends = f"{show(row['low'])} to {show(row['high'])}"
                verb = "cannot be told apart" if row["low"] <= 0.0 <= row["high"] else "differ"
                said.append(
                    f"{_start(METRICS[name].words)}: groups {row['lower']} and {row['higher']} "
                    f"{verb}, by {show(row['estimate'])} ({ends})."
                )
                break
    return said


def _screening(report: FairnessReport) -> list[str]:
    said = []
    for row in report.screening().to_dict("records"):
        if row["screen"] in ("the highest rate", UNKNOWN, INSUFFICIENT):
            continue
        high = "no upper end" if np.isinf(row["high"]) else f"{row['high']:.2f}"
        said.append(
            f"{_start(METRICS[row['selection']].words)}: group {row['group']} has "
            f"{row['estimate']:.2f} times the rate of group {row['beside']} ({row['low']:.2f} to "
            f"{high}); {_screen(row['screen'])} the screening value of {row['threshold']:g}. It "
            "says where to look closer, and is no verdict."
        )
    return said


def _screen(word: str) -> str:
    return "it cannot be told from this" if word == "cannot be told" else f"this is {word}"


def _too_little(report: FairnessReport) -> list[str]:
    table = report.to_frame()
    said = []
    for evidence, words in ((INSUFFICIENT, "Insufficient evidence on"), (UNKNOWN, "Not known:")):
        for group in report.groups:
            rows = table[(table["group"] == group) & (table["evidence"] == evidence)]
            for why, part in _by(rows, "why"):
                names = ", ".join(METRICS[name].words for name in part["metric"])
                said.append(f"{words} group {group} ({why}): {names}.")
    return said


def _by(rows: pd.DataFrame, column: str) -> list[tuple[str, pd.DataFrame]]:
    return [(str(why), rows[rows[column] == why]) for why in dict.fromkeys(rows[column])]


def _is_rate(name: str, report: FairnessReport) -> bool:
    binary = name == "mean_reward" and report.sums.has("positives")
    return binary or name.endswith(("_rate", "_share")) or name in SELECTION


def rate(value: float) -> str:
    """0.123 as 12.3 %."""
    return f"{100.0 * value:.1f} %"


def points(value: float) -> str:
    """A difference of rates."""
    return f"{100.0 * value:.1f} points"


def amount(value: float) -> str:
    """A number with four digits."""
    return f"{value:.4g}"


def percent(level: float) -> str:
    """A level of an interval."""
    return f"{100.0 * level:.6g} %"


def _start(text: str) -> str:
    return text[0].upper() + text[1:]
