"""Adding an observation: d plane rotations, whatever has been seen before.

Plane rotations that take a row into the triangle R.

Four rotations at a time: what they do to each other comes first, and then all four go over the rest
of the row together, which fetches it a quarter as often. The next four need not wait for its end.
"""

from __future__ import annotations

import numpy as np

from evenhand._borrow import stays_a_function
from evenhand._compile import compiled, inlined, subroutine
from evenhand.leastsquares._basis import fold, note_sizes, rescale, scale, to_basis
from evenhand.leastsquares._table import (
    COUNT,
    FREEDOM,
    INFINITE,
    RANK,
    RESIDUAL,
    RIDGE,
    SMALLEST,
    basis_of,
    factors_of,
    room_of,
    row_start,
    tail_of,
    width_of,
)
from evenhand.leastsquares._triangle import backward, forward, spread
from evenhand.leastsquares._vectors import (
    LANES,
    apart,
    four,
    less,
    place,
    plus,
    put,
    same,
    times,
    together,
)


@compiled
def absorb(fits, i, x, y):  # type: ignore[no-untyped-def]
    """Add the observation (x, y) to regression `i`. O(d^2), whatever has been seen before."""
    if fits.per_block == 1:
        absorb_in(fits, i, 1, x, y)
    else:
        absorb_in(fits, i, LANES, x, y)


