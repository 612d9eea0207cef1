"""The variances of the model, estimated from the data (empirical Bayes).

Ten steps of a fixed-point iteration (MacKay's for sigma and tau, EM's for the bias), always from
the same start, so the result is a function of the sums alone. Each estimate has a prior worth one
observation, so that nothing collapses while there are few.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import compiled
from evenhand.policies.pooled._linear import invert, leading_direction, times_vector
from evenhand.policies.pooled._posterior import (
    Posterior,
    Scaled,
    blank_posterior,
    variance_of_mean,
    work_out,
)

STEPS = 10
START = 0.01  # of the mean square of rewards


class Variances(NamedTuple):
    """The hyperparameters, for features in units of their root mean square."""

    sigma2: float  # of the noise
    tau2: NDArray[np.float64]  # per group: of the arms around the mean of their group
    omega_inverse: NDArray[np.float64]  # one over the variance of the bias
    lambda_inverse: NDArray[np.float64]  # one over that of the mean of all groups
    freedom: NDArray[np.float64]  # effective numbers behind sigma^2 and, per group, tau^2
    kappa2: float


@compiled
def units_of(sums, d):  # type: ignore[no-untyped-def]
    """The root mean square of every feature; 1 for a feature that was 0 all the time."""
    unit, number = np.zeros(d), 0.0
    for i in range(sums.shape[0]):
        number += sums[i, d * d + d + 1]
        for k in range(d):
            unit[k] += sums[i, k * d + k]
    for k in range(d):
        unit[k] = np.sqrt(unit[k] / max(number, 1.0))
        if not unit[k] > 1e-150:
            unit[k] = 1.0
    return unit


@compiled
def _pooled(data, d):  # type: ignore[no-untyped-def]
    """Sums over all arms: X'X / N, the mean square of rewards, and that of their residuals.

    The residuals are those of one regression for all arms: they do not change when all rewards
    are larger by what the features explain, such as an offset where a feature is constant.
    """
    M, b, yy, number = np.zeros((d, d)), np.zeros(d), 0.0, 0.0
    for i in range(data.count.size):
        number += data.count[i]
        yy += data.yy[i]
        for k in range(d):
            b[k] += data.b[i, k]
            for j in range(d):
                M[k, j] += data.A[i, k, j]
    square = yy / number
    if not square > 0.0:
        return M / number, 1.0, 1.0, number
    left = square
    if number > 2.0 * d:
        fit, inverse = np.empty(d), M.copy()
        for k in range(d):
            inverse[k, k] += 1e-10 * number
        invert(inverse)
        times_vector(inverse, b, fit)
        explained = 0.0
        for k in range(d):
            explained += fit[k] * b[k]
        left = max((yy - explained) / (number - d), 1e-12 * square)
    return M / number, square, min(left, square), number


@compiled
def _along_and_across(v, along, across):  # type: ignore[no-untyped-def]
    """The inverse of the variance that is `along` in the direction v and `across` in all others."""
    d = v.size
    out = np.empty((d, d))
    for k in range(d):
        for j in range(d):
            out[k, j] = (1.0 / along - 1.0 / across) * v[k] * v[j]
        out[k, k] += 1.0 / across
    return out


@compiled
def _across(matrix, v):  # type: ignore[no-untyped-def]
    """The trace of a matrix in the directions across v."""
    total = 0.0
    for k in range(v.size):
        total += matrix[k, k]
        for j in range(v.size):
            total -= v[k] * matrix[k, j] * v[j]
    return max(total, 0.0)


@compiled
def _length_across(vector, v):  # type: ignore[no-untyped-def]
    """The squared length of a vector across v."""
    along, square = 0.0, 0.0
    for k in range(v.size):
        along += v[k] * vector[k]
        square += vector[k] * vector[k]
    return max(square - along * along, 0.0)


@compiled
def estimate_variances(data, group_of, sizes, known_sigma2):  # type: ignore[no-untyped-def]
    """The hyperparameters from the sums; `known_sigma2` is negative where it is not known."""
    n, d, m = group_of.size, data.b.shape[1], sizes.size
    M, square, left, number = _pooled(data, d)
    v, largest = leading_direction(M)
    kappa2 = square / max(largest, 1.0)
    start_sigma2, start_tau2 = START * left, START * left / d
    sigma2 = start_sigma2 if known_sigma2 < 0.0 else known_sigma2
    tau2 = np.full(m, start_tau2)
    omega2 = kappa2
    lambda2 = kappa2
    omega_inverse = _along_and_across(v, kappa2, omega2)
    lambda_inverse = _along_and_across(v, 100.0 * kappa2, lambda2)
    freedom = np.zeros(m + 1)
    post = blank_posterior(n, m, d)
    W, sum_S, sum_SS = np.empty((d, d)), np.empty((m, d, d)), np.empty((m, d, d))
    theta, shrink = np.empty(d), np.empty((d, d))
    spread = np.empty(m)
    for _ in range(STEPS):
        work_out(data, group_of, sigma2, tau2, omega_inverse, lambda_inverse, post)
        residual, used, bias = 0.0, 0.0, 0.0
        sum_S[:] = 0.0
        sum_SS[:] = 0.0
        spread[:] = 0.0
        for i in range(n):
            g = group_of[i]
            p = 1.0 / tau2[g]
            S = post.S[i]
            if data.count[i] == 0.0:
                for k in range(d):
                    sum_S[g, k, k] += tau2[g]
                    sum_SS[g, k, k] += tau2[g] * tau2[g]
                continue
            times_vector(S, post.m[g], theta)
            for k in range(d):
                theta[k] = post.u[i, k] + p * theta[k]
                away = theta[k] - post.m[g, k]
                spread[g] += away * away
                for j in range(d):
                    sum_S[g, k, j] += S[k, j]
                    for q in range(d):
                        sum_SS[g, k, j] += S[k, q] * S[q, j]
            rss = data.yy[i]
            for k in range(d):
                rss -= 2.0 * theta[k] * data.b[i, k]
                for j in range(d):
                    rss += theta[k] * data.A[i, k, j] * theta[j]
            residual += max(rss, 0.0)
        for g in range(m):
            p = 1.0 / tau2[g]
            variance_of_mean(post, omega_inverse, g, W)
            trace_S, of_mean, of_fit = 0.0, 0.0, 0.0
            for k in range(d):
                trace_S += sum_S[g, k, k]
                for j in range(d):
                    unit = sizes[g] if k == j else 0.0
                    of_mean += W[k, j] * (unit - 2.0 * p * sum_S[g, k, j] + p * p * sum_SS[g, k, j])
                    of_fit += W[k, j] * (sum_S[g, k, j] - p * sum_SS[g, k, j])
            freedom[1 + g] = max(sizes[g] * d - p * (trace_S + of_mean), 0.0)
            used += sizes[g] * d - p * trace_S + p * p * of_fit
            # psi_g = m_g - mu, with variance V + (V Omega^-1 - I) C (V Omega^-1 - I)'
            for k in range(d):
                times_vector(omega_inverse, post.V[g, k], shrink[k])
                shrink[k, k] -= 1.0
            for k in range(d):
                times_vector(post.C, shrink[k], theta)
                for j in range(d):
                    W[k, j] = post.V[g, k, j]
                    for q in range(d):
                        W[k, j] += theta[q] * shrink[j, q]
            for k in range(d):
                theta[k] = post.m[g, k] - post.mu[k]
            bias += _length_across(theta, v) + _across(W, v)
        freedom[0] = max(number - used, 0.0)
        if known_sigma2 < 0.0:
            sigma2 = (residual + start_sigma2) / (freedom[0] + 1.0)
        all_arms = (np.sum(spread) + start_tau2) / (np.sum(freedom[1:]) + 1.0)
        for g in range(m):
            tau2[g] = max((spread[g] + d * all_arms) / (freedom[1 + g] + d), 1e-12 * kappa2)
        if d > 1:
            lambda2 = (_length_across(post.mu, v) + _across(post.C, v)) / (d - 1.0)
            omega2 = bias / max(m * (d - 1.0) - 1.0, 1.0)
            omega_inverse = _along_and_across(v, kappa2, max(omega2, 1e-12 * kappa2))
            lambda_inverse = _along_and_across(v, 100.0 * kappa2, max(lambda2, 1e-12 * kappa2))
    return Variances(sigma2, tau2, omega_inverse, lambda_inverse, freedom, kappa2)
