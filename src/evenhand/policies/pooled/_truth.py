"""What true rewards teach about the bias: the model of `_posterior`, with a second kind of reward.

A true reward of arm i at x is z = (theta_i - psi_g) . x + noise(sigma_z^2). With equal averages,
psi_g = m_g - m_ref. So that averages may differ, and so that the reference may be distorted where
nobody named one, the bias is

    psi_g = m_g - m_ref - (eta_g - eta_ref) + psi_0     eta_g ~ N(0, kappa^2 I), psi_0 ~ N(0, Omega)

eta_g - eta_ref is how much better group g truly is than the reference, and psi_0 is the bias of the
reference itself, 0 where it is named. kappa^2 is estimated. It is 0, which is what feedback alone
has to assume, unless the data speak against that; then true rewards only sharpen m_g - m_ref.

Given the feedback, arm i is theta_i ~ N(u_i + p S_i m_g, S_i). Its true rewards, with sums A_z and
b_z, then say of t = p S_i m_g - psi_g, whose variance beside that of the noise is S_i,

    information J_i = S_i^-1 (S_i^-1 + A')^-1 A',  A' = A_z / sigma_z^2,
    and value       j_i = S_i^-1 (S_i^-1 + A')^-1 b' - J_i u_i,  b' = b_z / sigma_z^2

t is linear in the means m and in e = (eta_1, ..., eta_m, B^-1 psi_0), where B B' = Omega, so all of
it is a Gaussian posterior in closed form. It does not need to know which feedback belongs to which
true reward. It is exact for noises that are independent; true rewards are few, so a correlation
within a decision hardly counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._borrow import stays_a_function
from evenhand._compile import subroutine
from evenhand.leastsquares._vectors import place
from evenhand.policies.pooled._linear import TINY, clear, form, invert, product, times_vector

# kappa^2 is chosen from 0 and these, for rewards and features in units of their root mean square.
FIRST_KAPPA2, FACTOR, STEPS = 1e-6, 4.0, 12
# How much larger the log-likelihood has to be before equal averages are given up. Without it, the
# result is above 0 half of the time in which 0 is true. That costs more than true rewards bring
# where rewards are noisy: .21 instead of .18 a round with sigma = 5 and 1 % of true rewards.
GAIN = 2.0
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
    """The posterior of the means m and of e, as linear functions of the feedback's means m^.

    e has the covariance H, and m has R + X H X', and m and e have -X H.
    """

    H: NDArray[np.float64]  # (e, e)
    R: NDArray[np.float64]  # (m, m)
    X: NDArray[np.float64]  # (m, e)
    e_map: NDArray[np.float64]  # (e, m), on m^; here and in e_at_0, psi_0 itself
    e_at_0: NDArray[np.float64]
    m_map: NDArray[np.float64]  # (m, m), on m^
    m_at_0: NDArray[np.float64]
    N: NDArray[np.float64]  # (e, e), the information on e when the means are unknown
    n: NDArray[np.float64]
    numbers: NDArray[np.float64]  # kappa^2, sigma_z^2, how many numbers truth fits
    root: NDArray[np.float64]  # B


class Seen(NamedTuple):
    """What the true rewards of every group say, as sums over its arms; F_i = p S_i - I."""

    J: NDArray[np.float64]  # (groups, d, d)
    FJ: NDArray[np.float64]
    FJF: NDArray[np.float64]
    j: NDArray[np.float64]  # (groups, d)
    Fj: NDArray[np.float64]


@subroutine
def blank_seen(m, d):  # type: ignore[no-untyped-def]
    """Memory for what true rewards say."""
    return Seen(
        np.empty((m, d, d)),
        np.empty((m, d, d)),
        np.empty((m, d, d)),
        np.empty((m, d)),
        np.empty((m, d)),
    )


@subroutine
def look(data, variances, post, truth, sigma2, seen):  # type: ignore[no-untyped-def]
    """Fill in what the true rewards say, if their noise is sigma2."""
    stays_a_function()
    d = post.mu.size
    for table in (seen.J, seen.FJ, seen.FJF):
        clear(place(table, 0), table.size)
    for table in (seen.j, seen.Fj):
        clear(place(table, 0), table.size)
    A, E, J, F = np.empty((d, d)), np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
    own, part, b, j = np.empty((d, d)), np.empty((d, d)), np.empty(d), np.empty(d)
    for i in range(truth.number.size):
        if truth.number[i] == 0.0:
            continue
        g = data.group_of[i]
        p = 1.0 / variances.tau2[g]
        for k in range(d):
            b[k] = truth.b[i, k] / sigma2
            for c in range(d):
                A[k, c] = truth.A[i, k, c] / sigma2
                own[k, c] = data.A[i, k, c] / variances.sigma2[0]
                F[k, c] = p * post.S[i, k, c]
            own[k, k] += p
            F[k, k] -= 1.0
            for c in range(d):
                E[k, c] = own[k, c] + A[k, c]
        invert(place(E, 0), p, d)
        product(place(own, 0), place(E, 0), place(part, 0), d)
        product(place(part, 0), place(A, 0), place(J, 0), d)
        times_vector(place(part, 0), place(b, 0), place(j, 0), d)
        for k in range(d):  # both halves alike
            for c in range(k):
                J[k, c] = J[c, k] = 0.5 * (J[k, c] + J[c, k])
        for k in range(d):
            for c in range(d):
                j[k] -= J[k, c] * post.u[i, c]
        for k in range(d):
            seen.j[g, k] += j[k]
            for c in range(d):
                seen.J[g, k, c] += J[k, c]
                seen.Fj[g, k] += F[c, k] * j[c]
                for o in range(d):
                    seen.FJ[g, k, c] += F[o, k] * J[o, c]
                    for q in range(d):
                        seen.FJF[g, k, c] += F[o, k] * J[o, q] * F[q, c]
    A[0, 0] = E[0, 0] = own[0, 0] = part[0, 0] = b[0] = 0.0  # their places are used until here


@subroutine
def _assemble(weights, seen, m, d, mm, me, ee, of_m, of_e):  # type: ignore[no-untyped-def]
    """The information of truth on m and e."""
    stays_a_function()
    size, free = m * d, ee.shape[0] > m * d
    for g in range(m):
        for h in range(m):
            of_h = 1.0 if g == h else 0.0
            for k in range(d):
                row = h * d + k
                of_m[row] += of_h * seen.Fj[g, k] + weights[h] * seen.j[g, k]
                of_e[row] += (of_h - weights[h]) * seen.j[g, k]
                for c in range(d):
                    J = seen.J[g, k, c]
                    here, apart = of_h * seen.FJ[g, k, c] + weights[h] * J, of_h - weights[h]
                    if free:
                        me[row, size + c] -= here
                        ee[row, size + c] -= apart * J
                        ee[size + c, row] -= apart * J
                    for o in range(m):
                        of_o, column = 1.0 if g == o else 0.0, o * d + c
                        me[row, column] += here * (of_o - weights[o])
                        ee[row, column] += apart * (of_o - weights[o]) * J
                        mm[row, column] += (
                            of_h * of_o * seen.FJF[g, k, c]
                            + of_h * weights[o] * seen.FJ[g, k, c]
                            + of_o * weights[h] * seen.FJ[g, c, k]
                            + weights[h] * weights[o] * J
                        )
        if free:
            for k in range(d):
                of_e[size + k] -= seen.j[g, k]
                for c in range(d):
                    ee[size + k, size + c] += seen.J[g, k, c]


@subroutine
def _prior(data, variances, post, out):  # type: ignore[no-untyped-def]
    """Add the feedback's information on the means, with mu integrated out.

    That of group g is n_g p I - p^2 sum S_i + Omega^-1, the inverse of V_g.
    """
    stays_a_function()
    m, d = post.m.shape
    shared, half = np.empty((d, d)), np.empty((d, d))
    for k in range(d):
        for c in range(d):
            shared[k, c] = variances.lambda_inverse[k, c] + m * variances.omega_inverse[k, c]
    invert(place(shared, 0), variances.least[1], d)
    product(place(variances.omega_inverse, 0), place(shared, 0), place(half, 0), d)
    product(place(half, 0), place(variances.omega_inverse, 0), place(shared, 0), d)
    for g in range(m):
        for k in range(d):
            for c in range(d):
                out[g * d + k, g * d + c] += variances.omega_inverse[k, c]
                for h in range(m):
                    out[g * d + k, h * d + c] -= shared[k, c]
    for i in range(data.number.size):
        if data.number[i] > 0.0:
            g = data.group_of[i]
            p = 1.0 / variances.tau2[g]
            for k in range(d):
                out[g * d + k, g * d + k] += p
                for c in range(d):
                    out[g * d + k, g * d + c] -= p * p * post.S[i, k, c]
    half[0, 0] = 0.0  # its place is used until here


@subroutine
def _root_of_omega(omega_inverse, out):  # type: ignore[no-untyped-def]
    """B = L'^-1 where L L' = Omega^-1, so that B B' = Omega."""
    stays_a_function()
    d = out.shape[0]
    lower = np.zeros((d, d))
    for k in range(d):
        for c in range(k + 1):
            rest = omega_inverse[k, c]
            for o in range(c):
                rest -= lower[k, o] * lower[c, o]
            lower[k, c] = np.sqrt(max(rest, TINY)) if k == c else rest / lower[c, c]
    for c in range(d):  # column c of B solves L' b = e_c
        for back in range(d):
            k = d - 1 - back
            rest = 1.0 if k == c else 0.0
            for o in range(k + 1, d):
                rest -= lower[o, k] * out[o, c]
            out[k, c] = rest / lower[k, k]


