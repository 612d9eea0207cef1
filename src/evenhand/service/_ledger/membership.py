"""Groups that come with the candidates, as the ledger keeps and counts them.

The membership of a candidate follows the features in its context: a number per level and one for
"not stated", attribute after attribute. So it is only in the bodies of entries, and is removed with
them when a person is erased. Projections have a label for it. Counts are by intersection, and a
candidate with probabilities counts for each intersection by its probability.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._membership import UNCERTAIN, cells_of, labels_of
from evenhand.groups import NOT_STATED, Groups

ERASED = "erased"
LABELS = (UNCERTAIN, ERASED, NOT_STATED)  # names that no level may have

Array = NDArray[np.float64]


class Membership:
    """What contexts of `n_features` features say about groups.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> from evenhand.service._ledger.membership import Membership
        >>> of = Membership(eh.Groups.per_round(3, {"sex": ["F", "M"]}), n_features=1)
        >>> likely = np.array([7.0, 0.75, 0.25, 0.0])
        >>> of.label(likely), of.parts(likely), of.words(likely[None])
        ('by probability', {'F': 0.75, 'M': 0.25}, ['F 75 %, M 25 %'])
    """

    def __init__(self, groups: Groups, n_features: int) -> None:
        self.groups, self.n_features = groups, n_features
        self.sizes = [len(attribute.levels) + 1 for attribute in groups.attributes]
        levels = [(*attribute.levels, NOT_STATED) for attribute in groups.attributes]
        self.names = tuple(" & ".join(cell) for cell in product(*levels))
        """The intersections, including those of candidates who did not say."""
        self.blank = np.zeros(n_features + sum(self.sizes))
        """A context of zeros and of groups not stated, for arms that are not available."""
        self.blank[n_features + np.cumsum(self.sizes) - 1] = 1.0

    def shares(self, rows: Array) -> Array:
        """The probability of every intersection, a row per context."""
        cells, first = np.ones((len(rows), 1)), self.n_features
        for size in self.sizes:
            levels = rows[:, first : first + size]
            cells = (cells[:, :, None] * levels[:, None, :]).reshape(len(rows), -1)
            first += size
        return cells

    def parts(self, row: bytes | Array) -> dict[str, float]:
        """The intersections that a context belongs to, and how much it counts for each."""
        chances = self.shares(_numbers(row)[None])[0]
        return {self.names[k]: float(chances[k]) for k in np.flatnonzero(chances).tolist()}

    def expected(self, rows: Array) -> dict[str, float]:
        """The part of the candidates in each intersection."""
        means = self.shares(rows).mean(axis=0)
        return {self.names[k]: float(means[k]) for k in np.flatnonzero(means).tolist()}

    def label(self, row: bytes | Array) -> str:
        """The intersection of a context, for tables that are searched."""
        return cells_of(self.groups, _numbers(row)[None, self.n_features :])[0]

    def words(self, rows: Array) -> list[str]:
        """The groups of contexts as people read them, with probabilities."""
        return labels_of(self.groups, rows[:, self.n_features :])


def membership_of(groups: Groups, n_features: int) -> Membership | None:
    """For groups that come with the candidates; None for those of arms."""
    return Membership(groups, n_features) if groups.changes else None


def _numbers(row: Any) -> Array:
    return np.frombuffer(row) if isinstance(row, bytes) else row
