"""The variances of the model, estimated from the data (empirical Bayes).

Six steps of a fixed-point iteration (MacKay's for sigma and tau, EM's for the bias), always from
the same start, so the result is a function of the sums alone. Each estimate has a prior worth one
observation, so that nothing collapses while there are few observations.
"""

from __future__ import annotations

import numpy as np

from evenhand._compile import inlined, subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._simd import place
from evenhand.leastsquares._small_matrices import (
    dot,
    invert,
    leading_direction,
    times_vector,
)
from evenhand.policies.pooled_group_fair._group_sums import (
    blank_sums,
    blocks_of,
    residual_sums,
    sum_up,
)
from evenhand.policies.pooled_group_fair._posterior import (
    Variances,
    work_out_groups,
)

STEPS = 6
START = 0.01  # of the mean square of rewards around one regression for all arms, or of kappa^2
LEAST = 1e-12  # of kappa^2: no variance of coefficients is smaller
# Of the mean square of rewards: beyond these, 1 / tau^2 loses all digits beside A / sigma^2.
LEAST_NOISE, MOST_SPREAD = 1e-13, 100.0


@subroutine
def _pooled(data, d):  # type: ignore[no-untyped-def]
    """X'X / N of all arms, the mean square of rewards, that of residuals, and N.

    The residuals are those of one regression for all arms. They do not change when all rewards grow
    by something that the features explain, such as an offset where a feature is constant.
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
    # All are in units of the root mean square of rewards, so yy / N is 1 up to rounding.
    square = unexplained = yy / number
    if not square > 0.5:  # it is 1, in units of itself, unless all rewards are 0
        square = unexplained = 1.0
    elif number > 2.0 * d:
        inverse, fit = M.copy(), np.empty(d)
        for k in range(d):
            # In these units every diagonal element of X'X is N. So this ridge is a relative one: it
            # keeps collinear features solvable, and takes 1e-10 of the fit.
            inverse[k, k] += 1e-10 * number
        invert(place(inverse, 0), 1e-10 * number, d)
        times_vector(place(inverse, 0), place(b, 0), place(fit, 0), d)
        explained = dot(place(fit, 0), place(b, 0), d)
        # The difference may be negative by rounding, or above yy / N by its degrees of freedom.
        unexplained = min(max((yy - explained) / (number - d), LEAST * square), square)
        inverse[0, 0] = fit[0] = 0.0  # keeps the arrays alive up to here: their places are in use
    for k in range(d):
        for j in range(d):
            M[k, j] /= number
    return M, square, unexplained, number


@subroutine
def _set_along_and_across(out, v, along, across):  # type: ignore[no-untyped-def]
    """The inverse of a covariance that is `along` in the direction v and `across` in all others.

    (1 / along - 1 / across) v v' + I / across.
    """
    for k in range(v.size):
        for j in range(v.size):
            out[k, j] = (1.0 / along - 1.0 / across) * v[k] * v[j]
        out[k, k] += 1.0 / across


@subroutine
def _set_bias(variances, v, kappa2, omega2, lambda2):  # type: ignore[no-untyped-def]
    """Omega and Lambda: kappa^2 and 100 kappa^2 along v, omega^2 and lambda^2 across it."""
    across = max(omega2, LEAST * kappa2)
    _set_along_and_across(variances.omega_inverse, v, kappa2, across)
    # The smallest eigenvalue of a precision is one over its largest variance.
    variances.least[0] = 1.0 / max(kappa2, across)
    across = max(lambda2, LEAST * kappa2)
    _set_along_and_across(variances.lambda_inverse, v, 100.0 * kappa2, across)
    variances.least[1] = 1.0 / max(100.0 * kappa2, across)


@inlined
def _square_across(vector, v, d):  # type: ignore[no-untyped-def]
    """The squared length of a vector across v."""
    # v has length 1, so by Pythagoras the rest is |x|^2 - (v . x)^2; rounding may take it below 0.
    along = dot(place(v, 0), vector, d)
    return max(dot(vector, vector, d) - along * along, 0.0)


@inlined
def _across(v, k, j):  # type: ignore[no-untyped-def]
    """A number of I - v v', which removes the part along v."""
    return (1.0 if k == j else 0.0) - v[k] * v[j]


