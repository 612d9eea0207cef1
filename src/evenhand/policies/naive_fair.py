"""NaiveFair: first a random group, then the best arm in it, by upper bound or by posterior draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._checks import LARGEST
from evenhand._compile import subroutine
from evenhand._random import normal, uniform
from evenhand.groups import Groups
from evenhand.policies._best_arm import best, best_chance, pick
from evenhand.policies._group_choice import (
    GROUP,
    explore_in_group,
    explore_in_group_chance,
    group_of_arm,
    pick_group,
)
from evenhand.policies._kernels import PICKS, chance, draw, explore, explore_chance, kernel, score
from evenhand.policies._scores import add_up, score_arms, score_arms_at
from evenhand.policies._settings import Common
from evenhand.policies._state import ESTIMATE, WIDTH
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


class _NaiveFairThompsonRule(NamedTuple):
    """How a group is chosen, and how wide the draws are."""

    proportional: bool
    scale: float
    nodes: NDArray[np.float64]  # Gauss-Legendre on [-1, 1]
    weights: NDArray[np.float64]


@kernel(explore, _NaiveFairThompsonRule)
def _explore_thompson(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return explore_in_group(rule, memory, available, key)


@kernel(explore_chance, _NaiveFairThompsonRule)
def _explore_chance_thompson(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    return explore_in_group_chance(rule, memory, available, arm)


@kernel(score, _NaiveFairThompsonRule)
def _score_thompson(rule, memory, t):  # type: ignore[no-untyped-def]
    """The width is the standard deviation that `draw` samples with."""
    score_arms_at(memory, rule.scale)
    add_up(memory)


@kernel(draw, _NaiveFairThompsonRule)
def _draw_thompson(rule, memory, available, key):  # type: ignore[no-untyped-def]
    """The highest posterior draw. An arm of infinite width has no posterior yet: it goes first."""
    group = pick_group(rule, memory, available, key)
    work = memory.work
    unknown = _unknown(memory.work, group)
    if np.any(unknown):
        return pick(unknown, uniform(key, PICKS))
    arm, top = -1, -np.inf
    for i in range(group.size):
        if group[i]:
            sample = work[ESTIMATE, i] + work[WIDTH, i] * normal(key, GROUP + 1 + i)
            if arm < 0 or sample > top:
                arm, top = i, sample
    return arm


@kernel(chance, _NaiveFairThompsonRule)
def _chance_thompson(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    """P(the draw of `arm` is the highest) by quadrature over that draw."""
    if not available[arm]:
        return 0.0
    group, probability = group_of_arm(rule, memory, available, arm)
    unknown = _unknown(memory.work, group)
    if np.any(unknown):
        return probability * unknown[arm] / np.sum(unknown)
    return probability * _highest(rule.nodes, rule.weights, memory.work, group, arm)


@subroutine
def _highest(nodes, weights, work, group, arm):  # type: ignore[no-untyped-def]
    """The integral of the density of the arm's draw times P(all others are below it)."""
    estimate, width = work[ESTIMATE], work[WIDTH]
    # No density to integrate over: the draw is the estimate.
    if width[arm] == 0.0:
        return _all_below(work, group, arm, estimate[arm])
    # Standard deviations of the arm's own draw. Beyond 8 the density adds 1e-15.
    cuts = [-8.0 + k for k in range(17)]
    for i in range(group.size):  # a narrow competitor is nearly a step: cut around it
        if group[i] and i != arm and width[i] < 0.25 * width[arm]:
            place, reach = (estimate[i] - estimate[arm]) / width[arm], 4.0 * width[i] / width[arm]
            for cut in (place - reach, place, place + reach):
                if -8.0 < cut < 8.0:
                    cuts.append(cut)
    cuts.sort()
    total = 0.0
    for k in range(len(cuts) - 1):
        half, middle = 0.5 * (cuts[k + 1] - cuts[k]), 0.5 * (cuts[k + 1] + cuts[k])
        if half > 0.0:
            for q in range(nodes.size):
                s = middle + half * nodes[q]
                # P(highest) = integral of phi(s) times the product over others of P(draw < estimate
                # + width s).
                density = math.exp(-0.5 * s * s) / math.sqrt(2.0 * math.pi)
                below = _all_below(work, group, arm, estimate[arm] + width[arm] * s)
                total += half * weights[q] * density * below
    return min(total, 1.0)


@subroutine
def _all_below(work, group, arm, value):  # type: ignore[no-untyped-def]
    estimate, width = work[ESTIMATE], work[WIDTH]
    below = 1.0
    for i in range(group.size):
        if group[i] and i != arm:
            if width[i] > 0.0:
                below *= 0.5 * math.erfc((estimate[i] - value) / (width[i] * math.sqrt(2.0)))
            elif value < estimate[i] or (value == estimate[i] and i < arm):
                return 0.0  # without any width, `draw` takes the first of equals
        if below == 0.0:
            break
    return below


@subroutine
def _unknown(work, group):  # type: ignore[no-untyped-def]
    unknown = np.zeros(group.size, dtype=np.bool_)
    for i in range(group.size):
        unknown[i] = group[i] and work[WIDTH, i] == np.inf
    return unknown


class NaiveFair(Policy):
    """Pick a group at random, then the best arm inside it. It is fair by rule, and learns no bias.

    Args:
        group_choice: "uniform" (all groups equally likely, Algorithm 2) or "proportional" to the
            number of arms. The default is that of the conventions.
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

    def rule(self) -> _NaiveFairRule | _NaiveFairThompsonRule:
        """How a group is chosen, and an arm inside it."""
        proportional = self.group_choice == "proportional"
        if self.inside == "top-interval":
            return _NaiveFairRule(proportional)
        nodes, weights = np.polynomial.legendre.leggauss(12)
        return _NaiveFairThompsonRule(proportional, self.thompson_scale, nodes, weights)
