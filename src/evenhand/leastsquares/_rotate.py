"""Plane rotations that add a row to the triangle R.

Rotations are done four at a time: first on the four numbers that they share, then together on the
rest of the row, which is then read from memory a quarter as often. The next four need not wait for
the end of the row.
"""

from __future__ import annotations

import numpy as np

from evenhand._compile import inlined, subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._layout import row_start
from evenhand.leastsquares._simd import (
    LANES,
    broadcast,
    four,
    minus_product,
    packed,
    place,
    plus_product,
    put,
    times,
    unpacked,
)


@subroutine
def rotate_in(table, lane, lanes, row, y, width, rank):  # type: ignore[no-untyped-def]
    """Add (row, y) to the leading rank x rank corner of R, and to z. The row is overwritten.

    The row is zero from the rank on, up to a multiple of four. Returns what remains of y: its
    square is what this observation adds to the residual sum of squares.
    """
    stays_a_function()
    if lanes == 1:  # two calls, so that the compiler knows how far apart the numbers are
        return rotate_in_lanes(place(table, lane), 1, row, y, width, rank)
    return rotate_in_lanes(place(table, lane), LANES, row, y, width, rank)


@inlined
def rotate_in_lanes(table, lanes, row, y, width, rank):  # type: ignore[no-untyped-def]
    """The same for the lane at which the table begins, with the number of lanes as a constant.

    Four numbers of the row at a time are rotated to zero, with four rows of R:

        row   a b c e | rest
        p     R R R R | R R R R    takes a to zero
        q       R R R | R R R R    then b
        r         R R | R R R R    then c
        s           R | R R R R    then e

    On the left, a rotation needs what those before it have left of the row, so it goes number by
    number. Then all four are known, and the rest goes through them four columns at a time.
    """
    z = width * (width + 1) // 2 * lanes
    for k in range(0, rank, LANES):
        a, b, c, e = unpacked(four(row, k))
        # Common in rows of 0 and 1: there is nothing to rotate.
        if a == 0.0 and b == 0.0 and c == 0.0 and e == 0.0:
            continue
        inverse = z + (width + k) * lanes
        p, q = row_start(k, width) * lanes, row_start(k + 1, width) * lanes
        r, s = row_start(k + 2, width) * lanes, row_start(k + 3, width) * lanes
        first, second, third, fourth = k * lanes, (k + 1) * lanes, (k + 2) * lanes, (k + 3) * lanes

        cos, sin = _rotation(table, p + first, inverse, a)
        b = _rotate(table, p + second, b, cos, sin)
        c = _rotate(table, p + third, c, cos, sin)
        e = _rotate(table, p + fourth, e, cos, sin)
        y = _rotate(table, z + first, y, cos, sin)
        cos_a, sin_a = broadcast(cos), broadcast(sin)

        cos, sin = _rotation(table, q + second, inverse + lanes, b)
        c = _rotate(table, q + third, c, cos, sin)
        e = _rotate(table, q + fourth, e, cos, sin)
        y = _rotate(table, z + second, y, cos, sin)
        cos_b, sin_b = broadcast(cos), broadcast(sin)

        cos, sin = _rotation(table, r + third, inverse + 2 * lanes, c)
        e = _rotate(table, r + fourth, e, cos, sin)
        y = _rotate(table, z + third, y, cos, sin)
        cos_c, sin_c = broadcast(cos), broadcast(sin)

        cos, sin = _rotation(table, s + fourth, inverse + 3 * lanes, e)
        y = _rotate(table, z + fourth, y, cos, sin)
        cos_e, sin_e = broadcast(cos), broadcast(sin)

        for j in range(k + LANES, rank, LANES):
            rest = four(row, j)
            rest = _rotate_four(table, p + j * lanes, lanes, rest, cos_a, sin_a)
            rest = _rotate_four(table, q + j * lanes, lanes, rest, cos_b, sin_b)
            rest = _rotate_four(table, r + j * lanes, lanes, rest, cos_c, sin_c)
            put(row, j, _rotate_four(table, s + j * lanes, lanes, rest, cos_e, sin_e))
    return y


