"""Choosing a group at random: all equally likely, or in proportion to their arms.

The rules that use it have a field `proportional`; the groups of the arms belong to the round.
"""

from __future__ import annotations

import numpy as np

from evenhand._compile import open_to_users, subroutine
from evenhand._random import uniform
from evenhand.policies._best_arm import pick
from evenhand.policies._kernels import FREE, PICKS

GROUP = FREE  # the place of the group's number in the random stream of a round


@subroutine
def _open(members, available):  # type: ignore[no-untyped-def]
    """How many arms each group has open this round."""
    count = np.zeros(members.sizes.size)
    for i in range(available.size):
        count[members.group_of[i]] += available[i]
    return count


@subroutine
def open_arms_of(members, group, available):  # type: ignore[no-untyped-def]
    """The open arms of a group, as a mask."""
    chosen = np.empty(available.size, dtype=np.bool_)
    for i in range(available.size):
        chosen[i] = available[i] and members.group_of[i] == group
    return chosen


@open_to_users
def _group_chances(rule, members, available):  # type: ignore[no-untyped-def]
    """Uniform over the groups that have an open arm, or in proportion to the open arms."""
    chances = _open(members, available)
    if not rule.proportional:
        chances = np.minimum(chances, 1.0)
    return chances / np.sum(chances)


@open_to_users
def pick_group(rule, memory, available, key):  # type: ignore[no-untyped-def]
    """The open arms of a random group."""
    chances = _group_chances(rule, memory.members, available)
    u = uniform(key, GROUP)
    g = 0
    # The inverse of the distribution function, by taking chances off u one by one.
    while u >= chances[g] and g + 1 < chances.size:
        u -= chances[g]
        g += 1
    while chances[g] == 0.0:  # rounding may step past the last group with an open arm
        g -= 1
    return open_arms_of(memory.members, g, available)


@open_to_users
def group_of_arm(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    """The open arms of the arm's group, and the probability of that group."""
    chances, group = _group_chances(rule, memory.members, available), memory.members.group_of[arm]
    return open_arms_of(memory.members, group, available), chances[group]


@open_to_users
def explore_in_group(rule, memory, available, key):  # type: ignore[no-untyped-def]
    """Explore inside a random group (Algorithm 2); if in proportion, that is over all arms."""
    return pick(pick_group(rule, memory, available, key), uniform(key, PICKS))


@open_to_users
def explore_in_group_chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    """The probability that `explore_in_group` gives `arm`."""
    if not available[arm]:
        return 0.0
    group, probability = group_of_arm(rule, memory, available, arm)
    return probability / np.sum(group)
