"""Adding an observation: d plane rotations, whatever has been seen before."""

from __future__ import annotations

import numpy as np

from evenhand._compile import compiled, inlined
from evenhand.leastsquares.table import BASIS, COUNT, FREEDOM, RANK, RESIDUAL, RIDGE, tail_of


@compiled
def absorb(fits, i, x, y):  # type: ignore[no-untyped-def]
    """Add the observation (x, y) to regression `i`. O(d^2), whatever has been seen before."""
    d = fits.n_features
    table, lane = fits.table[i // fits.per_block], i % fits.per_block
    tail = tail_of(d)
    row = x.copy()
    if table[tail + RANK, lane] < d:
        _absorb_singular(fits, table, lane, row, y)
    elif fits.singular == RIDGE:
        _absorb_ridge(fits.ridge, table, lane, d, row, y)
    else:
        left = _rotate_in(table, lane, d, row, y, d)
        table[tail + RESIDUAL, lane] += left * left
        table[tail + FREEDOM, lane] += 1.0
    table[tail + COUNT, lane] += 1.0
    if fits.per_block == 1:
        for p in range(tail):
            table[p, 1] = table[p, 2] = table[p, 3] = table[p, 0]


@compiled
def _absorb_ridge(ridge, table, lane, d, row, y):  # type: ignore[no-untyped-def]
    """Degrees of freedom are n - tr(H), tr(H) = d - ridge tr(R'R)^-1: a rank one step of both."""
    tail = tail_of(d)
    table[tail + FREEDOM, lane] += 1.0 - ridge * _smoothing(table, lane, d, row)
    before = ridge * _squared_length(table, lane, d)
    left = _rotate_in(table, lane, d, row, y, d)
    after = ridge * _squared_length(table, lane, d)
    # What the rotations leave over is the growth of the penalised sum of squares.
    table[tail + RESIDUAL, lane] += left * left - (after - before)


@compiled
def _absorb_singular(fits, table, lane, row, y):  # type: ignore[no-untyped-def]
    """In the coordinates of the directions seen, which the row may extend."""
    d = fits.n_features
    tail = tail_of(d)
    before = int(table[tail + RANK, lane])
    rank = _to_basis(fits, table, lane, row, before)
    left = _rotate_in(table, lane, d, row, y, rank)
    table[tail + RESIDUAL, lane] += left * left
    table[tail + FREEDOM, lane] += 1.0 - (rank - before)  # a new direction is fitted exactly
    table[tail + RANK, lane] = rank
    if rank == d:
        _fold_basis(table, lane, d)


@inlined
def _rotate_in(table, lane, d, row, y, rank):  # type: ignore[no-untyped-def]
    """Plane rotations that take (row, y) into the leading rank x rank corner of R, and into z.

    Returns what is left of y: its square is what this observation adds to the residuals.
    """
    z = d * (d + 1) // 2
    inverse = z + d
    for k in range(rank):
        diagonal = k * (k + 1) // 2 + k
        r, s = table[diagonal, lane], row[k]
        if s == 0.0:
            continue
        length = np.sqrt(r * r + s * s)
        if not 1e-150 < length < 1e150:  # the squares left the range of numbers
            length = np.hypot(r, s)
        cos, sin = r / length, s / length
        table[diagonal, lane] = length
        table[inverse + k, lane] = 1.0 / length
        for j in range(k + 1, rank):
            p = j * (j + 1) // 2 + k
            t = table[p, lane]
            table[p, lane] = cos * t + sin * row[j]
            row[j] = cos * row[j] - sin * t
        t = table[z + k, lane]
        table[z + k, lane] = cos * t + sin * y
        y = cos * y - sin * t
    return y


@compiled
def _to_basis(fits, table, lane, row, rank):  # type: ignore[no-untyped-def]
    """Write `row` in the coordinates of the directions seen; the rank, with a new one if it is."""
    d = fits.n_features
    basis = tail_of(d) + BASIS
    rest = row.copy()
    part = np.zeros(d)
    for _ in range(2):  # Gram and Schmidt; twice is enough
        for q in range(rank):
            dot = 0.0
            for k in range(d):
                dot += table[basis + q * d + k, lane] * rest[k]
            part[q] += dot
            for k in range(d):
                rest[k] -= dot * table[basis + q * d + k, lane]
    length = whole = 0.0
    size = np.max(np.abs(row))
    if size > 0.0:  # scaled, for the squares of tiny and of huge numbers
        length = size * np.sqrt(np.sum((rest / size) ** 2))
        whole = size * np.sqrt(np.sum((row / size) ** 2))
    if length > fits.new_direction * whole:
        for k in range(d):
            table[basis + rank * d + k, lane] = rest[k] / length
        part[rank] = length
        rank += 1
    for k in range(d):
        row[k] = part[k]
    return rank


@compiled
def _fold_basis(table, lane, d):  # type: ignore[no-untyped-def]
    """At full rank, turn R in the basis' coordinates into R in the features' own."""
    z, basis = d * (d + 1) // 2, tail_of(d) + BASIS
    rows, right = np.zeros((d, d)), np.zeros(d)
    for q in range(d):
        right[q] = table[z + q, lane]
        for j in range(q, d):
            r = table[j * (j + 1) // 2 + q, lane]
            for k in range(d):
                rows[q, k] += r * table[basis + j * d + k, lane]
    for p in range(z + 2 * d):
        table[p, lane] = 0.0
    for q in range(d):
        _rotate_in(table, lane, d, rows[q], right[q], d)


@compiled
def _smoothing(table, lane, d, x):  # type: ignore[no-untyped-def]
    """By how much tr (R'R)^-1 falls when x is absorbed: |P x|^2 / (1 + x P x), P = (R'R)^-1."""
    z = d * (d + 1) // 2
    v = np.empty(d)
    variance = 0.0
    for k in range(d):
        total = x[k]
        for j in range(k):
            total -= table[k * (k + 1) // 2 + j, lane] * v[j]
        v[k] = total * table[z + d + k, lane]
        variance += v[k] * v[k]
    squared = 0.0
    for k in range(d - 1, -1, -1):
        total = v[k]
        for j in range(k + 1, d):
            total -= table[j * (j + 1) // 2 + k, lane] * v[j]
        v[k] = total * table[z + d + k, lane]
        squared += v[k] * v[k]
    return squared / (1.0 + variance)


@compiled
def _squared_length(table, lane, d):  # type: ignore[no-untyped-def]
    b = np.empty(d)
    back_substitute(table, lane, d, d, b)
    return np.sum(b * b)


@compiled
def back_substitute(table, lane, d, rank, b):  # type: ignore[no-untyped-def]
    """b = R^-1 z in the leading corner of R."""
    z = d * (d + 1) // 2
    for k in range(rank - 1, -1, -1):
        total = table[z + k, lane]
        for j in range(k + 1, rank):
            total -= table[j * (j + 1) // 2 + k, lane] * b[j]
        b[k] = total * table[z + d + k, lane]
