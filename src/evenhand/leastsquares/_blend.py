"""Feedback and truth in one posterior: the algebra that policies and audits share.

The means m have a posterior from feedback, N(m^, K^-1) with a precision K. True rewards inform
about m and about e = (eta, B^-1 psi_0): by how much true averages differ, and the bias of the
reference itself (the two modules `_true_posterior` of PooledGroupFair, and `evenhand.audit`, say
which).
Their information is given as a matrix, in blocks mm, me and ee, and as values of_m and of_e: up to
a constant, their log-likelihood is

    of_m . m + of_e . e - 1/2 (m' mm m + 2 m' me e + e' ee e)

eta has the prior N(0, kappa^2 I), and B^-1 psi_0 has N(0, I). kappa^2 is estimated, and it is 0
unless the data contradict that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import compiled, subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._simd import place
from evenhand.leastsquares._small_matrices import TINY, invert, product, times_vector

# kappa^2 is chosen from 0 and these, for rewards and features in units of their root mean square.
FIRST_KAPPA2, FACTOR, STEPS = 1e-6, 4.0, 12
# How much the log-likelihood has to gain before equal averages are given up. Without this, kappa^2
# is estimated above 0 half of the time when it is 0. Where rewards are noisy, that costs more than
# true rewards bring: .21 instead of .18 a round with sigma = 5 and 1 % of true rewards.
GAIN = 2.0
PASSES = 3  # of estimating sigma_z^2
PRIOR_NUMBER = 2.0  # how many residuals the noise of feedback counts for in the noise of truth
LEAST = 1e-13
ROUNDING = 1e-9  # of a sum: a smaller difference is rounding


class Information(NamedTuple):
    """The information of true rewards on m and e."""

    mm: NDArray[np.float64]
    me: NDArray[np.float64]
    ee: NDArray[np.float64]
    of_m: NDArray[np.float64]
    of_e: NDArray[np.float64]


class Blend(NamedTuple):
    """The posterior of the means m and of e, as linear functions of the feedback's means m^.

    The covariance of e is H, that of m is R + X H X', and that between m and e is -X H.
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
    root: NDArray[np.float64]  # B; no rows where there is no psi_0


@subroutine
def blank_information(size, n_e):  # type: ignore[no-untyped-def]
    """No information yet, on `size` means and `n_e` numbers of e."""
    stays_a_function()
    return Information(
        np.zeros((size, size)),
        np.zeros((size, n_e)),
        np.zeros((n_e, n_e)),
        np.zeros(size),
        np.zeros(n_e),
    )


@subroutine
def blank_blend(size, etas, d, free):  # type: ignore[no-untyped-def]
    """Memory for a posterior of `size` means and `etas` numbers of eta; `free`: with a psi_0."""
    stays_a_function()
    of_reference = d if free else 0
    n_e = etas + of_reference
    return Blend(
        np.zeros((n_e, n_e)),
        np.zeros((size, size)),
        np.zeros((size, n_e)),
        np.zeros((n_e, size)),
        np.zeros(n_e),
        np.zeros((size, size)),
        np.zeros(size),
        np.zeros((n_e, n_e)),
        np.zeros(n_e),
        np.zeros(3),
        np.zeros((of_reference, d)),
    )


@compiled
def blend_said(info, precision, means, d, least, kappa2):  # type: ignore[no-untyped-def]
    """The posterior of the means and of eta from feedback and truth, without a psi_0.

    Args:
        info: the `Information` of truth.
        precision: of the means, from feedback.
        means: from feedback, one number after the other.
        d: the number of features.
        least: the smallest eigenvalue of the precision, or less.
        kappa2: the variance of eta; estimated where it is negative.
    """
    out = blank_blend(means.size, info.of_e.size, d, False)
    for k in range(means.size):
        for c in range(means.size):
            out.R[k, c] = precision[k, c] + info.mm[k, c]
    work_out_blend(info, np.zeros((d, d)), means, least, kappa2, out)
    return out


