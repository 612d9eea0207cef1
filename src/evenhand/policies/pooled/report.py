"""The bias that PooledGroupFair has learned, with intervals and in words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from evenhand._checks import numbers
from evenhand._prose import in_digits
from evenhand.errors import InputError, setting
from evenhand.policies.pooled.beliefs import Beliefs

ASSUMPTION = (
    "All of this rests on the assumption that the true averages of the groups are equal. Feedback "
    "alone cannot check it: a true difference would look the same."
)


@dataclass(frozen=True, eq=False, repr=False)
class PooledBias:
    """How the feedback for each group is distorted, as the pooled model sees it.

    Made by `PooledGroupFair.bias`. docs/explanation/pooling.md says how to read it.

    Attributes:
        beliefs: the posterior behind it.
        level: of the intervals, each on its own.
        features: the names of the features.

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

    def to_frame(self) -> pd.DataFrame:
        """A row per group and feature: the bias with one more of the feature.

        `low` to `high` is the interval; `floor` is the standard deviation that stays however much
        feedback comes, because the arms of a group are few.
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
        return "\n".join([*self._sentences, ASSUMPTION])

    def __str__(self) -> str:
        return self.to_words()

    def __repr__(self) -> str:
        names, number = ", ".join(self.beliefs.groups.names), self.beliefs.number
        return f"PooledBias(groups={names}, features={len(self.features)}, rewards={number})"

    # Inside -------------------------------------------------------------------------------------

    def _table(self, rows: NDArray[np.float64], groups: NDArray[np.int64]) -> pd.DataFrame:
        beliefs = self.beliefs
        weights = np.eye(len(beliefs.groups))[groups] - beliefs.weights
        estimate, width, floor = beliefs.of_contrasts(rows, weights, self.level)
        known = np.isfinite(width)
        estimate = np.where(known, estimate, np.nan)
        return pd.DataFrame(
            {
                "group": np.array(beliefs.groups.names, dtype=object)[groups],
                "estimate": estimate,
                "low": np.where(known, estimate - width, -np.inf),
                "high": np.where(known, estimate + width, np.inf),
                "floor": floor,
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
    def _sentences(self) -> list[str]:
        """A sentence for every bias that can be told from zero, and one on those that cannot."""
        if not self.beliefs.number:
            return ["Nothing has been learned yet."]
        table = self.to_frame()
        table = table[~((table.estimate == 0.0) & (table.low == 0.0) & (table.high == 0.0))]
        unknown = list(dict.fromkeys(table[~np.isfinite(table.low)].group))
        clear = table[np.isfinite(table.low) & ((table.low > 0.0) | (table.high < 0.0))]
        sentences = [
            f"With one more of {row.feature}, the feedback for group {row.group} is "
            f"{'higher' if row.estimate > 0 else 'lower'} by {in_digits(abs(row.estimate))} than "
            f"that for {self._against} ({100 * self.level:g} % interval {in_digits(row.low)} to "
            f"{in_digits(row.high)})."
            for row in clear.itertuples()
        ]
        rest = len(table) - len(clear) - int((~np.isfinite(table.low)).sum())
        if rest:
            what = "bias of a feature" if rest == 1 else "biases of features"
            sentences.append(f"{rest} {what} cannot be told from zero.")
        if unknown:
            sentences.append(
                f"For group{'s' if len(unknown) > 1 else ''} {', '.join(unknown)} there is not "
                "enough feedback yet to say anything of some features."
            )
        return sentences