@inlined
def absorb_in(fits, i, lanes, x, y):  # type: ignore[no-untyped-def]
    """The same, told the lanes of a block: then the compiler knows how far apart numbers are.

    What is rare gets them as `per_block`, which it does not know, and is compiled once for both.
    """
    d, width = fits.n_features, width_of(fits.n_features)
    table, lane, room = (
        place(fits.array, i // lanes * fits.array.shape[1]),
        i % lanes,
        room_of(fits),
    )
    tail = tail_of(d) * lanes + lane
    before, rank = int(table[tail + RANK * lanes]), d
    for k in range(d):  # the room begins with the row, which the rotations use up
        room[k] = 0.0 if abs(x[k]) < SMALLEST else x[k]
    for k in range(d, width):
        room[k] = 0.0
    if fits.singular == RIDGE:
        _note_ridge(fits.ridge, table, lane, fits.per_block, d, room, y)
    elif before < d:
        scaled = fits.singular == INFINITE
        before, rank = _to_basis(
            table, lane, fits.per_block, room, d, before, fits.new_direction, scaled
        )
    left = rotate_in_lanes(place(table, lane), lanes, room, y, width, rank)
    table[tail + COUNT * lanes] += 1.0
    residual = table[tail + RESIDUAL * lanes] + left * left
    table[tail + RESIDUAL * lanes] = max(residual, 0.0)  # a ridge's may be a rounding error below
    if fits.singular != RIDGE:
        table[tail + FREEDOM * lanes] += 1.0 - (rank - before)  # a new direction is fitted exactly
    table[tail + RANK * lanes] = rank
    if before < rank == d:
        fold(table, lane, fits.per_block, room, d, fits.singular == INFINITE)


@subroutine
def _to_basis(table, lane, lanes, room, d, before, new_direction, scaled):  # type: ignore[no-untyped-def]
    """The row in the coordinates of a singular design; the rank before and after.

    In the units of its features where these are scaled, see `scaling`.
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
    """What a ridge changes in the residuals and their degrees of freedom, before the rotations.

    With P = (R'R)^-1, absorbing x takes |P x|^2 / (1 + x P x) off the trace of P, and degrees of
    freedom are n - d + ridge tr(P). The coefficients b move by P x (y - b . x) / (1 + x P x), and
    what the rotations leave over is the growth of the sum of squares with its penalty ridge |b|^2.

    All in terms of u = P x root(ridge / (1 + x P x)), which is not longer than 1: |P x|^2 itself
    can be too large to hold.
    """
    stays_a_function()
    width, tail, root = width_of(d), tail_of(d) * lanes + lane, np.sqrt(ridge)
    if lanes == 1:
        fitted, variance, cross, squared = _both_ways(table, lane, 1, room, width, root)
    else:
        fitted, variance, cross, squared = _both_ways(table, lane, LANES, room, width, root)
    step = (y - fitted) / np.sqrt(1.0 + variance)
    table[tail + FREEDOM * lanes] += 1.0 - squared
    table[tail + RESIDUAL * lanes] -= step * (2.0 * root * cross + step * squared)


@inlined
def _both_ways(table, lane, lanes, room, width, root):  # type: ignore[no-untyped-def]
    """x . b, x P x, b . u and |u|^2. Four lanes are as fast as one, so all get the row x."""
    behind = place(room, width)
    head = spread(room, (0, 0, 0, 0), behind, width)
    fitted, squared = forward(table, lanes, head, behind, width, width, True)
    variance = apart(squared)[lane]
    short = same(root / np.sqrt(1.0 + variance))
    for k in range(0, LANES * width, LANES):
        put(behind, k, times(four(behind, k), short))
    cross, squared = backward(table, lanes, behind, width)
    return apart(fitted)[lane], variance, apart(cross)[lane], apart(squared)[lane]


@subroutine
def back_substitute(table, lane, lanes, width, rank, b):  # type: ignore[no-untyped-def]
    """b = R^-1 z in the leading corner of R."""
    z = width * (width + 1) // 2
    for k in range(rank - 1, -1, -1):
        total = table[(z + k) * lanes + lane]
        for j in range(k + 1, rank):
            total -= table[(row_start(k, width) + j) * lanes + lane] * b[j]
        b[k] = total * table[(z + width + k) * lanes + lane]


@subroutine
def rotate_in(table, lane, lanes, row, y, width, rank):  # type: ignore[no-untyped-def]
    """Take (row, y) into the leading rank x rank corner of R, and into z. The row is used up.

    It has zeros from the rank on, up to a whole four. Returns what is left of y: its square is what
    this observation adds to the residuals.
    """
    stays_a_function()
    if lanes == 1:  # twice, so that the compiler knows how far apart the numbers are
        return rotate_in_lanes(place(table, lane), 1, row, y, width, rank)
    return rotate_in_lanes(place(table, lane), LANES, row, y, width, rank)


@inlined
def rotate_in_lanes(table, lanes, row, y, width, rank):  # type: ignore[no-untyped-def]
    """The same for the lane that the table begins with, told how many there are."""
    z = width * (width + 1) // 2 * lanes
    for k in range(0, rank, LANES):
        a, b, c, e = apart(four(row, k))
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
        cos_a, sin_a = same(cos), same(sin)

        cos, sin = _rotation(table, q + second, inverse + lanes, b)
        c = _rotate(table, q + third, c, cos, sin)
        e = _rotate(table, q + fourth, e, cos, sin)
        y = _rotate(table, z + second, y, cos, sin)
        cos_b, sin_b = same(cos), same(sin)

        cos, sin = _rotation(table, r + third, inverse + 2 * lanes, c)
        e = _rotate(table, r + fourth, e, cos, sin)
        y = _rotate(table, z + third, y, cos, sin)
        cos_c, sin_c = same(cos), same(sin)

        cos, sin = _rotation(table, s + fourth, inverse + 3 * lanes, e)
        y = _rotate(table, z + fourth, y, cos, sin)
        cos_e, sin_e = same(cos), same(sin)

        for j in range(k + LANES, rank, LANES):
            rest = four(row, j)
            rest = _rotate_four(table, p + j * lanes, lanes, rest, cos_a, sin_a)
            rest = _rotate_four(table, q + j * lanes, lanes, rest, cos_b, sin_b)
            rest = _rotate_four(table, r + j * lanes, lanes, rest, cos_c, sin_c)
            put(row, j, _rotate_four(table, s + j * lanes, lanes, rest, cos_e, sin_e))
    return y


@inlined
def _rotation(table, p, inverse, s):  # type: ignore[no-untyped-def]
    """Turn the diagonal element at p and s to (length, 0); the cosine and sine of that."""
    r = table[p]
    if s == 0.0:
        return 1.0, 0.0
    squared = r * r + s * s
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
    """The rotation of tiny or huge numbers, whose squares leave the range."""
    stays_a_function()
    length = np.hypot(r, s)
    return r / length, s / length, length


@inlined
def _rotate(table, p, u, cos, sin):  # type: ignore[no-untyped-def]
    """Rotate u with the number at p, which is replaced; the new u."""
    t = table[p]
    table[p] = cos * t + sin * u
    return cos * u - sin * t


@inlined
def _rotate_four(table, p, lanes, u, cos, sin):  # type: ignore[no-untyped-def]
    """The same with four numbers of a row of R."""
    if lanes == 1:
        t = four(table, p)
        put(table, p, plus(times(cos, t), sin, u))
        return less(times(cos, u), sin, t)
    t = together(table[p], table[p + lanes], table[p + 2 * lanes], table[p + 3 * lanes])
    a, b, c, e = apart(plus(times(cos, t), sin, u))
    table[p], table[p + lanes], table[p + 2 * lanes], table[p + 3 * lanes] = a, b, c, e
    return less(times(cos, u), sin, t)
