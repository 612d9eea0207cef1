"""The variances of the general form, estimated from the data (empirical Bayes).

As in `evenhand.policies.pooled_group_fair._hyperparameters`: a few steps of a fixed-point
iteration, always from the same start, so the result is a function of the sums alone. The variance
of intersections is a mean over a grid, weighted by the likelihood: few numbers determine it (with
two attributes of two levels, one for every feature), so the most likely value would be far off too
often. It may be zero, as it is where attributes add up; an iteration would approach that only
slowly.
"""

from __future__ import annotations

import numpy as np

from evenhand._compile import subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._simd import place
from evenhand.leastsquares._small_matrices import invert, leading_direction
from evenhand.policies.pooled_group_fair._hyperparameters import LEAST, MOST_SPREAD, START, STEPS
from evenhand.policies.pooled_group_fair.general._posterior import (
    Variances,
    blank_posterior,
    work_out,
    work_out_effects,
)

# Of the mean square of rewards: below it, sums lose the digits that say what arms share.
LEAST_NOISE = 1e-8
# The grid of the variance of intersections, in parts of kappa^2; the first is as good as zero. Its
# prior weight is a half, and that of the others is their fourth root: large ones are worse to
# overlook than small ones.
GRID = (1e-7, 1e-4, 3.2e-4, 1e-3, 3.2e-3, 1e-2, 3.2e-2, 1e-1, 0.32, 1.0)


@subroutine
def _pooled(data, d):  # type: ignore[no-untyped-def]
    """X'X / N of all rewards, their mean square, and that around one regression for all.

    The first d rows and columns of z z' are x x', because the weight of the first column is 1. The
    regression ignores groups and arms: its residuals say how much there is for arms, groups and
    noise to share, whatever the level of rewards is, and set the start of sigma^2 and tau^2.
    """
    stays_a_function()
    number, M = max(data.total[1], 1.0), np.empty((d, d))
    square = data.total[0] / number
    unexplained = square
    for k in range(d):
        for j in range(d):
            M[k, j] = data.G[k, j] / number
    if not square > 0.5:  # it is 1, in units of itself, unless all rewards are 0
        square = unexplained = 1.0
    elif number > 2.0 * d:
        inverse, explained = np.empty((d, d)), 0.0
        for k in range(d):
            for j in range(d):
                inverse[k, j] = data.G[k, j]
            # A relative ridge: in these units the diagonal of X'X is N.
            inverse[k, k] += 1e-10 * number
        invert(place(inverse, 0), 1e-10 * number, d)
        for k in range(d):
            for j in range(d):
                explained += data.h[k] * inverse[k, j] * data.h[j]
        unexplained = min(max((data.total[0] - explained) / (number - d), LEAST * square), square)
    return M, square, unexplained


@subroutine
def _residual(data, post):  # type: ignore[no-untyped-def]
    """The sum of squared residuals, and that of the squares of what is the arms' own.

    A residual is y - z . M - delta_i . x, with delta_i^ = u_i - D_i M. Squared and summed,

        y'y - 2 h . M + M' G M  +  sum_i delta_i . (A_i delta_i - 2 (b_i - C_i' M))

    so the sums suffice, and rows are not needed. An arm without rewards has u = 0 and D = 0.
    """
    stays_a_function()
    size, d = post.M.size, data.b.shape[1]
    residual, spread, delta = data.total[0], 0.0, np.empty(d)
    for k in range(size):
        row = 0.0
        for j in range(size):
            row += data.G[k, j] * post.M[j]
        residual += post.M[k] * (row - 2.0 * data.h[k])
    for i in range(data.number.size):
        if data.number[i] == 0.0:
            continue
        for k in range(d):
            delta[k] = post.u[i, k]
            for j in range(size):
                delta[k] -= post.D[i, k, j] * post.M[j]
            spread += delta[k] * delta[k]
        for k in range(d):
            row = -2.0 * data.b[i, k]
            for j in range(size):
                row += 2.0 * data.C[i, j, k] * post.M[j]
            for j in range(d):
                row += data.C[i, k, j] * delta[j]
            residual += delta[k] * row
    return max(residual, 0.0), spread


@subroutine
def _trace_of_arms(data, post, tau2):  # type: ignore[no-untyped-def]
    """The sum of the variances of what is the arms' own: of S_i + D_i V D_i'.

    delta_i = u_i - D_i M + an error with the variance S_i, and M has the variance V. The trace over
    tau^2 is how much of the prior's n d numbers has not been learned.
    """
    stays_a_function()
    size, d, total = post.M.size, data.b.shape[1], 0.0
    for i in range(data.number.size):
        if data.number[i] == 0.0:
            total += d * tau2
            continue
        for k in range(d):
            total += post.S[i, k, k]
            for j in range(size):
                left = post.D[i, k, j]
                if left != 0.0:
                    row = 0.0
                    for p in range(size):
                        row += post.V[j, p] * post.D[i, k, p]
                    total += left * row
    return total


@subroutine
def _of_column(post, v, column, out):  # type: ignore[no-untyped-def]
    """The square of an effect along v and across it, and the same parts of its variance.

    The prior has one variance along v and another across it, so an effect m counts as (v . m)^2 and
    |m|^2 - (v . m)^2, and its variance as v' V v and tr V - v' V v. Squares and variances are kept
    apart, because both are needed: E m^2 is their sum, and 1 less the variance over the prior's is
    how many numbers data determine.
    """
    stays_a_function()
    d = v.size
    along = squared = variance = trace = 0.0
    for k in range(d):
        here = column * d + k
        along += v[k] * post.M[here]
        squared += post.M[here] * post.M[here]
        trace += post.V[here, here]
        for j in range(d):
            variance += v[k] * v[j] * post.V[here, column * d + j]
    out[0], out[1] = along * along, max(squared - along * along, 0.0)
    out[2], out[3] = max(variance, 0.0), max(trace - variance, 0.0)


