"""Reading the regressions: estimate and variance at contexts, coefficients, noise."""

from __future__ import annotations

import numpy as np

from evenhand._compile import compiled, subroutine, woven
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._absorb import back_substitute
from evenhand.leastsquares._basis import (
    scale,
)
from evenhand.leastsquares._layout import (
    FREEDOM,
    INFINITE,
    RANK,
    RESIDUAL,
    SMALLEST,
    basis_of,
    factors_of,
    lane_of,
    rank_of,
    tail_of,
    width_of,
)
from evenhand.leastsquares._simd import (
    LANES,
    broadcast,
    check_list,
    four,
    place,
    put,
    unpacked,
)
from evenhand.leastsquares._singular import solve_outside, solve_singular
from evenhand.leastsquares._triangle import forward, forward_few, spread, spread_few


@woven
def solve_each(fits, room, contexts, out, estimate, variance):  # type: ignore[no-untyped-def]
    """Context i against regression i, for all of them: estimate and variance / sigma^2.

    They go to the rows `estimate` and `variance` of `out`, which has a column per arm, padded to
    whole blocks like the rows of `contexts` (see `padded`). A variance is infinite where nothing
    was seen and, with "infinite", outside the directions seen. `room` has `room_for(d)` numbers.

    Example:
        >>> import numpy as np
        >>> from evenhand.leastsquares import absorb, padded, regressions, room_for, solve_each
        >>> fits = regressions(2, n_features=1)
        >>> absorb(fits, 0, np.array([1.0]), 3.0)
        >>> contexts, out = np.ones((padded(2), 1)), np.empty((2, padded(2)))
        >>> solve_each(fits, np.empty(room_for(1)), contexts, out, 0, 1)
        >>> out[:, :2].tolist()
        [[3.0, 0.0], [1.0, inf]]
    """
    d, columns, (blocks, size) = fits.n_features, out.shape[1], fits.array.shape
    tables, points, room = place(fits.array, 0), place(contexts, 0), place(room, 0)
    fitted, squared = place(out, estimate * columns), place(out, variance * columns)
    layout = (fits.per_block, d, _limit(fits))
    if d < LANES:
        _each_few(tables, blocks - 1, size, fits.number, layout, points, room, fitted, squared)
    else:
        _each_many(tables, blocks - 1, size, fits.number, layout, points, room, fitted, squared)


@woven
def solve_shared(fits, g, room, contexts, arms, out, estimate, variance):  # type: ignore[no-untyped-def]
    """The contexts of the listed arms against the shared regression `g`, four at a time.

    The list comes from `listed`: a mask would have to be searched in every round. The results are
    in the order of the list, so that four can be written, and read again, at once.

    Example:
        >>> import numpy as np
        >>> from evenhand.leastsquares import absorb, listed, padded, regressions
        >>> from evenhand.leastsquares import room_for, solve_shared
        >>> fits = regressions(1, n_features=1, shared=True)
        >>> absorb(fits, 0, np.array([1.0]), 3.0)
        >>> contexts, out = np.arange(4.0).reshape(4, 1), np.empty((2, padded(2)))
        >>> arms = listed(np.array([False, True, True, False]))
        >>> solve_shared(fits, 0, np.empty(room_for(1)), contexts, arms, out, 0, 1)
        >>> out[:, :2].tolist()
        [[3.0, 6.0], [1.0, 4.0]]
    """
    check_list(arms)
    d, columns = fits.n_features, out.shape[1]
    table, points = place(fits.array, g * fits.array.shape[1]), place(contexts, 0)
    room = place(room, 0)
    fitted, squared = place(out, estimate * columns), place(out, variance * columns)
    layout = (fits.per_block, d, _limit(fits))
    if d < LANES:
        _shared_few(table, place(arms, 0), arms.size, layout, points, room, fitted, squared)
    else:
        _shared_many(table, place(arms, 0), arms.size, layout, points, room, fitted, squared)


@woven
def _limit(fits):  # type: ignore[no-untyped-def]
    """How far outside the directions seen a context may be, as a part of its squared length."""
    return fits.new_direction**2 if fits.singular == INFINITE else np.inf


# Code that runs in every round gets places instead of arrays: Numba would count references to them
# and put the numbers that describe each array on the stack. One to three features have copies of
# their own, in which LLVM prepares nothing for long rows. Together this saves a sixth of a round at
# n = 10, d = 2 (0.29 against 0.35 microseconds).


@subroutine
def _each_few(tables, blocks, size, number, layout, points, room, fitted, squared):  # type: ignore[no-untyped-def]
    """`solve_each` for one to three features."""
    stays_a_function()
    _each(True, tables, blocks, size, number, layout, points, room, fitted, squared)


@subroutine
def _each_many(tables, blocks, size, number, layout, points, room, fitted, squared):  # type: ignore[no-untyped-def]
    """`solve_each` for four features or more."""
    stays_a_function()
    _each(False, tables, blocks, size, number, layout, points, room, fitted, squared)


