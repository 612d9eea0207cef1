"""The directions that a singular design has seen: an orthonormal basis, with a direction per row.

A basis is `table[at:]`, its rows `width` apart. Vectors are padded with zeros to that width, and
rows of zeros follow the last direction up to a multiple of four, so all loops go by fours.

While a design is singular, its features are brought to similar sizes. The length of a row decides
whether its direction is new. Beside a time in nanoseconds, 1e18, an intercept of 1 would be lost in
that length, and in the rounding of doubles. So features are multiplied by powers of two, which is
exact: by 1 if they are of an ordinary size, and otherwise by the power that brings the first number
seen to between 1/2 and 1. A number that turns out much larger changes the factor.

At full rank there is nothing left to decide, and R does not depend on the features' units, so the
factors are removed again. The pseudo-inverse has no factors, because the authors' code decides by
the numbers as they are.
"""

from __future__ import annotations

import math

import numpy as np

from evenhand._compile import inlined, subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._layout import (
    FREEDOM,
    RESIDUAL,
    SMALLEST,
    basis_of,
    factors_of,
    row_start,
    tail_of,
    width_of,
)
from evenhand.leastsquares._rotate import rotate_in
from evenhand.leastsquares._simd import (
    LANES,
    added,
    broadcast,
    four,
    is_new,
    minus_product,
    packed,
    place,
    plus_product,
    put,
    times,
    transposed,
    unpacked,
)


@inlined
def coordinates(table, at, rank, width, room, x, parts):  # type: ignore[no-untyped-def]
    """room[parts:] = the coordinates of room[x:], four directions at a time."""
    for k in range(0, rank, LANES):
        p = at + k * width
        a = b = c = e = broadcast(0.0)
        for q in range(0, width, LANES):
            here = four(room, x + q)
            a = plus_product(a, four(table, p + q), here)
            b = plus_product(b, four(table, p + width + q), here)
            c = plus_product(c, four(table, p + 2 * width + q), here)
            e = plus_product(e, four(table, p + 3 * width + q), here)
        a, b, c, e = transposed(a, b, c, e)
        put(room, parts + k, added(added(a, b), added(c, e)))


@inlined
def take_off(table, at, rank, width, room, x, parts):  # type: ignore[no-untyped-def]
    """Subtract from room[x:] its projection on the directions; its coordinates are room[parts:].

    The coordinates are all known before: this is classical Gram-Schmidt, which takes off all
    projections of the same vector, and not modified, which would find each from what the one before
    has left. Classical is a product of matrices, so it can go by fours. It loses more digits if the
    rest is small, which is why `to_basis` does it twice.
    """
    for k in range(0, rank, LANES):
        p = at + k * width
        of_a, of_b, of_c, of_e = unpacked(four(room, parts + k))
        a, b, c, e = broadcast(of_a), broadcast(of_b), broadcast(of_c), broadcast(of_e)
        for q in range(0, width, LANES):
            rest = minus_product(four(room, x + q), a, four(table, p + q))
            rest = minus_product(rest, b, four(table, p + width + q))
            rest = minus_product(rest, c, four(table, p + 2 * width + q))
            put(room, x + q, minus_product(rest, e, four(table, p + 3 * width + q)))


@inlined
def leaves(table, at, rank, width, room, x, parts, limit):  # type: ignore[no-untyped-def]
    """Whether the rest that `take_off` would leave has a squared length above the limit.

    Features are added four at a time, and the first four usually decide.
    """
    squared = 0.0
    for q in range(0, width, LANES):
        rest = four(room, x + q)
        for k in range(rank):
            rest = minus_product(rest, broadcast(room[parts + k]), four(table, at + k * width + q))
        squared += total(times(rest, rest))
        if squared > limit:
            return True
    return False


@inlined
def copy(points, start, number, room, at):  # type: ignore[no-untyped-def]
    """Copy `number` numbers into the room, with zeros up to a multiple of four."""
    for k in range(0, number, LANES):
        put(room, at + k, at_most_four(points, start + k, number - k))