@subroutine
def chances(kinds, variances, post, kappa2):  # type: ignore[no-untyped-def]
    """The probability of every variance k of the grid, given all other variances.

    Twice the log-likelihood is log|V| - q log(k) + M^ . r, up to a constant, with q the number of
    the intersections' coefficients.
    """
    stays_a_function()
    last, numbers, out = variances.along.size - 1, 0, np.empty(len(GRID))
    for column in range(kinds.size):
        numbers += variances.v.size * (kinds[column] == last)
    for step in range(len(GRID)):
        variances.along[last] = variances.across[last] = GRID[step] * kappa2
        twice = work_out_effects(kinds, variances, post) - numbers * np.log(GRID[step] * kappa2)
        for k in range(post.M.size):
            twice += post.M[k] * post.r[k]
        prior_weight = 0.5 if step == 0 else GRID[step] ** 0.25
        out[step] = 0.5 * twice + np.log(prior_weight)
    # Only ratios matter; the largest is 1, so nothing overflows.
    out = np.exp(out - np.max(out))
    return out / np.sum(out)


@subroutine
def _set_intersections(kinds, variances, post, kappa2):  # type: ignore[no-untyped-def]
    """Set the variance k of intersections to its mean over the grid.

    If feedback alone says what an intersection adds with a precision P, the posterior believes the
    part k P / (1 + k P) of it. The mean is taken over this part: that of k itself would be as large
    as the grid.
    """
    stays_a_function()
    weights, last = chances(kinds, variances, post, kappa2), variances.along.size - 1
    d, precision, numbers, mean, total = variances.v.size, 0.0, 0.0, 0.0, 0.0
    for column in range(kinds.size):
        if kinds[column] == last:
            for k in range(column * d, column * d + d):
                precision += post.precision[k, k]
                numbers += 1.0
    for step in range(len(GRID)):
        # The mean part is f = sum w k P / (1 + k P), and the variance k* with k* P / (1 + k* P) = f
        # is sum (w k / (1 + k P)) / sum (w / (1 + k P)).
        share = weights[step] / (1.0 + GRID[step] * kappa2 * precision / numbers)
        mean += share * GRID[step] * kappa2
        total += share
    variances.along[last] = variances.across[last] = mean / total


@subroutine
def estimate_variances(data, kinds, n_kinds, known_sigma2, d):  # type: ignore[no-untyped-def]
    """The hyperparameters, and the effective numbers behind sigma^2 and tau^2.

    `known_sigma2` is negative where it is not known. The last of the kinds is that of
    intersections, which may have no columns.
    """
    stays_a_function()
    n, size = data.number.size, data.h.size
    M, square, unexplained = _pooled(data, d)
    v, largest = leading_direction(M)
    kappa2 = square / max(largest, 1.0)
    first_sigma2, first_tau2 = START * unexplained, START * unexplained / d
    variances = Variances(
        np.full(1, max(first_sigma2 if known_sigma2 < 0.0 else known_sigma2, LEAST_NOISE * square)),
        np.full(1, first_tau2),
        np.full(n_kinds, kappa2),
        np.full(n_kinds, START * kappa2),
        v,
    )
    # The mean of all groups is known only by its order of magnitude.
    variances.along[0] = 100.0 * kappa2
    variances.along[n_kinds - 1] = variances.across[n_kinds - 1] = GRID[0] * kappa2
    counted = np.zeros(n_kinds)
    for column in range(kinds.size):
        counted[kinds[column]] += 1.0
    post, freedom, parts = blank_posterior(n, size, d), np.zeros(2), np.empty(4)
    squares = np.empty(n_kinds)
    for step in range(STEPS):
        work_out(data, kinds, variances, post)
        # Every second step, after the other variances have moved: the grid takes as many inversions
        # as it has values.
        if counted[n_kinds - 1] > 0.0 and step % 2 == 1:
            _set_intersections(kinds, variances, post, kappa2)
            work_out_effects(kinds, variances, post)
        residual, spread = _residual(data, post)
        fitted, trace = 0.0, _trace_of_arms(data, post, variances.tau2[0])
        # Effective numbers: n d less what the data have left open, of the arms' own parts; then the
        # same of the effects, and what remains of N is for sigma^2.
        freedom[1] = max(n * d - trace / variances.tau2[0], 0.0)
        squares[:] = 0.0
        for column in range(kinds.size):
            kind = kinds[column]
            _of_column(post, v, column, parts)
            fitted += d - parts[2] / variances.along[kind] - parts[3] / variances.across[kind]
            squares[kind] += parts[1] + parts[3]
        freedom[0] = max(data.total[1] - fitted - freedom[1], 0.0)
        if known_sigma2 < 0.0:
            sigma2 = (residual + first_sigma2) / (freedom[0] + 1.0)
            variances.sigma2[0] = max(sigma2, LEAST_NOISE * square)
        tau2 = (spread + first_tau2) / (freedom[1] + 1.0)
        variances.tau2[0] = min(max(tau2, LEAST * kappa2), MOST_SPREAD * square)
        for kind in range(n_kinds - 1):
            if d > 1:
                # Effects of levels are around a mean that is estimated too, which takes one.
                numbers = counted[kind] * (d - 1.0) - (kind > 0)
                across = max(squares[kind] / max(numbers, 1.0), LEAST * kappa2)
                variances.across[kind] = min(across, MOST_SPREAD * square)
    return variances, freedom
