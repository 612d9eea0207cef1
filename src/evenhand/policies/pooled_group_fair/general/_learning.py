"""Learning from a reward in the general form.

As in `evenhand.policies.pooled_group_fair._learning`: the state is a function of the set of
rewards, each with the round of its decision. Variances are estimated from the settled ones, of
decisions up to LIMIT; between two limits a reward is one step of a Kalman filter.
"""

from __future__ import annotations

import numpy as np

from evenhand._compile import subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares import LANES
from evenhand.leastsquares._absorb import absorb_in
from evenhand.policies._kernels import kernel, learn, settle
from evenhand.policies._state import round_learned
from evenhand.policies.pooled_group_fair._layout import (
    EMPTY,
    IN_USE,
    LATEST,
    LIMIT,
    N_NUMBERS,
    NUMBER,
    REWARD_UNIT,
    SIGMA2,
    STALE,
    TRUE_NUMBER,
)
from evenhand.policies.pooled_group_fair._learning import next_limit
from evenhand.policies.pooled_group_fair._true_learning import merge_truth
from evenhand.policies.pooled_group_fair.general._layout import (
    GeneralRule,
    GeneralState,
    add_reward,
    fill_weights,
)
from evenhand.policies.pooled_group_fair.general._posterior import (
    add_in_units,
    blank_data,
    blank_posterior,
    units_of,
    work_out,
)
from evenhand.policies.pooled_group_fair.general._true_learning import show, take_in
from evenhand.policies.pooled_group_fair.general._variances import estimate_variances

FAR = 1e50  # of the usual size of a feature or reward


@kernel(learn, GeneralRule)
def _learn(rule, state, arm, group, x, reward):  # type: ignore[no-untyped-def]
    absorb_in(state.arms, arm, LANES, x, reward)
    _take(rule, state.own, arm, x, reward, round_learned(state))


@kernel(settle, GeneralRule)
def _settle(rule, state):  # type: ignore[no-untyped-def]
    if state.own.common[STALE] > 0.0 and state.own.common[NUMBER] > 0.0:
        _work_out_all(rule, state.own)


@subroutine
def _take(rule, own, arm, x, reward, t):  # type: ignore[no-untyped-def]
    """Learn a reward of a decision of round t."""
    stays_a_function()
    if t > own.common[LATEST]:
        own.common[LATEST] = t
        if t >= next_limit(own.common[LIMIT]):
            _move_limit(own, t)
    weights = np.empty(rule.kinds.size)
    fill_weights(rule, arm, x, weights)
    if t <= own.common[LIMIT]:
        own.common[STALE] = 1.0
        add_reward(rule, own.settled, own.settled_arms, arm, weights, x, reward)
    else:
        is_settled = own.settled[own.settled.size - 1] > 0.0
        if own.common[STALE] > 0.0 and is_settled:
            _work_out_all(rule, own)
        add_reward(rule, own.fresh, own.fresh_arms, arm, weights, x, reward)
        if is_settled:  # see `_work_out_all`
            _step(rule, own, arm, weights, x, reward)
            if own.truth[IN_USE] > 0.0:
                show(rule, own)
    own.common[NUMBER] += 1.0
    for level in range(own.mass.size):
        if own.mass[level] == 0.0 and weights[1 + level] > 0.0:
            own.common[EMPTY] -= 1.0
        own.mass[level] += weights[1 + level]


@subroutine
def _move_limit(own, t):  # type: ignore[no-untyped-def]
    """Move the limit up: all rewards learned so far become settled."""
    stays_a_function()
    limit = own.common[LIMIT]
    while next_limit(limit) <= t:
        limit = next_limit(limit)
    own.common[LIMIT], own.common[STALE] = limit, 1.0
    for k in range(own.settled.size):
        own.settled[k] += own.fresh[k]
        own.fresh[k] = 0.0
    for i in range(own.settled_arms.shape[0]):
        for k in range(own.settled_arms.shape[1]):
            own.settled_arms[i, k] += own.fresh_arms[i, k]
            own.fresh_arms[i, k] = 0.0