@subroutine
def _by_root(root, first, table):  # type: ignore[no-untyped-def]
    """Multiply the columns of a table from `first` on by B."""
    stays_a_function()
    d = root.shape[0]
    row = np.empty(d)
    for k in range(table.shape[0]):
        for c in range(d):
            row[c] = 0.0
            for o in range(d):
                row[c] += table[k, first + o] * root[o, c]
        for c in range(d):
            table[k, first + c] = row[c]


@subroutine
def evidence(N, n, size, kappa2):  # type: ignore[no-untyped-def]
    """The log-likelihood of truth, up to a constant, with all means unknown (REML).

    With Q = diag(kappa, ..., 1, ...) and M = I + Q N Q, it is -1/2 log|M| + 1/2 |M^-1/2 Q n|^2.
    """
    stays_a_function()
    factor, solved, total = np.empty((n.size, n.size)), np.empty(n.size), 0.0
    kappa = np.sqrt(kappa2)
    for k in range(n.size):
        root = kappa if k < size else 1.0
        for c in range(k + 1):
            rest = root * N[k, c] * (kappa if c < size else 1.0)
            if k == c:
                rest += 1.0
            for o in range(c):
                rest -= factor[k, o] * factor[c, o]
            factor[k, c] = np.sqrt(max(rest, LEAST)) if k == c else rest / factor[c, c]
        rest = root * n[k]
        for o in range(k):
            rest -= factor[k, o] * solved[o]
        solved[k] = rest / factor[k, k]
        total += 0.5 * solved[k] * solved[k] - np.log(factor[k, k])
    return total


