"""The bias that PooledGroupFair has learned, with intervals and in words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from evenhand._checks import numbers
from evenhand._prose import in_digits
from evenhand.errors import InputError, setting
from evenhand.policies.pooled._basis import ASSUMPTION, basis_of
from evenhand.policies.pooled.beliefs import Beliefs
from evenhand.policies.pooled.measured import Measured

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True, eq=False, repr=False)
class PooledBias:
    """How the feedback for each group is distorted, as the pooled model sees it.

    Made by `PooledGroupFair.bias`. docs/explanation/pooling.md says how to read it.

    Attributes:
        beliefs: the posterior behind it.
        level: of the intervals.
        features: the names of the features.
        measured: what true rewards say, if there are any.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> groups = eh.Groups(["F"] * 3 + ["M"] * 3, sensitive="F")
        >>> policy = eh.PooledGroupFair(groups, n_features=1, seed=1)
        >>> policy.absorb([0, 1, 2, 3, 4, 5] * 5, np.ones((30, 1)), [1, 2, 3, 6, 7, 8] * 5)
        >>> policy.bias().at([[2.0]]).round(1)[["group", "estimate"]].values.tolist()
        [['F', -10.0], ['M', 0.0]]
    """

    beliefs: Beliefs
    level: float
    features: tuple[str, ...]
    measured: Measured | None = None

    def to_frame(self) -> pd.DataFrame:
        """A row per group and feature: the bias with one more of the feature.

        `low` to `high` is its interval alone; `simultaneous_low` to `simultaneous_high` hold for
        all rows at once (Bonferroni). `floor` is the standard deviation that stays however much
        feedback comes, because the arms of a group are few. `why` says what a row without an
        estimate lacks. With true rewards, `by_averages` is the estimate from feedback alone, if
        true averages are equal, and `by_truth` the one that lets them differ by anything.
        """
        d, m = len(self.features), len(self.beliefs.groups)
        table = self._table(np.tile(np.eye(d), (m, 1)), np.repeat(np.arange(m), d))
        table.insert(1, "feature", np.tile(self.features, m).astype(object))
        return table

    def at(self, contexts: ArrayLike) -> pd.DataFrame:
        """The bias of every group at one or more contexts, in units of reward."""
        rows = np.atleast_2d(numbers("contexts", contexts, None))
        if rows.ndim != 2 or rows.shape[1] != len(self.features):
            raise InputError(
                f"{setting('contexts')} has shape {rows.shape}; allowed is (rows, "
                f"{len(self.features)})"
            )
        m = len(self.beliefs.groups)
        table = self._table(np.repeat(rows, m, axis=0), np.tile(np.arange(m), len(rows)))
        table.insert(1, "context", np.repeat(np.arange(len(rows)), m))
        return table

    def chart(self, title: str = "Bias by feature and group") -> alt.TopLevelMixin:
        """The bias of every group and feature, with both intervals. Needs the extra `charts`."""
        from evenhand.charts import bias_chart

        axis = f"change of the gap to {self._against}, in units of reward"
        return bias_chart(self.to_frame(), None, axis, title, self.level)

    @property
    def noise(self) -> float:
        """The standard deviation of rewards around their mean, as estimated."""
        return self.beliefs.noise

    @property
    def spread(self) -> pd.Series:
        """Per group: how far arms are from their group's mean, for a feature of its usual size."""
        return pd.Series(self.beliefs.spread, index=self.beliefs.groups.names, name="spread")

    def to_words(self) -> str:
        """What was learned, in sentences; what they rest on comes last."""
        return "\n".join([*self._sentences, *self._basis])

    def __str__(self) -> str:
        return self.to_words()

    def __repr__(self) -> str:
        names, number = ", ".join(self.beliefs.groups.names), self.beliefs.number
        return f"PooledBias(groups={names}, features={len(self.features)}, rewards={number})"

    # Inside -------------------------------------------------------------------------------------

    def _table(self, rows: NDArray[np.float64], groups: NDArray[np.int64]) -> pd.DataFrame:
        beliefs = self.beliefs
        weights = np.eye(len(beliefs.groups))[groups] - beliefs.weights
        is_reference = ~weights.any(axis=1)  # 0 by definition
        estimate, width, floor = beliefs.of_contrasts(rows, weights, self.level)
        several = max(int((~is_reference).sum()), 1)
        wider = beliefs.of_contrasts(rows, weights, 1.0 - (1.0 - self.level) / several)[1]
        parts = {}
        truth = self.measured
        if truth is not None and truth.usable:
            parts["by_averages"] = estimate
            parts["by_truth"] = np.einsum("ri,ri->r", truth.by_truth[groups], rows)
            alone = 1.0 - (1.0 - self.level) / several
            wider = truth.of_contexts(rows, groups, alone)[1]
            estimate, width = truth.of_contexts(rows, groups, self.level)
        known = np.isfinite(width)
        estimate = np.where(known, estimate, np.nan)
        why = np.where(known, "", "not enough feedback yet")
        return pd.DataFrame(
            {
                "group": np.array(beliefs.groups.names, dtype=object)[groups],
                "estimate": estimate,
                "low": np.where(known, estimate - width, -np.inf),
                "high": np.where(known, estimate + width, np.inf),
                "simultaneous_low": np.where(known, estimate - wider, -np.inf),
                "simultaneous_high": np.where(known, estimate + wider, np.inf),
                "floor": floor,
                **parts,
                "why": np.where(is_reference, "the reference", why).astype(object),
            }
        )

    @cached_property
    def _against(self) -> str:
        names, weights = self.beliefs.groups.names, self.beliefs.weights
        if (weights > 0.0).all():
            return "the mean of the groups"
        named = [name for name, weight in zip(names, weights, strict=True) if weight > 0.0]
        return f"group{'s' if len(named) > 1 else ''} {', '.join(named)}"

    @cached_property
    def _basis(self) -> list[str]:
        """What all of it rests on."""
        truth = self.measured
        if truth is None or not truth.number:
            return [ASSUMPTION]
        return basis_of(truth)

    @cached_property
    def _sentences(self) -> list[str]:
        """A sentence for every bias that can be told from zero, and one on those that cannot.

        The intervals are those that hold for all of them at once.
        """
        if not self.beliefs.number:
            return ["Nothing has been learned yet."]
        table = self.to_frame()
        table = table[table.why != "the reference"]
        lows, highs = table.simultaneous_low, table.simultaneous_high
        unknown = list(dict.fromkeys(table[table.why != ""].group))
        clear = table[(table.why == "") & ((lows > 0.0) | (highs < 0.0))]
        sentences = [self._sentence(row) for row in clear.to_dict("records")]
        rest = int((table.why == "").sum()) - len(clear)
        if rest:
            what = "bias of a feature" if rest == 1 else "biases of features"
            sentences.append(f"{rest} {what} cannot be told from zero.")
        if unknown:
            sentences.append(
                f"For group{'s' if len(unknown) > 1 else ''} {', '.join(unknown)} there is not "
                "enough feedback yet to say anything of some features."
            )
        return sentences

    def _sentence(self, row: dict[Any, Any]) -> str:
        direction = "higher" if row["estimate"] > 0.0 else "lower"
        low, high = _digits(row["simultaneous_low"]), _digits(row["simultaneous_high"])
        return (
            f"With one more of {row['feature']}, the feedback for group {row['group']} is "
            f"{direction} by {_digits(abs(row['estimate']))} than that for {self._against} "
            f"({100 * self.level:g} % interval {low} to {high})."
        )


def _digits(number: float) -> str:
    """Three digits, as people write them."""
    return in_digits(float(f"{number:.3g}"))
