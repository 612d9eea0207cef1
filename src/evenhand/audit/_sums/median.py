"""Who is above the median of all rewards, in the same pass that sums up.

A sample says in which span the median should be. The pass counts the rewards below it, and keeps
those in it: some per cent of all. If the median turns out to be among them it is exact, and no
other pass is needed. If not, because later rows are unlike the first, the engine is asked for it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from evenhand.audit._sums.batches import Batch, Coding
from evenhand.bias.statistics import Array, Whole

MOST_SORTED = 20_000_000  # rows up to which the median is exact; of more it is an engine's estimate


class Middle:
    """Counts below a span of rewards, and the rewards in it, by cell.

    Args:
        span: where the median is expected.
        cells: how many cells there are.
    """

    def __init__(self, span: tuple[float, float], cells: int) -> None:
        self.low, self.high = span
        self.below = np.zeros(cells, dtype=np.int64)
        self._kept: list[tuple[Array, Whole]] = []

    def add(self, batch: Batch, y: Array) -> None:
        """Take in the rewards of a batch, which are in the order of its cells."""
        y = y[batch.strange :]
        starts = batch.starts - batch.strange
        self.below[batch.present] += np.add.reduceat((y < self.low).astype(np.int64), starts)
        inside = np.flatnonzero((y >= self.low) & (y <= self.high))
        cell = np.repeat(batch.present, batch.sizes[batch.present])
        self._kept.append((y[inside], cell[inside]))

    def beyond(self, n: Whole, coding: Coding) -> pd.DataFrame | None:
        """By group: n, and how many rows are above and below the median; None if it is elsewhere.

        Args:
            n: the rows of every cell.
            coding: of the cells; groups are the first of its keys.
        """
        total = int(n.sum())
        if not 0 < total <= MOST_SORTED or not self._kept:
            return None
        values, cell = (np.concatenate(parts) for parts in zip(*self._kept, strict=True))
        at = np.array([(total - 1) // 2, total // 2]) - self.below.sum()
        if at[0] < 0 or at[1] >= len(values):
            return None
        lower, upper = np.partition(values, at)[at]
        median = lower + (upper - lower) * 0.5
        less = self.below + np.bincount(cell[values < median], minlength=len(n))
        no_more = self.below + np.bincount(cell[values <= median], minlength=len(n))
        counts = pd.DataFrame({"n": n, "above": n - no_more, "below": less})
        group = np.repeat([str(label[0]) for label in coding.labels], coding.times)
        present = n > 0
        return counts[present].groupby(group[present]).sum().astype(float)
