"""Learning from a reward, and when the variances are estimated again.

The state is a function of the set of rewards, each with the round of its decision, whatever their
order. Variances are estimated from the rewards of decisions up to the round LIMIT, the *settled*
ones. LIMIT depends on the latest round that has a reward, and grows by half each time (1, 2, 4, 7,
11, ...). Between two limits a reward is one step of a Kalman filter, O(d^2). A late reward, of a
decision up to LIMIT, or one whose round is not known, changes the variances: then everything is
worked out again, O(n d^3), once for all rewards of a call. So does a true reward. What true rewards
teach is a function of the settled feedback and of all true rewards, and is applied to the current
means (`_true_learning`).
"""

from __future__ import annotations

import numpy as np

from evenhand._compile import compiled, inlined, subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares import LANES
from evenhand.leastsquares._absorb import absorb_in
from evenhand.leastsquares._simd import few_numbers, place
from evenhand.leastsquares._small_matrices import dot, times_vector
from evenhand.leastsquares._triangle import HUGE
from evenhand.policies._kernels import kernel, learn, settle
from evenhand.policies._state import round_learned
from evenhand.policies.pooled_group_fair._hyperparameters import estimate_variances
from evenhand.policies.pooled_group_fair._layout import (
    EMPTY,
    IN_USE,
    LATEST,
    LIMIT,
    MEAN,
    MU,
    NUMBER,
    OMEGA_INVERSE,
    PER_UNIT,
    PULL,
    REWARD_UNIT,
    ROOM,
    SEEN,
    SHRUNK,
    SIGMA2,
    STALE,
    TAU2,
    TRUE_NUMBER,
    C,
    PooledRule,
    R,
    V,
    lane_of,
    of_all,
    of_group,
)
from evenhand.policies.pooled_group_fair._posterior import (
    blank_posterior,
    in_units,
    unit_of_rewards,
    units_of,
    work_out,
)
from evenhand.policies.pooled_group_fair._true_learning import take_in
from evenhand.policies.pooled_group_fair._true_posterior import corrected


@kernel(learn, PooledRule)
def _learn(rule, state, arm, group, x, reward):  # type: ignore[no-untyped-def]
    absorb_in(state.arms, arm, LANES, x, reward)
    _take(rule, state.own, arm, group, x, reward, round_learned(state))


@kernel(settle, PooledRule)
def _settle(rule, state):  # type: ignore[no-untyped-def]
    if state.own.common[STALE] > 0.0 and state.own.common[NUMBER] > 0.0:
        _work_out_all(rule, state.own)


@inlined
def _take(rule, own, arm, group, x, reward, t):  # type: ignore[no-untyped-def]
    """Learn a reward of a decision of round t.

    Not a function of its own: a call would copy the 120 words of the rule and the state, which was
    a quarter of a simulated round at n = 10, d = 2 (0.40 against 0.30 microseconds).
    """
    if t > own.common[LATEST]:
        own.common[LATEST] = t
        # Before the reward is added, so that it counts as fresh or settled by the new limit, as it
        # would if it had come in another order.
        if t >= next_limit(own.common[LIMIT]):
            _move_limit(own, t)
    if t <= own.common[LIMIT]:
        own.common[STALE] = 1.0
        # The variances depend on a settled reward, so the whole posterior does. It is worked out
        # once, in `settle`, for all rewards of a call.
        _add(own.settled, arm, x, reward)
    else:
        # A step starts from a posterior that is up to date.
        if own.common[STALE] > 0.0 and _is_settled(own):
            _work_out_all(rule, own)
        _add(own.fresh, arm, x, reward)
        # With d a compile-time constant, its loops are unrolled: a tenth of a round at d = 2.
        if own.common[STALE] > 0.0:
            pass  # nothing is settled yet, see `_work_out_all`
        elif rule.n_features == 2:
            _step(rule, own, arm, group, place(x, 0), reward, few_numbers(), 2)
        else:
            d = rule.n_features
            _step(rule, own, arm, group, place(x, 0), reward, of_all(own, ROOM, d), d)
    own.common[NUMBER] += 1.0
    if own.groups[group, SEEN] == 0.0:
        own.common[EMPTY] -= 1.0
    own.groups[group, SEEN] += 1.0


@compiled
def next_limit(limit):  # type: ignore[no-untyped-def]
    """The limit after this one.

    Example:
        >>> from evenhand.policies.pooled_group_fair._learning import next_limit
        >>> next_limit(0), next_limit(1), next_limit(2), next_limit(4), next_limit(7)
        (1.0, 2.0, 4.0, 7.0, 11.0)
    """
    return float(int(1.5 * limit) + 1)


@subroutine
def _move_limit(own, t):  # type: ignore[no-untyped-def]
    """Move the limit up: all rewards learned so far become settled."""
    stays_a_function()
    limit = own.common[LIMIT]
    # Step by step from the old limit: the limits are the same numbers whichever rounds had rewards.
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


