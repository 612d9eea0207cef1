"""Rows of DuckDB as batches, in the order of their cells: what both passes over a log start from.

The engine encodes the labels of a row and its window as one number. Here a small table turns that
number into a cell, and a batch is sorted by cell, so that the rows of a cell are neighbours and a
product of matrices sums them up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from evenhand.bias.statistics import Array, Whole

MOST_NUMBERS = 1_000_000  # of a batch, as doubles: 8 MB, and as much again for their products
MOST_ROWS = 122_880  # of a batch; the size of DuckDB's row groups in Parquet
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,8}")  # as engines write whole numbers
NUMBER_OF = {"a": "arm_number"}  # by key: the column that has its labels as whole numbers


def rows_of_batch(columns: int) -> int:
    """How many rows a batch has, if it has so many columns."""
    return min(MOST_ROWS, max(MOST_NUMBERS // columns, 1))


@dataclass(frozen=True, eq=False)
class Coding:
    """The cells of a pass: a label per cell, each in every time window.

    Attributes:
        keys: the columns that have the labels.
        labels: a value for every key; None for one that is missing.
        times: how many windows there are, and one more, the last, for rows without a time.
    """

    keys: Sequence[str]
    labels: Sequence[tuple[object, ...]]
    times: int

    @property
    def cells(self) -> int:
        """How many there are."""
        return len(self.labels) * self.times

    @cached_property
    def _values(self) -> list[list[object]]:
        """The values of every key; whole numbers close together come with all in between."""
        by_key = [list(dict.fromkeys(values)) for values in zip(*self.labels, strict=True)]
        return [_without_gaps(values) for values in by_key]

    @cached_property
    def _cell_of(self) -> Whole:
        """The cell of every number that `number_of` makes; below 0 for none."""
        # The first number of a key stands for values that no label has.
        # A table of all combinations, with -1 for those that never occurred.
        place = np.full([len(values) + 1 for values in self._values], -1, dtype=np.int64)
        for i, label in enumerate(self.labels):
            at = [known.index(value) + 1 for known, value in zip(self._values, label, strict=True)]
            place[tuple(at)] = i
        cells = place.ravel()[:, None] * self.times + np.arange(self.times)
        return cells.ravel()

    def number_of(self, rows: Any) -> Any:
        """The number of a row, as an expression."""
        import ibis

        code: Any = ibis.literal(0, "int32")
        for key, values in zip(self.keys, self._values, strict=True):
            code = code * (len(values) + 1) + _place_of(rows, key, values)
        if self.times > 1:
            window = rows["t"].coalesce(self.times - 1)
            code = code * self.times + window.cast("int32")
        return code.cast("int32")

    def cells_of(self, numbers: Whole) -> Whole:
        """The cell of every row, from its number; below 0 for rows whose label is none of these."""
        cells: Whole = self._cell_of.take(numbers, mode="clip")
        return cells


def _without_gaps(values: list[object]) -> list[object]:
    """Labels that are whole numbers in order, with those in between, if these are not many."""
    run = _run(values)
    return values if run is None or len(run) > 2 * len(values) else list(map(str, run))


def _run(values: list[object]) -> range | None:
    """From the least of some labels to the largest; None if they are not all whole numbers."""
    if not all(isinstance(value, str) and WHOLE.fullmatch(value) for value in values):
        return None
    numbers = [int(str(value)) for value in values]
    return range(min(numbers), max(numbers) + 1)


def _place_of(rows: Any, key: str, values: list[object]) -> Any:
    """The place of a row's value among these, from 1, as an expression; 0 where it is not there."""
    import ibis

    number = rows[NUMBER_OF[key]] if NUMBER_OF.get(key) in rows.columns else None
    run = _run(values)
    if number is not None and run is not None and len(run) == len(values):
        low, high = run[0], run[-1]
        # One comparison, where text would be written and compared with every label.
        place = (number.cast("int64") - (low - 1)).cast("int32")
        return number.between(low, high).ifelse(place, 0)
    column = rows[key]
    branches = [
        (column.isnull() if value is None else column == value, i + 1)
        for i, value in enumerate(values)
    ]
    return ibis.cases(*branches, else_=0).cast("int32")


class Room:
    """Memory that every batch reuses for its matrix: new memory would be cleared each time."""

    def __init__(self) -> None:
        self._held: Array = np.empty(0)

    def of(self, rows: int, columns: int) -> Array:
        """A matrix of this shape, not initialized; it overwrites the one before."""
        if len(self._held) < rows * columns:
            self._held = np.empty(rows * columns)
        return self._held[: rows * columns].reshape(rows, columns)


class Batch:
    """A batch of rows in the order of their cells; those of no cell come first and are left out.

    Args:
        batch: of Arrow, with the column `cell` as `Coding.number_of` makes it.
        coding: of the cells.
    """

    def __init__(self, batch: Any, coding: Coding) -> None:
        self._batch = batch
        cell = coding.cells_of(batch.column("cell").to_numpy(zero_copy_only=False))
        self.cell, self.strange = cell, int(np.count_nonzero(cell < 0))
        self.sizes: Whole = np.bincount(cell[cell >= 0] if self.strange else cell)
        # Small numbers are sorted in linear time.
        small = cell.astype(np.int16) if coding.cells < 2**15 else cell
        # Stable, so that the rows of a cell keep their order and sums are the same in every run.
        self._order = np.argsort(small, kind="stable")

    def __len__(self) -> int:
        return len(self._order)

    @property
    def present(self) -> Whole:
        """The cells that have rows here."""
        return np.flatnonzero(self.sizes)

    @property
    def starts(self) -> Whole:
        """Where the rows of each of them begin."""
        sizes = self.sizes[self.present]
        starts: Whole = self.strange + np.cumsum(sizes) - sizes
        return starts

    def runs(self) -> Iterator[tuple[int, slice]]:
        """Every cell that has rows here, and where they are."""
        for at, begin in zip(self.present.tolist(), self.starts.tolist(), strict=True):
            yield at, slice(begin, begin + int(self.sizes[at]))

    def nulls(self, name: str) -> int:
        """How many rows lack a value of a column."""
        return int(self._batch.column(name).null_count)

    def column(self, name: str, out: Array | None = None) -> Array:
        """The values of a column, NaN where there is none."""
        values = self._batch.column(name).to_numpy(zero_copy_only=False)
        # "clip", because row numbers need no check; with one they would be copied once more.
        wanted: Array = values.astype(np.float64, copy=False).take(
            self._order, out=out, mode="clip"
        )
        return wanted

    def features(self, out: Array) -> Array:
        """1 and the features z of every row, (d, rows), into this array."""
        out[0] = 1.0
        for i in range(1, len(out)):
            self.column(f"z{i - 1}", out[i])
        return out

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return name in self._batch.schema.names
