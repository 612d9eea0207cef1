"""NaiveFair: first a group by chance, then the best arm in it.

Choosing a group by chance: every group alike, or in proportion to its arms.

The rules that use it have `members`, (groups, arms), and `proportional`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._compile import open_to_users, subroutine
from evenhand.groups import Groups
from evenhand.policies._streams import uniform
from evenhand.policies._thompson import NaiveFairThompsonRule
from evenhand.policies.base import Common, Policy
from evenhand.policies.kernels import (
    FREE,
    PICKS,
    best,
    best_chance,
    chance,
    draw,
    explore,
    explore_chance,
    kernel,
    pick,
    score,
)
from evenhand.policies.state import LARGEST, add_up, score_arms


class NaiveFairRule(NamedTuple):
    """The groups, and how one of them is chosen."""

    members: NDArray[np.bool_]  # (groups, arms)
    proportional: bool


@kernel(score, NaiveFairRule)
def _score(rule, memory, t):  # type: ignore[no-untyped-def]
    score_arms(memory, t)
    add_up(memory)


@kernel(draw, NaiveFairRule)
def _draw(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return best(memory, pick_group(rule, available, key), uniform(key, PICKS))


@kernel(chance, NaiveFairRule)
def _chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    if not available[arm]:
        return 0.0
    group, probability = group_of_arm(rule, available, arm)
    return probability * best_chance(memory, group, arm)


@kernel(explore, NaiveFairRule)
def _explore(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return explore_in_group(rule, memory, available, key)


@kernel(explore_chance, NaiveFairRule)
def _explore_chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    return explore_in_group_chance(rule, memory, available, arm)


class NaiveFair(Policy):
    """Pick a group at random, then the best arm inside it. Fair by decree; it learns no bias.

    Args:
        group_choice: "uniform" (every group alike, Algorithm 2) or "proportional" to the number of
            its arms. The default is the conventions'.
        inside: "top-interval", or "thompson" for contextual Thompson sampling.
        thompson_scale: the posterior's standard deviation in units of sigma sqrt(x (X'X)^-1 x').

    All other arguments are those of `Policy`.

    References:
        Schumann et al. (2022), Algorithm 2; Agrawal and Goyal (2013) for Thompson sampling.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> policy = eh.NaiveFair(["F", "M", "M", "M"], n_features=1, horizon=100)
        >>> policy.propensities(np.ones((4, 1))).round(3).tolist()
        [0.5, 0.167, 0.167, 0.167]
    """

    def __init__(
        self,
        groups: Groups | Sequence[object],
        n_features: int,
        horizon: int | None = None,
        delta: float = 0.1,
        *,
        group_choice: str | None = None,
        inside: str = "top-interval",
        thompson_scale: float = 1.0,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(groups, n_features, horizon, delta, **common)
        self.group_choice = _checks.one_of(
            "group_choice",
            self.conventions.group_choice if group_choice is None else group_choice,
            ("uniform", "proportional"),
        )
        self.inside = _checks.one_of("inside", inside, ("top-interval", "thompson"))
        self.thompson_scale = _checks.number(
            "thompson_scale", thompson_scale, 1.0 / LARGEST, LARGEST
        )

    def rule(self) -> NaiveFairRule | NaiveFairThompsonRule:
        """The members of every group, for the kind of choice inside it."""
        members = self.groups.of == np.arange(len(self.groups))[:, None]
        proportional = self.group_choice == "proportional"
        if self.inside == "top-interval":
            return NaiveFairRule(members, proportional)
        nodes, weights = np.polynomial.legendre.leggauss(12)
        return NaiveFairThompsonRule(members, proportional, self.thompson_scale, nodes, weights)


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
