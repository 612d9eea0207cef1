"""The bias from true rewards: the model of `_posterior`, with a second kind of reward.

A true reward of arm i at x is z = (theta_i - psi_g) . x + noise(sigma_z^2). With equal averages,
psi_g = m_g - m_ref. So that averages may differ, and so that the reference may be distorted where
nobody named one, the bias is

    psi_g = m_g - m_ref - (eta_g - eta_ref) + psi_0     eta_g ~ N(0, kappa^2 I), psi_0 ~ N(0, Omega)

eta_g - eta_ref is how much better group g truly is than the reference, and psi_0 is the bias of the
reference itself, 0 where it is named. kappa^2 is estimated. It is 0, which is what feedback alone
has to assume, unless the data contradict that; at 0, true rewards only sharpen m_g - m_ref.

Given the feedback, arm i is theta_i ~ N(u_i + p S_i m_g, S_i). Its true rewards, with sums A_z and
b_z, then have on t = p S_i m_g - psi_g, which they see with the variance S_i beside the noise,

    information J_i = S_i^-1 (S_i^-1 + A')^-1 A',  A' = A_z / sigma_z^2,
    and value       j_i = S_i^-1 (S_i^-1 + A')^-1 b' - J_i u_i,  b' = b_z / sigma_z^2

t is linear in the means m and in e = (eta_1, ..., eta_m, B^-1 psi_0), where B B' = Omega, so all of
it is a Gaussian posterior in closed form. It does not need to know which feedback belongs to which
true reward. It is exact if noises are independent; true rewards are few, so a correlation within a
decision hardly matters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._blend import (
    PASSES,
    blank_blend,
    blank_information,
    look_at_arm,
    noise_of_truth,
    work_out_blend,
)
from evenhand.leastsquares._simd import place
from evenhand.leastsquares._small_matrices import clear, form, invert, product


class Truth(NamedTuple):
    """The sums of true rewards by arm, in the units of `Data` and of the feedback."""

    A: NDArray[np.float64]  # (arms, d, d)
    b: NDArray[np.float64]  # (arms, d)
    zz: NDArray[np.float64]
    number: NDArray[np.float64]


class Seen(NamedTuple):
    """The information of every group's true rewards, as sums over its arms; F_i = p S_i - I."""

    J: NDArray[np.float64]  # (groups, d, d)
    FJ: NDArray[np.float64]
    FJF: NDArray[np.float64]
    j: NDArray[np.float64]  # (groups, d)
    Fj: NDArray[np.float64]


@subroutine
def blank_seen(m, d):  # type: ignore[no-untyped-def]
    """Memory for a `Seen`."""
    return Seen(
        np.empty((m, d, d)),
        np.empty((m, d, d)),
        np.empty((m, d, d)),
        np.empty((m, d)),
        np.empty((m, d)),
    )


@subroutine
def information_of_truth(data, variances, post, truth, sigma2, seen):  # type: ignore[no-untyped-def]
    """Fill in the information of true rewards whose noise is sigma2.

    Arms of a group see the same mean m_g with different F_i = p S_i - I. t_i is linear in m and e,
    so their information is needed only as five sums for each group: of J_i and j_i, which all terms
    that do not pass through F_i share, of F_i' J_i and F_i' j_i, and of F_i' J_i F_i. The number of
    arms drops out, and `_assemble` works on groups.
    """
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
            # S_i^-1 from its parts: inverting S_i would lose what its own inversion has rounded.
            own[k, k] += p
            F[k, k] -= 1.0
        look_at_arm(A, b, own, post.u[i], p, E, part, J, j)
        for k in range(d):
            seen.j[g, k] += j[k]
            for c in range(d):
                seen.J[g, k, c] += J[k, c]
                # F' j, and below F' J and F' J F.
                seen.Fj[g, k] += F[c, k] * j[c]
                for o in range(d):
                    seen.FJ[g, k, c] += F[o, k] * J[o, c]
                    for q in range(d):
                        seen.FJF[g, k, c] += F[o, k] * J[o, q] * F[q, c]
    # This keeps the arrays alive up to here: their places are in use.
    A[0, 0] = E[0, 0] = own[0, 0] = part[0, 0] = b[0] = 0.0


