"""The bias report: every number with its interval, or with the reason why there is none."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._checks import numbers
from evenhand._columns.column import FLAGS, Column
from evenhand.bias import _tables
from evenhand.bias._cautions import cautions
from evenhand.bias._contexts import BINARY, Contexts, weak_overlap
from evenhand.bias._contrasts import Comparison, Gap, compare, largest_difference, smallest_ratio
from evenhand.bias._fit import Fit
from evenhand.bias._sentences import ASSUMPTION, plain, sentences
from evenhand.bias._terms import SecondModel, Terms
from evenhand.bias.statistics import Array
from evenhand.errors import InputError, setting

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True, eq=False, repr=False)
class BiasReport:
    """How the feedback for each group is biased, feature by feature, with intervals.

    Returned by `policy.bias()`, or by `evenhand.bias.bias_report` from sums. It assumes that the
    true averages of the groups are equal; docs/explanation/reading-bias.md says how to read it.

    Attributes:
        groups: the names of the groups.
        features: the names of the features.
        reference: the group that the others are compared with; None for the mean of the groups.
        level: of all intervals.
        weighting: "pulls" or "arms".
        units: the step of each feature that `to_words` and `chart` use.
        observations: how many each group has.
        arms: how many arms each group has; None if there are no arms.
        average: the context of each group at which contributions and totals are reported, or None.
        overall: the same for all groups together, or None.
        columns: the columns of the table, and the features that each became.
        assumption: what the numbers rest on, in a sentence; the last of `to_words`.
        codes: features whose numbers stand for categories, with these in the order of the numbers.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> policy = eh.TopInterval(["F", "F", "M", "M"], n_features=1, seed=1)
        >>> policy.absorb([0, 0, 1, 1, 2, 2, 3, 3], np.ones((8, 1)), [1, 2, 2, 3, 5, 6, 6, 7])
        >>> report = policy.bias(reference="M", feature_names=["all"])
        >>> report.to_frame()[["group", "estimate", "low", "high"]].round(2).values.tolist()
        [['F', -4.0, -5.39, -2.61], ['M', 0.0, 0.0, 0.0]]
        >>> print(report.to_words().split(",")[0])
        At the average context the feedback for group F is 4.0 lower than that for group M
        >>> round(report.difference().estimate, 9), report.ratio().why.split(":")[0]
        (4.0, 'not identified')
        >>> report.totals().query("context == 'overall'")["estimate"].round(9).tolist()
        [-4.0, 0.0]
        >>> report.weightings()["disagrees"].tolist()
        [False, <NA>]
        >>> import json
        >>> json.loads(report.to_json()) == report.to_dict()
        True
        >>> report.chart(title="Loans").to_dict()["title"]["text"]
        'Loans'
    """

    groups: tuple[str, ...]
    features: tuple[str, ...]
    reference: str | None
    level: float
    weighting: str
    units: tuple[float, ...]
    observations: tuple[int, ...]
    arms: tuple[int, ...] | None
    average: Array | None
    overall: Array | None
    _fit: Fit
    _weights: Array  # (groups, groups): the contrast that is the bias of each group
    _contexts: Contexts
    _precision: float  # of the sums
    _apart: Callable[[], Fit] | None  # how far the two weightings are apart
    columns: tuple[Column, ...] = ()
    assumption: str = ASSUMPTION
    _instead: str = ""  # why arms weigh by pulls where they were to weigh the same
    codes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # What another model of the same rewards does not confirm.
    _second: SecondModel = field(default_factory=SecondModel)
    _terms: Terms = field(default_factory=Terms)

    # Tables -------------------------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """A row per group and feature.

        `estimate` is the bias: how the gap between this group and the reference changes with one
        more of the feature. It is not a gap itself: for those, see `gaps`. `low` to `high` is the
        interval of its row alone; the intervals from `simultaneous_low` to `simultaneous_high` hold
        for all rows at once, and `detectable` is the smallest bias that these find with 80 % power.
        `contribution` is the bias times the `mean` of the feature in the group, in units of
        reward. `disagrees` is true if the other weighting gives another answer. If the bias is not
        identified, every number is NaN and `why` gives the reason; it also says where groups hardly
        overlap.
        """
        return _tables.by_feature(self)

    def totals(self) -> pd.DataFrame:
        """The bias of each group in reward units: at its own average context, and at everyone's.

        The average contexts are taken as given. `simultaneous_low` and `simultaneous_high` hold
        for all rows of this table at once.
        """
        return _tables.totals(self)

    def gaps(self, values: Mapping[str, Sequence[float]] | None = None) -> pd.DataFrame:
        """The gap within each category and at values of each number, in reward units.

        A row per group (except the reference), column and place: the feedback for the group less
        that for the reference, with all other features at the average of everyone.
        `simultaneous_low` and `simultaneous_high` hold for all rows of the table at once.

        Args:
            values: where to evaluate numbers, {"age": [30, 60]}; one standard deviation below and
                above the average unless given, and within the range of the data if that is known.

        Example:
            >>> import numpy as np
            >>> from evenhand.bias import Statistics, bias_report
            >>> x = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0]] * 2)
            >>> sums = Statistics.from_rows(x, [1, 3, 5, 7, 2, 4, 5, 7], ["F"] * 4 + ["M"] * 4)
            >>> report = bias_report(sums, reference="M", feature_names=["one", "law"])
            >>> report.gaps()[["column", "at", "estimate"]].round(9).values.tolist()
            [['law', '0', -1.0], ['law', '1', 0.0]]
        """
        return _tables.gaps(self, values)

    def at(self, contexts: ArrayLike, groups: Sequence[object] | str) -> pd.DataFrame:
        """The bias at given contexts, say of candidates, in reward units.

        Args:
            contexts: (rows, features), or one context.
            groups: the group of each row, or one for all.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> policy = eh.TopInterval(["F", "F", "M", "M"], n_features=1, seed=1)
            >>> policy.absorb([0, 0, 1, 1, 2, 2, 3, 3], np.ones((8, 1)), [1, 2, 2, 3, 5, 6, 6, 7])
            >>> policy.bias(reference="M").at([[2.0]], "F")["estimate"].round(9).tolist()
            [-8.0]
        """
        rows = np.atleast_2d(numbers("contexts", contexts, None))
        if rows.ndim != 2 or rows.shape[1] != len(self.features):
            raise InputError(
                f"{setting('contexts')} has shape {rows.shape}; allowed is (rows, "
                f"{len(self.features)})"
            )
        names = [groups] * len(rows) if isinstance(groups, str) else list(groups)
        unknown = [name for name in names if str(name) not in self.groups]
        if unknown or len(names) != len(rows):
            raise InputError(
                f"{setting('groups')} has "
                f"{repr(unknown[0]) if unknown else f'{len(names)} names'}; allowed is one for "
                f"each of the {len(rows)} contexts, of {', '.join(self.groups)}"
            )
        which = np.array([self.groups.index(str(name)) for name in names], dtype=np.int64)
        return _tables.at(self, rows, which)

    def weightings(self) -> pd.DataFrame:
        """The difference between the fit weighted by pulls and the average over arms, row by row.

        `difference` is the bias by pulls less the bias by arms. The intervals hold for all rows at
        once; `disagrees` is true if zero is outside them. Then the arms that were chosen most
        dominate the fit by pulls, and "arms" is the answer under the assumption of equal averages.
        """
        return _tables.weightings(self)

    @property
    def by_group(self) -> pd.DataFrame:
        """A row per group: observations, arms, and the bias at the average context of everyone.

        `simultaneous_low` and `simultaneous_high` hold for all groups at once.
        """
        return self._by_group.copy()

    def difference(self, context: ArrayLike | None = None) -> Gap:
        """The largest difference between the feedback for two groups at the same context.

        The pair is picked after the fact, so the interval is one that holds for all pairs at once.

        Args:
            context: where to compare; the average context of everyone unless given.
        """
        return largest_difference(self, self._place(context))

    def ratio(self, context: ArrayLike | None = None) -> Gap:
        """The lowest feedback of a group over the highest, at the same context.

        Only if all feedback is clearly positive; otherwise NaN, with the reason.

        Args:
            context: where to compare; the average context of everyone unless given.
        """
        return smallest_ratio(self, self._place(context))

    # Words, data and charts ---------------------------------------------------------------------

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What to know before using the numbers, in sentences."""
        return tuple(cautions(self))

    def to_words(self, most: int = 10) -> str:
        """The report in sentences, the most important first, and what it assumes last.

        Args:
            most: how many features to mention at most.
        """
        return "\n".join(sentences(self, most))

    def __str__(self) -> str:
        return self.to_words()

    def __repr__(self) -> str:
        return (
            f"BiasReport(groups={', '.join(self.groups)}, features={len(self.features)}, "
            f"observations={sum(self.observations)}, weighting={self.weighting!r})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, versioned. None stands for NaN and for infinite freedom."""
        return plain(self)

    def to_json(self, indent: int | None = 2) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)

    def chart(self, title: str = "Bias by feature and group") -> alt.TopLevelMixin:
        """How the gap changes with each feature, with both intervals. Needs the extra `charts`."""
        from evenhand.charts import bias_chart

        names = dict(zip(self.features, self.units, strict=True))
        return bias_chart(self.to_frame(), names, self.change, title, self.level, self.codes)

    @property
    def against(self) -> str:
        """What groups are compared with, in words."""
        return "the mean of the groups" if self.reference is None else f"group {self.reference}"

    @property
    def change(self) -> str:
        """What a coefficient of the bias is, in words for an axis."""
        return f"change of the gap to {self.against}, in units of {self._terms.unit}"

    # Inside -------------------------------------------------------------------------------------

    @cached_property
    def _by_group(self) -> pd.DataFrame:
        return _tables.by_group(self)

    @cached_property
    def _by_feature(self) -> Comparison:
        return self._compare(self._fit)

    @cached_property
    def _columns(self) -> tuple[Column, ...]:
        """The columns, with 0 and 1 as categories if a number has no other values, without codes.

        A code of 2.4 means nothing.
        """
        return tuple(
            replace(column, categories=FLAGS)
            if not column.categories and self._contexts.kinds[column.features[0]] == BINARY
            else column
            for column in self.columns
            if column.name not in self.codes
        )

    @cached_property
    def _gaps(self) -> pd.DataFrame:
        return self.gaps()

    @cached_property
    def _between(self) -> Comparison | None:
        return None if self._apart is None else self._compare(self._apart())

    def _compare(self, fit: Fit) -> Comparison:
        m, d = len(self.groups), len(self.features)
        weights, contexts = np.repeat(self._weights, d, axis=0), np.tile(np.eye(d), (m, 1))
        return compare(fit, weights, contexts, self.level, self.features)

    @cached_property
    def _weak(self) -> list[dict[int, tuple[int, float]]]:
        return [
            weak_overlap(self._contexts, g, np.flatnonzero(np.nan_to_num(row)))
            for g, row in enumerate(self._weights)
        ]

    @cached_property
    def _disagrees(self) -> list[bool | None]:
        if self._between is None:
            return [None] * len(self._by_feature.why)
        p_values = self._between.all_p_value  # NaN for the reference and where nothing is known
        return [None if np.isnan(p) else bool(p < 1.0 - self.level) for p in p_values]

    def _place(self, context: ArrayLike | None) -> Array | None:
        if context is None:
            return self.overall
        return numbers("context", context, (len(self.features),))