@inlined
def at_most_four(points, p, number):  # type: ignore[no-untyped-def]
    """The next four of `number` numbers, with zeros where there are fewer.

    As one vector: four numbers written one by one cannot be read at once without a stall.
    """
    if number >= LANES:
        return four(points, p)
    second = points[p + 1] if number > 1 else 0.0
    third = points[p + 2] if number > 2 else 0.0
    return packed(points[p], second, third, 0.0)


@inlined
def total(a):  # type: ignore[no-untyped-def]
    """The sum of four numbers."""
    first, second, third, fourth = unpacked(a)
    return (first + second) + (third + fourth)


@inlined
def squared_length(room, x, width):  # type: ignore[no-untyped-def]
    """The sum of squares of a padded vector."""
    squares = broadcast(0.0)
    for q in range(0, width, LANES):
        squares = plus_product(squares, four(room, x + q), four(room, x + q))
    return total(squares)


@subroutine
def length(room, x, width):  # type: ignore[no-untyped-def]
    """The length of a padded vector, also of tiny and huge numbers."""
    squared = squared_length(room, x, width)
    if 1e-250 < squared < 1e250:
        return np.sqrt(squared)
    size = squared = 0.0
    for q in range(width):
        size = max(size, abs(room[x + q]))
    if size > 0.0:
        for q in range(width):
            squared += (room[x + q] / size) ** 2
    return size * np.sqrt(squared)


@inlined
def to_basis(table, at, row, d, rank, new_direction):  # type: ignore[no-untyped-def]
    """Write `row` in the coordinates of the directions seen; returns the rank after that.

    With Q the directions, x = Q' (Q x) + rest. A rest longer than `new_direction` |x| becomes a
    new direction, rest / |rest|, in which the row has the coordinate |rest|.
    """
    width = width_of(d)
    rest, once, again = width, 2 * width, 3 * width
    copy(row, 0, width, row, rest)
    whole = length(row, rest, width)
    coordinates(table, at, rank, width, row, rest, once)  # Gram-Schmidt; twice is enough
    take_off(table, at, rank, width, row, rest, once)
    coordinates(table, at, rank, width, row, rest, again)
    take_off(table, at, rank, width, row, rest, again)
    left = length(row, rest, width)
    for k in range(rank):
        row[k] = row[once + k] + row[again + k]
    for k in range(rank, width):
        row[k] = 0.0
    # A rest this short is what rounding leaves of a row inside; the direction of such a rest would
    # be noise.
    if left > new_direction * whole:
        for k in range(d):
            table[at + rank * width + k] = row[rest + k] / left
        row[rank] = left
        rank += 1
    return rank


# Ordinary sizes, whose factor is 1, and how large a number may become before its factor changes.
_LEAST, _MOST, _LIMIT = 2.0**-10, 2.0**10, 2.0**14


@inlined
def scale(table, at, room, x, d):  # type: ignore[no-untyped-def]
    """Multiply room[x:] by the factors table[at:]."""
    for k in range(d):
        room[x + k] *= table[at + k]


@inlined
def in_units(points, start, d, table, at, room, x):  # type: ignore[no-untyped-def]
    """room[x:] = a context times the factors table[at:], by fours, with zeros at the end.

    Returns whether it has a feature never seen before, and its squared length.
    """
    new, squares = False, broadcast(0.0)
    for k in range(0, d, LANES):
        here, factors = at_most_four(points, start + k, d - k), four(table, at + k)
        new |= is_new(factors, here, broadcast(SMALLEST))
        here = times(here, factors)
        put(room, x + k, here)
        squares = plus_product(squares, here, here)
    return new, total(squares)


@inlined
def note_sizes(table, at, row, d):  # type: ignore[no-untyped-def]
    """Give a factor to every feature seen for the first time; whether the row outgrew any."""
    outgrown = False
    for k in range(d):
        size = abs(row[k])
        # The first size that is seen, not a typical one: what was absorbed before has a 0 there, so
        # no row has to change.
        if size > 0.0 and table[at + k] == 0.0:
            table[at + k] = _factor(size)
        outgrown |= size * table[at + k] > _LIMIT
    return outgrown


