"""Sums over the arms of a group, four arms at a time, for a step of the estimate of variances.

With B_i = I - p S_i, all that the estimate needs of the arms is in sums of B_i, B_i B_i and u_i:

    n_g p I - p^2 sum S_i = p sum B_i      what arms add to the precision of their group's mean
    theta_i^ - m_g^ = u_i - B_i m_g^       how far an arm is from it

An arm without rewards has B_i = 0 and u_i = 0 exactly. So groups are padded with such arms to a
multiple of four, and no lane is a special case.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import inlined, subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._simd import (
    LANES,
    added,
    at_least,
    broadcast,
    few_numbers,
    four,
    minus_product,
    over,
    place,
    plus_product,
    put,
    times,
    unpacked,
)
from evenhand.leastsquares._small_matrices import clear


class Blocks(NamedTuple):
    """Four arms of a group each: X'X, X'y, y'y, whether there are rewards; then B and u."""

    numbers: NDArray[np.float64]  # (blocks, 2 d^2 + 2 d + 2, LANES)
    starts: NDArray[np.int64]  # the first block of every group, and the end of the last one


class StepSums(NamedTuple):
    """The sums over all arms that a step needs."""

    B: NDArray[np.float64]  # (groups, d, d), the sum of B_i
    BB: NDArray[np.float64]  # the sum of B_i B_i
    spread: NDArray[np.float64]  # per group: the sum of |theta_i^ - m_g^|^2
    residual: NDArray[np.float64]  # one number: the sum of squared residuals
    room: NDArray[np.float64]  # (d^2 + 2 d, LANES)


@subroutine
def blocks_of(data, d):  # type: ignore[no-untyped-def]
    """The arms of `Data`, group by group."""
    stays_a_function()
    m, row = data.sizes.size, LANES
    starts, filled = np.zeros(m + 1, np.int64), np.zeros(m, np.int64)
    for g in range(m):
        # A new block for every group: the lanes of a block share their tau and their sums.
        starts[g + 1] = starts[g] + (int(data.sizes[g]) + LANES - 1) // LANES
    numbers = np.zeros((starts[m], 2 * d * d + 2 * d + 2, LANES))
    for i in range(data.number.size):
        # Left out, because it adds nothing: blocks of zeros and the unused lanes of a block do the
        # same.
        if data.number[i] == 0.0:
            continue
        g = data.group_of[i]
        block, lane = starts[g] + filled[g] // LANES, filled[g] % LANES
        filled[g] += 1
        here = place(numbers, block * numbers.shape[1] * LANES + lane)
        for k in range(d):
            for j in range(d):
                here[row * (k * d + j)] = data.A[i, k, j]
            here[row * (d * d + k)] = data.b[i, k]
        here[row * (d * d + d)] = data.yy[i]
        here[row * (d * d + d + 1)] = 1.0
    return Blocks(numbers, starts)


@subroutine
def blank_sums(m, d):  # type: ignore[no-untyped-def]
    """Memory for the sums of m groups and d features."""
    stays_a_function()
    return StepSums(
        np.empty((m, d, d)),
        np.empty((m, d, d)),
        np.empty(m),
        np.empty(1),
        np.empty((d * d + 2 * d, LANES)),
    )


@subroutine
def sum_up(blocks, sigma2, tau2, sums, r, d):  # type: ignore[no-untyped-def]
    """B_i and u_i of all arms, the sums of B_i and B_i B_i, and r_g = p sum u_i."""
    stays_a_function()
    clear(place(sums.B, 0), sums.B.size)
    clear(place(sums.BB, 0), sums.BB.size)
    clear(place(r, 0), r.size)
    size = blocks.numbers.shape[1] * LANES
    for g in range(tau2.size):
        p, out = 1.0 / tau2[g], g * d * d
        for block in range(blocks.starts[g], blocks.starts[g + 1]):
            here, column = place(blocks.numbers, block * size), place(sums.room, 0)
            B, BB, into = place(sums.B, out), place(sums.BB, out), place(r, g * d)
            if d == 2:  # a compile-time constant: its loops are unrolled
                _block(here, 1.0 / sigma2, p, few_numbers(), B, BB, into, 2)
            else:
                _block(here, 1.0 / sigma2, p, column, B, BB, into, d)


