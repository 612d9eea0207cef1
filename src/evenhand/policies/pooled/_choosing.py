"""The arm of a round: scores, one random number shared by all arms, the start, and the probe.

The score of an arm is (theta_i^ - m_g^ + m_ref) . x + z sqrt(x' S_i x): its estimate, corrected for
the bias of its group, and a bonus for what is not known of the arm itself. z = |N(0, 1)| is drawn
once a round for all arms, so scores are straight lines in z, and the probability of an arm is that
of the z at which its line is the highest.
"""

from __future__ import annotations

import math

import numpy as np

from evenhand._compile import open_to_users, subroutine
from evenhand.leastsquares._triangle import HUGE
from evenhand.policies._kernels import FREE, PICKS, chance, draw, kernel, pick, score
from evenhand.policies._state import (
    CORRECTION,
    CORRECTION_WIDTH,
    ESTIMATE,
    GROUP_ESTIMATE,
    GROUP_WIDTH,
    UPPER,
    WIDTH,
)
from evenhand.policies._streams import normal, uniform
from evenhand.policies.pooled._layout import NUMBER, SEEN, SIGMA2, vector_of
from evenhand.policies.pooled._linear import times_vector
from evenhand.policies.pooled._rule import PooledRule

BONUS = GROUP_WIDTH  # a row of memory.work: sqrt(x' S_i x), what z is multiplied by
PROBE = GROUP_ESTIMATE  # a row whose first number is the probability of a probe
_PROBES, _Z = FREE, FREE  # places in the random stream of a round; a normal takes 2 z, 2 z + 1


@kernel(score, PooledRule)
def _score(rule, memory, t):  # type: ignore[no-untyped-def]
    work, n = memory.work, memory.settings.n_arms
    after = t > n * rule.n_features
    work[PROBE, 0] = 1.0 / math.sqrt(t) if rule.probes and after else 0.0
    fill_scores(rule, memory.own, memory.members.group_of, memory.contexts, memory.room, work, n)


@subroutine
def fill_scores(rule, own, group_of, contexts, room, work, n):  # type: ignore[no-untyped-def]
    """Estimate, correction and bonus of every arm."""
    d = rule.n_features
    m = own.groups.shape[0]
    s, reference = room[:d], room[d : 2 * d]
    for k in range(d):
        reference[k] = 0.0
        for g in range(m):
            reference[k] += rule.weights[g] * own.groups[g, vector_of(d, 3) + k]
    nothing = own.common[NUMBER] == 0.0
    for i in range(n):
        x, row, group = contexts[i], own.arms[i], own.groups[group_of[i]]
        times_vector(row[: d * d].reshape((d, d)), x, s)
        estimate, correction, square = 0.0, 0.0, 0.0
        for k in range(d):
            mean = group[vector_of(d, 3) + k]
            estimate += row[d * d + k] * x[k] + s[k] * group[vector_of(d, 0) + k] * mean
            correction += (reference[k] - mean) * x[k]
            square += s[k] * x[k]
        bonus = math.sqrt(max(square, 0.0))
        work[ESTIMATE, i] = estimate if abs(estimate) < HUGE else 0.0
        work[CORRECTION, i] = correction if abs(correction) < HUGE else 0.0
        work[BONUS, i] = bonus if bonus < HUGE and not nothing else np.inf
        work[WIDTH, i] = work[BONUS, i]
        work[CORRECTION_WIDTH, i] = 0.0
        work[UPPER, i] = work[ESTIMATE, i] + work[WIDTH, i] + work[CORRECTION, i]


@kernel(draw, PooledRule)
def _draw(rule, memory, available, key):  # type: ignore[no-untyped-def]
    """The highest score, or the probe; shows the scores that decided."""
    work, probability = memory.work, memory.work[PROBE, 0]
    if probability > 0.0 and uniform(key, _PROBES) < probability:
        arm = probe(rule, memory.own, memory.members, memory.contexts, memory.room, work, available)
        if arm >= 0:
            return arm
    z = abs(normal(key, _Z))
    for i in range(memory.settings.n_arms):
        work[WIDTH, i] = z * work[BONUS, i] if work[BONUS, i] > 0.0 else 0.0
        work[UPPER, i] = work[ESTIMATE, i] + work[WIDTH, i] + work[CORRECTION, i]
    return _highest(memory.own, memory.members.group_of, work, available, uniform(key, PICKS))


@subroutine
def _fewest(own, group_of, available):  # type: ignore[no-untyped-def]
    """Whether a group has no reward yet, and the least rewards of a group that has an open arm."""
    fewest = np.inf
    for i in range(available.size):
        if available[i]:
            fewest = min(fewest, own.groups[group_of[i], SEEN])
    return fewest


@subroutine
def _is_open(own, group_of, available, fewest, i):  # type: ignore[no-untyped-def]
    """The start: while a group has no reward, the choice is among the groups with the fewest."""
    return available[i] and (fewest > 0.0 or own.groups[group_of[i], SEEN] == 0.0)


