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
from evenhand.bias._cautions import cautions
from evenhand.bias._contexts import BINARY, FLAGS, Column, Contexts, places_of, weak_overlap
from evenhand.bias._contrasts import (
    NOT,
    Comparison,
    Gap,
    compare,
    largest_difference,
    smallest_ratio,
)
from evenhand.bias._fit import Fit
from evenhand.bias._second import SecondModel
from evenhand.bias._sentences import ASSUMPTION, plain, sentences
from evenhand.bias._terms import Terms
from evenhand.bias.statistics import Array, Bools, Whole
from evenhand.errors import InputError, setting

if TYPE_CHECKING:
    import altair as alt

_NUMBERS = {
    "estimate": "estimate",
    "standard_error": "error",
    "freedom": "freedom",
    "low": "low",
    "high": "high",
    "simultaneous_low": "all_low",
    "simultaneous_high": "all_high",
    "p_value": "p_value",
    "simultaneous_p_value": "all_p_value",
    "detectable": "detectable",
}


@dataclass(frozen=True, eq=False, repr=False)
class BiasReport:
    """How the feedback for each group is distorted, feature by feature, and how sure that is.

    Made by `policy.bias()`, or by `evenhand.bias.bias_report` from sums. It assumes that the true
    averages of the groups are equal; docs/explanation/reading-bias.md says how to read it.

    Attributes:
        groups: the names of the groups.
        features: the names of the features.
        reference: the group that the others are compared with; None for the mean of the groups.
        level: of all intervals.
        weighting: "pulls" or "arms".
        units: the step of each feature that `to_words` and `chart` speak of.
        observations: how many each group has.
        arms: how many arms each group has, or None where there are none.
        average: the context of each group at which contributions and totals are reported, or None.
        overall: the same of all groups together, or None.
        columns: the columns that people know, and the features that they became.
        assumption: what the numbers rest on, in a sentence; the last of `to_words`.
        codes: features whose numbers stand for categories, with these in the order of the numbers.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> policy = eh.TopInterval(["F", "F", "M", "M"], n_features=1, seed=1)
        >>> policy.absorb([0, 0, 1, 1, 2, 2, 3, 3], np.ones((8, 1)), [1, 2, 2, 3, 5, 6, 6, 7])
        >>> report = policy.bias(reference="M", feature_names=["all"])
        >>> report.to_frame()[["group", "estimate", "low", "high"]].round(2).values.tolist()
        [['F', -4.0, -5.39, -2.61], ['M', 0.0, 0.0, 0.0]]
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
    _weights: Array  # (groups, groups): what the bias of each group is made of
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
        more of the feature. It is no gap itself: see `gaps` for those. `low` to `high` is its
        interval alone;
        `simultaneous_low` to `simultaneous_high` are intervals that hold for all rows at once, and
        `detectable` is the smallest bias that these would have found with 80 % power.
        `contribution` is the bias times the `mean` of the feature in the group, in units of
        reward. `disagrees` is true where the other weighting gives another answer. Where the bias
        is not identified every number is NaN, and `why` says what is in the way; it also says
        where groups hardly overlap.
        """
        found = self._by_feature
        mean = np.full(len(found.estimate), np.nan)
        if self.average is not None:
            mean = self.average.ravel()
        ends = np.sort([mean * found.low, mean * found.high], axis=0)
        return pd.DataFrame(
            {
                **self._labels(),
                **_columns(found),
                "mean": mean,
                "contribution": mean * found.estimate,
                "contribution_low": ends[0],
                "contribution_high": ends[1],
                "disagrees": pd.array(self._disagrees, dtype="boolean"),
                "why": self._notes,
            }
        )

    def totals(self) -> pd.DataFrame:
        """The bias of each group in reward units: at its own average context, and at everyone's.

        The average contexts are taken as given. `simultaneous_low` and `simultaneous_high` hold
        for all rows of this table at once.
        """
        m, d = len(self.groups), len(self.features)
        nowhere = np.full((m, d), np.nan)
        own = nowhere if self.average is None else self.average
        overall = nowhere if self.overall is None else np.tile(self.overall, (m, 1))
        table = self._at(np.vstack([own, overall]), np.tile(np.arange(m), 2))
        table.insert(1, "context", np.repeat(["own", "overall"], m).astype(object))
        return table

    def gaps(self, values: Mapping[str, Sequence[float]] | None = None) -> pd.DataFrame:
        """The gap within each category and at values of each number, in reward units.

        A row per group (but the reference), column and place: the feedback for the group less that
        for the reference, with all other features at the average of everyone.
        `simultaneous_low` and `simultaneous_high` hold for all rows of the table at once.

        Args:
            values: where to look at numbers, {"age": [30, 60]}; one standard deviation below and
                above the average unless given, and within the data where their ends are known.

        Example:
            >>> import numpy as np
            >>> from evenhand.bias import Statistics, bias_report
            >>> x = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0]] * 2)
            >>> sums = Statistics.from_rows(x, [1, 3, 5, 7, 2, 4, 5, 7], ["F"] * 4 + ["M"] * 4)
            >>> report = bias_report(sums, reference="M", feature_names=["one", "law"])
            >>> report.gaps()[["column", "at", "estimate"]].round(9).values.tolist()
            [['law', '0', -1.0], ['law', '1', 0.0]]
        """
        others = [g for g, row in enumerate(self._weights) if np.nan_to_num(row, nan=1.0).any()]
        places = []
        if self.overall is not None:
            places = places_of(self._columns, self.overall, self._contexts.spread, values)
        if not places:
            names = ["column", "at", "group", *_NUMBERS, "why"]
            return pd.DataFrame(columns=names).astype(dict.fromkeys(_NUMBERS, float))
        contexts = np.repeat([place.context for place in places], len(others), axis=0)
        table = self._at(contexts, np.tile(np.array(others, dtype=np.int64), len(places)))
        table.insert(0, "column", np.repeat([one.column for one in places], len(others)))
        table.insert(1, "at", np.repeat([one.at for one in places], len(others)))
        return table.astype({"column": object, "at": object})

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
        return self._at(
            rows, np.array([self.groups.index(str(name)) for name in names], dtype=np.int64)
        )

    def weightings(self) -> pd.DataFrame:
        """How far the fit weighted by pulls and the average over arms are apart, row by row.

        `difference` is the bias by pulls less the bias by arms. The intervals hold for all rows at
        once; `disagrees` is true where they leave out zero. Then the groups' fits lean to the arms
        that were chosen most, and "arms" is the answer under the assumption of equal averages.
        """
        found = self._between
        why = "rows have weights or belong together, and the check takes them as they come"
        unknown = NOT + ("the arms are not known" if self.arms is None else why)
        return pd.DataFrame(
            {
                **self._labels(),
                "difference": np.nan if found is None else found.estimate,
                "standard_error": np.nan if found is None else found.error,
                "low": np.nan if found is None else found.all_low,
                "high": np.nan if found is None else found.all_high,
                "disagrees": pd.array(self._disagrees, dtype="boolean"),
                "why": unknown if found is None else found.why,
            }
        )

    @property
    def by_group(self) -> pd.DataFrame:
        """A row per group: observations, arms, and the bias at the average context of everyone.

        `simultaneous_low` and `simultaneous_high` hold for all groups at once.
        """
        return self._by_group.copy()

    def difference(self, context: ArrayLike | None = None) -> Gap:
        """The largest difference between the feedback for two groups at the same context.

        The interval makes up for having picked the pair: it holds for all pairs at once.

        Args:
            context: where to look; the average context of everyone unless given.
        """
        return largest_difference(self, self._place(context))

    def ratio(self, context: ArrayLike | None = None) -> Gap:
        """The lowest feedback of a group over the highest, at the same context.

        Only where all of it is positive beyond doubt: NaN with a reason otherwise.

        Args:
            context: where to look; the average context of everyone unless given.
        """
        return smallest_ratio(self, self._place(context))

    # To hand on ---------------------------------------------------------------------------------

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What to know before using the numbers, in sentences."""
        return tuple(cautions(self))

    def to_words(self, most: int = 10) -> str:
        """The report in sentences, the most important first, and what it assumes last.

        Args:
            most: how many features to speak of at most.
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

    def _labels(self) -> dict[str, Any]:
        return {
            "group": np.repeat(self.groups, len(self.features)).astype(object),
            "feature": np.tile(self.features, len(self.groups)).astype(object),
        }

    @cached_property
    def _by_group(self) -> pd.DataFrame:
        m, d = len(self.groups), len(self.features)
        place = np.full(d, np.nan) if self.overall is None else self.overall
        overall = self._at(np.tile(place, (m, 1)), np.arange(m)).set_index("group")
        overall.insert(0, "observations", list(self.observations))
        if self.arms is not None:
            overall.insert(1, "arms", list(self.arms))
        return overall

    @cached_property
    def _by_feature(self) -> Comparison:
        return self._compare(self._fit)

    @cached_property
    def _columns(self) -> tuple[Column, ...]:
        """The columns, with 0 and 1 as categories where a number is nothing else, without codes.

        Somebody at a code of 2.4 is nowhere.
        """
        return tuple(
            replace(one, categories=FLAGS)
            if not one.categories and self._contexts.kinds[one.features[0]] == BINARY
            else one
            for one in self.columns
            if one.name not in self.codes
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

    def _at(self, contexts: Array, groups: Whole) -> pd.DataFrame:
        """Rows of NaN in place of contexts that are not known."""
        known: Bools = ~np.asarray(np.isnan(contexts).any(axis=1))
        asked, weights = np.where(known[:, None], contexts, 0.0), self._weights[groups]
        found = compare(self._fit, weights[known], asked[known], self.level, self.features)
        columns = {"group": np.array(self.groups, dtype=object)[groups]}
        for name, column in _columns(found).items():
            columns[name] = np.full(len(groups), np.nan)
            columns[name][known] = column
        unknown = "the average context is not known; give average"
        why = np.array([NOT + (self._fit.blocked[g] or unknown) for g in groups], dtype=object)
        why[known] = [
            one or self._overlap_of(int(g)) for one, g in zip(found.why, groups[known], strict=True)
        ]
        return pd.DataFrame({**columns, "why": why})

    def _overlap_of(self, group: int) -> str:
        weak = self._weak[group]
        return "weak overlap in " + ", ".join(self.features[k] for k in weak) if weak else ""

    @cached_property
    def _weak(self) -> list[dict[int, tuple[int, float]]]:
        return [
            weak_overlap(self._contexts, g, np.flatnonzero(np.nan_to_num(row)))
            for g, row in enumerate(self._weights)
        ]

    @cached_property
    def _notes(self) -> list[str]:
        """Per group and feature: why there is no number, or what to know of it."""
        notes = list(self._by_feature.why)
        d = len(self.features)
        for g, weak in enumerate(self._weak):
            for k, (other, distance) in weak.items():
                more = "more" if distance > 0.0 else "less"
                size = f"{abs(distance):.1f} standard deviations {more} than"
                if not np.isfinite(distance):
                    size = "another value throughout than"
                notes[g * d + k] = notes[g * d + k] or (
                    f"weak overlap: on average {size} in group {self.groups[other]}"
                )
            if self.groups[g] == self.reference and not self._fit.blocked[g]:
                notes[g * d : (g + 1) * d] = ["the reference"] * d
        return notes

    @cached_property
    def _disagrees(self) -> list[bool | None]:
        found = self._between
        if found is None:
            return [None] * len(self._by_feature.why)
        known = ~np.isnan(found.all_p_value)  # neither unknown nor the reference
        return [
            bool(p < 1.0 - self.level) if ok else None
            for p, ok in zip(found.all_p_value, known, strict=True)
        ]

    def _place(self, context: ArrayLike | None) -> Array | None:
        if context is None:
            return self.overall
        return numbers("context", context, (len(self.features),))


def _columns(found: Comparison) -> dict[str, Array]:
    return {name: getattr(found, source) for name, source in _NUMBERS.items()}