@inlined
def _block(here, per_noise, p, column, sum_B, sum_BB, r, d):  # type: ignore[no-untyped-def]
    """Add four arms to the sums: S = (A / sigma^2 + p I)^-1, u = S b / sigma^2, B = I - p S.

    S is worked out in the place where B will be. A lane without rewards has A = 0, so S = I / p
    and I - p S would be rounding rather than 0. Its B is multiplied by `has`, 0 there and 1
    elsewhere, and is exactly 0.

    B is kept instead of S, because all sums of a step are of B: p B is what an arm adds to the
    precision of its group's mean, and tr B is how many numbers it has learned of its own. Where
    little is known, p S is close to I, and B is a small difference.
    """
    b, has = place(here, LANES * d * d), four(here, LANES * (d * d + d + 1))
    S, u = place(here, LANES * (d * d + d + 2)), place(here, LANES * (2 * d * d + d + 2))
    noise, prior, zero = broadcast(per_noise), broadcast(p), broadcast(0.0)
    for k in range(d):
        for j in range(k):
            put(S, LANES * (k * d + j), times(four(here, LANES * (k * d + j)), noise))
        put(S, LANES * (k * d + k), plus_product(prior, four(here, LANES * (k * d + k)), noise))
    # Eigenvalues of A / sigma^2 + p I are p or more.
    _invert(S, prior, column, d)
    for k in range(d):
        total = zero
        for j in range(d):
            total = plus_product(total, four(S, LANES * (k * d + j)), four(b, LANES * j))
        total = times(total, noise)
        put(u, LANES * k, total)
        # The order of the sum is that of the lanes, always: results agree to the last bit.
        r[k] += p * _sum(total)
    for k in range(d):  # B = I - p S
        for j in range(d):
            start = has if j == k else zero
            value = minus_product(start, times(prior, has), four(S, LANES * (k * d + j)))
            put(S, LANES * (k * d + j), value)
            sum_B[k * d + j] += _sum(value)
    for k in range(d):
        for j in range(k + 1):
            total = zero
            for i in range(d):
                total = plus_product(
                    total, four(S, LANES * (k * d + i)), four(S, LANES * (j * d + i))
                )
            value = _sum(total)
            # B is symmetric, so rows k and j give element (k, j) of B B, and one half is enough.
            sum_BB[k * d + j] += value
            if j < k:
                sum_BB[j * d + k] += value


@inlined
def _sum(value):  # type: ignore[no-untyped-def]
    """The sum of four numbers."""
    first, second, third, fourth = unpacked(value)
    return (first + second) + (third + fourth)


@inlined
def _invert(matrix, least, column, d):  # type: ignore[no-untyped-def]
    """Invert four symmetric matrices, whose eigenvalues are `least` or more; half of each is read.

    By sweeping (Gauss-Jordan): sweeping every row gives minus the inverse. No pivot can be smaller
    than `least`, except by rounding.
    """
    zero, one = broadcast(0.0), broadcast(1.0)
    for k in range(d):
        # Only the half below the diagonal is up to date during the sweeps: element (i, j) is read
        # at (max, min).
        pivot = over(one, at_least(four(matrix, LANES * (k * d + k)), least))
        for i in range(d):
            put(column, LANES * i, four(matrix, LANES * (max(i, k) * d + min(i, k))))
        # So that the loop below leaves row and column k alone; they are set after it.
        put(column, LANES * k, zero)
        for i in range(d):
            factor = times(four(column, LANES * i), pivot)
            for j in range(i + 1):
                value = four(matrix, LANES * (i * d + j))
                put(
                    matrix,
                    LANES * (i * d + j),
                    minus_product(value, factor, four(column, LANES * j)),
                )
            put(matrix, LANES * (max(i, k) * d + min(i, k)), factor)
        put(matrix, LANES * (k * d + k), minus_product(zero, one, pivot))
    for i in range(d):
        for j in range(i + 1):
            value = minus_product(zero, one, four(matrix, LANES * (i * d + j)))
            put(matrix, LANES * (i * d + j), value)
            put(matrix, LANES * (j * d + i), value)


@subroutine
def residual_sums(blocks, means, sums, d):  # type: ignore[no-untyped-def]
    """How far the arms are from the means of their groups, and rewards from the arms' estimates."""
    stays_a_function()
    sums.residual[0], size = 0.0, blocks.numbers.shape[1] * LANES
    for g in range(sums.spread.size):
        sums.spread[g] = 0.0
        for block in range(blocks.starts[g], blocks.starts[g + 1]):
            here, mean = place(blocks.numbers, block * size), place(means, g * d)
            if d == 2:
                spread, residual = _residual_sums_here(here, mean, few_numbers(), 2)
            else:
                spread, residual = _residual_sums_here(here, mean, place(sums.room, 0), d)
            sums.spread[g] += spread
            sums.residual[0] += residual


@inlined
def _residual_sums_here(here, mean, theta, d):  # type: ignore[no-untyped-def]
    """The sums of |theta_i^ - m_g^|^2 and of squared residuals over four arms.

    From theta_i^ = u_i + p S_i m_g^ and p S_i = I - B_i, the deviation is u_i - B_i m_g^. A lane
    without rewards has u = 0 and B = 0, so its deviation is 0 and it counts for nothing.

    Squared residuals come from the sums, y'y - 2 theta . X'y + theta' X'X theta. Where the fit is
    nearly exact that is a difference of large numbers, and rounding may leave it below 0.
    """
    b = place(here, LANES * d * d)
    B, u = place(here, LANES * (d * d + d + 2)), place(here, LANES * (2 * d * d + d + 2))
    spread, zero, two = broadcast(0.0), broadcast(0.0), broadcast(2.0)
    for k in range(d):  # theta - m = u - B m
        deviation = four(u, LANES * k)
        for j in range(d):
            deviation = minus_product(deviation, four(B, LANES * (k * d + j)), broadcast(mean[j]))
        spread = plus_product(spread, deviation, deviation)
        put(theta, LANES * k, added(broadcast(mean[k]), deviation))
    residual = four(here, LANES * (d * d + d))
    for k in range(d):  # y'y - 2 theta . X'y + theta' X'X theta
        total = minus_product(zero, two, four(b, LANES * k))
        for j in range(d):
            total = plus_product(total, four(here, LANES * (k * d + j)), four(theta, LANES * j))
        residual = plus_product(residual, four(theta, LANES * k), total)
    return _sum(spread), _sum(at_least(residual, zero))