@subroutine
def _highest(own, group_of, work, available, u):  # type: ignore[no-untyped-def]
    """The open arm with the highest score; ties at random."""
    fewest = _fewest(own, group_of, available)
    top, ties, arm = -np.inf, 0, -1
    for i in range(available.size):
        if _is_open(own, group_of, available, fewest, i):
            upper = work[UPPER, i]
            if arm < 0 or upper > top:
                top, ties, arm = upper, 1, i
            elif upper == top:
                ties += 1
    if ties > 1:
        place = min(int(u * ties), ties - 1)
        for i in range(arm, available.size):
            if _is_open(own, group_of, available, fewest, i) and work[UPPER, i] == top:
                if place == 0:
                    return i
                place -= 1
    return arm


@kernel(chance, PooledRule)
def _chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    work, own, members = memory.work, memory.own, memory.members
    probability = work[PROBE, 0]
    if probability > 0.0:
        probed = probe(rule, own, members, memory.contexts, memory.room, work, available)
        if probed >= 0:
            total = (1.0 - probability) * envelope(own, members.group_of, work, available, arm)
            return total + probability * (1.0 if probed == arm else 0.0)
    return envelope(own, members.group_of, work, available, arm)


@subroutine
def envelope(own, group_of, work, available, arm):  # type: ignore[no-untyped-def]
    """P(the line of `arm` is the highest at z = |N(0, 1)|); lines that are the same share it."""
    fewest = _fewest(own, group_of, available)
    if not _is_open(own, group_of, available, fewest, arm):
        return 0.0
    value, slope = work[ESTIMATE, arm] + work[CORRECTION, arm], work[BONUS, arm]
    low, high, ties = 0.0, np.inf, 0
    for i in range(available.size):
        if not _is_open(own, group_of, available, fewest, i):
            continue
        other, steeper = work[ESTIMATE, i] + work[CORRECTION, i], work[BONUS, i]
        if steeper == np.inf or slope == np.inf:
            if steeper > slope:
                return 0.0
            if steeper == slope:  # both without an end: a tie
                ties += 1
        elif steeper == slope:
            if other > value:
                return 0.0
            if other == value:
                ties += 1
        elif steeper < slope:
            low = max(low, (other - value) / (slope - steeper))
        else:
            high = min(high, (value - other) / (steeper - slope))
    if not high > low:
        return 0.0
    return half_normal(low, high) / ties


@subroutine
def half_normal(low, high):  # type: ignore[no-untyped-def]
    """P(low < |N(0, 1)| < high), without a loss of digits in the tail."""
    root = math.sqrt(2.0)
    if low > 0.5:
        return math.erfc(low / root) - math.erfc(high / root)
    return math.erf(high / root) - math.erf(low / root)


@subroutine
def probe(rule, own, members, contexts, room, work, available):  # type: ignore[no-untyped-def]
    """The arm that teaches most about which of two groups leads, or -1 where nothing is in doubt.

    Where contexts do not vary, the best arm of a group alone would be pulled, and the average of
    its group would never be known better. So: the leader, and the best arm of another group. If
    their gap is below two standard deviations of what more data could still teach about the
    averages of both groups, pull the arm that takes most off that variance for what it costs.
    """
    d, group_of = rule.n_features, members.group_of
    if _fewest(own, group_of, available) == 0.0:
        return -1
    leader, rival = -1, -1
    for i in range(available.size):
        if available[i] and (leader < 0 or _value(work, i) > _value(work, leader)):
            leader = i
    for i in range(available.size):
        if available[i] and group_of[i] != group_of[leader]:
            if rival < 0 or _value(work, i) > _value(work, rival):
                rival = i
    if rival < 0:
        return -1
    first, second, s = group_of[leader], group_of[rival], room[:d]
    doubt = 0.0
    for i in range(available.size):
        if group_of[i] == first or group_of[i] == second:
            x = contexts[leader] if group_of[i] == first else contexts[rival]
            times_vector(own.arms[i, : d * d].reshape((d, d)), x, s)
            size = members.sizes[group_of[i]]
            for k in range(d):
                doubt += s[k] * x[k] / (size * size)
    doubt = math.sqrt(max(doubt, 0.0))
    if not _value(work, leader) - _value(work, rival) < 2.0 * doubt:
        return -1
    arm, most = -1, 0.0
    for i in range(available.size):
        if available[i] and (group_of[i] == first or group_of[i] == second):
            variance, size = work[BONUS, i] ** 2, members.sizes[group_of[i]]
            less = variance * variance / (variance + own.common[SIGMA2]) / (size * size)
            cost = _value(work, leader) - _value(work, i) + doubt
            if less / (cost * cost) > most:
                arm, most = i, less / (cost * cost)
    return arm


@subroutine
def _value(work, i):  # type: ignore[no-untyped-def]
    """The corrected estimate of an arm."""
    return work[ESTIMATE, i] + work[CORRECTION, i]
