"""Features in units in which they are about as large, while a design is singular.

Whether a direction is new is judged by the length of a row. Beside a time in nanoseconds, 1e18, an
intercept of 1 is too small for that to see, and for doubles to hold. So features are multiplied by
powers of two, which round nothing: 1 for a feature of an ordinary size, otherwise what brings the
first number seen to between 1/2 and 1. A number that turns out much larger changes the factor.

At full rank nothing is judged any more, and R does not mind the features' units: the factors are
taken out again. The pseudo-inverse has none, because the authors' code judges by the numbers as
they are.
"""

from __future__ import annotations

import math

import numpy as np

from evenhand._borrow import stays_a_function
from evenhand._compile import inlined, subroutine
from evenhand.leastsquares.basis import copy, to_basis
from evenhand.leastsquares.rotating import rotate_in
from evenhand.leastsquares.table import (
    FREEDOM,
    RESIDUAL,
    SMALLEST,
    basis_of,
    factors_of,
    row_start,
    tail_of,
    width_of,
)
from evenhand.leastsquares.vectors import LANES, four, place, plus, put, same

# Ordinary sizes, whose factor is 1, and how large a number may become before its factor changes.
_LEAST, _MOST, _LIMIT = 2.0**-10, 2.0**10, 2.0**14


@inlined
def scale(table, at, room, x, d):  # type: ignore[no-untyped-def]
    """Multiply room[x:] by the factors table[at:]; whether it has a feature never seen before."""
    new = False
    for k in range(d):
        factor = table[at + k]
        new |= factor == 0.0 and abs(room[x + k]) >= SMALLEST
        room[x + k] *= factor
    return new


@inlined
def note_sizes(table, at, row, d):  # type: ignore[no-untyped-def]
    """Give a factor to the features that the row is the first to have; whether one is outgrown."""
    outgrown = False
    for k in range(d):
        size = abs(row[k])
        if size > 0.0 and table[at + k] == 0.0:
            table[at + k] = _factor(size)
        outgrown |= size * table[at + k] > _LIMIT
    return outgrown


@inlined
def _factor(size):  # type: ignore[no-untyped-def]
    """A power of two, to bring a number of this size near 1."""
    return 1.0 if _LEAST <= size <= _MOST else math.ldexp(1.0, -math.frexp(size)[1])


@subroutine
def rescale(table, lane, lanes, room, d, rank, new_direction):  # type: ignore[no-untyped-def]
    """Change the factors that the row in the room has outgrown; the rank with them."""
    stays_a_function()
    width, tail = width_of(d), tail_of(d) * lanes + lane
    at, row = factors_of(d, lane, lanes), np.zeros(width)
    rows, right = _taken_out(table, lane, lanes, d, rank)
    for k in range(d):
        row[k], before = room[k], table[at + k]
        if abs(row[k]) * before > _LIMIT:
            table[at + k] = _factor(abs(row[k]))
            for q in range(rank):
                rows[q, k] *= table[at + k] / before
    seen = 0
    for q in range(rank - 1, -1, -1):  # the last one has a single direction, the first has all
        copy(place(rows, q * width), 0, width, room, 0, width)
        seen = to_basis(table, basis_of(d, lane, lanes), room, d, seen, new_direction)
        left = rotate_in(table, lane, lanes, room, right[q], width, seen)
        table[tail + RESIDUAL * lanes] += left * left
    table[tail + FREEDOM * lanes] += rank - seen
    copy(place(row, 0), 0, width, room, 0, width)
    return seen


@subroutine
def _taken_out(table, lane, lanes, d, rank):  # type: ignore[no-untyped-def]
    """All rows seen as `rank` rows and their right hand sides; R, z and the basis are emptied.

    The rows are in the coordinates of the basis, so with the features' factors in them.
    """
    at, width = basis_of(d, lane, lanes), width_of(d)
    z = width * (width + 1) // 2
    rows, right = np.zeros((rank, width)), np.zeros(rank)
    for q in range(rank):
        right[q], sums = table[(z + q) * lanes + lane], place(rows, q * width)
        for j in range(q, rank):
            r = same(table[(row_start(q, width) + j) * lanes + lane])
            for k in range(0, width, LANES):
                put(sums, k, plus(four(sums, k), r, four(table, at + j * width + k)))
    for row in range(tail_of(d)):
        table[row * lanes + lane] = 0.0
    for p in range(at, at + width * width):
        table[p] = 0.0
    return rows, right


@subroutine
def fold(table, lane, lanes, room, d, scaled):  # type: ignore[no-untyped-def]
    """At full rank, turn R in the basis' coordinates into R in the features' own."""
    stays_a_function()
    rows, right = _taken_out(table, lane, lanes, d, d)
    at, width = factors_of(d, lane, lanes), width_of(d)
    if scaled:
        for k in range(d):
            for q in range(d):
                rows[q, k] /= table[at + k]
            table[at + k] = 0.0
    for q in range(d):
        copy(place(rows, q * width), 0, width, room, 0, width)
        rotate_in(table, lane, lanes, room, right[q], width, d)