@subroutine
def _effective_numbers(variances, post, sums, v, freedom):  # type: ignore[no-untyped-def]
    """How many numbers the data fit (gamma), and the expected squared bias across v.

    `freedom` is filled in from its second number on: how many numbers the deviations of a group's
    arms from its mean are worth (ef_g).
    """
    stays_a_function()
    if v.size == 2:  # a compile-time constant: its loops are unrolled
        return _effective_numbers_here(variances, post, sums, v, freedom, 2)
    return _effective_numbers_here(variances, post, sums, v, freedom, v.size)


@inlined
def _effective_numbers_here(variances, post, sums, v, freedom, d):  # type: ignore[no-untyped-def]
    """`_effective_numbers`, with d as a constant.

    With F = Omega^-1 V_g and W = V_g + F' C F, the posterior variances are

        m_g: W                           psi_g = m_g - mu: W - C F - F' C + C
        theta_i - m_g: S_i + B_i W B_i   theta_i: S_i + (I - B_i) W (I - B_i)

    With S_i = (I - B_i) / p, their traces need only the sums of B and B B of the arms.
    """
    # gamma, how many numbers the fit takes from the data, is the sum over arms of tr(A_i
    # Var(theta_i)) / sigma^2. A_i S_i / sigma^2 = I - p S_i = B_i, so S_i gives tr B_i; and W gives
    # tr(A_i S_i W p^2 S_i) / sigma^2 = p tr(W (B_i - B_i B_i)), since p S_i = I - B_i.
    fitted, bias, C = 0.0, 0.0, place(post.C, 0)
    CF, psi = place(sums.room, 0), place(sums.room, d * d)
    for g in range(sums.spread.size):
        V, F = place(post.V, g * d * d), place(post.F, g * d * d)
        B, BB = place(sums.B, g * d * d), place(sums.BB, g * d * d)
        trace, of_mean, of_fit, of_bias = 0.0, 0.0, 0.0, 0.0
        for k in range(d):
            trace += B[k * d + k]
            psi[k] = post.m[g, k] - post.mu[k]
            for j in range(d):
                CF[k * d + j] = 0.0
                for i in range(d):
                    CF[k * d + j] += C[k * d + i] * F[i * d + j]
        for k in range(d):
            for j in range(d):
                # W = V + F' C F: the variance of m_g, with that of mu.
                W = V[k * d + j]
                for i in range(d):
                    W += F[i * d + k] * CF[i * d + j]
                # ef_g is what deviations learned: their prior variance less the posterior one, over
                # tau^2. d - p tr(S_i) - p tr(B_i W B_i) = tr B_i - p tr(W B_i B_i), summed over
                # arms.
                of_mean += W * BB[k * d + j]
                of_fit += W * (B[k * d + j] - BB[k * d + j])
                # From here on W is the variance of psi_g = m_g - mu. Cov(m_g, mu) is F' C.
                W += C[k * d + j] - CF[k * d + j] - CF[j * d + k]
                of_bias += W * _across(v, k, j)
        fitted += trace + of_fit / variances.tau2[g]
        freedom[1 + g] = max(trace - of_mean / variances.tau2[g], 0.0)
        # E |psi across v|^2 is the squared estimate plus its variance: an M step of EM. Without the
        # variance omega^2 would be too small, and smaller with every step.
        bias += max(of_bias, 0.0) + _square_across(psi, v, d)
    return fitted, bias