@subroutine
def look_at_arm(A, b, own, u, least, E, part, J, j):  # type: ignore[no-untyped-def]
    """The information of an arm's true rewards, A and b over their noise, on its mean t.

    Given the feedback, the arm's own coefficients are N(t + u, own^-1). So truth has, on t,

        information J = own (own + A)^-1 A,  and value j = own (own + A)^-1 b - J u

    J is (own^-1 + A^-1)^-1 wherever A can be inverted: the variances of both parts add up.

    E = (own + A)^-1 and part = own E are filled in too.
    """
    stays_a_function()
    d = u.size
    for k in range(d):
        for c in range(d):
            E[k, c] = own[k, c] + A[k, c]
    # A is positive semidefinite, so own + A has no eigenvalue below that of own.
    invert(place(E, 0), least, d)
    product(place(own, 0), place(E, 0), place(part, 0), d)
    product(place(part, 0), place(A, 0), place(J, 0), d)
    times_vector(place(part, 0), place(b, 0), place(j, 0), d)
    for k in range(d):  # make both halves equal
        for c in range(k):
            J[k, c] = J[c, k] = 0.5 * (J[k, c] + J[c, k])
    for k in range(d):
        for c in range(d):
            j[k] -= J[k, c] * u[c]


@subroutine
def _root_of_omega(omega_inverse, out):  # type: ignore[no-untyped-def]
    """B = L'^-1 where L L' = Omega^-1, so that B B' = Omega.

    B B' = (L L')^-1 because (L'^-1)(L'^-1)' = L'^-1 L^-1. Only the precision Omega^-1 is at hand,
    and this needs no inverse of it: the columns of B come from back substitution. psi_0 = B e with
    e ~ N(0, I) then has the prior N(0, Omega), so all of e has a diagonal prior, kappa^2 or 1, and
    `evidence` needs no other matrix.
    """
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
def evidence(N, n, etas, kappa2):  # type: ignore[no-untyped-def]
    """The log-likelihood of truth, up to a constant, with all means unknown (REML).

    With Q = diag(kappa, ..., 1, ...) and M = I + Q N Q, it is -1/2 log|M| + 1/2 |M^-1/2 Q n|^2.
    """
    stays_a_function()
    factor, solved, total = np.empty((n.size, n.size)), np.empty(n.size), 0.0
    kappa = np.sqrt(kappa2)
    for k in range(n.size):
        # Cholesky's factor of M, and forward substitution beside it, row by row: M = F F', so |M|
        # is the square of the product of its diagonal, and |F^-1 Q n|^2 = n' Q M^-1 Q n.
        root = kappa if k < etas else 1.0
        for c in range(k + 1):
            rest = root * N[k, c] * (kappa if c < etas else 1.0)
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
def _best_kappa2(N, n, etas):  # type: ignore[no-untyped-def]
    """The most likely kappa^2 of the grid; 0 unless another is more likely by GAIN.

    A grid and not a search, because the likelihood may have one maximum at 0 and another above it.
    """
    best, most, kappa2 = 0.0, evidence(N, n, etas, 0.0) + GAIN, FIRST_KAPPA2
    for _ in range(STEPS):
        here = evidence(N, n, etas, kappa2)
        if here > most:
            best, most = kappa2, here
        kappa2 *= FACTOR
    return best


