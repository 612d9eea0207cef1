"""The report of an off-policy evaluation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pandas as pd

from evenhand._prose import records
from evenhand.fairness._group_metrics import SUFFICIENT
from evenhand.offpolicy._estimators import SHARE, VALUE
from evenhand.offpolicy._sentences import sentences

FORMAT, VERSION = "evenhand value report", 1


@dataclass(frozen=True, eq=False, repr=False)
class ValueReport:
    """What a target policy would have earned, overall and per group, and how far to trust it.

    Returned by `evenhand.offpolicy.evaluate`.

    Attributes:
        groups: the names of the groups.
        level: of the intervals.
        interval: "normal", "bootstrap" or "bernstein".
        overlap: a row for everything and for each group: the effective number of rows, the largest
            weight, and how much of the target the log could never have seen.
        warnings: what to know before using the numbers, in sentences.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> rng = np.random.default_rng(1)
        >>> arms = rng.integers(2, size=1000)
        >>> log = eh.offpolicy.Logged(arms, arms + 1.0, np.full(1000, 0.5), ["F", "M"])
        >>> report = eh.offpolicy.evaluate(log, "uniform", estimators="snips")
        >>> report
        ValueReport(groups=F, M, trusted=True)
        >>> report.shares.loc["target", "estimate"].to_dict()
        {'F': 0.5, 'M': 0.5}
        >>> report = eh.offpolicy.evaluate(log, np.full((1000, 2), [0.2, 0.8]), estimators="snips")
        >>> values = report.to_frame().query("quantity == 'value'")
        >>> values[["estimator", "estimate"]].round(2).values.tolist()
        [['snips', 1.79], ['logged', 1.49]]
        >>> gain = report.gain().loc[("observed", "snips", "value", "all")]
        >>> gain[["low", "high"]].astype(float).round(2).tolist()
        [0.29, 0.31]
        >>> print(report.to_words().split(" (")[0])
        In observed reward per round the target would have earned 1.794 by SNIPS
        >>> import json
        >>> json.loads(report.to_json()) == report.to_dict()
        True
    """

    groups: tuple[str, ...]
    level: float
    interval: str
    overlap: pd.DataFrame
    warnings: tuple[str, ...]
    _table: pd.DataFrame
    _gain: pd.DataFrame

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
        """The overall values, by reward and estimator."""
        table = self._table[self._table["quantity"] == VALUE]
        return table.set_index(["reward", "estimator"]).drop(columns=["quantity", "group"])

    @property
    def by_group(self) -> pd.DataFrame:
        """Contributions and values within groups, by reward, estimator, quantity and group.

        Rows are sorted, so that they can be looked up by a part of the index.
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
        """Whether every overall value rests on sufficient evidence."""
        return bool((self.overall["evidence"] == SUFFICIENT).all())

    def gain(self) -> pd.DataFrame:
        """How much more the target would have earned than the log did, with intervals.

        By reward, estimator, quantity and group, as in `to_frame`; the group of "value" is "all".
        Both are estimated from the same rows, so most of their error is common and cancels: the
        interval is narrower than the intervals of the two suggest.
        """
        return self._gain.set_index(["reward", "estimator", "quantity", "group"]).sort_index()

    def to_words(self) -> str:
        """The report in sentences."""
        return "\n".join(sentences(self))

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
            "gain": records(self._gain),
            "overlap": records(self.overlap),
            "warnings": list(self.warnings),
            "words": self.to_words(),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)
