"""Feedback and truth in one posterior: the algebra that policies and audits share.

The means m have a posterior from feedback, N(m^, (precision of feedback)^-1). True rewards say
something of m and of e = (eta, B^-1 psi_0): by how much true averages differ, and the bias of the
reference itself (`_truth` and `mixed._truth` of PooledGroupFair, and `evenhand.audit`, say which).
What they say is given as information, in blocks mm, me and ee of a matrix, and as values of_m and
of_e. eta has the prior N(0, kappa^2 I), and B^-1 psi_0 has N(0, I). kappa^2 is estimated, and it
is 0 unless the data speak against that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import compiled, subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._linear import TINY, invert, product, times_vector
from evenhand.leastsquares._vectors import place

# kappa^2 is chosen from 0 and these, for rewards and features in units of their root mean square.
FIRST_KAPPA2, FACTOR, STEPS = 1e-6, 4.0, 12
# How much larger the log-likelihood has to be before equal averages are given up. Without it, the
# result is above 0 half of the time in which 0 is true. That costs more than true rewards bring
# where rewards are noisy: .21 instead of .18 a round with sigma = 5 and 1 % of true rewards.
GAIN = 2.0
PASSES = 3  # of estimating sigma_z^2
PRIOR_NUMBER = 2.0  # how many residuals the noise of feedback counts for in the noise of truth
LEAST = 1e-13
ROUNDING = 1e-9  # of a sum: a difference that small is none


class Information(NamedTuple):
    """What true rewards say of m and e."""

    mm: NDArray[np.float64]
    me: NDArray[np.float64]
    ee: NDArray[np.float64]
    of_m: NDArray[np.float64]
    of_e: NDArray[np.float64]


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
    root: NDArray[np.float64]  # B; no rows where there is no psi_0


@subroutine
def blank_information(size, more):  # type: ignore[no-untyped-def]
    """Nothing is said of `size` means and `more` numbers of e."""
    stays_a_function()
    return Information(
        np.zeros((size, size)),
        np.zeros((size, more)),
        np.zeros((more, more)),
        np.zeros(size),
        np.zeros(more),
    )


@subroutine
def blank_blend(size, etas, d, free):  # type: ignore[no-untyped-def]
    """Memory for a posterior of `size` means and `etas` numbers of eta; `free`: with a psi_0."""
    stays_a_function()
    of_reference = d if free else 0
    more = etas + of_reference
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
        np.zeros((of_reference, d)),
    )


@compiled
def blend_said(said, precision, means, d, least, kappa2):  # type: ignore[no-untyped-def]
    """The posterior of the means and of eta, without a psi_0, from what both say.

    Args:
        said: the `Information` of truth.
        precision: of the means, from feedback.
        means: from feedback, one number after the other.
        d: the number of features.
        least: the smallest eigenvalue of the precision, or less.
        kappa2: the variance of eta; estimated where it is negative.
    """
    out = blank_blend(means.size, said.of_e.size, d, False)
    for k in range(means.size):
        for c in range(means.size):
            out.R[k, c] = precision[k, c] + said.mm[k, c]
    work_out_blend(said, np.zeros((d, d)), means, least, kappa2, out)
    return out


@subroutine
def look_at_arm(A, b, own, u, least, E, part, J, j):  # type: ignore[no-untyped-def]
    """What the true rewards of an arm, A and b over their noise, say of its mean t.

    Given the feedback, the arm's own coefficients are N(t + u, own^-1). So truth has, on t,

        information J = own (own + A)^-1 A,  and value j = own (own + A)^-1 b - J u

    E = (own + A)^-1 and part = own E are filled in too.
    """
    stays_a_function()
    d = u.size
    for k in range(d):
        for c in range(d):
            E[k, c] = own[k, c] + A[k, c]
    invert(place(E, 0), least, d)
    product(place(own, 0), place(E, 0), place(part, 0), d)
    product(place(part, 0), place(A, 0), place(J, 0), d)
    times_vector(place(part, 0), place(b, 0), place(j, 0), d)
    for k in range(d):  # both halves alike
        for c in range(k):
            J[k, c] = J[c, k] = 0.5 * (J[k, c] + J[c, k])
    for k in range(d):
        for c in range(d):
            j[k] -= J[k, c] * u[c]


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
def evidence(N, n, etas, kappa2):  # type: ignore[no-untyped-def]
    """The log-likelihood of truth, up to a constant, with all means unknown (REML).

    With Q = diag(kappa, ..., 1, ...) and M = I + Q N Q, it is -1/2 log|M| + 1/2 |M^-1/2 Q n|^2.
    """
    stays_a_function()
    factor, solved, total = np.empty((n.size, n.size)), np.empty(n.size), 0.0
    kappa = np.sqrt(kappa2)
    for k in range(n.size):
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
    best, most, kappa2 = 0.0, evidence(N, n, etas, 0.0) + GAIN, FIRST_KAPPA2
    for _ in range(STEPS):
        here = evidence(N, n, etas, kappa2)
        if here > most:
            best, most = kappa2, here
        kappa2 *= FACTOR
    return best


@subroutine
def work_out_blend(said, omega_inverse, means, least, kappa2, out):  # type: ignore[no-untyped-def]
    """R, X, N, n, and the maps from the means of feedback to the posterior.

    out.R has the precision of m, from feedback and truth, whose eigenvalues are `least` or more.
    kappa^2 is estimated where it is negative.
    """
    stays_a_function()
    mm, me, ee, of_m, of_e = said.mm, said.me, said.ee, said.of_m, said.of_e
    size, more = means.size, out.n.size
    etas = more - out.root.shape[0]
    if more > etas:
        _root_of_omega(omega_inverse, out.root)
        _by_root(out.root, etas, me)
        _by_root(out.root, etas, ee)
        _by_root(out.root, etas, ee.T)
        _by_root(out.root, etas, of_e.reshape(1, more))
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
            out.n[k] -= total * means[c]
    _leave_out(ee, by_means, out)
    if kappa2 < 0.0:
        kappa2 = _best_kappa2(out.N, out.n, etas)
    fitted += _solve_for_e(out, kappa2, etas, by_means)
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
    if more > etas:  # psi_0 itself, no longer B^-1 psi_0
        _by_root(out.root.T, etas, out.e_map.T)
        _by_root(out.root.T, etas, out.e_at_0.reshape(1, more))
    out.numbers[0], out.numbers[2] = kappa2, fitted


@subroutine
def _leave_out(ee, by_means, out):  # type: ignore[no-untyped-def]
    """Leave out the numbers of e of which truth says nothing where the means are unknown.

    Where data have no noise, what is left of such a difference is rounding, of either sign.
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
    """H = (P^-1 + N)^-1, and e as a function of the means; how many numbers of e truth fits."""
    stays_a_function()
    more, size = by_means.shape
    kappa = np.sqrt(kappa2)
    for k in range(more):
        for c in range(more):
            out.H[k, c] = out.N[k, c] * (kappa if k < etas else 1.0) * (kappa if c < etas else 1.0)
        out.H[k, k] += 1.0
    invert(place(out.H, 0), 1.0, more)
    fitted, start = 0.0, out.e_at_0.copy()
    for k in range(more):
        for c in range(more):
            out.H[k, c] *= (kappa if k < etas else 1.0) * (kappa if c < etas else 1.0)
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
def noise_of_truth(residual, number, fitted, known):  # type: ignore[no-untyped-def]
    """sigma_z^2 from squared residuals of true rewards, with a prior at the noise of feedback."""
    left = max(number - fitted, 0.0)
    return max((max(residual, 0.0) + PRIOR_NUMBER * known) / (left + PRIOR_NUMBER), 1e-4 * known)
