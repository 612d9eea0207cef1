"""The fairness report: numbers with intervals, what they rest on, and the evidence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand._checks import Array
from evenhand._prose import records
from evenhand.errors import InputError, setting
from evenhand.fairness import _comparisons
from evenhand.fairness._clusters import IGNORED, ClusterMeans, ClusterSums
from evenhand.fairness._comparisons import all_pairs, divided, extreme
from evenhand.fairness._group_metrics import (
    METRICS,
    SELECTION,
    WITH_CLUSTERS,
    MetricRow,
    noted,
    possible,
    rows,
)
from evenhand.fairness._measures import Measure
from evenhand.fairness._sentences import sentences
from evenhand.fairness.intervals import PROPORTIONS
from evenhand.fairness.sums import GroupSums


@dataclass(frozen=True, eq=False, repr=False)
class FairnessReport:
    """Metrics per group with intervals, in the shape of Fairlearn's MetricFrame.

    Returned by `fairness_report`. Every table has `estimate`, `low`, `high`, `n`, a word
    in `evidence` ("sufficient", "insufficient evidence" or "not known") and, unless it is the
    first, `why`.

    Attributes:
        sums: the sums that it is computed from.
        level: of the intervals.
        least: a number with a smaller n is called "insufficient evidence".
        threshold: the screening value for ratios of selection rates.
        simultaneous: whether the intervals of the groups hold for all groups at once.
        proportions: the intervals of rates, "wilson" or "exact".
        metrics: the names of the metrics.
        clusters: sums over rows that belong together, or None if rows are independent. Intervals
            of mean rewards and of selection rates by reward then allow for them; those of other
            metrics do not, and `why` says so.

    Example:
        >>> import pandas as pd, evenhand as eh
        >>> sums = pd.DataFrame({"group": ["F", "M"], "n": [300, 700], "arms": [5, 5]})
        >>> report = eh.fairness.fairness_report(sums)
        >>> report.by_group.loc[("share", "F"), ["estimate", "low", "high"]].round(3).tolist()
        [0.3, 0.272, 0.329]
        >>> sums = sums.assign(n_reward=[300, 700], sum_reward=[90, 350], square_reward=[90, 350])
        >>> report = eh.fairness.fairness_report(sums.assign(positives=[90, 350]))
        >>> report.difference().loc["mean_reward", ["lower", "higher"]].tolist()
        ['F', 'M']
        >>> report.ratio()["estimate"].round(2).to_dict()["mean_reward"]
        0.6
        >>> report.pairs("mean_reward")["what"].tolist()
        ['difference', 'ratio']
        >>> report.demographic_parity()["estimate"].round(2).tolist()
        [0.08, 0.43, 0.2, 0.6]
        >>> report.parity()[["parity", "group", "difference"]].round(2).values.tolist()[:2]
        [['proportional', 'F', -0.2], ['proportional', 'M', 0.2]]
        >>> report.screening()[["group", "screen"]].values.tolist()[:2]
        [['F', 'below'], ['M', 'the highest rate']]
        >>> print(report.to_words().split(" (")[0])
        Group F got 30.0 % of 1,000 decisions
        >>> import json
        >>> report.to_frame().shape, json.loads(report.to_json()) == report.to_dict()
        ((10, 8), True)
    """

    sums: GroupSums
    level: float
    least: int
    threshold: float
    simultaneous: bool
    proportions: str
    metrics: tuple[str, ...]
    clusters: ClusterSums | None = None

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
        lines = [
            (name, group, *noted(row, self._note(name)))
            for name in self.metrics
            for group, row in zip(
                self.groups, rows(self._measure(name), level, self.least), strict=True
            )
        ]
        frame = pd.DataFrame(lines, columns=["metric", "group", *MetricRow._fields])
        return frame.set_index(["metric", "group"])

    @cached_property
    def overall(self) -> pd.DataFrame:
        """A row per metric, for all groups together; shares, which add up to 1, are left out."""
        return _comparisons.overall(self)

    def difference(
        self, method: str = "between_groups", sufficient_only: bool = False
    ) -> pd.DataFrame:
        """The largest difference of each metric; for selection rates, of demographic parity.

        Args:
            method: "between_groups", of any two; or "to_overall", of a group and all.
            sufficient_only: whether to leave out groups with insufficient evidence. Otherwise
                little may be known about the pair; `evidence` says so.

        The intervals allow for the choice of the pair: they hold for all pairs at once.
        """
        return extreme(self, "difference", method, sufficient_only)

    def ratio(self, method: str = "between_groups", sufficient_only: bool = False) -> pd.DataFrame:
        """The smallest ratio of each metric, the lower over the higher.

        Args:
            method: as for `difference`.
            sufficient_only: as for `difference`.

        Means have a ratio only if both intervals are above 0.
        """
        return extreme(self, "ratio", method, sufficient_only)

    def demographic_parity(self) -> pd.DataFrame:
        """Difference and ratio of the selection rates, by pulls and by reward, as in Fairlearn.

        The largest rate minus the smallest, and the smallest over the largest.
        """
        kinds = [name for name in SELECTION if name in self.metrics]
        tables = {"difference": self.difference(), "ratio": self.ratio()}
        stacked = pd.concat({what: table.loc[kinds] for what, table in tables.items()})
        return stacked.rename_axis(["what", "selection"]).swaplevel().sort_index()

    def pairs(self, metric: str) -> pd.DataFrame:
        """All pairs of groups: difference and ratio, with intervals that hold for all at once.

        Args:
            metric: one of `metrics`.
        """
        if metric not in self.metrics:
            raise InputError(
                f"{setting('metric')} is {metric!r}; allowed is one of {', '.join(self.metrics)}",
                value=metric,
            )
        lines = [
            (pair["lower"], pair["higher"], what, *pair[what])
            for pair in all_pairs(self, metric)
            for what in ("difference", "ratio")
        ]
        return pd.DataFrame(lines, columns=["lower", "higher", "what", *MetricRow._fields])

    def parity(self) -> pd.DataFrame:
        """The share of every group, and its shares at proportional and at equal parity.

        `asked` is the share at parity, `difference` the share minus it and `ratio` the share over
        it. As `asked` is a constant, their intervals are those of the share, shifted or scaled.
        """
        return _comparisons.parity(self)

    def screening(self) -> pd.DataFrame:
        """Every group's selection rate over the highest one: the four-fifths rule as a screen.

        A value below the threshold is a reason to look closer, not a verdict; one above it is no
        proof of fairness. `screen` is "below" or "above" if the whole interval is, and "cannot be
        told" otherwise.
        """
        return _comparisons.screening(self)

    def to_frame(self) -> pd.DataFrame:
        """`by_group` as plain columns, to be saved."""
        return self.by_group.reset_index()

    def to_words(self, outcome: str = "") -> str:
        """The report in sentences.

        Args:
            outcome: the name of the reward, for readers to whom it is an outcome of people.
        """
        return "\n".join(sentences(self, outcome))

    def __str__(self) -> str:
        return self.to_words()

    def __repr__(self) -> str:
        return f"FairnessReport(groups={', '.join(self.groups)}, metrics={', '.join(self.metrics)})"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, versioned. None stands for NaN and for infinite ends."""
        return _plain(self)

    def to_json(self, indent: int | None = 2) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)

    def _measure(self, name: str) -> Measure:
        return self._measure_of(name, self.sums, np.eye(len(self.groups)))

    def _together(self, name: str, group: int | None) -> Measure:
        """The metric of all groups as one; or of one group, and of the others as one."""
        every = np.ones((1, len(self.groups)))
        own = np.eye(len(self.groups))[[group]] if group is not None else every
        parts = every if group is None else np.vstack([own, every - own])
        return self._measure_of(name, _comparisons.collapsed(self.sums, group), parts)

    def _measure_of(self, name: str, sums: GroupSums, parts: Array) -> Measure:
        measure = METRICS[name].make(sums, self.proportions)
        if self.clusters is None or name not in WITH_CLUSTERS:
            return measure
        estimate = measure.ends(self.level).estimate
        return ClusterMeans(
            measure.n, estimate, self.clusters.put_together(parts), sums.has("positives")
        )

    def _note(self, name: str) -> str:
        """A note on a metric's intervals."""
        return IGNORED if self.clusters is not None and name not in WITH_CLUSTERS else ""


