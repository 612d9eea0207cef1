"""The probe of the fixed form: a pull that settles which of two groups leads.

`general/_probe.py` has that of the general form.
"""

from __future__ import annotations

import math

import numpy as np

from evenhand._compile import subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares._simd import LANES, place
from evenhand.policies._state import GROUP_ESTIMATE, GROUP_WIDTH, N_ROWS
from evenhand.policies.pooled_group_fair._layout import (
    EMPTY,
    PER_UNIT,
    REWARD_UNIT,
    SIGMA2,
    lane_of,
    of_all,
)

# Rows of memory.work: the factor of z, sqrt(x' S_i x); the corrected estimate; and a row that
# begins with the probability of a probe and its arm.
BONUS, VALUE, PROBE = GROUP_WIDTH, GROUP_ESTIMATE, N_ROWS - 1
UNKNOWN = -2.0


@subroutine
def probed(rule, own, members, contexts, room, work, available):  # type: ignore[no-untyped-def]
    """`probe`, worked out once a round, however many probabilities are asked for."""
    if work[PROBE, 1] == UNKNOWN:
        work[PROBE, 1] = probe(rule, own, members, contexts, room, work, available)
    return int(work[PROBE, 1])


@subroutine
def probe(rule, own, members, contexts, room, work, available):  # type: ignore[no-untyped-def]
    """The arm that teaches most about which of two groups leads, or -1 where nothing is in doubt.

    Where contexts do not vary, only the best arm of a group would be pulled, and the average of its
    group would never be known better. So take the leader and the best arm of another group. If
    their gap is below two standard deviations of what more data could still teach about the
    averages of both groups, pull the arm that reduces that variance most for its cost: the one with
    the largest

        v_i^2 / (v_i + sigma^2) / n_g^2 / (gap_i + sd)^2        v_i = x' S_i x, sd: of the averages
    """
    stays_a_function()
    d, group_of, leader, rival = rule.n_features, members.group_of, -1, -1
    if own.common[EMPTY] > 0.0:
        return -1
    for i in range(available.size):
        if available[i] and (leader < 0 or work[VALUE, i] > work[VALUE, leader]):
            leader = i
    for i in range(available.size):
        # Within a group the correction is the same for all, so only another group can be in doubt.
        other = available[i] and group_of[i] != group_of[leader]
        if other and (rival < 0 or work[VALUE, i] > work[VALUE, rival]):
            rival = i
    if rival < 0:
        return -1
    first, second, top = group_of[leader], group_of[rival], work[VALUE, leader]
    doubt = 0.0
    for i in range(available.size):
        if group_of[i] == first or group_of[i] == second:
            # The variance of a group's average, at the context where it is compared: sum x' S_i x /
            # n_g^2. This is what pulls can remove. tau^2 / n_g is left out, because no pull removes
            # it.
            at = leader if group_of[i] == first else rival
            size = members.sizes[group_of[i]]
            doubt += _own_variance(own, i, place(contexts, at * d), d) / (size * size)
    doubt = math.sqrt(max(doubt, 0.0))
    if not top - work[VALUE, rival] < 2.0 * doubt < np.inf:
        return -1
    arm, most = -1, 0.0
    noise = own.common[SIGMA2] * own.common[REWARD_UNIT] * own.common[REWARD_UNIT]
    for i in range(available.size):
        if available[i] and (group_of[i] == first or group_of[i] == second):
            variance, size = work[BONUS, i] ** 2, members.sizes[group_of[i]]
            # A reward takes v^2 / (v + sigma^2) off the variance v of the arm, and 1 / n_g^2 of
            # that off the variance of the average.
            reduction = variance / (variance + noise) * variance / (size * size)
            cost = top - work[VALUE, i] + doubt
            if reduction / (cost * cost) > most:
                arm, most = i, reduction / (cost * cost)
    return arm


@subroutine
def _own_variance(own, arm, x, d):  # type: ignore[no-untyped-def]
    """x' S_i x of an arm, at any x."""
    S, total, p, per_unit = lane_of(own, arm), 0.0, 0, of_all(own, PER_UNIT, d)
    for k in range(d):
        here = x[k] * per_unit[k]
        for j in range(k):
            total += 2.0 * S[LANES * (p + j)] * x[j] * per_unit[j] * here
        total += S[LANES * (p + k)] * here * here
        p += k + 1
    return total * own.common[REWARD_UNIT] * own.common[REWARD_UNIT]
