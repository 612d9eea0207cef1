"""The layout of many regressions in one array."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import woven
from evenhand.leastsquares._prior import Prior, checked_prior, write_prior, write_ridge
from evenhand.leastsquares._simd import LANES, place

RIDGE, INFINITE, PSEUDO_INVERSE, PRIOR = range(4)
SINGULAR = {"ridge": RIDGE, "infinite": INFINITE, "pseudo-inverse": PSEUDO_INVERSE}
KINDS = {**SINGULAR, "prior": PRIOR}
NEVER_SINGULAR = ("ridge", "prior")  # of full rank from the beginning: there is no basis to keep

# Rows of the table behind R, z and the inverse diagonal.
COUNT, RESIDUAL, FREEDOM, RANK, BASIS = range(5)

# Smaller features count as 0, because their inverse, or that of their squares, could be infinite.
SMALLEST = 1e-100

# A row counts as a new direction if this part of its length lies outside those seen. For the
# pseudo-inverse it is the root of the 1e-15 at which NumPy's, and so the authors' code, cuts X'X.
NEW_DIRECTION = {"ridge": 0.0, "prior": 0.0, "infinite": 1e-13, "pseudo-inverse": 1e-15**0.5}


class Regressions(NamedTuple):
    """`number` regressions on `n_features` features, in a form for Numba: an array and numbers.

    `array[block]` holds regression i at block i // per_block, lane i % per_block. Its rows have one
    number per lane: R by rows (w(w+1)/2, where w is d rounded up to a multiple of four), z (w),
    1/diagonal of R (w), count, residual sum of squares, degrees of freedom, rank. Behind them, lane
    by lane, is the basis of the directions seen (w x w; none for a ridge), a direction per row, and
    then, again lane by lane, the factors of the features (w; see `_basis`). So all lanes of a row
    can be read at once, and so can neighbouring numbers of a direction. Everything beyond d, and
    beyond the rank, is zero.

    Four arms share a block. A shared regression, such as a group's, is read at the contexts of many
    arms; it has a block of its own, with one lane.

    The last block is working memory for `absorb`. Everything is in a single array, because Numba
    counts references to every array in a tuple at every call. Solving works in the caller's memory
    (`room_for` numbers), so many threads can read while one learns.

    Example:
        >>> from evenhand.leastsquares import regressions
        >>> fits = regressions(5, n_features=2)  # in two blocks of four
        >>> fits.number, fits.n_features, len(fits.table)
        (5, 2, 2)
    """

    array: NDArray[np.float64]
    number: int
    n_features: int
    per_block: int
    singular: int
    ridge: float
    new_direction: float

    @property
    def table(self) -> NDArray[np.float64]:
        """The learned numbers: everything but the working memory."""
        return self.array[:-1]


def _shape(number: int, n_features: int, singular: str, shared: bool) -> tuple[int, int]:
    """The shape of the array that holds them, working memory included."""
    width, per_block = padded(n_features), 1 if shared else LANES
    tail = width * (width + 1) // 2 + 2 * width
    size = per_block * (tail + BASIS + (0 if singular in NEVER_SINGULAR else width * (width + 1)))
    # One block more, the working memory, which has to hold what `absorb` needs.
    return -(-number // per_block) + 1, max(size, (2 * LANES + 1) * width + LANES)


def numbers_of(number: int, n_features: int, singular: str, shared: bool = False) -> int:
    """How many numbers `regressions` would hold in memory.

    Example:
        >>> from evenhand.leastsquares._layout import numbers_of, regressions
        >>> numbers_of(10, 2, "ridge") == regressions(10, 2, "ridge", 1.0).array.size
        True
    """
    blocks, size = _shape(number, n_features, singular, shared)
    return blocks * size


def regressions(
    number: int,
    n_features: int,
    singular: str = "infinite",
    ridge: float = 0.0,
    shared: bool = False,
    prior: Prior | None = None,
) -> Regressions:
    """`number` regressions that have seen nothing yet.

    Args:
        number: how many.
        n_features: the length of a row.
        singular: what to do while a design is singular, one of `SINGULAR`.
        ridge: the penalty, if that is "ridge".
        shared: whether each is read at the contexts of many arms.
        prior: what is believed about the coefficients of each, in place of a ridge.

    Example:
        >>> import numpy as np
        >>> from evenhand.leastsquares import absorb, coefficients, regressions
        >>> two = regressions(2, n_features=1)
        >>> absorb(two, 0, np.array([1.0]), 3.0)
        >>> absorb(two, 0, np.array([1.0]), 5.0)
        >>> coefficients(two, 0)
        array([4.])
    """
    d, width = n_features, padded(n_features)
    per_block, singular = 1 if shared else LANES, "prior" if prior is not None else singular
    tail = width * (width + 1) // 2 + 2 * width
    fits = Regressions(
        np.zeros(_shape(number, n_features, singular, shared)),
        number,
        d,
        per_block,
        KINDS[singular],
        float(ridge),
        NEW_DIRECTION[singular],
    )
    rows = rows_of(fits)
    if number % per_block:  # lanes without a regression count as full rank, not as singular
        # Whether a block takes the fast path is decided by its smallest rank.
        rows[-1, tail + RANK, number % per_block :] = d
    if singular == "ridge":
        write_ridge(rows, ridge, d, width, tail)
    if prior is not None:
        write_prior(rows, checked_prior(prior, d), width, tail)
    if singular in NEVER_SINGULAR:
        rows[:, tail + RANK] = d
    return fits


@woven
def width_of(d):  # type: ignore[no-untyped-def]
    """`padded(d)`: the size of R, and the length of a direction in the basis."""
    return (d + LANES - 1) & -LANES


@woven
def tail_of(d):  # type: ignore[no-untyped-def]
    """The row of COUNT; RESIDUAL, FREEDOM and RANK follow, and then the basis."""
    width = width_of(d)
    return width * (width + 1) // 2 + 2 * width


@woven
def row_start(k, width):  # type: ignore[no-untyped-def]
    """Number j of row k of R is in row `row_start(k, width) + j` of the table, j >= k."""
    return k * width - k * (k + 1) // 2


@woven
def basis_of(d, lane, lanes):  # type: ignore[no-untyped-def]
    """Where the basis of a lane begins."""
    return (tail_of(d) + BASIS) * lanes + lane * width_of(d) * width_of(d)


@woven
def factors_of(d, lane, lanes):  # type: ignore[no-untyped-def]
    """Where the factors of a lane begin, by which its features are multiplied while singular."""
    return basis_of(d, lanes, lanes) + lane * width_of(d)


@woven
def lane_of(fits, i):  # type: ignore[no-untyped-def]
    """The block of regression `i`, and its lane there."""
    return place(fits.array, i // fits.per_block * fits.array.shape[1]), i % fits.per_block


@woven
def room_of(fits):  # type: ignore[no-untyped-def]
    """The working memory of `absorb`."""
    blocks, size = fits.array.shape
    return place(fits.array, (blocks - 1) * size)


@woven
def rank_of(fits, i):  # type: ignore[no-untyped-def]
    """How many directions regression `i` has seen.

    Example:
        >>> import numpy as np
        >>> from evenhand.leastsquares import absorb, rank_of, regressions
        >>> fits = regressions(1, n_features=2)
        >>> absorb(fits, 0, np.array([1.0, 1.0]), 2.0)
        >>> rank_of(fits, 0)
        1
    """
    table, lane = lane_of(fits, i)
    return int(table[(tail_of(fits.n_features) + RANK) * fits.per_block + lane])


@woven
def room_for(d):  # type: ignore[no-untyped-def]
    """How many numbers of working memory `solve_each` and `solve_shared` need.

    Example:
        >>> from evenhand.leastsquares import room_for
        >>> room_for(2)
        40
    """
    return (2 * LANES + 1) * width_of(d) + LANES


@woven
def count_of(fits, i):  # type: ignore[no-untyped-def]
    """How many observations regression `i` has absorbed."""
    table, lane = lane_of(fits, i)
    return int(table[(tail_of(fits.n_features) + COUNT) * fits.per_block + lane])


def padded(number: int) -> int:
    """`number` rounded up to whole blocks, the length of the arrays that `solve_each` fills.

    Example:
        >>> from evenhand.leastsquares import padded
        >>> padded(5)
        8
    """
    return -(-number // LANES) * LANES


def listed(wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The numbers of the wanted arms, padded with the first to a multiple of four.

    Example:
        >>> import numpy as np
        >>> from evenhand.leastsquares import listed
        >>> listed(np.array([False, True, True])).tolist()
        [1, 2, 1, 1]
    """
    arms = np.flatnonzero(wanted)
    return np.append(arms, np.repeat(arms[:1], padded(arms.size) - arms.size))


def rows_of(fits: Regressions) -> NDArray[np.float64]:
    """The table up to the basis as blocks, rows and lanes."""
    width, lanes = padded(fits.n_features), fits.per_block
    rows = width * (width + 1) // 2 + 2 * width + BASIS
    return fits.table[:, : rows * lanes].reshape(-1, rows, lanes)


def counts(fits: Regressions) -> NDArray[np.int64]:
    """How many observations each regression has absorbed.

    Example:
        >>> from evenhand.leastsquares import counts, regressions
        >>> counts(regressions(3, n_features=1)).tolist()
        [0, 0, 0]
    """
    return rows_of(fits)[:, COUNT - BASIS].reshape(-1)[: fits.number].astype(np.int64)
