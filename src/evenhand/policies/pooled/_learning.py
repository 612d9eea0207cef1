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
from evenhand.leastsquares import LANES
from evenhand.leastsquares._absorb import absorb_in
from evenhand.leastsquares._vectors import place
from evenhand.policies._kernels import kernel, learn, settle
from evenhand.policies._state import round_learned
from evenhand.policies.pooled._hyperparameters import estimate_variances
from evenhand.policies.pooled._layout import (
    EMPTY,
    LATEST,
    LIMIT,
    MEAN,
    NUMBER,
    PRECISION,
    SEEN,
    SHRUNK,
    SIGMA2,
    STALE,
    TAU2,
    R,
    V,
    lane_of,
    of_all,
    of_group,
)
from evenhand.policies.pooled._linear import dot, times_vector
from evenhand.policies.pooled._posterior import blank_posterior, in_units, units_of, work_out
from evenhand.policies.pooled._rule import PooledRule


@kernel(learn, PooledRule)
def _learn(rule, state, arm, group, x, reward):  # type: ignore[no-untyped-def]
    absorb_in(state.arms, arm, LANES, x, reward)
    _take(rule, state.own, arm, group, x, reward, round_learned(state))


@kernel(settle, PooledRule)
def _settle(rule, state):  # type: ignore[no-untyped-def]
    if state.own.common[STALE] > 0.0:
        work_out_all(rule, state.own)


@subroutine
def _take(rule, own, arm, group, x, reward, t):  # type: ignore[no-untyped-def]
    """Learn a reward of a decision of round t."""
    stays_a_function()
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
        _step(rule, own, arm, group, place(x, 0), reward, rule.n_features)
    own.common[NUMBER] += 1.0
    if own.groups[group, SEEN] == 0.0:
        own.common[EMPTY] -= 1.0
    own.groups[group, SEEN] += 1.0


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
    d, row = x.size, place(sums, arm * sums.shape[1])
    for k in range(d):
        for j in range(d):
            row[k * d + j] += x[k] * x[j]
        row[d * d + k] += x[k] * reward
    row[d * d + d] += reward * reward
    row[d * d + d + 1] += 1.0


