"""What a reward changes, and when the variances are estimated again.

The state is a function of what was learned, whatever the order: of the set of rewards, each with
the round of its decision. Variances are estimated from the rewards of decisions up to the round
LIMIT, the *settled* ones. LIMIT depends on the latest round that has a reward, and grows by half
when it grows (1, 2, 4, 7, 11, ...). Between two limits a reward is one step of Kalman's filter,
O(d^2). A reward that comes late, of a decision up to LIMIT, or one whose round is not known,
changes the variances: then everything is worked out anew, O(n d^3), once for all rewards of a call.
"""

from __future__ import annotations

import numpy as np

from evenhand._borrow import stays_a_function
from evenhand._compile import compiled, subroutine
from evenhand.policies._kernels import kernel, learn, settle
from evenhand.policies._state import absorb_reward, round_learned
from evenhand.policies.pooled._hyperparameters import estimate_variances, units_of
from evenhand.policies.pooled._layout import (
    LATEST,
    LIMIT,
    N_NUMBERS,
    NUMBER,
    SEEN,
    SIGMA2,
    STALE,
    TAU2,
    matrix_of_all,
    matrix_of_group,
    vector_of,
)
from evenhand.policies.pooled._linear import times_vector
from evenhand.policies.pooled._posterior import blank_posterior, scaled_sums, work_out
from evenhand.policies.pooled._rule import PooledRule


@kernel(learn, PooledRule)
def _learn(rule, state, arm, group, x, reward):  # type: ignore[no-untyped-def]
    own, t = state.own, round_learned(state)
    absorb_reward(state, arm, group, x, reward)
    if t > own.common[LATEST]:
        own.common[LATEST] = t
        if t >= next_limit(own.common[LIMIT]):
            _move_limit(own, t)
    if t <= own.common[LIMIT]:
        own.common[STALE] = 1.0
        _add(own.settled, arm, x, reward)
    else:
        if own.common[STALE] > 0.0:
            work_out_all(rule, own)
        _add(own.fresh, arm, x, reward)
        _step(own, arm, group, x, reward)
    own.common[NUMBER] += 1.0
    own.groups[group, SEEN] += 1.0


@kernel(settle, PooledRule)
def _settle(rule, state):  # type: ignore[no-untyped-def]
    if state.own.common[STALE] > 0.0:
        work_out_all(rule, state.own)


@compiled
def next_limit(limit):  # type: ignore[no-untyped-def]
    """The limit after this one.

    Example:
        >>> from evenhand.policies.pooled._learning import next_limit
        >>> next_limit(0), next_limit(1), next_limit(2), next_limit(4), next_limit(7)
        (1.0, 2.0, 4.0, 7.0, 11.0)
    """
    return float(int(1.5 * limit) + 1)


@subroutine
def _move_limit(own, t):  # type: ignore[no-untyped-def]
    """All that was learned before is settled now."""
    stays_a_function()
    limit = own.common[LIMIT]
    while next_limit(limit) <= t:
        limit = next_limit(limit)
    own.common[LIMIT], own.common[STALE] = limit, 1.0
    for i in range(own.settled.shape[0]):
        for k in range(own.settled.shape[1]):
            own.settled[i, k] += own.fresh[i, k]
            own.fresh[i, k] = 0.0


@subroutine
def _add(sums, arm, x, reward):  # type: ignore[no-untyped-def]
    """Add a reward to the sums of its arm."""
    d, row = x.size, sums[arm]
    for k in range(d):
        for j in range(d):
            row[k * d + j] += x[k] * x[j]
        row[d * d + k] += x[k] * reward
    row[d * d + d] += reward * reward
    row[d * d + d + 1] += 1.0


@subroutine
def _step(own, arm, group, x, reward):  # type: ignore[no-untyped-def]
    """One reward more, with the variances as they are: updates of rank one, all of them O(d^2).

    S_i loses s s' / (sigma^2 + x . s), s = S_i x. So the precision of m_g, and with it that of mu,
    grow by the square of a vector each.
    """
    d = x.size
    S, u = own.arms[arm, : d * d].reshape((d, d)), own.arms[arm, d * d :]
    at = matrix_of_all(d, 3)
    s, k = own.common[at : at + d], own.common[at + d : at + 2 * d]
    Vk = own.common[at + 2 * d : at + 3 * d]
    times_vector(S, x, s)
    scale, surprise = own.common[SIGMA2], reward
    for q in range(d):
        scale += x[q] * s[q]
        surprise -= x[q] * u[q]
    row = own.groups[group]
    P, r = row[vector_of(d, 0) : vector_of(d, 1)], row[vector_of(d, 1) : vector_of(d, 2)]
    root = 1.0 / np.sqrt(scale)
    for q in range(d):
        k[q] = P[q] * s[q] * root
        u[q] += s[q] * surprise / scale
        r[q] += P[q] * s[q] * surprise / scale
        for j in range(d):
            S[q, j] -= s[q] * s[j] / scale
    V = row[matrix_of_group(d) :].reshape((d, d))
    _take_out(V, k, Vk)  # Vk is what V lost, as a vector times itself
    first, second = matrix_of_all(d, 0), matrix_of_all(d, 1)
    omega_inverse = own.common[first:second].reshape((d, d))
    C = own.common[second : matrix_of_all(d, 2)].reshape((d, d))
    times_vector(omega_inverse, Vk, k)
    _take_out(C, k, Vk)
    times_vector(V, r, s)
    times_vector(omega_inverse, s, row[vector_of(d, 2) : vector_of(d, 3)])
    _means(own, d)