LEAST = 30


def fairness_report(
    sums: GroupSums | pd.DataFrame,
    *,
    level: float = 0.95,
    least: int = LEAST,
    threshold: float = 0.8,
    simultaneous: bool = False,
    proportions: str = "wilson",
    metrics: Sequence[str] | None = None,
    unfavourable: bool = False,
    clusters: ClusterSums | None = None,
) -> FairnessReport:
    """Fairness metrics per group with intervals, from a row of sums per group.

    Args:
        sums: `GroupSums`, or a frame with its columns.
        level: of the intervals.
        least: a number that rests on fewer decisions (or people, or rewards) is called
            "insufficient evidence". It is shown anyway. With 30, the interval of a rate of one
            half is 34 points wide.
        threshold: the screening value for the ratio of selection rates. 0.8 is the "four-fifths"
            of the guidelines of the US EEOC of 1978, where it is a rule of thumb.
        simultaneous: whether the intervals of single groups hold for all groups at once
            (Bonferroni). Use it if there are many groups and you look for the odd one.
        proportions: "wilson", or "exact" for intervals that never cover less than their level.
        metrics: which ones; all that can be computed from the sums unless given.
        unfavourable: whether a reward of 1 is the bad outcome (denied, arrested). Then the
            selection rate by reward, and its screen, count rewards of 0.
        clusters: sums over rows that belong together, as an audit computes them.

    Example:
        >>> import pandas as pd, evenhand as eh
        >>> sums = pd.DataFrame({"group": ["F", "M"], "n": [300, 700], "arms": [5, 5]})
        >>> report = eh.fairness.fairness_report(sums)
        >>> report.by_group.loc["share", ["estimate", "low", "high"]].round(3).values.tolist()
        [[0.3, 0.272, 0.329], [0.7, 0.671, 0.728]]
        >>> report.screening()[["group", "estimate", "high", "screen"]].round(2).values.tolist()
        [['F', 0.43, 0.49, 'below'], ['M', 1.0, 1.0, 'the highest rate']]
    """
    table = sums if isinstance(sums, GroupSums) else GroupSums(sums)
    if unfavourable:
        if not table.has("positives", "n_reward"):
            raise InputError(
                f"{setting('unfavourable')} is set, and the sums have no positives; it needs "
                "rewards of 0 and 1: give positives and n_reward, or leave unfavourable out"
            )
        good = table.table["n_reward"] - table.table["positives"]
        table = GroupSums(table.table.assign(favourable=good))
    known = possible(table)
    wanted = known if metrics is None else list(metrics)
    for name in wanted:
        _checks.one_of("metrics", name, known)
    if "share" not in wanted:
        wanted = ["share", *wanted]
    return FairnessReport(
        sums=table,
        level=_checks.number("level", level, 0.0, 1.0, open_ends=True),
        least=_checks.whole("least", least, 1),
        threshold=_checks.number("threshold", threshold, 0.0, 1.0),
        simultaneous=bool(simultaneous),
        proportions=_checks.one_of("proportions", proportions, PROPORTIONS),
        metrics=tuple(wanted),
        clusters=clusters,
    )


FORMAT, VERSION = "evenhand fairness report", 1


def _plain(report: FairnessReport) -> dict[str, Any]:
    """Everything in a report as plain data. None stands for NaN and for infinite ends."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "level": report.level,
        "least": report.least,
        "threshold": report.threshold,
        "simultaneous": report.simultaneous,
        "proportions": report.proportions,
        "ignoring_clusters": [name for name in report.metrics if report._note(name)],
        "groups": list(report.groups),
        "metrics": list(report.metrics),
        "by_group": records(report.to_frame()),
        "overall": records(report.overall.reset_index()),
        "parity": records(report.parity()),
        "difference": records(report.difference().reset_index()),
        "ratio": records(report.ratio().reset_index()),
        "screening": records(report.screening()),
        "sums": records(report.sums.table.reset_index()),
        "words": report.to_words(),
    }
