"""The common part of the reports of both forms of the pooled model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from evenhand._checks import numbers
from evenhand._prose import in_digits
from evenhand.bias._rests_on import ASSUMPTION, basis_of
from evenhand.bias.measured import Measured
from evenhand.errors import InputError, setting

if TYPE_CHECKING:
    import altair as alt

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Reported(ABC):
    """The bias by row (a group, a level or an intersection) and by feature."""

    beliefs: Any
    level: float
    features: tuple[str, ...]
    measured: Measured | None = None

    def at(self, contexts: ArrayLike) -> pd.DataFrame:
        """The bias of every row at one or more contexts, in units of reward."""
        rows = np.atleast_2d(numbers("contexts", contexts, None))
        if rows.ndim != 2 or rows.shape[1] != len(self.features):
            raise InputError(
                f"{setting('contexts')} has shape {rows.shape}; allowed is (rows, "
                f"{len(self.features)})"
            )
        count = self._count
        table = self._table(np.repeat(rows, count, axis=0), np.tile(np.arange(count), len(rows)))
        position = list(table.columns).index("group") + 1
        table.insert(position, "context", np.repeat(np.arange(len(rows)), count))
        return table

    def chart(self, title: str = "") -> alt.TopLevelMixin:
        """The bias of every row and feature, with both intervals. Needs the extra `charts`."""
        from evenhand.charts import bias_chart

        axis = f"change of the gap to {self._reference}, in units of reward"
        return bias_chart(self.to_frame(), None, axis, title or self._title, self.level)

    @property
    def noise(self) -> float:
        """The standard deviation of rewards around their mean, as estimated."""
        return float(self.beliefs.noise)

    def to_words(self) -> str:
        """The findings in sentences; what they rest on comes last."""
        return "\n".join([*self._sentences, *self._basis])

    def __str__(self) -> str:
        return self.to_words()

    def to_frame(self) -> pd.DataFrame:
        """The bias with one more of the feature, for every row and feature."""
        d, count = len(self.features), self._count
        table = self._table(np.tile(np.eye(d), (count, 1)), np.repeat(np.arange(count), d))
        position = list(table.columns).index("group") + 1
        table.insert(position, "feature", np.tile(self.features, count).astype(object))
        return table

    # Inside -------------------------------------------------------------------------------------

    _title = "Bias by feature and group"

    @property
    @abstractmethod
    def _count(self) -> int:
        """How many rows there are."""

    @property
    @abstractmethod
    def _reference(self) -> str:
        """The reference of the rows, in words."""

    @property
    @abstractmethod
    def _sentences(self) -> list[str]:
        """The findings, in sentences."""

    @abstractmethod
    def _table(self, at: Array, which: NDArray[np.int64]) -> pd.DataFrame:
        """The bias of rows, each at a context."""

    @cached_property
    def _basis(self) -> list[str]:
        """Sentences on what the findings rest on."""
        truth = self.measured
        if truth is None or not truth.number:
            return [ASSUMPTION]
        return basis_of(truth)

    def _estimates(
        self, at: Array, which: NDArray[np.int64], weights: Array
    ) -> dict[str, Array | NDArray[np.object_]]:
        """The columns that every table has, for contrasts `weights` of the rows `which`."""
        beliefs, truth = self.beliefs, self.measured
        is_reference = ~weights.any(axis=1)  # 0 by definition
        estimate, width, floor = beliefs.of_contrasts(at, weights, self.level)
        joint_level = self._for_all(weights)
        wider = beliefs.of_contrasts(at, weights, joint_level)[1]
        parts = {}
        if truth is not None and truth.usable:
            parts["by_averages"] = estimate
            parts["by_truth"] = np.einsum("ri,ri->r", truth.by_truth[which], at)
            wider = truth.of_contexts(at, which, joint_level)[1]
            estimate, width = truth.of_contexts(at, which, self.level)
        known = np.isfinite(width)
        estimate = np.where(known, estimate, np.nan)
        why = np.where(known, "", "not enough feedback yet")
        return {
            "estimate": estimate,
            "low": np.where(known, estimate - width, -np.inf),
            "high": np.where(known, estimate + width, np.inf),
            "simultaneous_low": np.where(known, estimate - wider, -np.inf),
            "simultaneous_high": np.where(known, estimate + wider, np.inf),
            "floor": floor,
            **parts,
            "why": np.where(is_reference, "the reference", why).astype(object),
        }

    def _for_all(self, weights: Array) -> float:
        """The level at which each interval holds, so that all do at once (Bonferroni)."""
        return 1.0 - (1.0 - self.level) / max(int(weights.any(axis=1).sum()), 1)


def single(names: list[str], count: int, kind: str = "group") -> list[str]:
    """A sentence on the groups or levels (`kind`) with a single arm, of `count` that have any."""
    if not names:
        return []
    if len(names) == count:
        return [f"Every {kind} has a single arm: its own worth cannot be told apart from bias."]
    has = "has a single arm" if len(names) == 1 else "have a single arm each"
    return [
        f"{', '.join(names)} {has}: how much of a gap is the arm's own is known only through the "
        "other groups."
    ]


def digits(number: float) -> str:
    """Three digits, as people write them."""
    return in_digits(float(f"{number:.3g}"))
