"""A column of a table and the features that it became: what encoding leaves for reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FLAGS = ("0", "1")  # the categories of a number that is nothing else


@dataclass(frozen=True)
class Column:
    """A column of a table, and the features that it became.

    Attributes:
        name: of the column.
        features: their positions in a context.
        categories: empty for a number. Otherwise a category for each feature, and before them the
            baseline if it has no feature of its own: there, all of them are 0.
        low: the least value of a number, where it is known.
        high: the largest.
        centres: what was subtracted from each feature before it came into a context, if anything.
    """

    name: str
    features: tuple[int, ...]
    categories: tuple[str, ...] = ()
    low: float = -np.inf
    high: float = np.inf
    centres: tuple[float, ...] = ()

    def at(self, values: Sequence[float]) -> NDArray[np.float64]:
        """The entries of a context in which the features have these values."""
        centred: NDArray[np.float64] = np.asarray(values, dtype=np.float64) - (self.centres or 0.0)
        return centred

    @property
    def baseline(self) -> str | None:
        """The category without a feature of its own, if there is one."""
        return self.categories[0] if len(self.categories) > len(self.features) else None

    def category_of(self, feature: int) -> str:
        """The category that a feature stands for."""
        spare = len(self.categories) - len(self.features)
        return self.categories[self.features.index(feature) + spare]
