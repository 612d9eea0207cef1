"""The model of PooledGroupFair, and what it believes after the data (Gaussian, in closed form).

    y = theta_i . x + noise              noise ~ N(0, sigma^2)
    theta_i ~ N(m_g, tau_g^2 I)          the arms of group g are alike, up to their spread tau_g
    m_g = mu + psi_g                     psi_g ~ N(0, Omega), the bias of the group; mu ~ N(0, Lambda)

Features are in units of their root mean square, so that one spread serves all of them. With
A_i = X'X and b_i = X'y of arm i, and p = 1 / tau_g^2,

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

from evenhand._compile import compiled, inlined
from evenhand.policies.pooled._linear import invert, times_vector


class Scaled(NamedTuple):
    """The sums of all arms, with features in units of their root mean square."""

    A: NDArray[np.float64]  # (arms, d, d)
    b: NDArray[np.float64]  # (arms, d)
    yy: NDArray[np.float64]
    count: NDArray[np.float64]


class Posterior(NamedTuple):
    """What the model believes: of arms, of the means of groups, and of the mean of these."""

    S: NDArray[np.float64]  # (arms, d, d)
    u: NDArray[np.float64]  # (arms, d)
    V: NDArray[np.float64]  # (groups, d, d)
    r: NDArray[np.float64]  # (groups, d)
    m: NDArray[np.float64]  # (groups, d)
    C: NDArray[np.float64]  # (d, d)
    mu: NDArray[np.float64]  # (d,)


@compiled
def scaled_sums(sums, unit):  # type: ignore[no-untyped-def]
    """The sums of a table as in `PooledState`, for features divided by their `unit`."""
    n, d = sums.shape[0], unit.size
    A, b = np.empty((n, d, d)), np.empty((n, d))
    yy, count = np.empty(n), np.empty(n)
    for i in range(n):
        for k in range(d):
            for j in range(d):
                A[i, k, j] = sums[i, k * d + j] / unit[k] / unit[j]
            b[i, k] = sums[i, d * d + k] / unit[k]
        yy[i], count[i] = sums[i, d * d + d], sums[i, d * d + d + 1]
    return Scaled(A, b, yy, count)


@compiled
def blank_posterior(n, m, d):  # type: ignore[no-untyped-def]
    """Memory for a posterior of n arms, m groups and d features."""
    return Posterior(
        np.empty((n, d, d)),
        np.empty((n, d)),
        np.empty((m, d, d)),
        np.empty((m, d)),
        np.empty((m, d)),
        np.empty((d, d)),
        np.empty(d),
    )


@inlined
def _arm(data, i, sigma2, precision, post):  # type: ignore[no-untyped-def]
    """S_i and u_i."""
    d = post.mu.size
    S, u = post.S[i], post.u[i]
    for k in range(d):
        for j in range(d):
            S[k, j] = data.A[i, k, j] / sigma2
        S[k, k] += precision
    invert(S)
    times_vector(S, data.b[i], u)
    for k in range(d):
        u[k] /= sigma2


@compiled
def work_out(data, group_of, sigma2, tau2, omega_inverse, lambda_inverse, post):  # type: ignore[no-untyped-def]
    """Fill in the posterior, given the variances of the model."""
    n, d, m = group_of.size, post.mu.size, tau2.size
    post.V[:] = 0.0
    post.r[:] = 0.0
    for i in range(n):
        g = group_of[i]
        p = 1.0 / tau2[g]
        if data.count[i] == 0.0:  # nothing seen: S_i = tau^2 I, which adds nothing to V and r
            post.S[i] = 0.0
            post.u[i] = 0.0
            for k in range(d):
                post.S[i, k, k] = tau2[g]
            continue
        _arm(data, i, sigma2, p, post)
        for k in range(d):
            post.r[g, k] += p * post.u[i, k]
            for j in range(d):
                post.V[g, k, j] -= p * p * post.S[i, k, j]
            post.V[g, k, k] += p
    room, more = np.empty(d), np.empty((d, d))
    post.C[:] = lambda_inverse
    post.mu[:] = 0.0
    for g in range(m):
        V = post.V[g]
        for k in range(d):
            for j in range(d):
                V[k, j] += omega_inverse[k, j]
        invert(V)
        for k in range(d):  # more = Omega^-1 V
            times_vector(V, omega_inverse[k], more[k])
        for k in range(d):
            for j in range(d):
                total = omega_inverse[k, j]
                for q in range(d):
                    total -= more[k, q] * omega_inverse[q, j]
                post.C[k, j] += total
            for j in range(d):
                post.mu[k] += more[k, j] * post.r[g, j]
    invert(post.C)
    times_vector(post.C, post.mu, room)
    post.mu[:] = room
    for g in range(m):
        mean_of_group(post.V[g], post.r[g], omega_inverse, post.mu, room, post.m[g])


@inlined
def mean_of_group(V, r, omega_inverse, mu, room, out):  # type: ignore[no-untyped-def]
    """m_g^ = V_g (r_g + Omega^-1 mu^)."""
    d = mu.size
    times_vector(omega_inverse, mu, room)
    for k in range(d):
        room[k] += r[k]
    times_vector(V, room, out)


@compiled
def variance_of_mean(post, omega_inverse, g, out):  # type: ignore[no-untyped-def]
    """The variance of m_g, that of mu included: V_g + V_g Omega^-1 C Omega^-1 V_g."""
    d = post.mu.size
    left, middle = np.empty((d, d)), np.empty((d, d))
    for k in range(d):  # left = V Omega^-1
        times_vector(omega_inverse, post.V[g, k], left[k])
    for k in range(d):
        times_vector(post.C, left[k], middle[k])
    for k in range(d):
        for j in range(d):
            total = post.V[g, k, j]
            for q in range(d):
                total += middle[k, q] * left[j, q]
            out[k, j] = total
