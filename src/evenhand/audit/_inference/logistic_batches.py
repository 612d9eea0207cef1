"""The rows of logistic regressions as matrices, for as many passes as they need.

DuckDB runs in this process, so its rows come here in batches, and products of matrices sum them up.
Newton's method looks at the same rows again and again: if they are few, they are fetched once and
kept, and if they are many, every pass asks for them anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.audit._inference.regression_scores import Fits, check_same_rows
from evenhand.audit._input.sources import SMALL, Source
from evenhand.audit._sums.batches import Batch, Coding, Room, rows_of_batch
from evenhand.bias.statistics import Array


class Run(NamedTuple):
    """Rows of one regression."""

    k: int  # its number
    x: Array  # (d, rows): 1 and the features
    y: Array  # (rows,): rewards of 0 and 1
    w: Array  # (rows,): weights, 1 where there are none


class Batches:
    """The rows, batch after batch, each as the runs of its regressions.

    Args:
        source: where they are; of DuckDB.
        rows: with the number of their regression in k.
        fits: the regressions.
    """

    def __init__(self, source: Source, rows: Any, fits: Fits) -> None:
        many, d = fits.vectors.shape
        self._source, self._fits, self._d = source, fits, d
        self._coding = Coding(["k"], [(k,) for k in range(many)], 1)
        more = ["w"] if "w" in rows.columns else []
        features = [f"z{i}" for i in range(d - 1)]
        self._wanted = rows.select("y", *features, *more, cell=self._coding.number_of(rows))
        # Bytes of the features, rewards and weights as doubles.
        self._few = 8 * fits.n.sum() * (d + 2) <= SMALL
        self._kept: list[list[Run]] | None = None

    def each(self, take: Callable[[list[Run]], None]) -> None:
        """Call `take` with the runs of every batch; an error if these are not the rows expected."""
        if self._kept is None:
            self._stream(take)
            return
        for runs in self._kept:
            take(runs)

    def _stream(self, take: Callable[[list[Run]], None]) -> None:
        kept: list[list[Run]] = []
        room = Room()
        count, reward = np.zeros(len(self._fits.n)), np.zeros(len(self._fits.n))

        def add(arrow: Any) -> None:
            batch = Batch(arrow, self._coding)
            shape = self._d, len(batch)
            x = batch.features(np.empty(shape) if self._few else room.of(*shape))
            y = batch.column("y")
            w = batch.column("w") if batch.has("w") else np.ones(len(batch))
            runs = [Run(k, x[:, columns], y[columns], w[columns]) for k, columns in batch.runs()]
            for run in runs:
                count[run.k] += len(run.y)
                reward[run.k] += run.w @ run.y
            if self._few:
                kept.append(runs)
            take(runs)

        self._source.stream(self._wanted, add, rows_of_batch(self._d + 1))
        counts = pd.DataFrame({"k": np.arange(len(count)), "seen": count, "seen_y": reward})
        check_same_rows(self._source, counts, self._fits)
        # Only now, when all rows have been checked: a pass that failed must not be reused.
        self._kept = kept if self._few else None
