"""The variances of the general form, estimated from the data (empirical Bayes).

As in `evenhand.policies.pooled._hyperparameters`: so many steps of a fixed-point iteration, always
from the same start, so the result is a function of the sums alone. That of intersections is the
most likely one of a grid (restricted maximum likelihood): an iteration would come close to zero
only slowly, and zero is what it is where attributes add up.
"""

from __future__ import annotations

import numpy as np

from evenhand._compile import subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._linear import invert, leading_direction
from evenhand.leastsquares._vectors import place
from evenhand.policies.pooled._hyperparameters import LEAST, MOST_SPREAD, START, STEPS
from evenhand.policies.pooled.mixed._posterior import (
    Variances,
    blank_posterior,
    work_out,
    work_out_effects,
)

# Of the mean square of rewards: below it, sums lose the digits that say what arms share.
LEAST_NOISE = 1e-8
# The grid of the variance of intersections, in parts of kappa^2; the first is as good as zero.
GRID = (1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


@subroutine
def _pooled(data, d):  # type: ignore[no-untyped-def]
    """X'X / N of all rewards, their mean square, and that around one regression for all."""
    stays_a_function()
    # The first rewards to come may be of rounds after the limit: then nothing is settled yet.
    number, M = max(data.total[1], 1.0), np.empty((d, d))
    square = data.total[0] / number
    left = square
    for k in range(d):
        for j in range(d):
            M[k, j] = data.G[k, j] / number
    if not square > 0.5:  # it is 1, in units of itself, unless all rewards are 0
        square = left = 1.0
    elif number > 2.0 * d:
        inverse, explained = np.empty((d, d)), 0.0
        for k in range(d):
            for j in range(d):
                inverse[k, j] = data.G[k, j]
            inverse[k, k] += 1e-10 * number
        invert(place(inverse, 0), 1e-10 * number, d)
        for k in range(d):
            for j in range(d):
                explained += data.h[k] * inverse[k, j] * data.h[j]
        left = min(max((data.total[0] - explained) / (number - d), LEAST * square), square)
    return M, square, left


@subroutine
def _residual(data, post):  # type: ignore[no-untyped-def]
    """The sum of squared residuals, and that of the squares of what is the arms' own."""
    stays_a_function()
    size, d = post.M.size, data.b.shape[1]
    left, spread, delta = data.total[0], 0.0, np.empty(d)
    for k in range(size):
        row = 0.0
        for j in range(size):
            row += data.G[k, j] * post.M[j]
        left += post.M[k] * (row - 2.0 * data.h[k])
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
            left += delta[k] * row
    return max(left, 0.0), spread


@subroutine
def _trace_of_arms(data, post, tau2):  # type: ignore[no-untyped-def]
    """The sum of the variances of what is the arms' own: of S_i + D_i V D_i'."""
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
    """Of an effect: its square along v and across it, and the same of its variance."""
    stays_a_function()
    d = v.size
    along = all_of_it = variance = trace = 0.0
    for k in range(d):
        here = column * d + k
        along += v[k] * post.M[here]
        all_of_it += post.M[here] * post.M[here]
        trace += post.V[here, here]
        for j in range(d):
            variance += v[k] * v[j] * post.V[here, column * d + j]
    out[0], out[1] = along * along, max(all_of_it - along * along, 0.0)
    out[2], out[3] = max(variance, 0.0), max(trace - variance, 0.0)


@subroutine
def likelihoods(kinds, variances, post, kappa2):  # type: ignore[no-untyped-def]
    """The logarithm of the likelihood at every variance of the grid, up to what they share."""
    stays_a_function()
    last, columns, out = variances.along.size - 1, 0, np.empty(len(GRID))
    for column in range(kinds.size):
        columns += kinds[column] == last
    for step in range(len(GRID)):
        variances.along[last] = variances.across[last] = GRID[step] * kappa2
        size = columns * variances.v.size
        likely = work_out_effects(kinds, variances, post) - size * np.log(GRID[step] * kappa2)
        for k in range(post.M.size):
            likely += post.M[k] * post.r[k]
        out[step] = 0.5 * likely
    return out


@subroutine
def _most_likely(kinds, variances, post, kappa2):  # type: ignore[no-untyped-def]
    """Set the variance of intersections to the most likely one of the grid."""
    stays_a_function()
    likely, best, last = likelihoods(kinds, variances, post, kappa2), 0, variances.along.size - 1
    for step in range(1, len(GRID)):
        if likely[step] > likely[best]:
            best = step
    variances.along[last] = variances.across[last] = GRID[best] * kappa2


@subroutine
def set_expected(kinds, variances, post):  # type: ignore[no-untyped-def]
    """Set the variance of intersections to its mean over the grid, weighted by the likelihood.

    For intervals: the most likely one may be zero only because there is little data.
    """
    stays_a_function()
    kappa2, last = variances.along[1], variances.along.size - 1
    likely = likelihoods(kinds, variances, post, kappa2)
    most, total, mean = np.max(likely), 0.0, 0.0
    for step in range(len(GRID)):
        weight = np.exp(likely[step] - most)
        total += weight
        mean += weight * GRID[step] * kappa2
    variances.along[last] = variances.across[last] = mean / total


@subroutine
def estimate_variances(data, kinds, n_kinds, known_sigma2, d):  # type: ignore[no-untyped-def]
    """The hyperparameters, and the effective numbers behind sigma^2 and tau^2.

    `known_sigma2` is negative where it is not known. The last of the kinds is that of
    intersections, which may have no columns.
    """
    stays_a_function()
    n, size = data.number.size, data.h.size
    M, square, left = _pooled(data, d)
    v, largest = leading_direction(M)
    kappa2 = square / max(largest, 1.0)
    first_sigma2, first_tau2 = START * left, START * left / d
    variances = Variances(
        np.full(1, max(first_sigma2 if known_sigma2 < 0.0 else known_sigma2, LEAST_NOISE * square)),
        np.full(1, first_tau2),
        np.full(n_kinds, kappa2),
        np.full(n_kinds, START * kappa2),
        v,
    )
    variances.along[0] = 100.0 * kappa2
    variances.along[n_kinds - 1] = variances.across[n_kinds - 1] = GRID[0] * kappa2
    counted = np.zeros(n_kinds)
    for column in range(kinds.size):
        counted[kinds[column]] += 1.0
    post, freedom, parts = blank_posterior(n, size, d), np.zeros(2), np.empty(4)
    squares = np.empty(n_kinds)
    for step in range(STEPS):
        work_out(data, kinds, variances, post)
        if counted[n_kinds - 1] > 0.0 and step % 2 == 1:
            _most_likely(kinds, variances, post, kappa2)
            work_out_effects(kinds, variances, post)
        residual, spread = _residual(data, post)
        fitted, trace = 0.0, _trace_of_arms(data, post, variances.tau2[0])
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
                numbers = counted[kind] * (d - 1.0) - (kind > 0)
                across = max(squares[kind] / max(numbers, 1.0), LEAST * kappa2)
                variances.across[kind] = min(across, MOST_SPREAD * square)
    return variances, freedom
