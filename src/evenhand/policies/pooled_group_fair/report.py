"""The bias that PooledGroupFair has learned, with intervals and in words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.policies.pooled_group_fair._reporting import Reported, digits, single
from evenhand.policies.pooled_group_fair.beliefs import Beliefs


@dataclass(frozen=True, eq=False, repr=False)
class PooledBias(Reported):
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
        >>> print(policy.bias().to_words().split(" (")[0])
        Per unit of x1, the feedback for group F falls by 5 relative to that for group M
        >>> policy.bias().to_frame()[["group", "floor"]].round(2).values.tolist()
        [['F', 0.79], ['M', 0.0]]
        >>> policy.bias().chart("Loans").to_dict()["title"]["text"]
        'Loans'
    """

    beliefs: Beliefs

    def to_frame(self) -> pd.DataFrame:
        """A row per group and feature: the bias with one more of the feature.

        `low` to `high` is its interval alone; `simultaneous_low` to `simultaneous_high` hold for
        all rows at once (Bonferroni). `floor` is the standard deviation that stays however much
        feedback comes, because the arms of a group are few. `why` says what a row without an
        estimate lacks. With true rewards, `by_averages` is the estimate from feedback alone, if
        true averages are equal, and `by_truth` the one that lets them differ by anything.
        """
        return super().to_frame()

    @property
    def spread(self) -> pd.Series:
        """Per group: how far arms are from their group's mean, for a feature of its usual size."""
        return pd.Series(self.beliefs.spread, index=self.beliefs.groups.names, name="spread")

    def __repr__(self) -> str:
        names, number = ", ".join(self.beliefs.groups.names), self.beliefs.number
        return f"PooledBias(groups={names}, features={len(self.features)}, rewards={number})"

    # Inside -------------------------------------------------------------------------------------

    @property
    def _count(self) -> int:
        return len(self.beliefs.groups)

    def _table(self, at: NDArray[np.float64], which: NDArray[np.int64]) -> pd.DataFrame:
        beliefs = self.beliefs
        weights = np.eye(len(beliefs.groups))[which] - beliefs.weights
        names = np.array(beliefs.groups.names, dtype=object)[which]
        return pd.DataFrame({"group": names, **self._estimates(at, which, weights)})

    @cached_property
    def _reference(self) -> str:
        names, weights = self.beliefs.groups.names, self.beliefs.weights
        if (weights > 0.0).all():
            return "the mean of the groups"
        named = [name for name, weight in zip(names, weights, strict=True) if weight > 0.0]
        return f"group{'s' if len(named) > 1 else ''} {', '.join(named)}"

    @cached_property
    def _sentences(self) -> list[str]:
        """A sentence for every bias that can be told apart from zero, and one on those that cannot.

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
            noun = "bias of a feature" if rest == 1 else "biases of features"
            sentences.append(f"{rest} {noun} cannot be told apart from zero.")
        if unknown:
            sentences.append(
                f"For group{'s' if len(unknown) > 1 else ''} {', '.join(unknown)} there is not "
                "enough feedback yet to say anything about some features."
            )
        groups = self.beliefs.groups
        alone = [f"group {name}" for name in np.array(groups.names)[groups.sizes == 1]]
        return sentences + single(alone, len(groups))

    def _sentence(self, row: dict[Any, Any]) -> str:
        turn = "rises" if row["estimate"] > 0.0 else "falls"
        low, high = digits(row["simultaneous_low"]), digits(row["simultaneous_high"])
        return (
            f"Per unit of {row['feature']}, the feedback for group {row['group']} {turn} by "
            f"{digits(abs(row['estimate']))} relative to that for {self._reference} "
            f"({100 * self.level:g} % interval {low} to {high})."
        )