@subroutine
def estimate_variances(data, known_sigma2, post):  # type: ignore[no-untyped-def]
    """The hyperparameters, and the effective numbers behind sigma^2 and tau_g^2.

    Each step works out the posterior, and from it

        sigma^2 = (residuals + sigma_0^2) / (N - gamma + 1)
        tau_g^2 = (q_g + d tau^2) / (ef_g + d),  tau^2 = (sum q_g + tau_0^2) / (sum ef_g + 1)
        omega^2 = E sum |psi_g across v|^2 / (m (d - 1) - 1)
        lambda^2 = E |mu across v|^2 / (d - 1)

    with q_g = sum |theta_i^ - m_g^|^2, and gamma and ef_g of `_effective_numbers`.

    `known_sigma2` is negative where it is not known. `post` is a posterior to work in.
    """
    stays_a_function()
    # v is the direction in which contexts are largest. There a bias is as large as rewards
    # themselves, so its variance is fixed at kappa^2: m groups say too little to estimate it.
    d, m = data.b.shape[1], data.sizes.size
    M, square, unexplained, number = _pooled(data, d)
    v, largest = leading_direction(M)
    # A vector k along v changes a reward by about k sqrt(lambda_1). So with this variance the bias
    # moves rewards by about their own size. The trace of M is d, so lambda_1 is below 1 only where
    # features are all 0.
    kappa2 = square / max(largest, 1.0)
    # A start that depends on the data only through their sums. After a fixed number of steps the
    # result still depends on it a little, so it must always be the same.
    first_sigma2, first_tau2 = START * unexplained, START * unexplained / d
    variances = Variances(
        np.full(1, max(first_sigma2 if known_sigma2 < 0.0 else known_sigma2, LEAST_NOISE * square)),
        np.full(m, first_tau2),
        np.empty((d, d)),
        np.empty((d, d)),
        np.empty(2),
    )
    _set_bias(variances, v, kappa2, START * kappa2, START * kappa2)
    freedom = np.zeros(m + 1)
    blocks, sums = blocks_of(data, d), blank_sums(m, d)
    # A fixed number of steps, not until convergence: a change of the last bit in the sums must not
    # change how many steps are taken.
    for _ in range(STEPS):
        sum_up(blocks, variances.sigma2[0], variances.tau2, sums, post.r, d)
        for g in range(m):
            V, B, p = place(post.V, g * d * d), place(sums.B, g * d * d), 1.0 / variances.tau2[g]
            for k in range(d * d):
                V[k] = p * B[k]
        # V_g has p sum B_i here, and `sum_up` has left r_g: that is all the groups need of their
        # arms.
        work_out_groups(m, variances, post)
        residual_sums(blocks, post.m, sums, d)
        fitted, bias = _effective_numbers(variances, post, sums, v, freedom)
        # MacKay: residuals are expected to be (N - gamma) sigma^2. The 1 and sigma_0^2 are the
        # prior worth one observation.
        freedom[0] = max(number - fitted, 0.0)
        if known_sigma2 < 0.0:
            sigma2 = (sums.residual[0] + first_sigma2) / (freedom[0] + 1.0)
            variances.sigma2[0] = max(sigma2, LEAST_NOISE * square)
        of_all, counted = first_tau2, 1.0
        for g in range(m):
            # tau^2 of all groups is what a single group is shrunk towards, with the weight of d
            # numbers, that of one arm.
            of_all += sums.spread[g]
            counted += freedom[1 + g]
        for g in range(m):
            # The same argument as for sigma^2: the squared deviations are expected to be ef_g
            # tau^2.
            tau2 = (sums.spread[g] + d * of_all / counted) / (freedom[1 + g] + d)
            variances.tau2[g] = min(max(tau2, LEAST * kappa2), MOST_SPREAD * square)
        if d > 1:
            # m groups have d - 1 numbers across v each; one is taken off because mu is estimated as
            # well.
            omega2 = bias / max(m * (d - 1.0) - 1.0, 1.0)
            lambda2 = _square_across(place(post.mu, 0), v, d)
            for k in range(d):
                for j in range(d):
                    lambda2 += post.C[k, j] * _across(v, k, j)
            lambda2 = max(lambda2, 0.0) / (d - 1.0)
            _set_bias(variances, v, kappa2, omega2, lambda2)
    return variances, freedom