@subroutine
def _step(rule, own, arm, group, x, reward, d):  # type: ignore[no-untyped-def]
    """One reward more, with the variances as they are: updates of rank one, all of them O(d^2).

    S_i loses s s' / (sigma^2 + x . s), s = S_i x. So the precision of m_g, and with it that of mu,
    grow by the square of a vector each.
    """
    s, grown, lost = of_all(own, 3, d), of_all(own, 4, d), of_all(own, 5, d)
    S, u = lane_of(own, arm), place(lane_of(own, arm), LANES * (d * (d + 1) // 2))
    scale, surprise, p = own.common[SIGMA2], reward, 0
    for k in range(d):
        s[k] = 0.0
        surprise -= x[k] * u[LANES * k]
    for k in range(d):
        for j in range(k):
            s[k] += S[LANES * (p + j)] * x[j]
            s[j] += S[LANES * (p + j)] * x[k]
        s[k] += S[LANES * (p + k)] * x[k]
        p += k + 1
    scale += dot(x, s, d)
    precision, r = of_group(own, group, PRECISION, d), of_group(own, group, R, d)
    root, p = 1.0 / np.sqrt(scale), 0
    for k in range(d):
        change = s[k] * surprise / scale
        u[LANES * k] += change
        r[k] += precision[k] * change
        grown[k] = precision[k] * s[k] * root
        for j in range(k + 1):
            S[LANES * (p + j)] -= s[k] * s[j] / scale
        p += k + 1
    omega_inverse, variance = of_all(own, 0, d), of_group(own, group, V, d)
    _take_out(variance, grown, lost, d)
    times_vector(omega_inverse, lost, grown, d)
    _take_out(of_all(own, 1, d), grown, lost, d)
    times_vector(variance, r, s, d)
    times_vector(omega_inverse, s, of_group(own, group, SHRUNK, d), d)
    _means(rule, own, d)


@subroutine
def _take_out(variance, grown, lost, d):  # type: ignore[no-untyped-def]
    """The variance after its inverse has grown by `grown` squared; it has lost `lost` squared."""
    times_vector(variance, grown, lost, d)
    root = 1.0 / np.sqrt(1.0 + dot(grown, lost, d))
    for k in range(d):
        lost[k] *= root
    for k in range(d):
        for j in range(d):
            variance[k * d + j] -= lost[k] * lost[j]


@subroutine
def _means(rule, own, d):  # type: ignore[no-untyped-def]
    """mu^ and all m_g^, and what they are for the scores of arms."""
    total, prior, reference = of_all(own, 3, d), of_all(own, 4, d), of_all(own, 5, d)
    m = own.groups.shape[0]
    for k in range(d):
        total[k] = reference[k] = 0.0
        for g in range(m):
            total[k] += of_group(own, g, SHRUNK, d)[k]
    times_vector(of_all(own, 1, d), total, of_all(own, 2, d), d)
    times_vector(of_all(own, 0, d), of_all(own, 2, d), prior, d)
    for g in range(m):
        r, mean = of_group(own, g, R, d), of_group(own, g, MEAN, d)
        for k in range(d):
            total[k] = r[k] + prior[k]
        times_vector(of_group(own, g, V, d), total, mean, d)
        for k in range(d):
            reference[k] += rule.weights[g] * mean[k]
    show_means(rule, own, reference, d)


@subroutine
def show_means(rule, own, reference, d):  # type: ignore[no-untyped-def]
    """Write the pull of the group's mean, and the correction, next to every arm's S and u."""
    for i in range(rule.group_of.size):
        g = rule.group_of[i]
        mean, precision = of_group(own, g, MEAN, d), of_group(own, g, PRECISION, d)
        pull = place(lane_of(own, i), LANES * (d * (d + 1) // 2 + d))
        for k in range(d):
            pull[LANES * k] = precision[k] * mean[k]
            pull[LANES * (d + k)] = reference[k] - mean[k]


@compiled
def work_out_all(rule, own):  # type: ignore[no-untyped-def]
    """Variances from the settled rewards, then the posterior of all, in the caller's units."""
    stays_a_function()
    n, m, d = own.settled.shape[0], own.groups.shape[0], rule.n_features
    own.common[STALE] = 0.0
    unit = units_of(own.settled, d)
    settled = in_units(own.settled, unit, rule.group_of, rule.sizes)
    variances, _ = estimate_variances(settled, rule.sigma2)
    post = blank_posterior(n, m, d)
    work_out(in_units(own.settled + own.fresh, unit, rule.group_of, rule.sizes), variances, post)
    own.common[SIGMA2] = variances.sigma2[0]
    omega_inverse, C, mu = of_all(own, 0, d), of_all(own, 1, d), of_all(own, 2, d)
    for k in range(d):
        mu[k] = post.mu[k] / unit[k]
        for j in range(d):
            omega_inverse[k * d + j] = variances.omega_inverse[k, j] * unit[k] * unit[j]
            C[k * d + j] = post.C[k, j] / unit[k] / unit[j]
    for i in range(n):
        S, p = lane_of(own, i), 0
        for k in range(d):
            for j in range(k + 1):
                S[LANES * (p + j)] = post.S[i, k, j] / unit[k] / unit[j]
            S[LANES * (d * (d + 1) // 2 + k)] = post.u[i, k] / unit[k]
            p += k + 1
    room = of_all(own, 3, d)
    for g in range(m):
        own.groups[g, TAU2] = variances.tau2[g]
        precision, r, shrunk = (
            of_group(own, g, PRECISION, d),
            of_group(own, g, R, d),
            of_group(own, g, SHRUNK, d),
        )
        variance = of_group(own, g, V, d)
        for k in range(d):
            precision[k] = unit[k] * unit[k] / variances.tau2[g]
            r[k] = post.r[g, k] * unit[k]
            for j in range(d):
                variance[k * d + j] = post.V[g, k, j] / unit[k] / unit[j]
        times_vector(variance, r, room, d)
        times_vector(omega_inverse, room, shrunk, d)
    _means(rule, own, d)
