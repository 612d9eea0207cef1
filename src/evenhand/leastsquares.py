"""Many least squares regressions side by side: absorb an observation, estimate, width.

Each regression keeps the square root of its sufficient statistics: a triangular R with
R'R = X'X (plus the ridge), z with R'z = X'y, the residual sum of squares and the count. Absorbing a
row is d plane rotations, O(d^2), which is as accurate as a fresh QR decomposition of all rows;
updating an inverse is not (with a ridge of 1e-8 and features of 1e6 it loses every digit). For a
context x, one triangular solve v = R'^-1 x gives both numbers a policy needs:

    estimate = beta_hat . x = v . z          variance = x (X'X)^-1 x' = v . v

While a design is singular the rows seen span a subspace. Then R lives in the coordinates of an
orthonormal basis of that subspace, which grows with every new direction; at full rank the basis is
folded into R and forgotten. What a context outside of the subspace gets is the caller's choice:
see `SINGULAR`.

Four regressions share a block, so that four arms are solved by one vector instruction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import compiled, inlined

LANES = 4  # doubles in an AVX2 register

RIDGE, INFINITE, PSEUDO_INVERSE = 0, 1, 2
SINGULAR = {"ridge": RIDGE, "infinite": INFINITE, "pseudo-inverse": PSEUDO_INVERSE}

# Rows of the table behind R, z and the inverse diagonal.
COUNT, RESIDUAL, FREEDOM, RANK, _BASIS = range(5)

# A row counts as a new direction if this part of its length lies outside of those seen. For the
# pseudo-inverse it is the root of the 1e-15 at which NumPy's, and so the authors' code, cuts X'X.
NEW_DIRECTION = {"ridge": 0.0, "infinite": 1e-10, "pseudo-inverse": 1e-15**0.5}


class Regressions(NamedTuple):
    """`number` regressions on `n_features` features, as Numba likes it: one array and numbers.

    `table[block, row, lane]` holds regression i at block i // per_block, lane i % per_block. Its
    rows: R by columns (d(d+1)/2), z (d), 1/diagonal of R (d), count, residual sum of squares,
    degrees of freedom, rank, and the basis of the directions seen (d x d; none for a ridge). A
    shared regression (a group's, met by the contexts of many arms) has a block of its own and
    fills all four lanes.

    All in one array, because Numba counts references to every array in a tuple at every call.
    """

    table: NDArray[np.float64]
    number: int
    n_features: int
    per_block: int
    singular: int
    ridge: float
    new_direction: float


def regressions(
    number: int,
    n_features: int,
    singular: str = "infinite",
    ridge: float = 0.0,
    shared: bool = False,
) -> Regressions:
    """`number` regressions that have seen nothing yet.

    Example:
        >>> import numpy as np
        >>> from evenhand.leastsquares import absorb, coefficients, regressions
        >>> two = regressions(2, n_features=1)
        >>> absorb(two, 0, np.array([1.0]), 3.0)
        >>> absorb(two, 0, np.array([1.0]), 5.0)
        >>> coefficients(two, 0)
        array([4.])
    """
    d = n_features
    per_block = 1 if shared else LANES
    rows = d * (d + 1) // 2 + 2 * d + _BASIS + (0 if singular == "ridge" else d * d)
    table = np.zeros((-(-number // per_block), rows, LANES))
    if singular == "ridge":
        for k in range(d):
            table[:, k * (k + 1) // 2 + k, :] = np.sqrt(ridge)
            table[:, d * (d + 1) // 2 + d + k, :] = 1.0 / np.sqrt(ridge)
        table[:, d * (d + 1) // 2 + 2 * d + RANK, :] = d
    return Regressions(
        table,
        number,
        d,
        per_block,
        SINGULAR[singular],
        float(ridge),
        NEW_DIRECTION[singular],
    )


@inlined
def _tail(d):  # type: ignore[no-untyped-def]
    """The row of COUNT; RESIDUAL, FREEDOM, RANK and the basis follow."""
    return d * (d + 1) // 2 + 2 * d


@inlined
def rank_of(fits, i):  # type: ignore[no-untyped-def]
    """How many directions regression `i` has seen."""
    row = _tail(fits.n_features) + RANK
    return int(fits.table[i // fits.per_block, row, i % fits.per_block])


@inlined
def absorb(fits, i, x, y):  # type: ignore[no-untyped-def]
    """Add the observation (x, y) to regression `i`. O(d^2), whatever has been seen before."""
    d = fits.n_features
    table, lane = fits.table[i // fits.per_block], i % fits.per_block
    tail = _tail(d)
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
    tail = _tail(d)
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
    tail = _tail(d)
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
    basis = _tail(d) + _BASIS
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
    z, basis = d * (d + 1) // 2, _tail(d) + _BASIS
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
    _back_substitute(table, lane, d, d, b)
    return np.sum(b * b)


@compiled
def _back_substitute(table, lane, d, rank, b):  # type: ignore[no-untyped-def]
    """b = R^-1 z in the leading corner of R."""
    z = d * (d + 1) // 2
    for k in range(rank - 1, -1, -1):
        total = table[z + k, lane]
        for j in range(k + 1, rank):
            total -= table[j * (j + 1) // 2 + k, lane] * b[j]
        b[k] = total * table[z + d + k, lane]


@compiled
def coefficients(fits, i):  # type: ignore[no-untyped-def]
    """The coefficients of regression `i`; of the shortest fit where its design is singular."""
    d, rank = fits.n_features, rank_of(fits, i)
    table, lane = fits.table[i // fits.per_block], i % fits.per_block
    b = np.zeros(d)
    _back_substitute(table, lane, d, rank, b)
    if rank == d:
        return b
    basis = _tail(d) + _BASIS
    full = np.zeros(d)
    for q in range(rank):
        for k in range(d):
            full[k] += b[q] * table[basis + q * d + k, lane]
    return full


@inlined
def solve_each(fits, contexts, out, estimate, variance):  # type: ignore[no-untyped-def]
    """Context i against regression i, for all of them: estimate and variance / sigma^2.

    They go to the rows `estimate` and `variance` of `out`, whose rows after `variance` are room to
    work in: a column per arm, padded to whole blocks like `contexts` (see `padded`). A variance is
    infinite where nothing was seen and, treated as such, outside of the directions seen.
    """
    for block in range(fits.table.shape[0]):
        _solve_block(fits.table[block], contexts, block * LANES, out, estimate, variance)
    for i in range(fits.number):
        if rank_of(fits, i) < fits.n_features:
            out[estimate, i], out[variance, i] = _solve_singular(fits, i, contexts, i)


@inlined
def solve_shared(fits, g, contexts, wanted, out, estimate, variance):  # type: ignore[no-untyped-def]
    """The wanted contexts against the one shared regression `g`; others may be filled as well."""
    full_rank = rank_of(fits, g) == fits.n_features
    for first in range(0, contexts.shape[0], LANES):
        if not (wanted[first] or wanted[first + 1] or wanted[first + 2] or wanted[first + 3]):
            continue
        if full_rank:
            _solve_block(fits.table[g], contexts, first, out, estimate, variance)
        else:
            for i in range(first, first + LANES):
                out[estimate, i], out[variance, i] = _solve_singular(fits, g, contexts, i)


@inlined
def _solve_block(table, contexts, first, out, estimate, variance):  # type: ignore[no-untyped-def]
    """v = R'^-1 x in four lanes, written out: the compiler turns each four lines into one."""
    d = contexts.shape[1]
    z, v = d * (d + 1) // 2, variance + 1
    e0 = e1 = e2 = e3 = 0.0
    s0 = s1 = s2 = s3 = 0.0
    p = 0
    for k in range(d):
        a0, a1 = contexts[first, k], contexts[first + 1, k]
        a2, a3 = contexts[first + 2, k], contexts[first + 3, k]
        for j in range(k):
            a0 -= table[p, 0] * out[v + j, first]
            a1 -= table[p, 1] * out[v + j, first + 1]
            a2 -= table[p, 2] * out[v + j, first + 2]
            a3 -= table[p, 3] * out[v + j, first + 3]
            p += 1
        p += 1  # the diagonal
        a0 *= table[z + d + k, 0]
        a1 *= table[z + d + k, 1]
        a2 *= table[z + d + k, 2]
        a3 *= table[z + d + k, 3]
        e0 += a0 * table[z + k, 0]
        e1 += a1 * table[z + k, 1]
        e2 += a2 * table[z + k, 2]
        e3 += a3 * table[z + k, 3]
        s0 += a0 * a0
        s1 += a1 * a1
        s2 += a2 * a2
        s3 += a3 * a3
        out[v + k, first], out[v + k, first + 1] = a0, a1
        out[v + k, first + 2], out[v + k, first + 3] = a2, a3
    out[estimate, first], out[variance, first] = e0, s0
    out[estimate, first + 1], out[variance, first + 1] = e1, s1
    out[estimate, first + 2], out[variance, first + 2] = e2, s2
    out[estimate, first + 3], out[variance, first + 3] = e3, s3


@compiled
def _solve_singular(fits, i, contexts, row):  # type: ignore[no-untyped-def]
    """Estimate and variance by the minimum-norm fit in the directions seen."""
    d, rank = fits.n_features, rank_of(fits, i)
    table, lane = fits.table[i // fits.per_block], i % fits.per_block
    if rank == 0:  # the pseudo-inverse of zero contexts is zero, but of none at all infinite
        seen = table[_tail(d) + COUNT, lane] > 0.0
        return 0.0, 0.0 if seen and fits.singular == PSEUDO_INVERSE else np.inf
    z, basis = d * (d + 1) // 2, _tail(d) + _BASIS
    v = np.empty(rank)
    estimate = variance = inside = 0.0
    p = 0
    for k in range(rank):
        part = 0.0
        for q in range(d):
            part += table[basis + k * d + q, lane] * contexts[row, q]
        inside += part * part
        for j in range(k):
            part -= table[p, lane] * v[j]
            p += 1
        p += 1
        v[k] = part * table[z + d + k, lane]
        estimate += v[k] * table[z + k, lane]
        variance += v[k] * v[k]
    if fits.singular == INFINITE and _leaves(fits, table, lane, contexts[row], rank, inside):
        variance = np.inf
    return estimate, variance


@compiled
def _leaves(fits, table, lane, x, rank, inside):  # type: ignore[no-untyped-def]
    """Whether x leaves the directions seen, in which its squared length is `inside`."""
    length = np.sum(x * x)
    if length - inside > 1e-6 * length:
        return True
    d = x.size  # too close for a difference of squares: take the parts away one by one
    basis = _tail(d) + _BASIS
    rest = x.copy()
    for k in range(rank):
        part = 0.0
        for q in range(d):
            part += table[basis + k * d + q, lane] * rest[q]
        for q in range(d):
            rest[q] -= part * table[basis + k * d + q, lane]
    return np.sum(rest * rest) > fits.new_direction**2 * length


@compiled
def noise_variance(fits):  # type: ignore[no-untyped-def]
    """sigma^2 pooled over all regressions, and its degrees of freedom; infinite with none."""
    residual = freedom = 0.0
    tail = _tail(fits.n_features)
    for i in range(fits.number):
        block, lane = i // fits.per_block, i % fits.per_block
        residual += fits.table[block, tail + RESIDUAL, lane]
        freedom += fits.table[block, tail + FREEDOM, lane]
    if freedom < 0.5:  # nothing is left over to estimate it from
        return np.inf, 0.0
    return max(residual, 0.0) / freedom, freedom


def padded(number: int) -> int:
    """`number` rounded up to whole blocks, the length of the arrays that `solve_each` fills."""
    return -(-number // LANES) * LANES


def counts(fits: Regressions) -> NDArray[np.int64]:
    """How many observations each regression has absorbed."""
    row = fits.table[:, fits.n_features * (fits.n_features + 1) // 2 + 2 * fits.n_features]
    return row[:, : fits.per_block].reshape(-1)[: fits.number].astype(np.int64)
