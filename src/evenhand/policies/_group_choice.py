"""Choosing a group by chance: every group alike, or in proportion to its arms.

The rules that use it have `members`, (groups, arms), and `proportional`.
"""

from __future__ import annotations

import numpy as np

from evenhand._compile import open_to_users, subroutine
from evenhand.policies._streams import uniform
from evenhand.policies.kernels import FREE, PICKS, pick

GROUP = FREE  # the place of the group's number in the random stream of a round


@subroutine
def _open(members, available):  # type: ignore[no-untyped-def]
    """How many arms each group has open this round."""
    count = np.zeros(members.shape[0])
    for g in range(members.shape[0]):
        for i in range(available.size):
            count[g] += members[g, i] and available[i]
    return count


@open_to_users
def _group_chances(rule, available):  # type: ignore[no-untyped-def]
    """Uniform over the groups that have an open arm, or in proportion to the open arms."""
    chances = _open(rule.members, available)
    if not rule.proportional:
        chances = np.minimum(chances, 1.0)
    return chances / np.sum(chances)


@open_to_users
def pick_group(rule, available, key):  # type: ignore[no-untyped-def]
    """The open arms of a group drawn by chance."""
    chances = _group_chances(rule, available)
    u = uniform(key, GROUP)
    g = 0
    while u >= chances[g] and g + 1 < chances.size:
        u -= chances[g]
        g += 1
    while chances[g] == 0.0:  # rounding may step past the last group with an open arm
        g -= 1
    return rule.members[g] & available


@open_to_users
def group_of_arm(rule, available, arm):  # type: ignore[no-untyped-def]
    """The open arms of the arm's group, and the probability of that group."""
    chances = _group_chances(rule, available)
    for g in range(chances.size):
        if rule.members[g, arm]:
            return rule.members[g] & available, chances[g]
    return available, 0.0


@open_to_users
def explore_in_group(rule, memory, available, key):  # type: ignore[no-untyped-def]
    """TopInterval explores inside its group (Algorithm 2); in proportion, that is over all arms."""
    return pick(pick_group(rule, available, key), uniform(key, PICKS))


@open_to_users
def explore_in_group_chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    """The probability that `explore_in_group` gives `arm`."""
    if not available[arm]:
        return 0.0
    group, probability = group_of_arm(rule, available, arm)
    return probability / np.sum(group)
