"""The fairness report: numbers with intervals, what they rest on, and whether that is enough."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from evenhand.evaluation import comparing, parity
from evenhand.evaluation.comparing import all_pairs, divided, extreme
from evenhand.evaluation.evidence import Row, rows
from evenhand.evaluation.measures import Measure
from evenhand.evaluation.metrics import METRICS, SELECTION
from evenhand.evaluation.plain import plain
from evenhand.evaluation.sums import GroupSums
from evenhand.evaluation.words import sentences


@dataclass(frozen=True, eq=False, repr=False)
class FairnessReport:
    """Metrics per group with intervals, in the shape of Fairlearn's MetricFrame.

    Made by `evenhand.evaluation.fairness`. Every table has `estimate`, `low`, `high`, `n`, a word
    in `evidence` ("sufficient", "insufficient evidence" or "not known") and, unless it is the
    first, `why`.

    Attributes:
        sums: what it is made from.
        level: of the intervals.
        least: with a smaller n a number is called "insufficient evidence".
        threshold: the screening value for ratios of selection rates.
        simultaneous: whether the intervals of the groups hold for all groups at once.
        proportions: the intervals of rates, "wilson" or "exact".
    """

    sums: GroupSums
    level: float
    least: int
    threshold: float
    simultaneous: bool
    proportions: str
    metrics: tuple[str, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        return self.sums.groups

    @cached_property
    def by_group(self) -> pd.DataFrame:
        """A row per metric and group. No group is ever left out.

        `report.by_group["estimate"].unstack("metric")` is what MetricFrame calls `by_group`.
        """
        level = divided(self.level, len(self.groups)) if self.simultaneous else self.level
        found = [
            (name, group, *row)
            for name in self.metrics
            for group, row in zip(
                self.groups, rows(self._measure(name), level, self.least), strict=True
            )
        ]
        frame = pd.DataFrame(found, columns=["metric", "group", *Row._fields])
        return frame.set_index(["metric", "group"])

    @cached_property
    def overall(self) -> pd.DataFrame:
        """A row per metric, of all groups together; shares of everything are 1 and not in it."""
        return comparing.overall(self)

    def difference(
        self, method: str = "between_groups", sufficient_only: bool = False
    ) -> pd.DataFrame:
        """The largest difference of each metric. Of a selection rate: demographic parity's.

        Args:
            method: "between_groups", of any two; or "to_overall", of a group and all.
            sufficient_only: whether to leave groups with too little evidence out of the choice.
                Otherwise the pair may be one that little is known of; `evidence` says so.

        The intervals make up for having picked the pair: they hold for all pairs at once.
        """
        return extreme(self, "difference", method, sufficient_only)

    def ratio(self, method: str = "between_groups", sufficient_only: bool = False) -> pd.DataFrame:
        """The smallest ratio of each metric, the lower over the higher.

        Args:
            method: as of `difference`.
            sufficient_only: as of `difference`.

        Of means there is a ratio only where all are above 0 beyond doubt.
        """
        return extreme(self, "ratio", method, sufficient_only)

    def demographic_parity(self) -> pd.DataFrame:
        """Difference and ratio of the selection rates, by pulls and by reward: Fairlearn's numbers.

        The largest rate less the smallest, and the smallest over the largest.
        """
        kinds = [name for name in SELECTION if name in self.metrics]
        tables = {"difference": self.difference(), "ratio": self.ratio()}
        found = pd.concat({what: table.loc[kinds] for what, table in tables.items()})
        return found.rename_axis(["what", "selection"]).swaplevel().sort_index()

    def pairs(self, metric: str) -> pd.DataFrame:
        """All pairs of groups: difference and ratio, with intervals that hold for all at once.

        Args:
            metric: one of `metrics`.
        """
        if metric not in self.metrics:
            raise ValueError(f"metric is {metric!r}; allowed is one of {', '.join(self.metrics)}")
        found = [
            (pair["lower"], pair["higher"], what, *pair[what])
            for pair in all_pairs(self, metric)
            for what in ("difference", "ratio")
        ]
        return pd.DataFrame(found, columns=["lower", "higher", "what", *Row._fields])

    def parity(self) -> pd.DataFrame:
        """The share of every group beside what proportional and equal parity ask.

        `difference` is the share less what is asked, `ratio` the share over it. What is asked is no
        estimate, so the interval of the share moves with it.
        """
        return parity.parity(self)

    def screening(self) -> pd.DataFrame:
        """Every group's selection rate over the highest one: the four-fifths rule as a screen.

        A value below the threshold is a reason to look closer and not a verdict; one above it is no
        proof of fairness. `screen` is "below" or "above" where the whole interval is, and "cannot
        be told" where it is not.
        """
        return parity.screening(self)

    def to_frame(self) -> pd.DataFrame:
        """`by_group` as plain columns, to be saved."""
        return self.by_group.reset_index()

    def to_words(self) -> str:
        """The report in sentences."""
        return "\n".join(sentences(self))

    def __str__(self) -> str:
        return self.to_words()

    def __repr__(self) -> str:
        return f"FairnessReport(groups={', '.join(self.groups)}, metrics={', '.join(self.metrics)})"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, versioned. None stands for NaN and for infinite ends."""
        return plain(self)

    def to_json(self, indent: int | None = 2) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)

    def _measure(self, name: str) -> Measure:
        return METRICS[name].make(self.sums, self.proportions)