@subroutine
def _assemble(weights, seen, m, d, info):  # type: ignore[no-untyped-def]
    """The information of truth on m and e.

    With F_i = p S_i - I, t = F_i m_g + m_ref + (eta_g - eta_ref) - psi_0. So an arm of group g
    weighs F_i on m_g, w_h I on every m_h, (1 - w_g) and -w_h on the etas, and -I on psi_0, where
    w are the weights of the reference.
    """
    stays_a_function()
    mm, me, ee, of_m, of_e = info.mm, info.me, info.ee, info.of_m, info.of_e
    # With M_h = (of_h F + w_h I), of_h = 1 for the own group, an arm adds M_h' J M_o to the block
    # (h, o) of mm, and M_h' J (of_o - w_o) to that of me. Summed over arms, the products with F are
    # those in `seen`.
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
                            # The transpose of FJ: here F stands on the right of J.
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

    That of group g is n_g p I - p^2 sum S_i + Omega^-1, the inverse of V_g. Every pair of groups
    shares -Omega^-1 (Lambda^-1 + m Omega^-1)^-1 Omega^-1.
    """
    stays_a_function()
    m, d = post.m.shape
    shared, half = np.empty((d, d)), np.empty((d, d))
    for k in range(d):
        for c in range(d):
            # Given mu, groups are independent with the prior precision Omega^-1 each. Integrating
            # out mu, whose precision is Lambda^-1 and m times Omega^-1, takes a part of that off
            # all pairs.
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
    half[0, 0] = 0.0  # keeps the array alive up to here: its place is in use


@subroutine
def blend(data, variances, post, truth, weights, free, kappa2):  # type: ignore[no-untyped-def]
    """The posterior after feedback and truth; kappa^2 is estimated where it is negative."""
    stays_a_function()
    m, d = data.sizes.size, post.mu.size
    seen, size = blank_seen(m, d), m * d
    out, sigma2 = blank_blend(size, size, d, free), variances.sigma2[0]
    # The noise of truth decides how much truth counts, and comes from the residuals that this
    # leaves: a few passes, always from the noise of feedback.
    for _ in range(PASSES):
        information_of_truth(data, variances, post, truth, sigma2, seen)
        blend_in(data, variances, post, weights, seen, kappa2, out)
        out.numbers[1] = sigma2
        sigma2 = _noise_of_truth(data, variances, post, truth, weights, out)
    return out


@subroutine
def blend_in(data, variances, post, weights, seen, kappa2, out):  # type: ignore[no-untyped-def]
    """Fill in the posterior after true rewards."""
    stays_a_function()
    m, d = seen.j.shape
    info = blank_information(m * d, out.n.size)
    _assemble(weights, seen, m, d, info)
    for k in range(m * d):
        for c in range(m * d):
            out.R[k, c] = info.mm[k, c]
    _prior(data, variances, post, out.R)
    # A lower bound of the eigenvalues: the prior variance of all means together is at most the
    # largest of Omega plus m times the largest of Lambda.
    least = 1.0 / (1.0 / variances.least[0] + m / variances.least[1])
    work_out_blend(info, variances.omega_inverse, post.m.reshape(m * d), least, kappa2, out)


@subroutine
def corrected(out, weights, means, m, d, free, shifted, correction):  # type: ignore[no-untyped-def]
    """From the means of feedback: those after truth, and -psi_g for every group.

    psi_g = m_g - m_ref - (eta_g - eta_ref) + psi_0. The loop leaves eta_g - m_g in the correction
    of every group; minus the reference's mean of these, and minus psi_0, it is -psi_g. For a named
    reference of one group the result is exactly 0 there: nothing is corrected.

    `out` is a `Blend`, or the state that has kept its maps.
    """
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
    """sigma_z^2 from the residuals of true rewards, z'z - 2 t . b_z + t' A_z t.

    tr(S_i A_z), what arms vary by around their estimate, is taken off.
    """
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
    return noise_of_truth(residual, number, out.numbers[2], variances.sigma2[0])
