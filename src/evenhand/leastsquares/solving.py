"""Reading the regressions: estimate and variance at contexts, coefficients, noise."""

from __future__ import annotations

import numpy as np

from evenhand._compile import compiled, inlined
from evenhand.leastsquares.absorbing import back_substitute
from evenhand.leastsquares.table import (
    BASIS,
    COUNT,
    FREEDOM,
    INFINITE,
    LANES,
    RANK,
    RESIDUAL,
    rank_of,
    tail_of,
)


@compiled
def solve_each(fits, contexts, out, estimate, variance):  # type: ignore[no-untyped-def]
    """Context i against regression i, for all of them: estimate and variance / sigma^2.

    They go to the rows `estimate` and `variance` of `out`, whose rows after `variance` are room to
    work in: a column per arm, padded to whole blocks like `contexts` (see `padded`). A variance is
    infinite where nothing was seen and, treated as such, outside of the directions seen.
    """
    full = fits.n_features
    rank = tail_of(full) + RANK
    for block in range(fits.table.shape[0]):
        table, first = fits.table[block], block * LANES
        least = min(table[rank, 0], table[rank, 1], table[rank, 2], table[rank, 3])
        if max(table[rank, 0], table[rank, 1], table[rank, 2], table[rank, 3]) == full:
            _solve_block(table, contexts, first, out, estimate, variance)
        if least < full:  # lanes beyond the last arm are here as well, which does no harm
            for lane in range(LANES):
                if table[rank, lane] < full:
                    _solve_singular(
                        fits, table, lane, contexts, first + lane, out, estimate, variance
                    )


@compiled
def solve_shared(fits, g, contexts, wanted, out, estimate, variance):  # type: ignore[no-untyped-def]
    """The wanted contexts against the one shared regression `g`; others may be filled as well."""
    table, full_rank = fits.table[g], rank_of(fits, g) == fits.n_features
    for first in range(0, contexts.shape[0], LANES):
        if not (wanted[first] or wanted[first + 1] or wanted[first + 2] or wanted[first + 3]):
            continue
        if full_rank:
            _solve_block(table, contexts, first, out, estimate, variance)
        else:
            for i in range(first, first + LANES):
                _solve_singular(fits, table, 0, contexts, i, out, estimate, variance)


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


@inlined
def _solve_singular(  # type: ignore[no-untyped-def]
    fits, table, lane, contexts, i, out, estimate, variance
):
    """Context i by the minimum-norm fit in the directions that the regression has seen."""
    d, tail, v = fits.n_features, tail_of(fits.n_features), variance + 1
    rank = int(table[tail + RANK, lane])
    if rank == 0:  # the pseudo-inverse of zero contexts is zero, but of none at all infinite
        zeros = fits.singular != INFINITE and table[tail + COUNT, lane] > 0.0
        out[estimate, i], out[variance, i] = 0.0, 0.0 if zeros else np.inf
        return
    z, basis = tail - 2 * d, tail + BASIS
    length = inside = fitted = squared = 0.0
    for q in range(d):
        length += contexts[i, q] * contexts[i, q]
    p = 0
    for k in range(rank):
        part = 0.0
        for q in range(d):
            part += table[basis + k * d + q, lane] * contexts[i, q]
        inside += part * part
        for j in range(k):
            part -= table[p, lane] * out[v + j, i]
            p += 1
        p += 1
        part *= table[z + d + k, lane]
        out[v + k, i] = part
        fitted += part * table[z + k, lane]
        squared += part * part
    if fits.singular == INFINITE:
        # Close to the directions seen, a difference of squares cannot tell.
        clearly = length - inside > 1e-6 * length
        if clearly or _leaves(fits, table, lane, contexts[i], rank, length):
            squared = np.inf
    out[estimate, i], out[variance, i] = fitted, squared


@compiled
def _leaves(fits, table, lane, x, rank, length):  # type: ignore[no-untyped-def]
    """Whether x, of this squared length, leaves the directions seen, taken off one by one."""
    d = x.size
    basis = tail_of(d) + BASIS
    rest = x.copy()
    for k in range(rank):
        part = 0.0
        for q in range(d):
            part += table[basis + k * d + q, lane] * rest[q]
        for q in range(d):
            rest[q] -= part * table[basis + k * d + q, lane]
    return np.sum(rest * rest) > fits.new_direction**2 * length


@compiled
def coefficients(fits, i):  # type: ignore[no-untyped-def]
    """The coefficients of regression `i`; of the shortest fit where its design is singular."""
    d, rank = fits.n_features, rank_of(fits, i)
    table, lane = fits.table[i // fits.per_block], i % fits.per_block
    b = np.zeros(d)
    back_substitute(table, lane, d, rank, b)
    if rank == d:
        return b
    basis = tail_of(d) + BASIS
    full = np.zeros(d)
    for q in range(rank):
        for k in range(d):
            full[k] += b[q] * table[basis + q * d + k, lane]
    return full


@compiled
def noise_variance(fits):  # type: ignore[no-untyped-def]
    """sigma^2 pooled over all regressions, and its degrees of freedom; infinite with none."""
    residual = freedom = 0.0
    tail = tail_of(fits.n_features)
    for i in range(fits.number):
        block, lane = i // fits.per_block, i % fits.per_block
        residual += fits.table[block, tail + RESIDUAL, lane]
        freedom += fits.table[block, tail + FREEDOM, lane]
    if freedom < 0.5:  # nothing is left over to estimate it from
        return np.inf, 0.0
    return max(residual, 0.0) / freedom, freedom
