"""The report of an off-policy evaluation in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand.evaluation.estimators import ESTIMATORS, LOGGED, VALUE, WITHIN
from evenhand.evaluation.evidence import SUFFICIENT, UNKNOWN
from evenhand.evaluation.overlap import Overlap
from evenhand.evaluation.tabling import ALL
from evenhand.evaluation.words import amount, percent, rate

if TYPE_CHECKING:
    from evenhand.evaluation.values import ValueReport


def sentences(report: ValueReport) -> list[str]:
    """Values, what was gained, shares, warnings, and what it all takes for granted."""
    said = []
    for kind in dict.fromkeys(report.overall.index.get_level_values("reward")):
        table = report.overall.loc[kind]
        found = [_number(name, row) for name, row in zip(table.index, _rows(table), strict=True)]
        said.append(f"In {kind} reward per round: {'; '.join(text for text in found if text)}.")
        said += _gain(report, str(kind))
    shares = report.shares
    for group in report.groups:
        target, before = (_rows(shares.loc[[(name, group)]])[0] for name in ("target", LOGGED))
        said.append(
            f"Group {group} would get {rate(target['estimate'])} of the decisions "
            f"({rate(target['low'])} to {rate(target['high'])}); it got {rate(before['estimate'])}."
        )
    said += report.warnings
    said.append(
        f"Intervals are at {percent(report.level)}, each alone. The target is taken as it is and "
        "does not learn on the way; the propensities in the log are taken as right."
    )
    return said


def _number(name: Any, row: dict[str, Any]) -> str:
    who = "the log had" if name == LOGGED else f"the target would have by {str(name).upper()}"
    if np.isnan(row["estimate"]):
        return f"{who} a value that is not known, as {row['why']}"
    flag = "" if row["evidence"] == SUFFICIENT else f", {row['evidence']}"
    ends = f"{amount(row['low'])} to {amount(row['high'])}"
    return f"{who} {amount(row['estimate'])} ({ends}{flag})"


def _gain(report: ValueReport, kind: str) -> list[str]:
    """By the last of the estimators: each has a smaller error than those before, as a rule."""
    table = report.gain().reset_index()
    table = table[table["reward"] == kind]
    name = next((one for one in reversed(ESTIMATORS) if (table["estimator"] == one).any()), None)
    if name is None:
        return []
    found = _rows(table[table["estimator"] == name])
    rows = {(row["quantity"], row["group"]): row for row in found}
    overall = _more(rows[VALUE, ALL], f"{percent(report.level)} interval ")
    within = [f"{group} {_more(rows[WITHIN, group])}" for group in report.groups]
    return [
        f"In {kind} reward the target would have earned {overall} per round than the log, by "
        f"{name.upper()}. Per decision that goes to a group: {'; '.join(within)}."
    ]


def _more(row: dict[str, Any], interval: str = "") -> str:
    """As in "0.12 more (0.05 to 0.19)"; for less, the ends are turned round."""
    if np.isnan(row["estimate"]):
        return f"more or less, which is not known, as {row['why']},"
    less = row["estimate"] < 0.0
    low, high = (-row["high"], -row["low"]) if less else (row["low"], row["high"])
    flag = "" if row["evidence"] == SUFFICIENT else f", {row['evidence']}"
    if row["low"] <= 0.0 <= row["high"]:
        flag = f", which cannot be told from none{flag}"
    size = f"{amount(abs(row['estimate']))} {'less' if less else 'more'}"
    return f"{size} ({interval}{amount(low)} to {amount(high)}{flag})"


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(k): v for k, v in row.items()} for row in table.to_dict("records")]


def warnings(table: pd.DataFrame, overlaps: Sequence[Overlap], missing: pd.DataFrame) -> list[str]:
    """What to know before using the numbers."""
    said = []
    for one in overlaps:
        if one.why:
            where = "" if one.group == "all" else f" of group {one.group}"
            said.append(f"Weak overlap{where}: {one.why}. Do not rely on the values there.")
    for why in dict.fromkeys(table["why"][table["why"].str.startswith("a few rows")]):
        said.append(f"In some values {why}.")
    unknown = table[(table["evidence"] == UNKNOWN) & table["why"].str.startswith("the bias")]
    said += [f"Not corrected: {why}." for why in dict.fromkeys(unknown["why"])]
    if missing["lost"].max() > 0.0:
        said.append(
            f"Rows without a reward are left out ({_parts(missing['lost'])}): that is right only "
            "if their rewards are missing for no reason of their own."
        )
    if missing["overridden"].max() > 0.0:
        said.append(
            "Decisions that a human overrode are left out, as their rewards are of another arm "
            f"({_parts(missing['overridden'])}): that is right only if humans do so for no reason "
            "that has to do with the reward."
        )
    return said


def _parts(missing: pd.Series[float]) -> str:
    return ", ".join(f"{rate(part)} in group {name}" for name, part in missing.items())
