"""The model of PooledGroupFair, and its posterior (Gaussian, in closed form).

    y = theta_i . x + noise              noise ~ N(0, sigma^2)
    theta_i ~ N(m_g, tau_g^2 I)          the arms of group g are alike, up to their spread tau_g
    m_g = mu + psi_g                     psi_g ~ N(0, Omega) is the group's bias; mu ~ N(0, Lambda)

Features and rewards are in units of their root mean square, so that one spread serves all features
and no number leaves the range of floating point. With A_i = X'X and b_i = X'y of arm i, and
p = 1 / tau_g^2,

    S_i = (A_i / sigma^2 + p I)^-1                            what is left of an arm's own variance
    u_i = S_i b_i / sigma^2,  theta_i^ = u_i + p S_i m_g^     the arm's data, and its group's mean
    V_g = (n_g p I - p^2 sum S_i + Omega^-1)^-1               variance of m_g, were mu known
    C = (Lambda^-1 + sum_g (Omega^-1 - Omega^-1 V_g Omega^-1))^-1             variance of mu
    mu^ = C sum_g Omega^-1 V_g r_g,  m_g^ = V_g (r_g + Omega^-1 mu^)  with r_g = p sum u_i
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import inlined, subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._simd import place
from evenhand.leastsquares._small_matrices import (
    clear,
    dot,
    invert,
    invert_here,
    product_here,
    times_vector,
)


class Data(NamedTuple):
    """The sums of all arms, in units of the root mean square of features and rewards."""

    A: NDArray[np.float64]  # (arms, d, d)
    b: NDArray[np.float64]  # (arms, d)
    yy: NDArray[np.float64]
    number: NDArray[np.float64]  # how many rewards each arm has
    group_of: NDArray[np.int64]
    sizes: NDArray[np.float64]  # how many arms each group has


class Variances(NamedTuple):
    """The hyperparameters, for features in units of their root mean square."""

    sigma2: NDArray[np.float64]  # of the noise: one number
    tau2: NDArray[np.float64]  # per group: of the arms around the mean of their group
    omega_inverse: NDArray[np.float64]  # (d, d), the prior precision of the bias
    lambda_inverse: NDArray[np.float64]  # (d, d), that of the mean of all groups
    least: NDArray[np.float64]  # the smallest eigenvalues of both


class Posterior(NamedTuple):
    """The posterior of arms, of the means of groups, and of the mean of these."""

    S: NDArray[np.float64]  # (arms, d, d)
    u: NDArray[np.float64]  # (arms, d)
    V: NDArray[np.float64]  # (groups, d, d)
    F: NDArray[np.float64]  # (groups, d, d), Omega^-1 V_g
    r: NDArray[np.float64]  # (groups, d)
    m: NDArray[np.float64]  # (groups, d)
    C: NDArray[np.float64]  # (d, d)
    mu: NDArray[np.float64]  # (d,)
    room: NDArray[np.float64]  # (2, d)


@subroutine
def units_of(sums, d):  # type: ignore[no-untyped-def]
    """The root mean square of every feature; 1 for a feature that was always 0."""
    stays_a_function()
    unit, number = np.zeros(d), 0.0
    for i in range(sums.shape[0]):
        number += sums[i, d * d + d + 1]
        for k in range(d):
            unit[k] += sums[i, k * d + k]
    for k in range(d):
        unit[k] = np.sqrt(unit[k] / max(number, 1.0))
        # The sums have squares: below this, the square of a feature has all but underflowed.
        if not unit[k] > 1e-150:
            unit[k] = 1.0
    return unit


@subroutine
def unit_of_rewards(sums):  # type: ignore[no-untyped-def]
    """The root mean square of rewards; 1 where all are 0."""
    stays_a_function()
    squares, number = 0.0, 0.0
    for i in range(sums.shape[0]):
        squares += sums[i, sums.shape[1] - 2]
        number += sums[i, sums.shape[1] - 1]
    unit = np.sqrt(squares / max(number, 1.0))
    return unit if unit > 1e-150 else 1.0


@subroutine
def in_units(sums, unit, of_rewards, group_of, sizes):  # type: ignore[no-untyped-def]
    """The sums of a table as in `PooledState`, for features and rewards divided by their units."""
    stays_a_function()
    n, d = sums.shape[0], unit.size
    A, b = np.empty((n, d, d)), np.empty((n, d))
    yy, count = np.empty(n), np.empty(n)
    for i in range(n):
        for k in range(d):
            for j in range(d):
                A[i, k, j] = sums[i, k * d + j] / unit[k] / unit[j]
            b[i, k] = sums[i, d * d + k] / unit[k] / of_rewards
        yy[i] = sums[i, d * d + d] / of_rewards / of_rewards
        count[i] = sums[i, d * d + d + 1]
    return Data(A, b, yy, count, group_of, sizes)


@subroutine
def blank_posterior(n, m, d):  # type: ignore[no-untyped-def]
    """Memory for a posterior of n arms, m groups and d features."""
    stays_a_function()
    return Posterior(
        np.empty((n, d, d)),
        np.empty((n, d)),
        np.empty((m, d, d)),
        np.empty((m, d, d)),
        np.empty((m, d)),
        np.empty((m, d)),
        np.empty((d, d)),
        np.empty(d),
        np.empty((2, d)),
    )


@inlined
def work_out(data, variances, post):  # type: ignore[no-untyped-def]
    """Fill in the posterior, given the variances of the model."""
    d = post.mu.size
    if d == 2:  # a compile-time constant: its loops are unrolled
        _work_out_arms(data, variances, post, 2)
    else:
        _work_out_arms(data, variances, post, d)
    work_out_groups(data.sizes.size, variances, post)


@subroutine
def work_out_groups(m, variances, post):  # type: ignore[no-untyped-def]
    """The means of groups and the mean of all, where V_g has what arms add to its precision."""
    stays_a_function()
    if post.mu.size == 2:
        _work_out_groups(m, variances, post, 2)
    else:
        _work_out_groups(m, variances, post, post.mu.size)


@inlined
def _work_out_groups(m, variances, post, d):  # type: ignore[no-untyped-def]
    """`work_out_groups` with d as a constant, in two sweeps over the groups.

    The first goes from the groups to the mean of all. It inverts V_g, makes F_g = Omega^-1 V_g, and
    adds Omega^-1 - F_g Omega^-1 to the precision of mu and F_g r_g to its value. Then mu^ is known,
    and the second goes back: m_g^ = V_g (r_g + Omega^-1 mu^).
    """
    omega_inverse = place(variances.omega_inverse, 0)
    lambda_inverse = place(variances.lambda_inverse, 0)
    C, mu, total = place(post.C, 0), place(post.mu, 0), place(post.room, 0)
    for k in range(d * d):
        # Starts as the prior precision of mu; the sweep adds what the groups say of it.
        C[k] = lambda_inverse[k]
    for k in range(d):
        total[k] = 0.0
    for g in range(m):
        V, F, r = place(post.V, g * d * d), place(post.F, g * d * d), place(post.r, g * d)
        for k in range(d * d):
            V[k] += omega_inverse[k]
        # What arms add is positive semidefinite, so no eigenvalue is below that of Omega^-1.
        invert_here(V, variances.least[0], d)
        product_here(omega_inverse, V, F, d)
        for k in range(d):
            total[k] += dot(place(F, k * d), r, d)
            for j in range(d):
                # Group g sees mu through m_g, whose variance around it is Omega: of the precision
                # Omega^-1 the part Omega^-1 V_g Omega^-1 is lost, because m_g is itself uncertain.
                shrunk = dot(place(F, k * d), place(omega_inverse, j * d), d)
                # A difference of two matrices that are alike if the data say little of m_g;
                # Lambda^-1 keeps the sum invertible.
                C[k * d + j] += omega_inverse[k * d + j] - shrunk
    # From here on C is the variance of mu, and `total` has sum_g F_g r_g.
    invert_here(C, variances.least[1], d)
    times_vector(C, total, mu, d)
    # The same for all groups, so it is worked out once.
    times_vector(omega_inverse, mu, total, d)
    for g in range(m):
        information, r = place(post.room, d), place(post.r, g * d)
        for k in range(d):
            information[k] = total[k] + r[k]
        times_vector(place(post.V, g * d * d), information, place(post.m, g * d), d)


@inlined
def _work_out_arms(data, variances, post, d):  # type: ignore[no-untyped-def]
    """S_i, u_i, and their sums over the arms of a group: r_g, and n_g p I - p^2 sum S_i in V_g."""
    per_noise = 1.0 / variances.sigma2[0]
    # The groups collect n_g p I - p^2 sum S_i here. An arm adds p I - p^2 S_i = p B_i with B_i = I
    # - p S_i, which is between 0 (nothing seen) and p I (known exactly).
    clear(place(post.V, 0), post.V.size)
    clear(place(post.r, 0), post.r.size)
    for i in range(data.number.size):
        g = data.group_of[i]
        p = 1.0 / variances.tau2[g]
        S, u, A = place(post.S, i * d * d), place(post.u, i * d), place(data.A, i * d * d)
        if data.number[i] == 0.0:  # nothing seen: S_i = tau^2 I, which adds nothing to V and r
            for k in range(d * d):
                S[k] = 0.0
            for k in range(d):
                S[k * d + k] = variances.tau2[g]
                u[k] = 0.0
            continue
        for k in range(d * d):
            S[k] = A[k] * per_noise
        for k in range(d):
            S[k * d + k] += p
        if d == 2:
            invert_here(S, p, 2)
        else:
            invert(S, p, d)
        times_vector(S, place(data.b, i * d), u, d)
        # u is S b until it is divided by sigma^2 below.
        V, r = place(post.V, g * d * d), place(post.r, g * d)
        for k in range(d * d):
            V[k] -= p * p * S[k]
        for k in range(d):
            u[k] *= per_noise
            r[k] += p * u[k]
            V[k * d + k] += p