@subroutine
def _best_kappa2(N, n, size):  # type: ignore[no-untyped-def]
    best, most, kappa2 = 0.0, evidence(N, n, size, 0.0) + GAIN, FIRST_KAPPA2
    for _ in range(STEPS):
        here = evidence(N, n, size, kappa2)
        if here > most:
            best, most = kappa2, here
        kappa2 *= FACTOR
    return best


@subroutine
def blank_blend(m, d, free):  # type: ignore[no-untyped-def]
    """Memory for a posterior; `free` says whether there is a psi_0."""
    stays_a_function()
    size = m * d
    more = size + d if free else size
    return Blend(
        np.zeros((more, more)),
        np.zeros((size, size)),
        np.zeros((size, more)),
        np.zeros((more, size)),
        np.zeros(more),
        np.zeros((size, size)),
        np.zeros(size),
        np.zeros((more, more)),
        np.zeros(more),
        np.zeros(3),
        np.zeros((d, d)),
    )


@subroutine
def blend(data, variances, post, truth, weights, free, kappa2):  # type: ignore[no-untyped-def]
    """The posterior after feedback and truth; kappa^2 is estimated where it is negative."""
    stays_a_function()
    m, d = data.sizes.size, post.mu.size
    seen = blank_seen(m, d)
    out, sigma2 = blank_blend(m, d, free), variances.sigma2[0]
    for _ in range(PASSES):
        look(data, variances, post, truth, sigma2, seen)
        work_out_blend(data, variances, post, weights, seen, kappa2, out)
        out.numbers[1] = sigma2
        sigma2 = _noise_of_truth(data, variances, post, truth, weights, out)
    return out