@inlined
def _step(rule, own, arm, group, x, reward, room, d):  # type: ignore[no-untyped-def]
    """Learn one more reward with the same variances: updates of rank one, all of them O(d^2).

    With s = S_i x and c = sigma^2 + x . s, and one vector each for what is gained and lost,

        S_i loses s s' / c          u_i gains s (y - u_i . x) / c
        V_g^-1 gains g g'           g = p s / sqrt(c), so V_g loses l l' (`_take_out`)
        C^-1 gains h h'             h = Omega^-1 l
    """
    # `room` has four vectors. Names are reused below: `grown` is g and then h, and `s` is V r in
    # the end.
    s, grown, lost, scaled = room, place(room, d), place(room, 2 * d), place(room, 3 * d)
    S, u = lane_of(own, arm), place(lane_of(own, arm), LANES * (d * (d + 1) // 2))
    scale, surprise, p = own.common[SIGMA2], reward / own.common[REWARD_UNIT], 0
    for k in range(d):
        scaled[k] = x[k] * of_all(own, PER_UNIT, d)[k]
        surprise -= scaled[k] * u[LANES * k]
        s[k] = 0.0
    for k in range(d):
        for j in range(k):
            # Half of the symmetric S is kept; each number is used for both of its places.
            s[k] += S[LANES * (p + j)] * scaled[j]
            s[j] += S[LANES * (p + j)] * scaled[k]
        s[k] += S[LANES * (p + k)] * scaled[k]
        p += k + 1
    scale += dot(scaled, s, d)
    if not scale < HUGE:  # a context so far from all others that its square overflows
        own.common[STALE] = 1.0
        return
    # S loses s s' / c. It is scaled to s / sqrt(c), so that the same vector serves S, u and g.
    precision, r = 1.0 / own.groups[group, TAU2], of_group(own, group, R, d)
    root, p = 1.0 / np.sqrt(scale), 0
    for k in range(d):
        s[k] *= root
        change = s[k] * surprise * root
        u[LANES * k] += change
        # r_g = p sum u_i, so it moves with u.
        r[k] += precision * change
        # V_g^-1 has -p^2 S_i in it, and S_i has lost s s': so V_g^-1 gains p^2 s s'.
        grown[k] = precision * s[k]
        for j in range(k + 1):
            S[LANES * (p + j)] -= s[k] * s[j]
        p += k + 1
    omega_inverse, variance = of_all(own, OMEGA_INVERSE, d), of_group(own, group, V, d)
    # The precision of mu has -Omega^-1 V_g Omega^-1 in it, and V_g has lost l l': so it gains h h'
    # with h = Omega^-1 l. That is the next call.
    _take_out(variance, grown, lost, d)
    times_vector(omega_inverse, lost, grown, d)
    _take_out(of_all(own, C, d), grown, lost, d)
    # Only this group's part of mu's value has changed, so the sum over groups in `_means` is one of
    # vectors that are kept.
    times_vector(variance, r, s, d)
    times_vector(omega_inverse, s, of_group(own, group, SHRUNK, d), d)
    _means(rule, own, room, d)


@inlined
def _take_out(variance, grown, lost, d):  # type: ignore[no-untyped-def]
    """The variance V after its inverse has gained g g' (`grown`); it loses l l' (`lost`).

    l = V g / sqrt(1 + g' V g): the formula of Sherman and Morrison.
    """
    times_vector(variance, grown, lost, d)
    # g' V g is 0 or more; rounding could make it slightly negative.
    root = 1.0 / np.sqrt(1.0 + max(dot(grown, lost, d), 0.0))
    for k in range(d):
        lost[k] *= root
    for k in range(d):
        for j in range(d):
            variance[k * d + j] -= lost[k] * lost[j]


@inlined
def _means(rule, own, room, d):  # type: ignore[no-untyped-def]
    """mu^ and all m_g^ and, next to every arm's S and u, what its score needs of them.

    A reward moves mu, and so the means of all groups: that is O(m d^2). S_i and u_i of the other
    arms do not change. So theta_i^ = u_i + S_i (p m_g) is not kept, but made from its parts when an
    arm is scored. The last loop copies p m_g and the correction m_ref - m_g behind every arm, 2 d
    numbers each, so that scoring reads one block of memory after the other.
    """
    total, prior, reference = room, place(room, d), place(room, 2 * d)
    m = own.groups.shape[0]
    for k in range(d):
        total[k] = reference[k] = 0.0
        for g in range(m):
            total[k] += of_group(own, g, SHRUNK, d)[k]
    times_vector(of_all(own, C, d), total, of_all(own, MU, d), d)
    times_vector(of_all(own, OMEGA_INVERSE, d), of_all(own, MU, d), prior, d)
    for g in range(m):
        r, mean = of_group(own, g, R, d), of_group(own, g, MEAN, d)
        for k in range(d):
            total[k] = r[k] + prior[k]
        times_vector(of_group(own, g, V, d), total, mean, d)
        for k in range(d):
            reference[k] += rule.weights[g] * mean[k]
    for g in range(m):
        mean, pull, precision = (  # the correction follows the pull
            of_group(own, g, MEAN, d),
            of_group(own, g, PULL, d),
            1.0 / own.groups[g, TAU2],
        )
        for k in range(d):
            pull[k], pull[d + k] = precision * mean[k], reference[k] - mean[k]
    # Overwrites the pull and the correction; MEAN stays that of feedback alone, from which the next
    # reward starts.
    if own.truth[IN_USE] > 0.0:
        _means_after_truth(rule, own, d)
    for i in range(rule.group_of.size):
        pull = of_group(own, rule.group_of[i], PULL, d)
        here = place(lane_of(own, i), LANES * (d * (d + 1) // 2 + d))
        for k in range(2 * d):
            here[LANES * k] = pull[k]


@subroutine
def _means_after_truth(rule, own, d):  # type: ignore[no-untyped-def]
    """The pull of the group's mean, and its correction, where true rewards have been learned.

    True rewards change what the means are believed to be, and through them every arm: the pull is p
    times the mean after truth. But the correction is no longer m_ref - m_g. It is -psi_g, which
    leaves the groups their true differences eta_g - eta_ref, and takes off psi_0 where the
    reference may be distorted. Both are linear in the means of feedback, so they follow these by
    two products with the maps that `take_in` keeps.
    """
    stays_a_function()
    m = own.groups.shape[0]
    means, shifted, correction = np.empty(m * d), np.empty(m * d), np.empty(m * d)
    for g in range(m):
        for k in range(d):
            means[g * d + k] = of_group(own, g, MEAN, d)[k]
    corrected(own, rule.weights, means, m, d, rule.free, shifted, correction)
    for g in range(m):
        pull, precision = of_group(own, g, PULL, d), 1.0 / own.groups[g, TAU2]
        for k in range(d):
            pull[k] = precision * shifted[g * d + k]
            pull[d + k] = correction[g * d + k]


@subroutine
def _with_fresh(data, fresh, unit, of_rewards):  # type: ignore[no-untyped-def]
    """Add the fresh sums to those of the settled rewards, in their units."""
    stays_a_function()
    d = unit.size
    for i in range(fresh.shape[0]):
        for k in range(d):
            for j in range(d):
                data.A[i, k, j] += fresh[i, k * d + j] / unit[k] / unit[j]
            data.b[i, k] += fresh[i, d * d + k] / unit[k] / of_rewards
        data.number[i] += fresh[i, d * d + d + 1]
    return data


@subroutine
def _is_settled(own):  # type: ignore[no-untyped-def]
    """Whether any reward is settled."""
    number = 0.0
    for i in range(own.settled.shape[0]):
        number += own.settled[i, own.settled.shape[1] - 1]
    return number > 0.0


@subroutine
def _work_out_all(rule, own):  # type: ignore[no-untyped-def]
    """Variances from the settled rewards, then the posterior of all.

    The first rewards to come may be of decisions after the limit. Until one is settled, the
    variances are those of all rewards, and worked out again with each: so STALE stays.
    """
    stays_a_function()
    n, m, d = own.settled.shape[0], own.groups.shape[0], rule.n_features
    is_settled = _is_settled(own)
    sums = own.settled if is_settled else own.fresh
    unit, of_rewards = units_of(sums, d), unit_of_rewards(sums)
    settled = in_units(sums, unit, of_rewards, rule.group_of, rule.sizes)
    # Negative, and so still "estimated", if sigma is not known.
    known = rule.sigma2 / of_rewards / of_rewards
    post = blank_posterior(n, m, d)
    variances, _ = estimate_variances(settled, known, post)
    # From the settled feedback alone, so that the maps do not depend on when a fresh reward came.
    if own.truth[TRUE_NUMBER] > 0.0:
        work_out(settled, variances, post)
        take_in(rule, own, settled, variances, post, unit, of_rewards)
    # Units and variances are those of the settled rewards; the posterior is of all of them.
    if is_settled:
        settled = _with_fresh(settled, own.fresh, unit, of_rewards)
    work_out(settled, variances, post)
    own.common[STALE], own.common[REWARD_UNIT] = 0.0 if is_settled else 1.0, of_rewards
    own.common[SIGMA2] = variances.sigma2[0]
    omega_inverse, variance = of_all(own, OMEGA_INVERSE, d), of_all(own, C, d)
    for k in range(d):
        of_all(own, PER_UNIT, d)[k] = 1.0 / unit[k]
        for j in range(d):
            omega_inverse[k * d + j] = variances.omega_inverse[k, j]
            variance[k * d + j] = post.C[k, j]
    for i in range(n):
        S, p = lane_of(own, i), 0
        for k in range(d):
            for j in range(k + 1):
                S[LANES * (p + j)] = post.S[i, k, j]
            S[LANES * (d * (d + 1) // 2 + k)] = post.u[i, k]
            p += k + 1
    for g in range(m):
        own.groups[g, TAU2] = variances.tau2[g]
        r, variance = of_group(own, g, R, d), of_group(own, g, V, d)
        for k in range(d):
            r[k] = post.r[g, k]
            for j in range(d):
                variance[k * d + j] = post.V[g, k, j]
        times_vector(variance, r, of_all(own, ROOM, d), d)
        times_vector(omega_inverse, of_all(own, ROOM, d), of_group(own, g, SHRUNK, d), d)
    _means(rule, own, of_all(own, ROOM, d), d)
