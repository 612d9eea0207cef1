"""Estimates and variances where a design is singular, of four arms at a time."""

from __future__ import annotations

import numpy as np

from evenhand._compile import inlined, subroutine, woven
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._basis import (
    at_most_four,
    coordinates,
    copy,
    in_units,
    leaves,
    squared_length,
    total,
)
from evenhand.leastsquares._layout import (
    COUNT,
    RANK,
    SMALLEST,
    basis_of,
    factors_of,
    tail_of,
    width_of,
)
from evenhand.leastsquares._simd import (
    LANES,
    added,
    broadcast,
    four,
    is_new,
    plus_product,
    put,
    times,
    transposed,
)
from evenhand.leastsquares._triangle import forward, spread

# Until an arm has been chosen d times, nearly every context leaves the directions it has seen. Then
# the variance is infinite, and only the estimate is left to compute. With at most four directions,
# that is done entirely in registers: 12 microseconds against 21 for 1,000 arms with d = 5 that were
# chosen once on average, of some 35 for a live decision.


@subroutine
def solve_outside(table, most, points, starts, room, d):  # type: ignore[no-untyped-def]
    """Whether four contexts clearly leave the directions seen, at most four; and the estimates."""
    stays_a_function()
    first, second, third, fourth = starts
    is_first, a = _project(table, 0, points, first, d)
    is_second, b = _project(table, 1, points, second, d)
    is_third, c = _project(table, 2, points, third, d)
    is_fourth, e = _project(table, 3, points, fourth, d)
    head = transposed(a, b, c, e)
    estimates, _ = forward(table, LANES, head, room, width_of(d), most, False)
    return is_first & is_second & is_third & is_fourth, estimates


@inlined
def _project(table, lane, points, start, d):  # type: ignore[no-untyped-def]
    """Whether a context clearly leaves the first four directions, and its coordinates in them.

    The same sums in the same order as `in_units`, `coordinates` and `squared_length`, in one loop.
    """
    width, at, units = width_of(d), basis_of(d, lane, LANES), factors_of(d, lane, LANES)
    new, squares = False, broadcast(0.0)
    a = b = c = e = broadcast(0.0)
    for q in range(0, d, LANES):
        here, factors = at_most_four(points, start + q, d - q), four(table, units + q)
        new |= is_new(factors, here, broadcast(SMALLEST))
        here = times(here, factors)
        squares = plus_product(squares, here, here)
        a = plus_product(a, four(table, at + q), here)
        b = plus_product(b, four(table, at + width + q), here)
        c = plus_product(c, four(table, at + 2 * width + q), here)
        e = plus_product(e, four(table, at + 3 * width + q), here)
    a, b, c, e = transposed(a, b, c, e)
    parts = added(added(a, b), added(c, e))
    return new | _is_clear(total(squares), total(times(parts, parts))), parts


# Where a design is singular, contexts are first written in the coordinates of the directions that
# it has seen: four points, in the room behind its lanes. Behind them are four variances, 0 or, for
# contexts outside, infinite; and then a context in its own coordinates.


@subroutine
def solve_singular(table, lanes, used, d, limit, points, arms, room):  # type: ignore[no-untyped-def]
    """Estimates and variances of four arms where a design is singular."""
    stays_a_function()
    ranks, most = (tail_of(d) + RANK) * lanes, 0
    for into in range(used):
        most = max(most, int(table[ranks + (into if lanes == LANES else 0)]))
    for into in range(used):
        lane = into if lanes == LANES else 0
        _locate(table, lane, lanes, d, most, limit, points, arms[into], room, into)
    if lanes == 1:  # two calls, so that the compiler knows how far apart the numbers are
        return _solve_located(table, 1, room, d, most)
    return _solve_located(table, LANES, room, d, most)


@woven
def _locate(table, lane, lanes, d, most, limit, points, arm, room, into):  # type: ignore[no-untyped-def]
    """The context of an arm in the coordinates of regression `lane`, as point `into`.

    It is padded with zeros up to `most`, the highest rank of the four.
    """
    tail, width = tail_of(d), width_of(d)
    point, outside = (LANES + into) * width, 2 * LANES * width + into
    rank = int(table[(tail + RANK) * lanes + lane])
    room[outside] = 0.0
    if rank == d:
        copy(points, arm * d, d, room, point)
    elif rank == 0:  # a pseudo-inverse gives 0 after contexts of zeros, but infinity without any
        zeros = limit == np.inf and table[(tail + COUNT) * lanes + lane] > 0.0
        room[outside] = 0.0 if zeros else np.inf
    else:
        x, at = 2 * LANES * width + LANES, basis_of(d, lane, lanes)
        if limit == np.inf:
            copy(points, arm * d, d, room, x)
            coordinates(table, at, rank, width, room, x, point)
        else:
            factors = factors_of(d, lane, lanes)
            new, length = in_units(points, arm * d, d, table, factors, room, x)
            coordinates(table, at, rank, width, room, x, point)
            if new or _is_outside(table, at, rank, width, room, x, point, length, limit):
                room[outside] = np.inf
    # The four are solved together up to the highest rank, so shorter ones need zeros, not what the
    # last call left.
    for k in range((rank + LANES - 1) & -LANES, most, LANES):
        put(room, point + k, broadcast(0.0))


@woven
def _is_clear(length, inside):  # type: ignore[no-untyped-def]
    """Whether the squared lengths of a context and of its part inside differ beyond rounding."""
    return length - inside > 1e-6 * length


@inlined
def _is_outside(table, at, rank, width, room, x, point, length, limit):  # type: ignore[no-untyped-def]
    """Whether room[x:], with the coordinates room[point:], leaves the directions seen."""
    inside = squared_length(room, point, (rank + LANES - 1) & -LANES)
    if _is_clear(length, inside):
        return True
    # Close to the directions seen, a difference of squares is not precise enough.
    return leaves(table, at, rank, width, room, x, point, limit * length)


@inlined
def _solve_located(table, lanes, room, d, rank):  # type: ignore[no-untyped-def]
    """Estimates and variances at the four points."""
    width = width_of(d)
    first, whole = LANES * width, (rank + LANES - 1) & -LANES
    starts = (first, first + width, first + 2 * width, first + 3 * width)
    head = spread(room, starts, room, whole)
    fitted, squared = forward(table, lanes, head, room, width, rank, False)
    return fitted, added(squared, four(room, 2 * LANES * width))