@woven
def _each(few, tables, blocks, size, number, layout, points, room, fitted, squared):  # type: ignore[no-untyped-def]
    per_block, d, limit = layout
    for block in range(blocks):
        table, i = place(tables, block * size), block * LANES
        a, b, c, e = unpacked(four(table, (tail_of(d) + RANK) * LANES))
        # One singular lane sends all four through the slower path, which treats each by its own
        # rank.
        if min(min(a, b), min(c, e)) == d:
            starts = (i * d, (i + 1) * d, (i + 2) * d, (i + 3) * d)
            results = _solve(few, table, LANES, points, starts, room, d)
        else:
            used = min(LANES, number - i)  # the lanes beyond may hold anything
            most, results = int(max(max(a, b), max(c, e))), (broadcast(0.0), broadcast(np.inf))
            outside = most == 0 and limit < np.inf
            # If all four contexts clearly leave the directions seen, variances are infinite without
            # a further look.
            if 0 < most <= LANES and most < d and limit < np.inf:
                starts = (i * d, (i + 1) * d, (i + 2) * d, (i + 3) * d)
                outside, estimates = solve_outside(table, most, points, starts, room, d)
                results = (estimates, broadcast(np.inf))
            if not outside:
                arms = (i, i + 1, i + 2, i + 3)
                results = solve_singular(table, per_block, used, d, limit, points, arms, room)
        put(fitted, i, results[0])
        put(squared, i, results[1])


@subroutine
def _shared_few(table, arms, number, layout, points, room, fitted, squared):  # type: ignore[no-untyped-def]
    """`solve_shared` for one to three features."""
    stays_a_function()
    _shared(True, table, arms, number, layout, points, room, fitted, squared)


@subroutine
def _shared_many(table, arms, number, layout, points, room, fitted, squared):  # type: ignore[no-untyped-def]
    """`solve_shared` for four features or more."""
    stays_a_function()
    _shared(False, table, arms, number, layout, points, room, fitted, squared)


@woven
def _shared(few, table, arms, number, layout, points, room, fitted, squared):  # type: ignore[no-untyped-def]
    per_block, d, limit = layout
    full = table[tail_of(d) + RANK] == d
    for k in range(0, number, LANES):
        a, b, c, e = arms[k], arms[k + 1], arms[k + 2], arms[k + 3]
        if full:
            starts = (a * d, b * d, c * d, e * d)
            results = _solve(few, table, 1, points, starts, room, d)
        else:
            four_arms = (a, b, c, e)
            results = solve_singular(table, per_block, LANES, d, limit, points, four_arms, room)
        put(fitted, k, results[0])
        put(squared, k, results[1])


@woven
def _solve(few, table, lanes, points, starts, room, d):  # type: ignore[no-untyped-def]
    """Estimates and variances of four arms at full rank."""
    if few:
        return forward_few(table, lanes, spread_few(points, starts, d), d)
    head = spread(points, starts, room, d)
    return forward(table, lanes, head, room, width_of(d), d, False)


@compiled
def coefficients(fits, i):  # type: ignore[no-untyped-def]
    """The coefficients of regression `i`; those of minimum norm if its design is singular.

    Example:
        >>> import numpy as np
        >>> from evenhand.leastsquares import absorb, coefficients, regressions
        >>> fits = regressions(1, n_features=2)
        >>> absorb(fits, 0, np.array([1.0, 1.0]), 2.0)
        >>> coefficients(fits, 0).round(9).tolist()
        [1.0, 1.0]
    """
    d, rank, lanes = fits.n_features, rank_of(fits, i), fits.per_block
    width, (table, lane) = width_of(d), lane_of(fits, i)
    b = np.zeros(d)
    back_substitute(table, lane, lanes, width, rank, b)
    if rank == d:
        return b
    at, full = basis_of(d, lane, lanes), np.zeros(d)
    for q in range(rank):
        for k in range(d):
            full[k] += b[q] * table[at + q * width + k]
    # Coefficients of scaled features times their factors are those of the features: b . (f x) = (f
    # b) . x.
    if fits.singular == INFINITE:
        scale(table, factors_of(d, lane, lanes), full, 0, d)
    return full


@compiled
def noise_variance(fits):  # type: ignore[no-untyped-def]
    """sigma^2 pooled over all regressions, and its degrees of freedom; infinite if there are none.

    With a prior, every observation is a degree of freedom, and the residuals include the distance
    of the coefficients from the prior: each reward is compared with what was predicted before it.

    The result is at least SMALLEST squared: the squares of smaller residuals underflow to 0.

    Example:
        >>> import numpy as np
        >>> from evenhand.leastsquares import absorb, noise_variance, regressions
        >>> fits = regressions(1, n_features=1)
        >>> for reward in (1.0, 3.0):
        ...     absorb(fits, 0, np.array([1.0]), reward)
        >>> variance, freedom = noise_variance(fits)
        >>> round(variance, 9), freedom
        (2.0, 1.0)
    """
    residual = freedom = 0.0
    tail, lanes = tail_of(fits.n_features), fits.per_block
    for i in range(fits.number):
        table, lane = lane_of(fits, i)
        residual += table[(tail + RESIDUAL) * lanes + lane]
        freedom += table[(tail + FREEDOM) * lanes + lane]
    # With a ridge, degrees of freedom need not be whole.
    if freedom < 0.5:  # no residuals to estimate it from
        return np.inf, 0.0
    return max(residual / freedom, SMALLEST**2), freedom
