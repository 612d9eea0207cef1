"""Triangular solves in four lanes at once.

Their working memory, `room`, begins with the four vectors side by side: `room[4 * k + lane]`. Rows
of R beyond the rank, up to a multiple of four, are zero and give zeros, so whole fours can be used.
"""

from __future__ import annotations

import numpy as np

from evenhand._compile import inlined, woven
from evenhand.leastsquares._simd import (
    LANES,
    below,
    broadcast,
    four,
    minus_product,
    packed,
    plus_product,
    put,
    times,
    transposed,
)

HUGE = 1e300  # sums of a few numbers below it are still finite


@inlined
def row_of(table, row, lanes):  # type: ignore[no-untyped-def]
    """A row of the table: one number per lane or, in a shared regression, the same for all."""
    return four(table, row * LANES) if lanes == LANES else broadcast(table[row])


@inlined
def forward(table, lanes, head, room, width, rank, keep):  # type: ignore[no-untyped-def]
    """v = R'^-1 x, with x as `spread` leaves it; returns v . z and v . v. `keep`: v stays in room.

    v_k = (x_k - sum_(j < k) R_jk v_j) / R_kk. Four rows of R are used at a time: so the rest of x
    is read and written a quarter as often, and not every product has to wait for the previous one.
    """
    z = width * (width + 1) // 2
    inverse = z + width
    fitted = squared = broadcast(0.0)
    a, b, c, e = head
    # In floating point, a sum depends on its order. This one is the same for all arms and lanes.
    p = 0  # number j of row k is p + j
    whole = rank & -LANES
    for k in range(0, whole, LANES):
        q = p + width - k - 1
        r = q + width - k - 2
        s = r + width - k - 3
        if k > 0:
            a, b = four(room, LANES * k), four(room, LANES * (k + 1))
            c, e = four(room, LANES * (k + 2)), four(room, LANES * (k + 3))
        a = times(a, row_of(table, inverse + k, lanes))
        b = minus_product(b, row_of(table, p + k + 1, lanes), a)
        b = times(b, row_of(table, inverse + k + 1, lanes))
        c = minus_product(c, row_of(table, p + k + 2, lanes), a)
        c = minus_product(c, row_of(table, q + k + 2, lanes), b)
        c = times(c, row_of(table, inverse + k + 2, lanes))
        e = minus_product(e, row_of(table, p + k + 3, lanes), a)
        e = minus_product(e, row_of(table, q + k + 3, lanes), b)
        e = minus_product(e, row_of(table, r + k + 3, lanes), c)
        e = times(e, row_of(table, inverse + k + 3, lanes))
        for j in range(k + LANES, rank):
            # What the four new numbers of v take off all later ones: column by column of R'.
            rest = minus_product(four(room, LANES * j), row_of(table, p + j, lanes), a)
            rest = minus_product(rest, row_of(table, q + j, lanes), b)
            rest = minus_product(rest, row_of(table, r + j, lanes), c)
            put(room, LANES * j, minus_product(rest, row_of(table, s + j, lanes), e))
        fitted = plus_product(fitted, a, row_of(table, z + k, lanes))
        fitted = plus_product(fitted, b, row_of(table, z + k + 1, lanes))
        fitted = plus_product(fitted, c, row_of(table, z + k + 2, lanes))
        fitted = plus_product(fitted, e, row_of(table, z + k + 3, lanes))
        squared = plus_product(
            plus_product(plus_product(plus_product(squared, a, a), b, b), c, c), e, e
        )
        if keep:
            _put_four(room, k, a, b, c, e)
        p = s + width - k - 4
    if whole < rank:
        if whole > 0:
            a = four(room, LANES * whole)
            b, c = four(room, LANES * (whole + 1)), four(room, LANES * (whole + 2))
        fitted, squared = _last(table, lanes, width, whole, p, rank, a, b, c, fitted, squared)
    return _held(fitted, squared)


