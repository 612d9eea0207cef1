"""NaiveFair: first a random group, then the best arm in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Unpack

import numpy as np

from evenhand import _checks
from evenhand._checks import LARGEST
from evenhand._streams import uniform
from evenhand.groups import Groups
from evenhand.policies._defaults import best, best_chance
from evenhand.policies._group_choice import (
    explore_in_group,
    explore_in_group_chance,
    group_of_arm,
    pick_group,
)
from evenhand.policies._kernels import PICKS, chance, draw, explore, explore_chance, kernel, score
from evenhand.policies._scores import add_up, score_arms
from evenhand.policies._settings import Common
from evenhand.policies._thompson import NaiveFairThompsonRule
from evenhand.policies.base import Policy


class _NaiveFairRule(NamedTuple):
    """How a group is chosen."""

    proportional: bool


@kernel(score, _NaiveFairRule)
def _score(rule, memory, t):  # type: ignore[no-untyped-def]
    score_arms(memory, t)
    add_up(memory)


@kernel(draw, _NaiveFairRule)
def _draw(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return best(memory, pick_group(rule, memory, available, key), uniform(key, PICKS))


@kernel(chance, _NaiveFairRule)
def _chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    if not available[arm]:
        return 0.0
    group, probability = group_of_arm(rule, memory, available, arm)
    return probability * best_chance(memory, group, arm)


@kernel(explore, _NaiveFairRule)
def _explore(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return explore_in_group(rule, memory, available, key)


@kernel(explore_chance, _NaiveFairRule)
def _explore_chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    return explore_in_group_chance(rule, memory, available, arm)


class NaiveFair(Policy):
    """Pick a group at random, then the best arm inside it. It is fair by rule, and learns no bias.

    Args:
        group_choice: "uniform" (all groups alike, Algorithm 2) or "proportional" to the number of
            arms. The default is that of the conventions.
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

    def rule(self) -> _NaiveFairRule | NaiveFairThompsonRule:
        """How a group is chosen, and an arm inside it."""
        proportional = self.group_choice == "proportional"
        if self.inside == "top-interval":
            return _NaiveFairRule(proportional)
        nodes, weights = np.polynomial.legendre.leggauss(12)
        return NaiveFairThompsonRule(proportional, self.thompson_scale, nodes, weights)
