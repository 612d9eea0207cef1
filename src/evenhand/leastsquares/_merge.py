"""Regressions that saw different rows as one that saw them all: sums of squares add up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand.leastsquares._absorb import absorb
from evenhand.leastsquares._sums import roots, sums
from evenhand.leastsquares._table import (
    BASIS,
    COUNT,
    FREEDOM,
    PRIOR,
    RESIDUAL,
    RIDGE,
    Prior,
    Regressions,
    rows_of,
)

Array = NDArray[np.float64]


def merge(fits: Regressions, other: Regressions, prior: Prior | None = None) -> None:
    """Add to `fits` what `other` has seen, regression by regression.

    Whatever many rows were seen, d of them say the same: those of the root R, with z for rewards.
    Absorbing these is merging. What they leave over, and how many they stand for, is added.

    Args:
        fits: learns.
        other: of the same number and features; it stays as it is.
        prior: the one that both were made with, if any.

    Example:
        >>> import numpy as np
        >>> from evenhand.leastsquares import absorb, coefficients, counts, merge, regressions
        >>> here, there = regressions(1, n_features=1), regressions(1, n_features=1)
        >>> absorb(here, 0, np.array([1.0]), 3.0)
        >>> absorb(there, 0, np.array([1.0]), 5.0)
        >>> merge(here, there)
        >>> coefficients(here, 0), counts(here)
        (array([4.]), array([2]))
    """
    full = other.singular in (RIDGE, PRIOR)
    n, rows, targets, rest = _rows_for(other, prior) if full else roots(other)
    for i in np.flatnonzero(n > 0.0):
        there = np.flatnonzero(np.abs(rows[i]).max(axis=1) > 0.0)
        for k in there:
            absorb(fits, i, np.ascontiguousarray(rows[i, k]), float(targets[i, k]))
        block, lane = divmod(int(i), fits.per_block)
        row = rows_of(fits)[block, :, lane]
        row[COUNT - BASIS] += n[i] - there.size
        row[FREEDOM - BASIS] += n[i] - there.size
        row[RESIDUAL - BASIS] += rest[i]


def _rows_for(fits: Regressions, prior: Prior | None) -> tuple[Array, Array, Array, Array]:
    """As `roots`, where a ridge or prior has to be taken out of R first."""
    found = sums(fits, prior)
    values, vectors = np.linalg.eigh(found.gram)
    known = values > 1e-13 * values.max(axis=1, keepdims=True, initial=0.0)
    size = np.sqrt(np.where(known, values, 1.0))
    along = np.einsum("ikq,ik->iq", vectors, found.moment) / size * known
    rows = vectors.transpose(0, 2, 1) * (size * known)[..., None]
    rest = np.maximum(found.square - np.sum(along * along, axis=1), 0.0)
    return found.n, rows, along, rest