@woven
def forward_few(table, lanes, head, rank):  # type: ignore[no-untyped-def]
    """`forward` for one to three features; it makes a simulated round at d = 2 a quarter faster."""
    a, b, c, _ = head
    zero = broadcast(0.0)
    fitted, squared = _last(table, lanes, LANES, 0, 0, rank, a, b, c, zero, zero)
    return _held(fitted, squared)


@woven
def _last(table, lanes, width, k, p, rank, a, b, c, fitted, squared):  # type: ignore[no-untyped-def]
    """The last one to three rows of R, from row k on, which is at p.

    Row k of R is at p, and row k + 1 begins width - k - 1 numbers later: number j of it is q + j,
    with q = p + width - k - 1. Rows get shorter by one, which is why p, q, r and s are not evenly
    spaced.

    a, b and c are what is left of x_k, x_(k+1) and x_(k+2) after the rows before. Each is divided
    by its diagonal element, as a product with its inverse, before it is used in the next: v_(k+1)
    needs v_k. Rows beyond the rank are left out.
    """
    z = width * (width + 1) // 2
    inverse = z + width
    a = times(a, row_of(table, inverse + k, lanes))
    fitted, squared = (
        plus_product(fitted, a, row_of(table, z + k, lanes)),
        plus_product(squared, a, a),
    )
    if rank > k + 1:
        b = minus_product(b, row_of(table, p + k + 1, lanes), a)
        b = times(b, row_of(table, inverse + k + 1, lanes))
        fitted = plus_product(fitted, b, row_of(table, z + k + 1, lanes))
        squared = plus_product(squared, b, b)
    if rank > k + 2:
        q = p + width - k - 1
        c = minus_product(c, row_of(table, p + k + 2, lanes), a)
        c = minus_product(c, row_of(table, q + k + 2, lanes), b)
        c = times(c, row_of(table, inverse + k + 2, lanes))
        fitted = plus_product(fitted, c, row_of(table, z + k + 2, lanes))
        squared = plus_product(squared, c, c)
    return fitted, squared


@woven
def _held(fitted, squared):  # type: ignore[no-untyped-def]
    """Replace numbers that overflowed: infinity times the zeros beyond the rank is NaN.

    An estimate that large has an infinite variance, because rewards are never that large.
    """
    return below(fitted, broadcast(HUGE), broadcast(0.0)), below(
        squared, broadcast(HUGE), broadcast(np.inf)
    )


@inlined
def backward(table, lanes, room, width):  # type: ignore[no-untyped-def]
    """u = R^-1 v, with v in the room, and b = R^-1 z; returns b . u and u . u.

    Both are solved at once, because reading R takes most of the time. They stay in room, b behind
    u: u_k = (v_k - sum_(j > k) R_kj u_j) / R_kk.
    """
    z, behind = width * (width + 1) // 2, LANES * width
    cross = squared = broadcast(0.0)
    for k in range(width - LANES, -1, -LANES):
        p = k * width - k * (k + 1) // 2  # number j of row k is p + j
        q = p + width - k - 1
        r = q + width - k - 2
        s = r + width - k - 3
        a, b = four(room, LANES * k), four(room, LANES * (k + 1))
        c, e = four(room, LANES * (k + 2)), four(room, LANES * (k + 3))
        # a to e are what is left of v, and f to i what is left of z.
        f, g = row_of(table, z + k, lanes), row_of(table, z + k + 1, lanes)
        h, i = row_of(table, z + k + 2, lanes), row_of(table, z + k + 3, lanes)
        for j in range(k + LANES, width):
            u, v = four(room, LANES * j), four(room, behind + LANES * j)
            row = row_of(table, p + j, lanes)
            a, f = minus_product(a, row, u), minus_product(f, row, v)
            row = row_of(table, q + j, lanes)
            b, g = minus_product(b, row, u), minus_product(g, row, v)
            row = row_of(table, r + j, lanes)
            c, h = minus_product(c, row, u), minus_product(h, row, v)
            row = row_of(table, s + j, lanes)
            e, i = minus_product(e, row, u), minus_product(i, row, v)
        a, b, c, e = _corner(table, lanes, width, k, p, q, r, a, b, c, e)
        f, g, h, i = _corner(table, lanes, width, k, p, q, r, f, g, h, i)
        _put_four(room, k, a, b, c, e)
        _put_four(room, width + k, f, g, h, i)
        cross = plus_product(
            plus_product(plus_product(plus_product(cross, a, f), b, g), c, h), e, i
        )
        squared = plus_product(
            plus_product(plus_product(plus_product(squared, a, a), b, b), c, c), e, e
        )
    return cross, squared


