"""The variances of the model, estimated from the data (empirical Bayes).

Six steps of a fixed-point iteration (MacKay's for sigma and tau, EM's for the bias), always from
the same start, so the result is a function of the sums alone. Each estimate has a prior worth one
observation, so that nothing collapses while there are few.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._borrow import stays_a_function
from evenhand._compile import inlined, subroutine
from evenhand.leastsquares._linear import (
    clear,
    dot,
    form,
    invert,
    leading_direction,
    times_vector,
)
from evenhand.leastsquares._vectors import few_numbers, place
from evenhand.policies.pooled._posterior import (
    Variances,
    variance_of_bias,
    variance_of_mean,
    work_out,
)

STEPS = 6
START = 0.01  # of the mean square of rewards around one regression for all arms, or of kappa^2
LEAST = 1e-12  # of kappa^2: no variance of coefficients is smaller
# Of the mean square of rewards: beyond these, A / sigma^2 takes all digits from 1 / tau^2.
LEAST_NOISE, MOST_SPREAD = 1e-13, 100.0


class Sums(NamedTuple):
    """What a step needs of all arms of a posterior."""

    S: NDArray[np.float64]  # (groups, d, d), the sum of S_i
    SS: NDArray[np.float64]  # the sum of S_i S_i
    spread: NDArray[np.float64]  # per group: the sum of |theta_i^ - m_g^|^2
    residual: NDArray[np.float64]  # one number: the sum of squared residuals


@subroutine
def _pooled(data, d):  # type: ignore[no-untyped-def]
    """X'X / N of all arms, the mean square of rewards, that of residuals, and N.

    The residuals are those of one regression for all arms: they do not change when all rewards
    are larger by what the features explain, such as an offset where a feature is constant.
    """
    stays_a_function()
    M, b, yy, number = np.zeros((d, d)), np.zeros(d), 0.0, 0.0
    for i in range(data.number.size):
        number += data.number[i]
        yy += data.yy[i]
        for k in range(d):
            b[k] += data.b[i, k]
            for j in range(d):
                M[k, j] += data.A[i, k, j]
    square = left = yy / number
    if not square > 0.5:  # it is 1, in units of itself, unless all rewards are 0
        square = left = 1.0
    elif number > 2.0 * d:
        inverse, fit = M.copy(), np.empty(d)
        for k in range(d):
            inverse[k, k] += 1e-10 * number
        invert(place(inverse, 0), 1e-10 * number, d)
        times_vector(place(inverse, 0), place(b, 0), place(fit, 0), d)
        explained = dot(place(fit, 0), place(b, 0), d)
        left = min(max((yy - explained) / (number - d), LEAST * square), square)
        inverse[0, 0] = fit[0] = 0.0  # their places are used until here
    for k in range(d):
        for j in range(d):
            M[k, j] /= number
    return M, square, left, number


@subroutine
def _set_along_and_across(out, v, along, across):  # type: ignore[no-untyped-def]
    """The inverse of the variance that is `along` in the direction v and `across` in all others."""
    for k in range(v.size):
        for j in range(v.size):
            out[k, j] = (1.0 / along - 1.0 / across) * v[k] * v[j]
        out[k, k] += 1.0 / across


@subroutine
def _set_bias(variances, v, kappa2, omega2, lambda2):  # type: ignore[no-untyped-def]
    """Omega and Lambda: kappa^2 and 100 kappa^2 along v, omega^2 and lambda^2 across it."""
    across = max(omega2, LEAST * kappa2)
    _set_along_and_across(variances.omega_inverse, v, kappa2, across)
    variances.least[0] = 1.0 / max(kappa2, across)
    across = max(lambda2, LEAST * kappa2)
    _set_along_and_across(variances.lambda_inverse, v, 100.0 * kappa2, across)
    variances.least[1] = 1.0 / max(100.0 * kappa2, across)


@inlined
def _trace_across(matrix, v):  # type: ignore[no-untyped-def]
    """The trace of a matrix in the directions across v."""
    d, total = v.size, 0.0
    for k in range(d):
        total += matrix[k, k]
    return max(total - form(place(v, 0), place(matrix, 0), place(v, 0), d), 0.0)


@inlined
def _square_across(vector, v, d):  # type: ignore[no-untyped-def]
    """The squared length of a vector across v."""
    along = dot(place(v, 0), vector, d)
    return max(dot(vector, vector, d) - along * along, 0.0)


@inlined
def _add_up(data, variances, post, sums, theta, d):  # type: ignore[no-untyped-def]
    """Sums over the arms."""
    clear(place(sums.S, 0), sums.S.size)
    clear(place(sums.SS, 0), sums.SS.size)
    clear(place(sums.spread, 0), sums.spread.size)
    sums.residual[0] = 0.0
    for i in range(data.number.size):
        g = data.group_of[i]
        tau2 = variances.tau2[g]
        S, total, squares = (
            place(post.S, i * d * d),
            place(sums.S, g * d * d),
            place(sums.SS, g * d * d),
        )
        if data.number[i] == 0.0:
            for k in range(d):
                total[k * d + k] += tau2
                squares[k * d + k] += tau2 * tau2
            continue
        mean, b = place(post.m, g * d), place(data.b, i * d)
        times_vector(S, mean, theta, d)
        for k in range(d):
            theta[k] = post.u[i, k] + theta[k] / tau2
            away = theta[k] - mean[k]
            sums.spread[g] += away * away
            for j in range(d):
                total[k * d + j] += S[k * d + j]
                squares[k * d + j] += dot(place(S, k * d), place(S, j * d), d)
        residual = data.yy[i] - 2.0 * dot(theta, b, d)
        residual += form(theta, place(data.A, i * d * d), theta, d)
        sums.residual[0] += max(residual, 0.0)


@inlined
def _used(sums, W, tau2, size, g):  # type: ignore[no-untyped-def]
    """How many numbers the data of a group fit: of its arms, and of their deviations.

    The variance of theta_i is S_i + p^2 S_i W S_i, that of theta_i - m_g is
    S_i + (I - p S_i) W (I - p S_i), where W is that of m_g. So only sums of S and S S are needed.
    """
    d, p = W.shape[0], 1.0 / tau2
    trace, of_mean, of_fit = 0.0, 0.0, 0.0
    for k in range(d):
        trace += sums.S[g, k, k]
        of_mean += W[k, k] * size
        for j in range(d):
            of_mean += W[k, j] * p * (p * sums.SS[g, k, j] - 2.0 * sums.S[g, k, j])
            of_fit += W[k, j] * (sums.S[g, k, j] - p * sums.SS[g, k, j])
    return size * d - p * trace + p * p * of_fit, size * d - p * (trace + of_mean)


@subroutine
def estimate_variances(data, known_sigma2, post):  # type: ignore[no-untyped-def]
    """The hyperparameters, and the effective numbers behind sigma^2 and tau_g^2.

    `known_sigma2` is negative where it is not known. `post` is a posterior to work in.
    """
    stays_a_function()
    d, m = data.b.shape[1], data.sizes.size
    M, square, left, number = _pooled(data, d)
    v, largest = leading_direction(M)
    kappa2 = square / max(largest, 1.0)
    first_sigma2, first_tau2 = START * left, START * left / d
    variances = Variances(
        np.full(1, max(first_sigma2 if known_sigma2 < 0.0 else known_sigma2, LEAST_NOISE * square)),
        np.full(m, first_tau2),
        np.empty((d, d)),
        np.empty((d, d)),
        np.empty(2),
    )
    _set_bias(variances, v, kappa2, START * kappa2, START * kappa2)
    freedom, W, psi = np.zeros(m + 1), np.empty((d, d)), np.empty(d)
    sums = Sums(np.empty((m, d, d)), np.empty((m, d, d)), np.empty(m), np.empty(1))
    for _ in range(STEPS):
        work_out(data, variances, post)
        if d == 2:  # known while compiling, its loops are unrolled
            _add_up(data, variances, post, sums, few_numbers(), 2)
        else:
            _add_up(data, variances, post, sums, place(post.room, 0), d)
        fitted, bias = 0.0, 0.0
        for g in range(m):
            variance_of_mean(post, variances, g, W)
            of_fit, of_spread = _used(sums, W, variances.tau2[g], data.sizes[g], g)
            fitted += of_fit
            freedom[1 + g] = max(of_spread, 0.0)
            if d > 1:
                variance_of_bias(post, variances, g, W)
                for k in range(d):
                    psi[k] = post.m[g, k] - post.mu[k]
                bias += _square_across(place(psi, 0), v, d) + _trace_across(W, v)
        freedom[0] = max(number - fitted, 0.0)
        if known_sigma2 < 0.0:
            sigma2 = (sums.residual[0] + first_sigma2) / (freedom[0] + 1.0)
            variances.sigma2[0] = max(sigma2, LEAST_NOISE * square)
        of_all, counted = first_tau2, 1.0
        for g in range(m):
            of_all += sums.spread[g]
            counted += freedom[1 + g]
        for g in range(m):
            tau2 = (sums.spread[g] + d * of_all / counted) / (freedom[1 + g] + d)
            variances.tau2[g] = min(max(tau2, LEAST * kappa2), MOST_SPREAD * square)
        if d > 1:
            omega2 = bias / max(m * (d - 1.0) - 1.0, 1.0)
            lambda2 = (_square_across(place(post.mu, 0), v, d) + _trace_across(post.C, v)) / (
                d - 1.0
            )
            _set_bias(variances, v, kappa2, omega2, lambda2)
    psi[0] = 0.0
    return variances, freedom
