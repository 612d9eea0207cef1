"""NaiveFair: first a group by chance, then the best arm in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._compile import compiled
from evenhand.groups import Groups
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
from evenhand.policies.memory import ESTIMATE, WIDTH, add_up, score_arms, score_arms_at
from evenhand.streams import normal, uniform

_GROUP = FREE  # the place of the group's number in the round's stream; Thompson's come after it


class NaiveFairRule(NamedTuple):
    """The groups, and how one of them is chosen."""

    members: NDArray[np.bool_]  # (groups, arms)
    proportional: bool


class NaiveFairThompsonRule(NamedTuple):
    """The same, with a posterior draw in place of the upper bound."""

    members: NDArray[np.bool_]
    proportional: bool
    scale: float
    nodes: NDArray[np.float64]  # Gauss and Legendre on [-1, 1]
    weights: NDArray[np.float64]


@compiled
def _open(members, available):  # type: ignore[no-untyped-def]
    """How many arms each group has open this round."""
    count = np.zeros(members.shape[0])
    for g in range(members.shape[0]):
        for i in range(available.size):
            count[g] += members[g, i] and available[i]
    return count


@compiled
def _group_chances(rule, available):  # type: ignore[no-untyped-def]
    """Uniform over the groups that have an open arm, or in proportion to the open arms."""
    chances = _open(rule.members, available)
    if not rule.proportional:
        chances = np.minimum(chances, 1.0)
    return chances / np.sum(chances)


@compiled
def _pick_group(rule, available, key):  # type: ignore[no-untyped-def]
    """The open arms of a group drawn by chance."""
    chances = _group_chances(rule, available)
    u = uniform(key, _GROUP)
    g = 0
    while u >= chances[g] and g + 1 < chances.size:
        u -= chances[g]
        g += 1
    while chances[g] == 0.0:  # rounding may step past the last group with an open arm
        g -= 1
    return rule.members[g] & available


@compiled
def _group_of(rule, available, arm):  # type: ignore[no-untyped-def]
    """The open arms of the arm's group, and the probability of that group."""
    chances = _group_chances(rule, available)
    for g in range(chances.size):
        if rule.members[g, arm]:
            return rule.members[g] & available, chances[g]
    return available, 0.0


@kernel(score, NaiveFairRule)
def _score(rule, memory, t):  # type: ignore[no-untyped-def]
    score_arms(memory, t)
    add_up(memory)


@kernel(draw, NaiveFairRule)
def _draw(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return best(memory, _pick_group(rule, available, key), uniform(key, PICKS))


@kernel(chance, NaiveFairRule)
def _chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    if not available[arm]:
        return 0.0
    group, probability = _group_of(rule, available, arm)
    return probability * best_chance(memory, group, arm)


@compiled
def _explore_in_group(rule, memory, available, key):  # type: ignore[no-untyped-def]
    """TopInterval explores inside its group (Algorithm 2); in proportion, that is over all arms."""
    return pick(_pick_group(rule, available, key), uniform(key, PICKS))


@compiled
def _explore_in_group_chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    if not available[arm]:
        return 0.0
    group, probability = _group_of(rule, available, arm)
    return probability / np.sum(group)


@kernel(explore, NaiveFairRule)
def _explore(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return _explore_in_group(rule, memory, available, key)


@kernel(explore_chance, NaiveFairRule)
def _explore_chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    return _explore_in_group_chance(rule, memory, available, arm)


@kernel(explore, NaiveFairThompsonRule)
def _explore_thompson(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return _explore_in_group(rule, memory, available, key)


@kernel(explore_chance, NaiveFairThompsonRule)
def _explore_chance_thompson(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    return _explore_in_group_chance(rule, memory, available, arm)


@kernel(score, NaiveFairThompsonRule)
def _score_thompson(rule, memory, t):  # type: ignore[no-untyped-def]
    """The width is the standard deviation that `draw` samples with."""
    score_arms_at(memory, rule.scale)
    add_up(memory)


@kernel(draw, NaiveFairThompsonRule)
def _draw_thompson(rule, memory, available, key):  # type: ignore[no-untyped-def]
    """The highest posterior draw. An arm of infinite width has no posterior yet: it goes first."""
    group = _pick_group(rule, available, key)
    work = memory.work
    unknown = _unknown(memory, group)
    if np.any(unknown):
        return pick(unknown, uniform(key, PICKS))
    arm, top = -1, -np.inf
    for i in range(group.size):
        if group[i]:
            sample = work[ESTIMATE, i] + work[WIDTH, i] * normal(key, _GROUP + 1 + i)
            if arm < 0 or sample > top:
                arm, top = i, sample
    return arm


@kernel(chance, NaiveFairThompsonRule)
def _chance_thompson(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    """P(the draw of `arm` is the highest) by quadrature over that draw."""
    if not available[arm]:
        return 0.0
    group, probability = _group_of(rule, available, arm)
    unknown = _unknown(memory, group)
    if np.any(unknown):
        return probability * unknown[arm] / np.sum(unknown)
    return probability * _highest(rule, memory, group, arm)


@compiled
def _highest(rule, memory, group, arm):  # type: ignore[no-untyped-def]
    """The integral of the density of the arm's draw times P(all others are below it)."""
    estimate, width = memory.work[ESTIMATE], memory.work[WIDTH]
    if width[arm] == 0.0:
        return _all_below(memory, group, arm, estimate[arm])
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
            for q in range(rule.nodes.size):
                s = middle + half * rule.nodes[q]
                density = math.exp(-0.5 * s * s) / math.sqrt(2.0 * math.pi)
                below = _all_below(memory, group, arm, estimate[arm] + width[arm] * s)
                total += half * rule.weights[q] * density * below
    return min(total, 1.0)


@compiled
def _all_below(memory, group, arm, value):  # type: ignore[no-untyped-def]
    estimate, width = memory.work[ESTIMATE], memory.work[WIDTH]
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


@compiled
def _unknown(memory, group):  # type: ignore[no-untyped-def]
    unknown = np.zeros(group.size, dtype=np.bool_)
    for i in range(group.size):
        unknown[i] = group[i] and memory.work[WIDTH, i] == np.inf
    return unknown


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
            "thompson_scale", thompson_scale, 0.0, np.inf, open_ends=True
        )

    def rule(self) -> NaiveFairRule | NaiveFairThompsonRule:
        """The members of every group, for the kind of choice inside it."""
        members = self.groups.of == np.arange(len(self.groups))[:, None]
        proportional = self.group_choice == "proportional"
        if self.inside == "top-interval":
            return NaiveFairRule(members, proportional)
        nodes, weights = np.polynomial.legendre.leggauss(12)
        return NaiveFairThompsonRule(members, proportional, self.thompson_scale, nodes, weights)