@inlined
def _factor(size):  # type: ignore[no-untyped-def]
    """The power of two that brings a number of this size near 1."""
    return 1.0 if _LEAST <= size <= _MOST else math.ldexp(1.0, -math.frexp(size)[1])


@subroutine
def rescale(table, lane, lanes, room, d, rank, new_direction):  # type: ignore[no-untyped-def]
    """Change the factors that the row in the room has outgrown; returns the rank after that.

    A factor belongs to all rows that have been absorbed, not only to the next one. But these are
    known only as R and the basis. So they are taken out as `rank` rows that say the same, R Q, the
    outgrown features of these are multiplied by the ratio of the factors, and the rows are absorbed
    again into an empty regression. Powers of two make the ratio exact.

    A feature that has become small beside the others may take a direction below the limit of
    `to_basis`. Then the rank falls: what the rows said there counts as a residual, with a degree of
    freedom more, as if they had come in this order from the beginning.
    """
    stays_a_function()
    width, tail = width_of(d), tail_of(d) * lanes + lane
    at, row = factors_of(d, lane, lanes), np.zeros(width)
    rows, right = _taken_out(table, lane, lanes, d, rank)
    for k in range(d):
        # The room is needed for the old rows, so the new one is put aside.
        row[k], before = room[k], table[at + k]
        if abs(row[k]) * before > _LIMIT:
            table[at + k] = _factor(abs(row[k]))
            for q in range(rank):
                rows[q, k] *= table[at + k] / before
    seen = 0
    for q in range(rank - 1, -1, -1):  # the last one has a single direction, the first has all
        copy(place(rows, q * width), 0, width, room, 0)
        seen = to_basis(table, basis_of(d, lane, lanes), room, d, seen, new_direction)
        # What is left is 0, unless the direction of the row is now too short to count.
        left = rotate_in(table, lane, lanes, room, right[q], width, seen)
        table[tail + RESIDUAL * lanes] += left * left
    table[tail + FREEDOM * lanes] += rank - seen
    copy(place(row, 0), 0, width, room, 0)
    return seen


@subroutine
def _taken_out(table, lane, lanes, d, rank):  # type: ignore[no-untyped-def]
    """All rows seen, as `rank` rows and their right-hand sides; R, z and the basis are cleared.

    The rows are R Q, where the rows of Q are the directions. They include the features' factors.
    """
    at, width = basis_of(d, lane, lanes), width_of(d)
    z = width * (width + 1) // 2
    rows, right = np.zeros((rank, width)), np.zeros(rank)
    for q in range(rank):
        right[q], sums = table[(z + q) * lanes + lane], place(rows, q * width)
        for j in range(q, rank):
            r = broadcast(table[(row_start(q, width) + j) * lanes + lane])
            for k in range(0, width, LANES):
                put(sums, k, plus_product(four(sums, k), r, four(table, at + j * width + k)))
    for row in range(tail_of(d)):
        table[row * lanes + lane] = 0.0
    for p in range(at, at + width * width):
        table[p] = 0.0
    return rows, right


@subroutine
def fold(table, lane, lanes, room, d, scaled):  # type: ignore[no-untyped-def]
    """At full rank, turn R in the coordinates of the basis into R in those of the features."""
    stays_a_function()
    rows, right = _taken_out(table, lane, lanes, d, d)
    at, width = factors_of(d, lane, lanes), width_of(d)
    if scaled:
        for k in range(d):
            for q in range(d):
                # A row was multiplied by the factors when it came; dividing by powers of two is
                # exact.
                rows[q, k] /= table[at + k]
            table[at + k] = 0.0
    for q in range(d):
        copy(place(rows, q * width), 0, width, room, 0)
        rotate_in(table, lane, lanes, room, right[q], width, d)
