"""Regressions as tables in the files of saved policies, which keep the layout of version 1.

The three indices of a saved table are block, row and lane. The rows are R by columns, z, the
inverse diagonal of R, count, residual sum of squares, degrees of freedom, rank and, except with a
ridge, the directions seen one after the other. Nothing is padded. A shared regression is the same
in all four lanes.

A singular regression has no last direction. Its place holds the factors of the features (see
`_basis`), unless all of them are 1, or 0 for features never seen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand.leastsquares._layout import (
    BASIS,
    INFINITE,
    PRIOR,
    RANK,
    RIDGE,
    Regressions,
    padded,
    rows_of,
)
from evenhand.leastsquares._simd import LANES


def saved_tail(fits: Regressions) -> int:
    """The row of COUNT in a saved table; RESIDUAL, FREEDOM, RANK and the directions follow."""
    return _tail(fits.n_features)


def saved_shape(fits: Regressions) -> tuple[int, int, int]:
    """The shape of a saved table."""
    return shape_for(fits.table.shape[0], fits.n_features, fits.singular in (RIDGE, PRIOR))


def shape_for(blocks: int, n_features: int, full: bool) -> tuple[int, int, int]:
    """The same without regressions; `full` if they are never singular."""
    directions = 0 if full else n_features**2
    return blocks, _tail(n_features) + BASIS + directions, LANES


def _tail(d: int) -> int:
    return d * (d + 1) // 2 + 2 * d


def to_saved(fits: Regressions) -> NDArray[np.float64]:
    """The learned numbers, as a saved table."""
    saved, end, d = np.zeros(saved_shape(fits)), saved_tail(fits) + BASIS, fits.n_features
    saved[:, :end] = rows_of(fits)[:, _order(d)]
    if fits.singular not in (RIDGE, PRIOR):
        directions = _directions(fits).copy()
        # Factors of 1 are not written, so files without unusual features are those of earlier
        # versions, bit for bit.
        used = ~np.isin(factors(fits), (0.0, 1.0)).all(axis=-1)
        directions[used, -1] = factors(fits)[used]
        saved[:, end:] = np.moveaxis(directions, 1, -1).reshape(-1, d * d, fits.per_block)
        saved[-1:, end - BASIS + RANK, _unused(fits)] = 0.0
    return saved


def from_saved(fits: Regressions, saved: NDArray[np.float64]) -> None:
    """Write a saved table into regressions of the same shape."""
    end, d, lanes = saved_tail(fits) + BASIS, fits.n_features, fits.per_block
    rows_of(fits)[:, _order(d)] = saved[:, :end, :lanes]
    if fits.singular not in (RIDGE, PRIOR):
        directions = np.moveaxis(saved[:, end:, :lanes].reshape(-1, d, d, lanes), -1, 1).copy()
        if fits.singular == INFINITE:
            # Older files have no factors: zeros there mean 1 for every feature that any direction
            # has.
            last = directions[:, :, -1].copy()
            seen = (directions[:, :, :-1] != 0.0).any(axis=2)
            factors(fits)[...] = np.where(last.any(axis=-1, keepdims=True), last, seen)
            directions[:, :, -1] = 0.0
        _directions(fits)[...] = directions
        rows_of(fits)[-1:, RANK - BASIS, _unused(fits)] = d


def _order(d: int) -> NDArray[np.int64]:
    """The rows of the table in the order of a saved table."""
    width = padded(d)
    column, row = np.tril_indices(d)  # of R, by columns
    z = width * (width + 1) // 2 + np.arange(d)
    tail = width * (width + 1) // 2 + 2 * width + np.arange(BASIS)
    return np.concatenate([row * width - row * (row + 1) // 2 + column, z, z + width, tail])


def _directions(fits: Regressions) -> NDArray[np.float64]:
    """The directions seen, without their padding: by block, lane, direction and feature."""
    d, width, lanes = fits.n_features, padded(fits.n_features), fits.per_block
    start = rows_of(fits).shape[1] * lanes
    padded_directions = fits.table[:, start : start + lanes * width**2]
    return padded_directions.reshape(-1, lanes, width, width)[:, :, :d, :d]


def factors(fits: Regressions) -> NDArray[np.float64]:
    """The factors of features in singular regressions: by block, lane and feature."""
    d, width, lanes = fits.n_features, padded(fits.n_features), fits.per_block
    start = rows_of(fits).shape[1] * lanes + lanes * width**2
    return fits.table[:, start : start + lanes * width].reshape(-1, lanes, width)[:, :, :d]


def _unused(fits: Regressions) -> slice:
    """The lanes of the last block that hold no regression; a saved table has rank 0 there."""
    return slice(fits.number % fits.per_block or LANES, None)
