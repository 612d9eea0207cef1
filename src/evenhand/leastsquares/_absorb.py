"""Adding observations: a row by d plane rotations, or everything that another regression saw."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import compiled, inlined, subroutine, woven
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._basis import fold, note_sizes, rescale, scale, to_basis
from evenhand.leastsquares._layout import (
    BASIS,
    COUNT,
    FREEDOM,
    INFINITE,
    PRIOR,
    RANK,
    RESIDUAL,
    RIDGE,
    SMALLEST,
    Regressions,
    basis_of,
    factors_of,
    room_of,
    row_start,
    rows_of,
    tail_of,
    width_of,
)
from evenhand.leastsquares._prior import Prior
from evenhand.leastsquares._rotate import rotate_few, rotate_in_lanes
from evenhand.leastsquares._simd import (
    LANES,
    broadcast,
    four,
    place,
    put,
    times,
    unpacked,
)
from evenhand.leastsquares._sums import roots, sums
from evenhand.leastsquares._triangle import backward, forward, spread


@compiled
def absorb(fits, i, x, y):  # type: ignore[no-untyped-def]
    """Add the observation (x, y) to regression `i`, in O(d^2) whatever its count.

    Example:
        >>> import numpy as np
        >>> from evenhand.leastsquares import absorb, counts, regressions
        >>> fits = regressions(2, n_features=1)
        >>> absorb(fits, 1, np.array([1.0]), 3.0)
        >>> counts(fits).tolist()
        [0, 1]
    """
    if fits.per_block == 1:
        absorb_in(fits, i, 1, x, y)
    else:
        absorb_in(fits, i, LANES, x, y)


@woven
def absorb_in(fits, i, lanes, x, y):  # type: ignore[no-untyped-def]
    """`absorb` with the lanes of a block as a constant, so that the compiler knows the strides."""
    d, lane = fits.n_features, i % lanes
    table = place(fits.array, i // lanes * fits.array.shape[1])
    rank = table[(tail_of(d) + RANK) * lanes + lane]
    # A ridge needs `_note_ridge` before the rotations, and so the general path.
    if d < LANES and rank == d and fits.singular != RIDGE:
        _absorb_few(place(table, lane), lanes, d, place(x, 0), y)
    elif lanes == 1:
        _absorb_shared(table, lane, room_of(fits), _kind_of(fits), place(x, 0), y)
    else:
        _absorb_lane(table, lane, room_of(fits), _kind_of(fits), place(x, 0), y)


@woven
def _kind_of(fits):  # type: ignore[no-untyped-def]
    """The settings for `_absorb_any`, without the array: Numba would count references to it."""
    return fits.per_block, fits.n_features, fits.singular, fits.ridge, fits.new_direction


@inlined
def _absorb_few(table, lanes, d, x, y):  # type: ignore[no-untyped-def]
    """One to three features at full rank, for the lane that the table begins with.

    The row stays in registers and is not padded to four. That saves 0.03 of the 0.29 microseconds
    of a round at n = 10, d = 2.
    """
    a, b, c = _held(x[0]), 0.0, 0.0
    if d > 1:
        b = _held(x[1])
    if d > 2:
        c = _held(x[2])
    _count(table, lanes, tail_of(d) * lanes, rotate_few(table, lanes, a, b, c, y, d))
    table[(tail_of(d) + FREEDOM) * lanes] += 1.0


@woven
def _held(feature):  # type: ignore[no-untyped-def]
    return 0.0 if abs(feature) < SMALLEST else feature


@woven
def _count(table, lanes, tail, left):  # type: ignore[no-untyped-def]
    """Count an observation; the square of what the rotations left of y joins the residuals."""
    table[tail + COUNT * lanes] += 1.0
    residual = table[tail + RESIDUAL * lanes] + left * left
    table[tail + RESIDUAL * lanes] = max(residual, 0.0)  # with a ridge, rounding may go below 0


@subroutine
def _absorb_shared(table, lane, room, kind, x, y):  # type: ignore[no-untyped-def]
    stays_a_function()
    _absorb_any(table, lane, 1, room, kind, x, y)


@subroutine
def _absorb_lane(table, lane, room, kind, x, y):  # type: ignore[no-untyped-def]
    stays_a_function()
    _absorb_any(table, lane, LANES, room, kind, x, y)


@woven
def _absorb_any(table, lane, lanes, room, kind, x, y):  # type: ignore[no-untyped-def]
    """Any number of features and any rank.

    Rare paths get the lanes as `per_block`, which is not a constant, and are compiled once for
    both layouts.
    """
    per_block, d, singular, ridge, new_direction = kind
    width, tail = width_of(d), tail_of(d) * lanes + lane
    before, rank = int(table[tail + RANK * lanes]), d
    for k in range(d):  # the room begins with the row, which the rotations overwrite
        room[k] = _held(x[k])
    for k in range(d, width):
        room[k] = 0.0
    if singular == RIDGE:
        _note_ridge(ridge, table, lane, per_block, d, room, y)
    elif before < d:
        scaled = singular == INFINITE
        before, rank = _to_basis(table, lane, per_block, room, d, before, new_direction, scaled)
    _count(table, lanes, tail, rotate_in_lanes(place(table, lane), lanes, room, y, width, rank))
    if singular != RIDGE:
        table[tail + FREEDOM * lanes] += 1.0 - (rank - before)  # a new direction is fitted exactly
    table[tail + RANK * lanes] = rank
    # The last direction has been seen: from now on the basis is all of space and says nothing.
    if before < rank == d:
        fold(table, lane, per_block, room, d, singular == INFINITE)


@subroutine
def _to_basis(table, lane, lanes, room, d, before, new_direction, scaled):  # type: ignore[no-untyped-def]
    """Write the row in the coordinates of a singular design; returns the rank before and after.

    If features are scaled (see `_basis`), the row is scaled first.
    """
    stays_a_function()
    if scaled:
        at = factors_of(d, lane, lanes)
        if note_sizes(table, at, room, d):
            before = rescale(table, lane, lanes, room, d, before, new_direction)
        scale(table, at, room, 0, d)
    return before, to_basis(table, basis_of(d, lane, lanes), room, d, before, new_direction)


@subroutine
def _note_ridge(ridge, table, lane, lanes, d, room, y):  # type: ignore[no-untyped-def]
    """Correct the residuals and their degrees of freedom for the ridge, before the rotations.

    With P = (R'R)^-1, absorbing x lowers the trace of P by |P x|^2 / (1 + x P x), and the degrees
    of freedom are n - d + ridge tr(P). The coefficients b move by P x (y - b . x) / (1 + x P x).
    The square of what the rotations leave of y is the growth of the penalised sum of squares, which
    includes ridge |b|^2. So the growth of ridge |b|^2 is taken off the residuals here:

        step (2 root(ridge) b . u + step |u|^2)        step = (y - b . x) / root(1 + x P x)

    with u = P x root(ridge / (1 + x P x)), whose length is at most 1: |P x|^2 itself can overflow.
    """
    stays_a_function()
    width, tail, root = width_of(d), tail_of(d) * lanes + lane, np.sqrt(ridge)
    if lanes == 1:
        fitted, variance, cross, squared = _both_ways(table, lane, 1, room, width, root)
    else:
        fitted, variance, cross, squared = _both_ways(table, lane, LANES, room, width, root)
    # 1 + x P x is the variance of a prediction error in units of sigma^2, so `step` is the error in
    # standard deviations.
    step = (y - fitted) / np.sqrt(1.0 + variance)
    table[tail + FREEDOM * lanes] += 1.0 - squared
    table[tail + RESIDUAL * lanes] -= step * (2.0 * root * cross + step * squared)


@inlined
def _both_ways(table, lane, lanes, room, width, root):  # type: ignore[no-untyped-def]
    """x . b, x P x, b . u and |u|^2. Four lanes take no longer than one, so all get the row x."""
    behind = place(room, width)
    head = spread(room, (0, 0, 0, 0), behind, width)
    fitted, squared = forward(table, lanes, head, behind, width, width, True)
    variance = unpacked(squared)[lane]
    factor = broadcast(root / np.sqrt(1.0 + variance))
    for k in range(0, LANES * width, LANES):
        put(behind, k, times(four(behind, k), factor))
    cross, squared = backward(table, lanes, behind, width)
    return unpacked(fitted)[lane], variance, unpacked(cross)[lane], unpacked(squared)[lane]


@subroutine
def back_substitute(table, lane, lanes, width, rank, b):  # type: ignore[no-untyped-def]
    """b = R^-1 z in the leading corner of R.

    Row k of R b = z is R_kk b_k + sum_(j > k) R_kj b_j = z_k. So b is found from its last number
    up, and the diagonal, kept as its inverse, is the only divisor. Rows and columns beyond the rank
    are not part of the system: there R is 0, and coordinates that were never seen have no estimate.
    """
    z = width * (width + 1) // 2
    for k in range(rank - 1, -1, -1):
        total = table[(z + k) * lanes + lane]
        for j in range(k + 1, rank):
            total -= table[(row_start(k, width) + j) * lanes + lane] * b[j]
        b[k] = total * table[(z + width + k) * lanes + lane]


Array = NDArray[np.float64]


def merge(fits: Regressions, other: Regressions, prior: Prior | None = None) -> None:
    """Add to `fits` what `other` has seen, regression by regression.

    All rows seen are equivalent to d rows: those of the root R, with z for rewards. Merging absorbs
    these, and adds the residuals and counts that they do not carry.

    Args:
        fits: the regressions that learn.
        other: regressions of the same number and features; they are not changed.
        prior: the prior that both were made with, if any.

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
    # The rows of R are not observations: they carry X'X and X'y of n of them, but count as fewer.
    # Counts, degrees of freedom and residuals are made up for after absorbing them.
    for i in np.flatnonzero(n > 0.0):
        nonzero = np.flatnonzero(np.abs(rows[i]).max(axis=1) > 0.0)
        for k in nonzero:
            absorb(fits, i, np.ascontiguousarray(rows[i, k]), float(targets[i, k]))
        block, lane = divmod(int(i), fits.per_block)
        row = rows_of(fits)[block, :, lane]
        row[COUNT - BASIS] += n[i] - nonzero.size
        # `absorb` has counted one for every row but those with a new direction, so this leaves n_1
        # + n_2 - rank of both together.
        row[FREEDOM - BASIS] += n[i] - nonzero.size
        row[RESIDUAL - BASIS] += rest[i]


def _rows_for(fits: Regressions, prior: Prior | None) -> tuple[Array, Array, Array, Array]:
    """`roots` for regressions whose ridge or prior has to be taken out of R first.

    With X'X = sum_k l_k v_k v_k', the rows sqrt(l_k) v_k' with the rewards v_k . X'y / sqrt(l_k)
    have the same X'X and X'y. Eigenvalues within rounding of 0 are left out.
    """
    totals = sums(fits, prior)
    values, vectors = np.linalg.eigh(totals.gram)
    # Taking out the ridge leaves a difference: what is not seen is rounding of either sign.
    known = values > 1e-13 * values.max(axis=1, keepdims=True, initial=0.0)
    scale = np.sqrt(np.where(known, values, 1.0))
    targets = np.einsum("ikq,ik->iq", vectors, totals.moment) / scale * known
    rows = vectors.transpose(0, 2, 1) * (scale * known)[..., None]
    # y'y less what these rows carry of it is the residual of the other's own fit.
    rest = np.maximum(totals.square - np.sum(targets * targets, axis=1), 0.0)
    return totals.n, rows, targets, rest
