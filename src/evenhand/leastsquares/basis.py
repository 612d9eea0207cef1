"""The directions that a singular design has seen: an orthonormal basis, one of them per row.

A basis is `table[at:]`, its rows `width` apart. Vectors are padded with zeros to that width, and
rows of zeros follow the last direction up to a whole four, so everything goes by fours.
"""

from __future__ import annotations

import numpy as np

from evenhand._compile import inlined, subroutine
from evenhand.leastsquares.table import width_of
from evenhand.leastsquares.vectors import (
    LANES,
    added,
    apart,
    four,
    less,
    plus,
    put,
    same,
    times,
    turned,
)


@inlined
def coordinates(table, at, rank, width, room, x, parts):  # type: ignore[no-untyped-def]
    """room[parts:] = the coordinates of room[x:], by four directions at a time."""
    for k in range(0, rank, LANES):
        p = at + k * width
        a = b = c = e = same(0.0)
        for q in range(0, width, LANES):
            here = four(room, x + q)
            a = plus(a, four(table, p + q), here)
            b = plus(b, four(table, p + width + q), here)
            c = plus(c, four(table, p + 2 * width + q), here)
            e = plus(e, four(table, p + 3 * width + q), here)
        a, b, c, e = turned(a, b, c, e)
        put(room, parts + k, added(added(a, b), added(c, e)))


@inlined
def take_off(table, at, rank, width, room, x, parts):  # type: ignore[no-untyped-def]
    """Take off from room[x:] its part in the directions, given its coordinates in room[parts:]."""
    for k in range(0, rank, LANES):
        p = at + k * width
        of_a, of_b, of_c, of_e = apart(four(room, parts + k))
        a, b, c, e = same(of_a), same(of_b), same(of_c), same(of_e)
        for q in range(0, width, LANES):
            rest = less(four(room, x + q), a, four(table, p + q))
            rest = less(rest, b, four(table, p + width + q))
            rest = less(rest, c, four(table, p + 2 * width + q))
            put(room, x + q, less(rest, e, four(table, p + 3 * width + q)))


@inlined
def leaves(table, at, rank, width, room, x, parts, limit):  # type: ignore[no-untyped-def]
    """Whether the square of what `take_off` would leave exceeds the limit.

    By four features at a time, and most often the first four tell.
    """
    squared = 0.0
    for q in range(0, width, LANES):
        rest = four(room, x + q)
        for k in range(rank):
            rest = less(rest, same(room[parts + k]), four(table, at + k * width + q))
        squared += total(times(rest, rest))
        if squared > limit:
            return True
    return False


@inlined
def copy(points, start, number, room, at, width):  # type: ignore[no-untyped-def]
    """`number` numbers into the room, and zeros up to the width."""
    whole = number & -LANES
    for k in range(0, whole, LANES):
        put(room, at + k, four(points, start + k))
    for k in range(whole, number):
        room[at + k] = points[start + k]
    for k in range(number, width):
        room[at + k] = 0.0


@inlined
def total(a):  # type: ignore[no-untyped-def]
    """The sum of four numbers."""
    first, second, third, fourth = apart(a)
    return (first + second) + (third + fourth)


@inlined
def squared_length(room, x, width):  # type: ignore[no-untyped-def]
    """The sum of squares of a padded vector."""
    squares = same(0.0)
    for q in range(0, width, LANES):
        squares = plus(squares, four(room, x + q), four(room, x + q))
    return total(squares)


@subroutine
def length(room, x, width):  # type: ignore[no-untyped-def]
    """The length of a padded vector, of tiny and of huge numbers as well."""
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
    """Write `row` in the coordinates of the directions seen; the rank, with a new one if it is."""
    width = width_of(d)
    rest, once, again = width, 2 * width, 3 * width
    copy(row, 0, width, row, rest, width)
    whole = length(row, rest, width)
    coordinates(table, at, rank, width, row, rest, once)  # Gram and Schmidt; twice is enough
    take_off(table, at, rank, width, row, rest, once)
    coordinates(table, at, rank, width, row, rest, again)
    take_off(table, at, rank, width, row, rest, again)
    left = length(row, rest, width)
    for k in range(rank):
        row[k] = row[once + k] + row[again + k]
    for k in range(rank, width):
        row[k] = 0.0
    if left > new_direction * whole:
        for k in range(d):
            table[at + rank * width + k] = row[rest + k] / left
        row[rank] = left
        rank += 1
    return rank