@subroutine
def _take_out(V, k, Vk):  # type: ignore[no-untyped-def]
    """V = (V^-1 + k k')^-1; what it lost is Vk Vk'."""
    d = k.size
    times_vector(V, k, Vk)
    scale = 1.0
    for q in range(d):
        scale += k[q] * Vk[q]
    root = 1.0 / np.sqrt(scale)
    for q in range(d):
        Vk[q] *= root
    for q in range(d):
        for j in range(d):
            V[q, j] -= Vk[q] * Vk[j]


@subroutine
def _means(own, d):  # type: ignore[no-untyped-def]
    """mu^ and all m_g^."""
    first, second, third = matrix_of_all(d, 0), matrix_of_all(d, 1), matrix_of_all(d, 2)
    at = matrix_of_all(d, 3)
    omega_inverse = own.common[first:second].reshape((d, d))
    C, mu = own.common[second:third].reshape((d, d)), own.common[third : third + d]
    total, prior = own.common[at : at + d], own.common[at + d : at + 2 * d]
    for k in range(d):
        total[k] = 0.0
    for g in range(own.groups.shape[0]):
        for k in range(d):
            total[k] += own.groups[g, vector_of(d, 2) + k]
    times_vector(C, total, mu)
    times_vector(omega_inverse, mu, prior)
    for g in range(own.groups.shape[0]):
        row = own.groups[g]
        for k in range(d):
            total[k] = row[vector_of(d, 1) + k] + prior[k]
        times_vector(
            row[matrix_of_group(d) :].reshape((d, d)),
            total,
            row[vector_of(d, 3) : matrix_of_group(d)],
        )


@compiled
def work_out_all(rule, own):  # type: ignore[no-untyped-def]
    """Variances from the settled rewards, then the posterior of all, in the caller's units."""
    stays_a_function()
    n, m = own.settled.shape[0], own.groups.shape[0]
    d = rule.n_features
    own.common[STALE] = 0.0
    unit = units_of(own.settled, d)
    settled = scaled_sums(own.settled, unit)
    found = estimate_variances(settled, rule.group_of, rule.sizes, rule.sigma2)
    post = blank_posterior(n, m, d)
    data = scaled_sums(own.settled + own.fresh, unit)
    work_out(
        data, rule.group_of, found.sigma2, found.tau2, found.omega_inverse, found.lambda_inverse,
        post,
    )
    own.common[SIGMA2] = found.sigma2
    first, second, third = matrix_of_all(d, 0), matrix_of_all(d, 1), matrix_of_all(d, 2)
    for k in range(d):
        own.common[third + k] = post.mu[k] / unit[k]
        for j in range(d):
            own.common[first + k * d + j] = found.omega_inverse[k, j] * unit[k] * unit[j]
            own.common[second + k * d + j] = post.C[k, j] / unit[k] / unit[j]
    for i in range(n):
        for k in range(d):
            own.arms[i, d * d + k] = post.u[i, k] / unit[k]
            for j in range(d):
                own.arms[i, k * d + j] = post.S[i, k, j] / unit[k] / unit[j]
    room, shrunk = np.empty(d), np.empty(d)
    for g in range(m):
        row = own.groups[g]
        row[TAU2] = found.tau2[g]
        times_vector(post.V[g], post.r[g], room)
        times_vector(found.omega_inverse, room, shrunk)
        for k in range(d):
            row[vector_of(d, 0) + k] = unit[k] * unit[k] / found.tau2[g]
            row[vector_of(d, 1) + k] = post.r[g, k] * unit[k]
            row[vector_of(d, 2) + k] = shrunk[k] * unit[k]
            row[vector_of(d, 3) + k] = post.m[g, k] / unit[k]
            for j in range(d):
                row[matrix_of_group(d) + k * d + j] = post.V[g, k, j] / unit[k] / unit[j]