@inlined
def rotate_few(table, lanes, a, b, c, y, d):  # type: ignore[no-untyped-def]
    """The same for a row of one to three numbers, the rest of them zero.

    With d at most 3 all of R is one corner of four, and row k of it begins at `row_start(k,
    LANES)`: element (0, 0) at 0, (1, 1) at q + 1 and (2, 2) at r + 2. The rotations are those of
    `rotate_in_lanes` in the same order, number by number, so both give the same bits. Numbers stay
    in registers, and tests on d are settled at compile time where d is a constant.
    """
    if a == 0.0 and b == 0.0 and c == 0.0:
        return y
    z = LANES * (LANES + 1) // 2 * lanes
    inverse, q, r = z + LANES * lanes, row_start(1, LANES), row_start(2, LANES)
    cos, sin = _rotation(table, 0, inverse, a)
    y = _rotate(table, z, y, cos, sin)
    if d > 1:
        b = _rotate(table, lanes, b, cos, sin)
        if d > 2:
            c = _rotate(table, 2 * lanes, c, cos, sin)
        cos, sin = _rotation(table, (q + 1) * lanes, inverse + lanes, b)
        y = _rotate(table, z + lanes, y, cos, sin)
    if d > 2:
        c = _rotate(table, (q + 2) * lanes, c, cos, sin)
        cos, sin = _rotation(table, (r + 2) * lanes, inverse + 2 * lanes, c)
        y = _rotate(table, z + 2 * lanes, y, cos, sin)
    return y


@inlined
def _rotation(table, p, inverse, s):  # type: ignore[no-untyped-def]
    """Rotate (r, s), r the diagonal element at p, to (length, 0); returns the cosine and the sine.

    length = sqrt(r^2 + s^2), cos = r / length and sin = s / length. The inverse of the new diagonal
    element is kept too, so that solving needs no division.
    """
    r = table[p]
    # Nothing to rotate, and r may be 0, which has no inverse.
    if s == 0.0:
        return 1.0, 0.0
    squared = r * r + s * s
    # A direction seen for the first time: the row moves into R as it is, up to its sign, so that
    # diagonals are positive.
    if r == 0.0:
        cos, sin, length = 0.0, np.copysign(1.0, s), abs(s)
    elif 1e-300 < squared < 1e300:
        length = np.sqrt(squared)
        cos, sin = r / squared * length, s / squared * length  # no quotient waits for the root
    else:
        cos, sin, length = _far(r, s)
    table[p], table[inverse] = length, 1.0 / length
    return cos, sin


@subroutine
def _far(r, s):  # type: ignore[no-untyped-def]
    """The rotation of tiny or huge numbers, whose squares would under- or overflow."""
    stays_a_function()
    length = np.hypot(r, s)
    return r / length, s / length, length


@inlined
def _rotate(table, p, u, cos, sin):  # type: ignore[no-untyped-def]
    """Rotate the number at p, which is replaced, and u; returns the new u."""
    t = table[p]
    table[p] = cos * t + sin * u
    return cos * u - sin * t


@inlined
def _rotate_four(table, p, lanes, u, cos, sin):  # type: ignore[no-untyped-def]
    """The same with four numbers of a row of R."""
    if lanes == 1:
        t = four(table, p)
        put(table, p, plus_product(times(cos, t), sin, u))
        return minus_product(times(cos, u), sin, t)
    t = packed(table[p], table[p + lanes], table[p + 2 * lanes], table[p + 3 * lanes])
    a, b, c, e = unpacked(plus_product(times(cos, t), sin, u))
    table[p], table[p + lanes], table[p + 2 * lanes], table[p + 3 * lanes] = a, b, c, e
    return minus_product(times(cos, u), sin, t)