@subroutine
def work_out_blend(info, omega_inverse, means, least, kappa2, out):  # type: ignore[no-untyped-def]
    """R, X, N, n, and the maps from the means of feedback to the posterior.

    out.R has the precision of m, K + mm, whose eigenvalues are `least` or more. With P the prior
    variance of e,

        R = (K + mm)^-1,  X = R me
        N = ee - me' X,   n = of_e - X' of_m - (me' - X' mm) m^      on e, with m unknown
        e = H n,          H = (P^-1 + N)^-1
        m = m^ + R (of_m - mm m^) - X e

    These are the three blocks below: m is eliminated, what is left is solved for e, and m follows
    from e. All of it is linear in m^, so maps on m^ are kept instead of values. A policy's means
    move with every reward, and a product with the maps gives the posterior after truth, without
    solving anything again. kappa^2 is estimated where it is negative.
    """
    stays_a_function()
    mm, me, ee, of_m, of_e = info.mm, info.me, info.ee, info.of_m, info.of_e
    size, n_e = means.size, out.n.size
    etas = n_e - out.root.shape[0]
    if n_e > etas:
        _root_of_omega(omega_inverse, out.root)
        _by_root(out.root, etas, me)
        _by_root(out.root, etas, ee)
        _by_root(out.root, etas, ee.T)
        _by_root(out.root, etas, of_e.reshape(1, n_e))
    # Eliminate m: R and X, and tr(R mm), which is how many numbers of m truth fits.
    invert(place(out.R, 0), least, size)
    fitted = 0.0
    for k in range(size):
        for c in range(n_e):
            total = 0.0
            for o in range(size):
                total += out.R[k, o] * me[o, c]
            out.X[k, c] = total
        for c in range(size):
            fitted += out.R[k, c] * mm[k, c]
    # The information on e with m unknown: N, and n = e_at_0 - by_means m^.
    by_means = np.empty((n_e, size))
    for k in range(n_e):
        out.e_at_0[k] = of_e[k]
        for o in range(size):
            out.e_at_0[k] -= out.X[o, k] * of_m[o]
        for c in range(n_e):
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
            out.n[k] -= total * means[c]
    # Before kappa^2 is chosen: rounding in directions without information would look like evidence.
    _leave_out(ee, by_means, out)
    if kappa2 < 0.0:
        kappa2 = _best_kappa2(out.N, out.n, etas)
    # tr(H N): how many numbers of e truth fits, after those of m.
    fitted += _solve_for_e(out, kappa2, etas, by_means)
    # m from e: m = m_at_0 + m_map m^.
    for k in range(size):
        total = 0.0
        for o in range(size):
            total += out.R[k, o] * of_m[o]
        for o in range(n_e):
            total -= out.X[k, o] * out.e_at_0[o]
        out.m_at_0[k] = total
        for c in range(size):
            total = 1.0 if k == c else 0.0
            for o in range(size):
                total -= out.R[k, o] * mm[o, c]
            for o in range(n_e):
                total -= out.X[k, o] * out.e_map[o, c]
            out.m_map[k, c] = total
    if n_e > etas:  # psi_0 itself, no longer B^-1 psi_0
        _by_root(out.root.T, etas, out.e_map.T)
        _by_root(out.root.T, etas, out.e_at_0.reshape(1, n_e))
    out.numbers[0], out.numbers[2] = kappa2, fitted


@subroutine
def _leave_out(ee, by_means, out):  # type: ignore[no-untyped-def]
    """Leave out the numbers of e on which truth has no information while the means are unknown.

    Their N[k, k] is a difference of equal numbers, of which data without noise leave rounding of
    either sign.
    """
    stays_a_function()
    for k in range(out.n.size):
        if not out.N[k, k] > ROUNDING * ee[k, k]:
            out.n[k] = out.e_at_0[k] = 0.0
            for c in range(out.n.size):
                out.N[k, c] = out.N[c, k] = 0.0
            for c in range(by_means.shape[1]):
                by_means[k, c] = 0.0


@subroutine
def _solve_for_e(out, kappa2, etas, by_means):  # type: ignore[no-untyped-def]
    """H = (P^-1 + N)^-1, and e as a function of the means; returns how many numbers truth fits.

    H is worked out as Q (I + Q N Q)^-1 Q with Q Q = P, which allows kappa = 0.
    """
    stays_a_function()
    n_e, size = by_means.shape
    kappa = np.sqrt(kappa2)
    for k in range(n_e):
        for c in range(n_e):
            out.H[k, c] = out.N[k, c] * (kappa if k < etas else 1.0) * (kappa if c < etas else 1.0)
        out.H[k, k] += 1.0
    # Q N Q is positive semidefinite, so no eigenvalue of I + Q N Q is below 1.
    invert(place(out.H, 0), 1.0, n_e)
    fitted, start = 0.0, out.e_at_0.copy()
    for k in range(n_e):
        for c in range(n_e):
            out.H[k, c] *= (kappa if k < etas else 1.0) * (kappa if c < etas else 1.0)
            fitted += out.H[k, c] * out.N[k, c]
    times_vector(place(out.H, 0), place(start, 0), place(out.e_at_0, 0), n_e)
    for k in range(n_e):
        for c in range(size):
            total = 0.0
            for o in range(n_e):
                total -= out.H[k, o] * by_means[o, c]
            out.e_map[k, c] = total
    start[0] = 0.0  # keeps the array alive up to here: its place is in use
    return fitted


@subroutine
def noise_of_truth(residual, number, fitted, known):  # type: ignore[no-untyped-def]
    """sigma_z^2 from squared residuals of true rewards, with a prior at the noise of feedback."""
    # As for sigma^2: residuals are expected to be (number - fitted) sigma_z^2. The prior keeps a
    # few true rewards that happen to fit exactly from counting for everything.
    left = max(number - fitted, 0.0)
    return max((max(residual, 0.0) + PRIOR_NUMBER * known) / (left + PRIOR_NUMBER), 1e-4 * known)
