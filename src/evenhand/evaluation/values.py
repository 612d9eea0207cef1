"""The report of an off-policy evaluation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evenhand.evaluation.estimators import LOGGED, SHARE, VALUE
from evenhand.evaluation.evidence import SUFFICIENT, UNKNOWN
from evenhand.evaluation.overlap import Overlap
from evenhand.evaluation.tabling import COLUMNS
from evenhand.evaluation.words import amount, percent, rate
from evenhand.plain import records

FORMAT, VERSION = "evenhand value report", 1


@dataclass(frozen=True, eq=False, repr=False)
class ValueReport:
    """What a target policy would have earned, overall and per group, and how far to trust it.

    Made by `evenhand.evaluation.off_policy`.

    Attributes:
        groups: the names of the groups.
        level: of the intervals.
        interval: "normal", "bootstrap" or "bernstein".
        overlap: a row for everything and for each group: what the weights are worth, the largest
            of them, and how much of the target the log could never have seen.
        warnings: what to know before using the numbers, in sentences.
    """

    groups: tuple[str, ...]
    level: float
    interval: str
    overlap: pd.DataFrame
    warnings: tuple[str, ...]
    _table: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """A row per number.

        `reward` is "observed" or "corrected"; `estimator` is "ips", "snips", "dr", or "logged" for
        what the logging policy got. `quantity`: "value" of everything, the "contribution" of a
        group to it (over all rounds), the value "within" a group (per decision that goes to it),
        and the "share" of decisions that go to it. `evidence` is "sufficient", "weak overlap",
        "insufficient evidence" or "not known"; `why` says why.
        """
        return self._table.copy()

    @property
    def overall(self) -> pd.DataFrame:
        """The values of everything, by reward and estimator."""
        table = self._table[self._table["quantity"] == VALUE]
        return table.set_index(["reward", "estimator"]).drop(columns=["quantity", "group"])

    @property
    def by_group(self) -> pd.DataFrame:
        """Contributions and values within groups, by reward, estimator, quantity and group.

        Rows are in the order of their names, so that they can be looked up in part.
        """
        table = self._table[~self._table["quantity"].isin([VALUE, SHARE])]
        return table.set_index(["reward", "estimator", "quantity", "group"]).sort_index()

    @property
    def shares(self) -> pd.DataFrame:
        """The share of decisions of each group, under the target and in the log."""
        table = self._table[self._table["quantity"] == SHARE]
        return table.set_index(["estimator", "group"]).drop(columns=["reward", "quantity"])

    @property
    def trusted(self) -> bool:
        """Whether every value of everything rests on sufficient evidence."""
        return bool((self.overall["evidence"] == SUFFICIENT).all())

    def to_words(self) -> str:
        """The report in sentences."""
        return "\n".join(_sentences(self))

    def __str__(self) -> str:
        return self.to_words()

    def __repr__(self) -> str:
        return f"ValueReport(groups={', '.join(self.groups)}, trusted={self.trusted})"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, versioned. None stands for NaN and for infinite numbers."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "level": self.level,
            "interval": self.interval,
            "groups": list(self.groups),
            "trusted": self.trusted,
            "values": records(self._table),
            "overlap": records(self.overlap),
            "warnings": list(self.warnings),
            "words": self.to_words(),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)


def value_report(
    lines: Sequence[Any],
    overlaps: Sequence[Overlap],
    missing: pd.Series[float],
    level: float,
    interval: str,
) -> ValueReport:
    """Put a report together.

    Args:
        lines: rows of `COLUMNS`.
        overlaps: of everything, then of each group.
        missing: the part of rows without a reward, by group.
        level: of the intervals.
        interval: their kind.
    """
    table = pd.DataFrame(list(lines), columns=list(COLUMNS))
    return ValueReport(
        groups=tuple(str(name) for name in missing.index),
        level=level,
        interval=interval,
        overlap=pd.DataFrame(overlaps),
        warnings=tuple(_warnings(table, overlaps, missing)),
        _table=table,
    )


def _warnings(
    table: pd.DataFrame, overlaps: Sequence[Overlap], missing: pd.Series[float]
) -> list[str]:
    said = []
    for one in overlaps:
        if one.why:
            where = "" if one.group == "all" else f" of group {one.group}"
            said.append(f"Weak overlap{where}: {one.why}. Do not rely on the values there.")
    for why in dict.fromkeys(table["why"][table["why"].str.startswith("a few rows")]):
        said.append(f"In some values {why}.")
    unknown = table[(table["evidence"] == UNKNOWN) & table["why"].str.startswith("the bias")]
    said += [f"Not corrected: {why}." for why in dict.fromkeys(unknown["why"])]
    if missing.max() > 0.0:
        parts = ", ".join(f"{rate(part)} in group {name}" for name, part in missing.items())
        said.append(
            f"Rows without a reward are left out ({parts}): that is right only if their rewards "
            "are missing for no reason of their own."
        )
    return said


def _sentences(report: ValueReport) -> list[str]:
    said = []
    for kind in dict.fromkeys(report.overall.index.get_level_values("reward")):
        table = report.overall.loc[kind]
        found = [_number(name, row) for name, row in zip(table.index, _rows(table), strict=True)]
        said.append(f"In {kind} reward per round: {'; '.join(text for text in found if text)}.")
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


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(k): v for k, v in row.items()} for row in table.to_dict("records")]