@subroutine
def work_out_blend(data, variances, post, weights, seen, kappa2, out):  # type: ignore[no-untyped-def]
    """R, X, N, n, and the maps from the means of feedback to the posterior."""
    stays_a_function()
    m, d = seen.j.shape
    size, more = m * d, out.n.size
    mm, me, ee = np.zeros((size, size)), np.zeros((size, more)), np.zeros((more, more))
    of_m, of_e = np.zeros(size), np.zeros(more)
    _assemble(weights, seen, m, d, mm, me, ee, of_m, of_e)
    if more > size:
        _root_of_omega(variances.omega_inverse, out.root)
        _by_root(out.root, size, me)
        _by_root(out.root, size, ee)
        _by_root(out.root, size, ee.T)
        _by_root(out.root, size, of_e.reshape(1, more))
    for k in range(size):
        for c in range(size):
            out.R[k, c] = mm[k, c]
    _prior(data, variances, post, out.R)
    least = 1.0 / (1.0 / variances.least[0] + m / variances.least[1])
    invert(place(out.R, 0), least, size)
    fitted = 0.0
    for k in range(size):
        for c in range(more):
            total = 0.0
            for o in range(size):
                total += out.R[k, o] * me[o, c]
            out.X[k, c] = total
        for c in range(size):
            fitted += out.R[k, c] * mm[k, c]
    by_means = np.empty((more, size))  # what the means tell of e
    for k in range(more):
        out.e_at_0[k] = of_e[k]
        for o in range(size):
            out.e_at_0[k] -= out.X[o, k] * of_m[o]
        for c in range(more):
            total = ee[k, c]
            for o in range(size):
                total -= me[o, k] * out.X[o, c]
            out.N[k, c] = total
        out.n[k] = out.e_at_0[k]
        for c in range(size):
            total = me[c, k]
            for o in range(size):
                total -= out.X[o, k] * mm[o, c]
            by_means[k, c] = total
            out.n[k] -= total * post.m[c // d, c % d]
    if kappa2 < 0.0:
        kappa2 = _best_kappa2(out.N, out.n, size)
    fitted += _solve_for_e(out, kappa2, by_means)
    for k in range(size):
        total = 0.0
        for o in range(size):
            total += out.R[k, o] * of_m[o]
        for o in range(more):
            total -= out.X[k, o] * out.e_at_0[o]
        out.m_at_0[k] = total
        for c in range(size):
            total = 1.0 if k == c else 0.0
            for o in range(size):
                total -= out.R[k, o] * mm[o, c]
            for o in range(more):
                total -= out.X[k, o] * out.e_map[o, c]
            out.m_map[k, c] = total
    if more > size:  # psi_0 itself, no longer B^-1 psi_0
        _by_root(out.root.T, size, out.e_map.T)
        _by_root(out.root.T, size, out.e_at_0.reshape(1, more))
    out.numbers[0], out.numbers[2] = kappa2, fitted


@subroutine
def _solve_for_e(out, kappa2, by_means):  # type: ignore[no-untyped-def]
    """H = (P^-1 + N)^-1, and e as a function of the means; how many numbers of e truth fits."""
    stays_a_function()
    more, size = by_means.shape
    kappa = np.sqrt(kappa2)
    for k in range(more):
        for c in range(more):
            out.H[k, c] = out.N[k, c] * (kappa if k < size else 1.0) * (kappa if c < size else 1.0)
        out.H[k, k] += 1.0
    invert(place(out.H, 0), 1.0, more)
    fitted, start = 0.0, out.e_at_0.copy()
    for k in range(more):
        for c in range(more):
            out.H[k, c] *= (kappa if k < size else 1.0) * (kappa if c < size else 1.0)
            fitted += out.H[k, c] * out.N[k, c]
    times_vector(place(out.H, 0), place(start, 0), place(out.e_at_0, 0), more)
    for k in range(more):
        for c in range(size):
            total = 0.0
            for o in range(more):
                total -= out.H[k, o] * by_means[o, c]
            out.e_map[k, c] = total
    start[0] = 0.0  # used until here
    return fitted


@subroutine
def corrected(out, weights, means, m, d, free, shifted, correction):  # type: ignore[no-untyped-def]
    """From the means of feedback: those after truth, and -psi_g for every group."""
    stays_a_function()
    size = m * d
    for k in range(size):
        total, eta = out.m_at_0[k], out.e_at_0[k]
        for c in range(size):
            total += out.m_map[k, c] * means[c]
            eta += out.e_map[k, c] * means[c]
        shifted[k], correction[k] = total, eta - total
    for k in range(d):
        reference = 0.0
        for g in range(m):
            reference -= weights[g] * correction[g * d + k]
        if free:
            reference -= out.e_at_0[size + k]
            for c in range(size):
                reference -= out.e_map[size + k, c] * means[c]
        for g in range(m):
            correction[g * d + k] += reference


@subroutine
def _noise_of_truth(data, variances, post, truth, weights, out):  # type: ignore[no-untyped-def]
    """sigma_z^2 from the residuals of true rewards, with a prior at the noise of feedback."""
    stays_a_function()
    m, d = data.sizes.size, post.mu.size
    shifted, correction, t = np.empty(m * d), np.empty(m * d), np.empty(d)
    means = np.empty(m * d)
    for k in range(m * d):
        means[k] = post.m[k // d, k % d]
    corrected(out, weights, means, m, d, out.n.size > m * d, shifted, correction)
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
            for c in range(d):
                t[k] += p * post.S[i, k, c] * shifted[g * d + c]
                residual -= post.S[i, k, c] * truth.A[i, k, c]
        for k in range(d):
            residual -= 2.0 * t[k] * truth.b[i, k]
        residual += form(place(t, 0), place(truth.A, i * d * d), place(t, 0), d)
    left = max(number - out.numbers[2], 0.0)
    known = variances.sigma2[0]
    return max((max(residual, 0.0) + PRIOR_NUMBER * known) / (left + PRIOR_NUMBER), 1e-4 * known)
