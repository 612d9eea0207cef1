"""The report of an off-policy evaluation in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand.fairness._group_metrics import SUFFICIENT, UNKNOWN
from evenhand.fairness._sentences import amount, percent, rate
from evenhand.offpolicy._estimators import ESTIMATORS, LOGGED, SHARE, VALUE, WITHIN
from evenhand.offpolicy._overlap import Overlap
from evenhand.offpolicy._report_table import ALL, FEW_DECIDE

if TYPE_CHECKING:
    from evenhand.offpolicy.report import ValueReport

NOT_CORRECTED = "Not corrected: "
# A difference below this part of the values is rounding.
ROUNDING = 1e-12
ENDS = ["estimate", "low", "high"]
Line = dict[str, Any]


def sentences(report: ValueReport) -> list[str]:
    """Values, gains, shares, warnings, and what is assumed."""
    sentences, table = [], report.to_frame()
    for kind in dict.fromkeys(report.overall.index.get_level_values("reward")):
        sentences += [_values(str(kind), table), *_gain(report, str(kind), table)]
    shares = table[table["quantity"] == SHARE]
    for group in report.groups:
        own = {row["estimator"]: row for row in _rows(shares[shares["group"] == group])}
        target, before = own["target"], own[LOGGED]
        sentences.append(
            f"Group {group} would get {rate(target['estimate'])} of the decisions "
            f"({rate(target['low'])} to {rate(target['high'])}); in the log it got "
            f"{rate(before['estimate'])}."
        )
    # The sentences on values say why there is no corrected one.
    sentences += [warning for warning in report.warnings if not warning.startswith(NOT_CORRECTED)]
    sentences.append(
        f"Intervals are at {percent(report.level)}, each by itself, and treat the rows as "
        "independent. The target stays as it is: it does not learn in these rounds. The "
        "propensities in the log are assumed to be right."
    )
    return sentences


# Values -----------------------------------------------------------------------------------------


def _values(kind: str, table: pd.DataFrame) -> str:
    """What the target would have earned by each estimator, and what the log did."""
    own = table[table["reward"] == kind]
    rows = {row["estimator"]: row for row in _rows(own[own["quantity"] == VALUE])}
    if all(np.isnan(row["estimate"]) for row in rows.values()):
        reasons = _biases(own) or list(dict.fromkeys(row["why"] for row in rows.values()))
        return (
            f"The {kind} value is not known, neither for the target nor for the log"
            f"{_because(_and(reasons))}."
        )
    logged, parts = rows.pop(LOGGED), []
    known = [name for name, row in rows.items() if not np.isnan(row["estimate"])]
    if known:
        values = [_number(rows[name], f" by {name.upper()}") for name in known]
        parts.append(f"the target would have earned {_and(values)}")
    unknown = [name for name in rows if name not in known]
    if unknown:
        why = _and(list(dict.fromkeys(_clear(rows[name]["why"]) for name in unknown)))
        by = _and([name.upper() for name in unknown])
        parts.append(f"what the target would have earned by {by} is not known{_because(why)}")
    if np.isnan(logged["estimate"]):
        parts.append(f"what the log earned is not known{_because(_clear(logged['why']))}")
    else:
        parts.append(f"the log earned {_number(logged)}")
    return f"In {kind} reward per round {'; '.join(parts)}."


def _number(row: Line, by: str = "") -> str:
    flag = "" if row["evidence"] == SUFFICIENT else f"; {row['evidence']}"
    ends = f"{amount(row['low'])} to {amount(row['high'])}"
    return f"{amount(row['estimate'])}{by} ({ends}{flag})"


def _biases(own: pd.DataFrame) -> list[str]:
    """The reasons for every bias that is not known."""
    return [_clear(why) for why in dict.fromkeys(own["why"]) if why.startswith("the bias")]


def _clear(why: str) -> str:
    """A reason that says that it is about the rows the bias was learned from, not this log."""
    subject, stop, reason = why.partition(" not identified: ")
    return f"{subject} not identified (where it was learned: {reason})" if stop else why


def _because(why: str) -> str:
    return f", because {why}" if why else ""


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


# Gains ------------------------------------------------------------------------------------------


def _gain(report: ValueReport, kind: str, table: pd.DataFrame) -> list[str]:
    """By the last of the estimators: as a rule, each has a smaller error than those before."""
    gained = report.gain().reset_index()
    gained = gained[gained["reward"] == kind]
    known = set(gained["estimator"])
    name = next((estimator for estimator in reversed(ESTIMATORS) if estimator in known), None)
    if name is None:
        return []
    values = table[(table["reward"] == kind) & table["estimator"].isin([name, LOGGED])]
    rows = {
        (row["quantity"], row["group"]): _rounded(row, values)
        for row in _rows(gained[gained["estimator"] == name])
    }
    sentences, overall = [], rows[VALUE, ALL]
    if not np.isnan(overall["estimate"]):
        more, ends = _more(overall, f"{percent(report.level)} interval ")
        sentences.append(
            f"In {kind} reward the target would have earned {more} per round than the log, by "
            f"{name.upper()}{ends}."
        )
    within = {group: rows[WITHIN, group] for group in report.groups}
    if not all(np.isnan(row["estimate"]) for row in within.values()):
        parts = [f"to group {group}: {_own(row)}" for group, row in within.items()]
        sentences.append(f"Per decision that goes {'; '.join(parts)}.")
    return [" ".join(sentences)] if sentences else []


def _own(row: Line) -> str:
    if np.isnan(row["estimate"]):
        return f"not known{_because(_clear(row['why']))}"
    return "".join(_more(row))


def _rounded(row: Line, values: pd.DataFrame) -> Line:
    """A difference with 0 for what is only rounding error, compared with its two values."""
    pair = values[(values["quantity"] == row["quantity"]) & (values["group"] == row["group"])]
    size = np.abs(np.nan_to_num(pair[ENDS].to_numpy(dtype=np.float64))).max(initial=0.0)
    return row | {end: 0.0 if abs(row[end]) <= ROUNDING * size else row[end] for end in ENDS}


def _more(row: Line, interval: str = "") -> tuple[str, str]:
    """As in "0.12 more" and " (0.05 to 0.19)"; "less" if below zero."""
    estimate, low, high = (float(row[end]) for end in ENDS)
    flags = [] if row["evidence"] == SUFFICIENT else [str(row["evidence"])]
    if low == estimate == high == 0.0:
        return _signed(estimate), f" ({flags[0]})" if flags else ""
    if low <= 0.0 <= high:
        ends = " to ".join(_signed(end) if end else "0" for end in (low, high))
        flags = ["this could be no difference", *flags]
    else:
        near, far = sorted((abs(low), abs(high)))
        ends = f"{amount(near)} to {amount(far)}"
    return _signed(estimate), f" ({'; '.join([interval + ends, *flags])})"


def _signed(value: float) -> str:
    if value == 0.0:
        return "no more and no less"
    return f"{amount(abs(value))} {'less' if value < 0.0 else 'more'}"


def _rows(table: pd.DataFrame) -> list[Line]:
    return [{str(k): v for k, v in row.items()} for row in table.to_dict("records")]


# Warnings ---------------------------------------------------------------------------------------


def warnings(table: pd.DataFrame, overlaps: Sequence[Overlap], missing: pd.DataFrame) -> list[str]:
    """What to know before using the numbers."""
    sentences = []
    for overlap in overlaps:
        if overlap.why:
            where = "" if overlap.group == "all" else f" in group {overlap.group}"
            sentences.append(f"Weak overlap{where}: {overlap.why}. Do not rely on these values.")
    if (table["why"] == FEW_DECIDE).any():
        sentences.append(f"In some values {FEW_DECIDE}.")
    unknown = table[(table["evidence"] == UNKNOWN) & table["why"].str.startswith("the bias")]
    sentences += [f"{NOT_CORRECTED}{why}." for why in dict.fromkeys(unknown["why"])]
    if missing["lost"].max() > 0.0:
        sentences.append(
            f"Rows without a reward are left out ({_parts(missing['lost'])}): this is right only "
            "if the missing rewards would have been like the others."
        )
    if missing["overridden"].max() > 0.0:
        sentences.append(
            "Decisions that a human overrode are left out, as their rewards are another arm's "
            f"({_parts(missing['overridden'])}): this is right only if the rewards of their own "
            "arms would have been like the others."
        )
    return sentences


def _parts(missing: pd.Series[float]) -> str:
    return ", ".join(f"{rate(part)} in group {name}" for name, part in missing.items())
