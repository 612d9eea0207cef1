"""The table in the form of saved policies, version 1, which stays as it is.

Three indices: block, row, lane. The rows: R by columns, z, one over the diagonal of R, count,
residual sum of squares, degrees of freedom, rank and, but for a ridge, the directions seen one
after the other. Nothing is padded. A shared regression is the same in all four lanes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand.leastsquares.table import BASIS, RANK, RIDGE, Regressions, padded, rows_of
from evenhand.leastsquares.vectors import LANES


def saved_tail(fits: Regressions) -> int:
    """The row of COUNT in a saved table; RESIDUAL, FREEDOM, RANK and the directions follow."""
    return _tail(fits.n_features)


def saved_shape(fits: Regressions) -> tuple[int, int, int]:
    """The shape of a saved table."""
    return shape_for(fits.table.shape[0], fits.n_features, fits.singular == RIDGE)


def shape_for(blocks: int, n_features: int, ridge: bool) -> tuple[int, int, int]:
    """The same, before there are regressions."""
    directions = 0 if ridge else n_features**2
    return blocks, _tail(n_features) + BASIS + directions, LANES


def _tail(d: int) -> int:
    return d * (d + 1) // 2 + 2 * d


def to_saved(fits: Regressions) -> NDArray[np.float64]:
    """What has been learned, as a saved table."""
    saved, end, d = np.zeros(saved_shape(fits)), saved_tail(fits) + BASIS, fits.n_features
    saved[:, :end] = rows_of(fits)[:, _order(d)]
    if fits.singular != RIDGE:
        saved[:, end:] = np.moveaxis(_directions(fits), 1, -1).reshape(-1, d * d, fits.per_block)
        saved[-1:, end - BASIS + RANK, _unused(fits)] = 0.0
    return saved


def from_saved(fits: Regressions, saved: NDArray[np.float64]) -> None:
    """Write a saved table into regressions of the same shape."""
    end, d, lanes = saved_tail(fits) + BASIS, fits.n_features, fits.per_block
    rows_of(fits)[:, _order(d)] = saved[:, :end, :lanes]
    if fits.singular != RIDGE:
        directions = saved[:, end:, :lanes].reshape(-1, d, d, lanes)
        _directions(fits)[...] = np.moveaxis(directions, -1, 1)
        rows_of(fits)[-1:, RANK - BASIS, _unused(fits)] = d


def _order(d: int) -> NDArray[np.int64]:
    """The rows of the table in the order of a saved one."""
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


def _unused(fits: Regressions) -> slice:
    """The lanes of the last block that hold no regression; a saved table has rank 0 there."""
    return slice(fits.number % fits.per_block or LANES, None)