@inlined
def _corner(table, lanes, width, k, p, q, r, a, b, c, e):  # type: ignore[no-untyped-def]
    """Solve with the four rows of R that begin at row k.

    The corner of R, and the numbers that its rows belong to:

        R_aa R_ab R_ac R_ae   a        the numbers u_j of later rows have been taken
             R_bb R_bc R_be   b        off a, b, c and e before
                  R_cc R_ce   c
                       R_ee   e

    Back substitution goes upwards: e = e / R_ee first, then c = (c - R_ce e) / R_cc, and so on.
    Number j of the rows is p + j, q + j, r + j, of which only j from k to k + 3 are needed here.
    The diagonal enters as its inverse, 0 beyond the rank, so rows that do not exist give 0.
    """
    inverse = width * (width + 1) // 2 + width + k
    e = times(e, row_of(table, inverse + 3, lanes))
    c = times(
        minus_product(c, row_of(table, r + k + 3, lanes), e), row_of(table, inverse + 2, lanes)
    )
    b = minus_product(
        minus_product(b, row_of(table, q + k + 3, lanes), e), row_of(table, q + k + 2, lanes), c
    )
    b = times(b, row_of(table, inverse + 1, lanes))
    a = minus_product(
        minus_product(a, row_of(table, p + k + 3, lanes), e), row_of(table, p + k + 2, lanes), c
    )
    a = times(minus_product(a, row_of(table, p + k + 1, lanes), b), row_of(table, inverse, lanes))
    return a, b, c, e


@inlined
def spread(points, starts, room, number):  # type: ignore[no-untyped-def]
    """Four vectors side by side: returns their first four numbers, and puts the others into room.

    They have `number` numbers each and begin at the four `starts` in `points`. Zeros follow, up to
    a multiple of four.
    """
    if number < LANES:
        return spread_few(points, starts, number)
    for k in range(LANES, number - LANES + 1, LANES):
        a, b, c, e = _columns(points, starts, k)
        _put_four(room, k, a, b, c, e)
    if number % LANES:  # the last four overlap those before: nothing beyond them may be read
        a, b, c, e = _columns(points, starts, number - LANES)
        _put_four(room, number - LANES, a, b, c, e)
        for k in range(number, (number + LANES - 1) & -LANES):
            put(room, LANES * k, broadcast(0.0))
    return _columns(points, starts, 0)


@inlined
def _columns(points, starts, k):  # type: ignore[no-untyped-def]
    """Numbers k to k + 3 of the four vectors."""
    first, second, third, fourth = starts
    return transposed(
        four(points, first + k),
        four(points, second + k),
        four(points, third + k),
        four(points, fourth + k),
    )


@inlined
def spread_few(points, starts, number):  # type: ignore[no-untyped-def]
    """`spread` for vectors of one to three numbers."""
    first, second, third, fourth = starts
    a = packed(points[first], points[second], points[third], points[fourth])
    b = c = broadcast(0.0)
    if number > 1:
        b = packed(points[first + 1], points[second + 1], points[third + 1], points[fourth + 1])
    if number > 2:
        c = packed(points[first + 2], points[second + 2], points[third + 2], points[fourth + 2])
    return a, b, c, broadcast(0.0)


@inlined
def _put_four(room, k, a, b, c, e):  # type: ignore[no-untyped-def]
    put(room, LANES * k, a)
    put(room, LANES * (k + 1), b)
    put(room, LANES * (k + 2), c)
    put(room, LANES * (k + 3), e)