@subroutine
def _step(rule, own, arm, weights, x, reward):  # type: ignore[no-untyped-def]
    """Learn one more reward with the same variances.

    With s = S_i x and c = sigma^2 + x . s, S_i loses s s' / c, u_i gains s (y - u_i . x) / c, and
    D_i gains s g' / c, where g = z - D_i' x. For the effects it is a reward y - u_i . x of variance
    c at g.
    """
    stays_a_function()
    d, size = rule.n_features, own.means.shape[1]
    scaled, s, z = np.empty(d), np.empty(d), np.empty(size)
    surprise, scale = reward / own.common[REWARD_UNIT], own.common[SIGMA2]
    far = abs(surprise)
    for k in range(d):
        scaled[k] = x[k] * own.common[N_NUMBERS + k]
        far = max(far, abs(scaled[k]))
        for column in range(weights.size):
            z[column * d + k] = weights[column] * scaled[k]
    # Products of up to four such numbers are still in range.
    if not far < FAR:  # so far from all others that its products may overflow
        own.common[STALE] = 1.0
        return
    if rule.recurs:
        row, u, D = own.arms[arm], d * d, d * d + d
        for k in range(d):
            s[k] = 0.0
            surprise -= scaled[k] * row[u + k]
            for j in range(d):
                s[k] += row[k * d + j] * scaled[j]
            for j in range(size):
                # g = z - D_i' x: what the reward says of the effects once the arm's own part has
                # explained its share.
                z[j] -= scaled[k] * row[D + k * size + j]
            scale += scaled[k] * s[k]
        for k in range(d):
            row[u + k] += s[k] * surprise / scale
            for j in range(d):
                row[k * d + j] -= s[k] * s[j] / scale
            for j in range(size):
                row[D + k * size + j] += s[k] * z[j] / scale
    _step_of_effects(own.means, z, surprise, scale)


@subroutine
def _step_of_effects(means, z, surprise, scale):  # type: ignore[no-untyped-def]
    """A Kalman step for M and V.

    With l = V z and c = scale + z . l, M gains l (y - z . M) / c, and V loses l l' / c.
    """
    stays_a_function()
    size, lost = z.size, np.empty(z.size)
    total = scale
    for k in range(size):
        lost[k] = 0.0
        for j in range(size):
            lost[k] += means[1 + k, j] * z[j]
        total += z[k] * lost[k]
        surprise -= z[k] * means[0, k]
    for k in range(size):
        means[0, k] += lost[k] * surprise / total
        for j in range(size):
            means[1 + k, j] -= lost[k] * lost[j] / total


@subroutine
def _work_out_all(rule, own):  # type: ignore[no-untyped-def]
    """Variances from the settled rewards, then the posterior of all.

    The first rewards to come may be of decisions after the limit. Until one is settled, the
    variances are those of all rewards, and worked out again with each: so STALE stays.
    """
    stays_a_function()
    n, d, size = own.arms.shape[0], rule.n_features, own.means.shape[1]
    is_settled = own.settled[own.settled.size - 1] > 0.0
    sums, of_arms = own.settled, own.settled_arms
    if not is_settled:
        sums, of_arms = own.fresh, own.fresh_arms
    unit, of_rewards = units_of(sums, size, d)
    # Units of the settled rewards could be far too small for a fresh one that is off by many powers
    # of ten; then those of all are taken, in which squares stay in range.
    latest, largest = units_of(own.fresh, size, d)
    far = largest / of_rewards
    for k in range(d):
        far = max(far, latest[k] / unit[k])
    if not far < FAR:
        unit, of_rewards = units_of(own.settled + own.fresh, size, d)
    data = blank_data(n, size, d)
    add_in_units(data, sums, of_arms, unit, of_rewards)
    known = rule.sigma2 / of_rewards / of_rewards
    n_kinds = rule.cells.shape[1] + 2
    variances, _ = estimate_variances(data, rule.kinds, n_kinds, known, d)
    post = blank_posterior(n, size, d)
    if own.truth[TRUE_NUMBER] > 0.0:
        work_out(data, rule.kinds, variances, post)
        take_in(rule, own, data, variances, post, unit, of_rewards)
    if is_settled:
        add_in_units(data, own.fresh, own.fresh_arms, unit, of_rewards)
    work_out(data, rule.kinds, variances, post)
    own.common[STALE], own.common[REWARD_UNIT] = 0.0 if is_settled else 1.0, of_rewards
    own.common[SIGMA2] = variances.sigma2[0]
    for k in range(d):
        own.common[N_NUMBERS + k] = 1.0 / unit[k]
    for k in range(size):
        own.means[0, k] = post.M[k]
        for j in range(size):
            own.means[1 + k, j] = post.V[k, j]
    for i in range(n):
        for k in range(d):
            own.arms[i, d * d + k] = post.u[i, k]
            for j in range(d):
                own.arms[i, k * d + j] = post.S[i, k, j]
            for j in range(size):
                own.arms[i, d * d + d + k * size + j] = post.D[i, k, j]
    if own.truth[IN_USE] > 0.0:
        show(rule, own)


def merge_general(mine: GeneralState, its: GeneralState) -> None:
    """Add what another policy has learned; its sums over all rewards have been added before."""
    mine.settled_arms[...] += its.settled_arms
    mine.fresh_arms[...] += its.fresh_arms
    mine.mass[...] += its.mass
    for number in (LATEST, LIMIT):
        mine.common[number] = max(mine.common[number], its.common[number])
    mine.common[NUMBER] += its.common[NUMBER]
    # Counted, not added: both may have seen the same levels.
    mine.common[EMPTY] = np.count_nonzero(mine.mass == 0.0)
    mine.true[...] += its.true
    mine.true_arms[...] += its.true_arms
    mine.true_reference[...] += its.true_reference
    merge_truth(mine, its)
