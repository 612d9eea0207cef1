"""How many regressions lie side by side in one array."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import inlined

LANES = 4  # doubles in an AVX2 register

RIDGE, INFINITE, PSEUDO_INVERSE = 0, 1, 2
SINGULAR = {"ridge": RIDGE, "infinite": INFINITE, "pseudo-inverse": PSEUDO_INVERSE}

# Rows of the table behind R, z and the inverse diagonal.
COUNT, RESIDUAL, FREEDOM, RANK, BASIS = range(5)

# A row counts as a new direction if this part of its length lies outside of those seen. For the
# pseudo-inverse it is the root of the 1e-15 at which NumPy's, and so the authors' code, cuts X'X.
NEW_DIRECTION = {"ridge": 0.0, "infinite": 1e-13, "pseudo-inverse": 1e-15**0.5}


class Regressions(NamedTuple):
    """`number` regressions on `n_features` features, as Numba likes it: one array and numbers.

    `table[block, row, lane]` holds regression i at block i // per_block, lane i % per_block. Its
    rows: R by columns (d(d+1)/2), z (d), 1/diagonal of R (d), count, residual sum of squares,
    degrees of freedom, rank, and the basis of the directions seen (d x d; none for a ridge). A
    shared regression (a group's, met by the contexts of many arms) has a block of its own and
    fills all four lanes.

    All in one array, because Numba counts references to every array in a tuple at every call.
    """

    table: NDArray[np.float64]
    number: int
    n_features: int
    per_block: int
    singular: int
    ridge: float
    new_direction: float


def regressions(
    number: int,
    n_features: int,
    singular: str = "infinite",
    ridge: float = 0.0,
    shared: bool = False,
) -> Regressions:
    """`number` regressions that have seen nothing yet.

    Example:
        >>> import numpy as np
        >>> from evenhand.leastsquares import absorb, coefficients, regressions
        >>> two = regressions(2, n_features=1)
        >>> absorb(two, 0, np.array([1.0]), 3.0)
        >>> absorb(two, 0, np.array([1.0]), 5.0)
        >>> coefficients(two, 0)
        array([4.])
    """
    d = n_features
    per_block = 1 if shared else LANES
    rows = d * (d + 1) // 2 + 2 * d + BASIS + (0 if singular == "ridge" else d * d)
    table = np.zeros((-(-number // per_block), rows, LANES))
    if singular == "ridge":
        for k in range(d):
            table[:, k * (k + 1) // 2 + k, :] = np.sqrt(ridge)
            table[:, d * (d + 1) // 2 + d + k, :] = 1.0 / np.sqrt(ridge)
        table[:, d * (d + 1) // 2 + 2 * d + RANK, :] = d
    return Regressions(
        table,
        number,
        d,
        per_block,
        SINGULAR[singular],
        float(ridge),
        NEW_DIRECTION[singular],
    )


@inlined
def tail_of(d):  # type: ignore[no-untyped-def]
    """The row of COUNT; RESIDUAL, FREEDOM, RANK and the basis follow."""
    return d * (d + 1) // 2 + 2 * d


@inlined
def rank_of(fits, i):  # type: ignore[no-untyped-def]
    """How many directions regression `i` has seen."""
    row = tail_of(fits.n_features) + RANK
    return int(fits.table[i // fits.per_block, row, i % fits.per_block])


def padded(number: int) -> int:
    """`number` rounded up to whole blocks, the length of the arrays that `solve_each` fills."""
    return -(-number // LANES) * LANES


def counts(fits: Regressions) -> NDArray[np.int64]:
    """How many observations each regression has absorbed."""
    row = fits.table[:, fits.n_features * (fits.n_features + 1) // 2 + 2 * fits.n_features]
    return row[:, : fits.per_block].reshape(-1)[: fits.number].astype(np.int64)
