"""What true rewards teach about the bias: the model of `_posterior`, with a second kind of reward.

A true reward of arm i at x is z = (theta_i - psi_g) . x + noise(sigma_z^2). With equal averages,
psi_g = m_g - m_ref. So that averages may differ, and so that the reference may be distorted where
nobody named one, the bias is

    psi_g = m_g - m_ref - (eta_g - eta_ref) + psi_0      eta_g ~ N(0, kappa^2 I)

eta_g - eta_ref is how much better group g truly is than the reference. kappa^2 is estimated: 0 says
that averages are equal, and then true rewards only sharpen m_g - m_ref. psi_0, the bias of the
reference itself, is 0 where the reference is named, and otherwise has the prior of a group's bias.

Given the feedback, arm i is theta_i ~ N(u_i + p S_i m_g, S_i). Its true rewards, with sums A_z and
b_z, then say of t = p S_i m_g - psi_g, whose variance beside that of the noise is S_i,

    information J_i = A' - A' (S_i^-1 + A')^-1 A',  A' = A_z / sigma_z^2,
    and value       j_i = b' - A' (S_i^-1 + A')^-1 b' - J_i u_i,  b' = b_z / sigma_z^2

t is linear in a = (m_1, ..., m_m, psi_0) and eta, so all of it is a Gaussian posterior in closed
form. It does not need to know which feedback belongs to which true reward. It is exact for noises
that are independent; true rewards are few, so a correlation within a decision hardly counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._borrow import stays_a_function
from evenhand._compile import subroutine
from evenhand.leastsquares._vectors import place
from evenhand.policies.pooled._linear import TINY, clear, form, invert, product, times_vector

# kappa^2 is chosen from 0 and these, in units of the mean square of rewards and features.
FIRST_KAPPA2, KAPPA2_FACTOR, KAPPA2_STEPS = 1e-6, 4.0, 12
PASSES = 3  # of estimating sigma_z^2
PRIOR_NUMBER = 2.0  # how many residuals the noise of feedback counts for in the noise of truth
LEAST = 1e-13


class Truth(NamedTuple):
    """The sums of true rewards by arm, in the units of `Data` and of the feedback."""

    A: NDArray[np.float64]  # (arms, d, d)
    b: NDArray[np.float64]  # (arms, d)
    zz: NDArray[np.float64]
    number: NDArray[np.float64]


class Blend(NamedTuple):
    """The posterior of a = (means, psi_0) and eta, as linear functions of the feedback's means m^.

    eta has the covariance H, and a has R + X H X', and both have -X H.
    """

    H: NDArray[np.float64]  # (m d, m d)
    R: NDArray[np.float64]  # (a, a)
    X: NDArray[np.float64]  # (a, m d)
    eta_map: NDArray[np.float64]  # (m d, m d), on m^
    eta_at_0: NDArray[np.float64]
    a_map: NDArray[np.float64]  # (a, m d), on m^
    a_at_0: NDArray[np.float64]
    N: NDArray[np.float64]  # the information on eta when m and psi_0 are unknown
    n: NDArray[np.float64]
    numbers: NDArray[np.float64]  # kappa^2, sigma_z^2, and the numbers that truth fits


class Seen(NamedTuple):
    """What the true rewards of every group say, as sums over its arms; F_i = p S_i - I."""

    J: NDArray[np.float64]  # (groups, d, d)
    FJ: NDArray[np.float64]
    FJF: NDArray[np.float64]
    j: NDArray[np.float64]  # (groups, d)
    Fj: NDArray[np.float64]


@subroutine
def _look(data, variances, post, truth, sigma2, seen):  # type: ignore[no-untyped-def]
    """Fill in what the true rewards say, if their noise is sigma2."""
    stays_a_function()
    d = post.mu.size
    for table in (seen.J, seen.FJ, seen.FJF):
        clear(place(table, 0), table.size)
    for table in (seen.j, seen.Fj):
        clear(place(table, 0), table.size)
    A, E, J, F = np.empty((d, d)), np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
    AE, b, j = np.empty((d, d)), np.empty(d), np.empty(d)
    for i in range(truth.number.size):
        if truth.number[i] == 0.0:
            continue
        g = data.group_of[i]
        p = 1.0 / variances.tau2[g]
        for k in range(d):
            b[k] = truth.b[i, k] / sigma2
            for l in range(d):
                A[k, l] = truth.A[i, k, l] / sigma2
                E[k, l] = data.A[i, k, l] / variances.sigma2[0] + A[k, l]
                F[k, l] = p * post.S[i, k, l]
            E[k, k] += p
            F[k, k] -= 1.0
        invert(place(E, 0), p, d)
        product(place(A, 0), place(E, 0), place(AE, 0), d)
        for k in range(d):
            j[k] = b[k]
            for l in range(d):
                J[k, l] = A[k, l]
                j[k] -= AE[k, l] * b[l]
                for o in range(d):
                    J[k, l] -= AE[k, o] * A[o, l]
        for k in range(d):
            for l in range(d):
                j[k] -= J[k, l] * post.u[i, l]
        for k in range(d):
            seen.j[g, k] += j[k]
            for l in range(d):
                seen.J[g, k, l] += J[k, l]
                seen.Fj[g, k] += F[l, k] * j[l]
                for o in range(d):
                    seen.FJ[g, k, l] += F[o, k] * J[o, l]
                    for q in range(d):
                        seen.FJF[g, k, l] += F[o, k] * J[o, q] * F[q, l]
    A[0, 0] = E[0, 0] = AE[0, 0] = 0.0  # their places are used until here


@subroutine
def _assemble(weights, seen, m, d, free, aa, ae, ee, a, e):  # type: ignore[no-untyped-def]
    """The information of truth on a and eta."""
    stays_a_function()
    size = m * d
    for g in range(m):
        for h in range(m):
            of_h = 1.0 if g == h else 0.0
            for k in range(d):
                row = h * d + k
                a[row] += of_h * seen.Fj[g, k] + weights[h] * seen.j[g, k]
                e[row] += (of_h - weights[h]) * seen.j[g, k]
                for l in range(d):
                    here = of_h * seen.FJ[g, k, l] + weights[h] * seen.J[g, k, l]
                    if free:
                        aa[row, size + l] -= here
                        aa[size + l, row] -= here
                    for o in range(m):
                        of_o, column = 1.0 if g == o else 0.0, o * d + l
                        ae[row, column] += here * (of_o - weights[o])
                        ee[row, column] += (
                            (of_h - weights[h]) * (of_o - weights[o]) * seen.J[g, k, l]
                        )
                        aa[row, column] += (
                            of_h * of_o * seen.FJF[g, k, l]
                            + of_h * weights[o] * seen.FJ[g, k, l]
                            + of_o * weights[h] * seen.FJ[g, l, k]
                            + weights[h] * weights[o] * seen.J[g, k, l]
                        )
        if free:
            for k in range(d):
                a[size + k] -= seen.j[g, k]
                for l in range(d):
                    aa[size + k, size + l] += seen.J[g, k, l]
                    for o in range(m):
                        of_o = 1.0 if g == o else 0.0
                        ae[size + k, o * d + l] -= (of_o - weights[o]) * seen.J[g, k, l]


@subroutine
def _prior(post, variances, m, d, free, out):  # type: ignore[no-untyped-def]
    """Add the feedback's information on the means, with mu integrated out, and psi_0's prior."""
    stays_a_function()
    shared, half, inverse = np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
    for k in range(d):
        for l in range(d):
            shared[k, l] = variances.lambda_inverse[k, l] + m * variances.omega_inverse[k, l]
    invert(place(shared, 0), variances.least[1], d)
    product(place(variances.omega_inverse, 0), place(shared, 0), place(half, 0), d)
    product(place(half, 0), place(variances.omega_inverse, 0), place(shared, 0), d)
    for g in range(m):
        for k in range(d):
            for l in range(d):
                inverse[k, l] = post.V[g, k, l]
        invert(place(inverse, 0), TINY, d)
        for k in range(d):
            for l in range(d):
                out[g * d + k, g * d + l] += inverse[k, l]
                for h in range(m):
                    out[g * d + k, h * d + l] -= shared[k, l]
    if free:
        for k in range(d):
            for l in range(d):
                out[m * d + k, m * d + l] += variances.omega_inverse[k, l]
    half[0, 0] = inverse[0, 0] = 0.0  # their places are used until here


@subroutine
def evidence(N, n, kappa2):  # type: ignore[no-untyped-def]
    """The log-likelihood of truth, more than if averages were equal: -1/2 log|M| + ... by Cholesky.

    With M = I + kappa^2 N it is -1/2 log|M| + 1/2 kappa^2 n' M^-1 n.
    """
    stays_a_function()
    size = n.size
    factor, solved, total = np.empty((size, size)), np.empty(size), 0.0
    for k in range(size):
        for l in range(k + 1):
            rest = kappa2 * N[k, l]
            if k == l:
                rest += 1.0
            for o in range(l):
                rest -= factor[k, o] * factor[l, o]
            factor[k, l] = np.sqrt(max(rest, LEAST)) if k == l else rest / factor[l, l]
        rest = n[k]
        for o in range(k):
            rest -= factor[k, o] * solved[o]
        solved[k] = rest / factor[k, k]
        total += 0.5 * kappa2 * solved[k] * solved[k] - np.log(factor[k, k])
    return total


@subroutine
def _kappa2_of(N, n):  # type: ignore[no-untyped-def]
    """The kappa^2 with the highest likelihood (REML: the means have no say in it)."""
    best, most, kappa2 = 0.0, 0.0, FIRST_KAPPA2
    for _ in range(KAPPA2_STEPS):
        here = evidence(N, n, kappa2)
        if here > most:
            best, most = kappa2, here
        kappa2 *= KAPPA2_FACTOR
    return best


@subroutine
def blend(data, variances, post, truth, weights, free, most_kappa2):  # type: ignore[no-untyped-def]
    """The posterior after feedback and truth; averages are held equal if `most_kappa2` is 0.

    A negative one says that kappa^2 is estimated.
    """
    stays_a_function()
    m, d = data.sizes.size, post.mu.size
    size = m * d
    width = size + d if free else size
    seen = Seen(
        np.empty((m, d, d)),
        np.empty((m, d, d)),
        np.empty((m, d, d)),
        np.empty((m, d)),
        np.empty((m, d)),
    )
    out = Blend(
        np.zeros((size, size)),
        np.zeros((width, width)),
        np.zeros((width, size)),
        np.zeros((size, size)),
        np.zeros(size),
        np.zeros((width, size)),
        np.zeros(width),
        np.zeros((size, size)),
        np.zeros(size),
        np.zeros(3),
    )
    sigma2 = variances.sigma2[0]
    for _ in range(PASSES):
        _look(data, variances, post, truth, sigma2, seen)
        _work_out(post, variances, weights, seen, m, d, free, most_kappa2, out)
        out.numbers[1] = sigma2
        sigma2 = _noise_of_truth(data, variances, post, truth, weights, free, out)
    return out


@subroutine
def _work_out(post, variances, weights, seen, m, d, free, given, out):  # type: ignore[no-untyped-def]
    """R, X, N, n, and the maps from the means of feedback to the posterior."""
    stays_a_function()
    size, width = m * d, out.R.shape[0]
    aa, ae, ee = np.zeros((width, width)), np.zeros((width, size)), np.zeros((size, size))
    a, e = np.zeros(width), np.zeros(size)
    _assemble(weights, seen, m, d, free, aa, ae, ee, a, e)
    for k in range(width):
        for l in range(width):
            out.R[k, l] = aa[k, l]
    _prior(post, variances, m, d, free, out.R)
    invert(place(out.R, 0), TINY, width)
    fitted = 0.0
    for k in range(width):
        for l in range(size):
            total = 0.0
            for o in range(width):
                total += out.R[k, o] * ae[o, l]
            out.X[k, l] = total
        for l in range(width):
            fitted += out.R[k, l] * aa[k, l]
    # N_m: what eta is told by the means; n at the means of now.
    of_means = np.empty((size, size))
    for k in range(size):
        out.eta_at_0[k] = e[k]
        for o in range(width):
            out.eta_at_0[k] -= out.X[o, k] * a[o]
        for l in range(size):
            total, means = ee[k, l], ae[l, k]
            for o in range(width):
                total -= ae[o, k] * out.X[o, l]
                means -= out.X[o, k] * aa[o, l]
            out.N[k, l] = total
            of_means[k, l] = means
    for k in range(size):
        out.n[k] = out.eta_at_0[k]
        for l in range(size):
            out.n[k] -= of_means[k, l] * post.m[l // d, l % d]
    kappa2 = given if given >= 0.0 else _kappa2_of(out.N, out.n)
    for k in range(size):
        for l in range(size):
            out.H[k, l] = kappa2 * out.N[k, l]
        out.H[k, k] += 1.0
    _solve_for_eta(out, kappa2, of_means, size)
    for k in range(size):
        for l in range(size):
            fitted += out.H[k, l] * out.N[k, l]
    for k in range(width):
        total = 0.0
        for o in range(width):
            total += out.R[k, o] * a[o]
        for o in range(size):
            total -= out.X[k, o] * out.eta_at_0[o]
        out.a_at_0[k] = total
        for l in range(size):
            total = 1.0 if k == l else 0.0
            for o in range(width):
                total -= out.R[k, o] * aa[o, l]
            for o in range(size):
                total -= out.X[k, o] * out.eta_map[o, l]
            out.a_map[k, l] = total
    out.numbers[0], out.numbers[2] = kappa2, fitted
    aa[0, 0] = 0.0  # used until here


@subroutine
def _solve_for_eta(out, kappa2, of_means, size):  # type: ignore[no-untyped-def]
    """H = kappa^2 (I + kappa^2 N)^-1, and eta as a function of the means."""
    stays_a_function()
    invert(place(out.H, 0), TINY, size)
    start = out.eta_at_0.copy()
    for k in range(size):
        for l in range(size):
            out.H[k, l] *= kappa2
    times_vector(place(out.H, 0), place(start, 0), place(out.eta_at_0, 0), size)
    for k in range(size):
        for l in range(size):
            total = 0.0
            for o in range(size):
                total -= out.H[k, o] * of_means[o, l]
            out.eta_map[k, l] = total
    start[0] = 0.0  # used until here


@subroutine
def corrected(out, weights, means, m, d, free, shifted, correction):  # type: ignore[no-untyped-def]
    """From the means of feedback: those after truth, and -psi_g for every group."""
    stays_a_function()
    size = m * d
    for k in range(size):
        total, eta = out.a_at_0[k], out.eta_at_0[k]
        for l in range(size):
            total += out.a_map[k, l] * means[l]
            eta += out.eta_map[k, l] * means[l]
        shifted[k], correction[k] = total, eta - total
    for k in range(d):
        reference = 0.0
        for g in range(m):
            reference -= weights[g] * correction[g * d + k]
        if free:
            reference -= out.a_at_0[size + k]
            for l in range(size):
                reference -= out.a_map[size + k, l] * means[l]
        for g in range(m):
            correction[g * d + k] += reference


@subroutine
def _noise_of_truth(data, variances, post, truth, weights, free, out):  # type: ignore[no-untyped-def]
    """sigma_z^2 from the residuals of true rewards, with a prior at the noise of feedback."""
    stays_a_function()
    m, d = data.sizes.size, post.mu.size
    shifted, correction, t = np.empty(m * d), np.empty(m * d), np.empty(d)
    means = np.empty(m * d)
    for k in range(m * d):
        means[k] = post.m[k // d, k % d]
    corrected(out, weights, means, m, d, free, shifted, correction)
    residual, number = 0.0, 0.0
    for i in range(truth.number.size):
        if truth.number[i] == 0.0:
            continue
        g = data.group_of[i]
        p = 1.0 / variances.tau2[g]
        residual += truth.zz[i]
        number += truth.number[i]
        for k in range(d):
            t[k] = post.u[i, k] + correction[g * d + k]
            for l in range(d):
                t[k] += p * post.S[i, k, l] * shifted[g * d + l]
                residual -= post.S[i, k, l] * truth.A[i, k, l]
        for k in range(d):
            residual -= 2.0 * t[k] * truth.b[i, k]
        residual += form(place(t, 0), place(truth.A, i * d * d), place(t, 0), d)
    left = max(number - out.numbers[2], 0.0)
    known = variances.sigma2[0]
    return max((max(residual, 0.0) + PRIOR_NUMBER * known) / (left + PRIOR_NUMBER), 1e-4 * known)
