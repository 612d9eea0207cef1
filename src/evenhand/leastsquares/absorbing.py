"""Adding an observation: d plane rotations, whatever has been seen before."""

from __future__ import annotations

import numpy as np

from evenhand._compile import compiled, inlined
from evenhand.leastsquares.basis import coordinates, copy, length, take_off
from evenhand.leastsquares.rotating import rotate_in
from evenhand.leastsquares.table import (
    COUNT,
    FREEDOM,
    RANK,
    RESIDUAL,
    RIDGE,
    basis_of,
    lane_of,
    room_of,
    row_start,
    tail_of,
    width_of,
)
from evenhand.leastsquares.triangle import backward, forward, spread
from evenhand.leastsquares.vectors import LANES, apart, four, place, plus, put, same


@compiled
def absorb(fits, i, x, y):  # type: ignore[no-untyped-def]
    """Add the observation (x, y) to regression `i`. O(d^2), whatever has been seen before."""
    d, width, lanes = fits.n_features, width_of(fits.n_features), fits.per_block
    (table, lane), room = lane_of(fits, i), room_of(fits)
    tail = tail_of(d) * lanes + lane
    before, rank = int(table[tail + RANK * lanes]), d
    for k in range(d):  # the room begins with the row, which the rotations use up
        room[k] = x[k]
    for k in range(d, width):
        room[k] = 0.0
    if fits.singular == RIDGE:
        _note_ridge(fits.ridge, table, lane, lanes, d, room, y)
    elif before < d:
        rank = _to_basis(table, basis_of(d, lane, lanes), room, d, before, fits.new_direction)
    left = rotate_in(table, lane, lanes, room, y, width, rank)
    table[tail + COUNT * lanes] += 1.0
    table[tail + RESIDUAL * lanes] += left * left
    if fits.singular != RIDGE:
        table[tail + FREEDOM * lanes] += 1.0 - (rank - before)  # a new direction is fitted exactly
    table[tail + RANK * lanes] = rank
    if before < rank == d:
        _fold_basis(table, lane, lanes, room, d)


@inlined
def _to_basis(table, at, row, d, rank, new_direction):  # type: ignore[no-untyped-def]
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


@compiled
def _fold_basis(table, lane, lanes, room, d):  # type: ignore[no-untyped-def]
    """At full rank, turn R in the basis' coordinates into R in the features' own."""
    at, width = basis_of(d, lane, lanes), width_of(d)
    z = width * (width + 1) // 2
    rows, right = np.zeros((d, width)), np.zeros(d)
    for q in range(d):
        right[q], sums = table[(z + q) * lanes + lane], place(rows, q * width)
        for j in range(q, d):
            r = same(table[(row_start(q, width) + j) * lanes + lane])
            for k in range(0, width, LANES):
                put(sums, k, plus(four(sums, k), r, four(table, at + j * width + k)))
    for row in range(tail_of(d)):
        table[row * lanes + lane] = 0.0
    for p in range(at, at + width * width):
        table[p] = 0.0
    for q in range(d):
        copy(place(rows, q * width), 0, width, room, 0, width)
        rotate_in(table, lane, lanes, room, right[q], width, d)


@compiled
def _note_ridge(ridge, table, lane, lanes, d, room, y):  # type: ignore[no-untyped-def]
    """What a ridge changes in the residuals and their degrees of freedom, before the rotations.

    With P = (R'R)^-1, absorbing x takes |P x|^2 / (1 + x P x) off the trace of P, and degrees of
    freedom are n - d + ridge tr(P). The coefficients b move by P x (y - b . x) / (1 + x P x), and
    what the rotations leave over is the growth of the sum of squares with its penalty ridge |b|^2.
    """
    width, tail = width_of(d), tail_of(d) * lanes + lane
    if lanes == 1:
        fitted, variance, cross, squared = _both_ways(table, 1, room, width)
    else:
        fitted, variance, cross, squared = _both_ways(table, LANES, room, width)
    step = (y - apart(fitted)[lane]) / (1.0 + apart(variance)[lane])
    growth = step * (2.0 * apart(cross)[lane] + step * apart(squared)[lane])
    shrinkage = apart(squared)[lane] / (1.0 + apart(variance)[lane])
    table[tail + FREEDOM * lanes] += 1.0 - ridge * shrinkage
    table[tail + RESIDUAL * lanes] -= ridge * growth


@inlined
def _both_ways(table, lanes, room, width):  # type: ignore[no-untyped-def]
    """x . b, x P x, b . P x and |P x|^2. Four lanes are as fast as one, so all get the row x."""
    behind = place(room, width)
    head = spread(room, (0, 0, 0, 0), behind, width)
    fitted, variance = forward(table, lanes, head, behind, width, width, True)
    cross, squared = backward(table, lanes, behind, width)
    return fitted, variance, cross, squared


@compiled
def back_substitute(table, lane, lanes, width, rank, b):  # type: ignore[no-untyped-def]
    """b = R^-1 z in the leading corner of R."""
    z = width * (width + 1) // 2
    for k in range(rank - 1, -1, -1):
        total = table[(z + k) * lanes + lane]
        for j in range(k + 1, rank):
            total -= table[(row_start(k, width) + j) * lanes + lane] * b[j]
        b[k] = total * table[(z + width + k) * lanes + lane]
