"""What rules without kernels of their own do: the highest upper bound, or any arm at random."""

from __future__ import annotations

import numpy as np

from evenhand._random import uniform
from evenhand.policies._best_arm import best, best_chance, pick
from evenhand.policies._kernels import (
    PICKS,
    chance,
    draw,
    explore,
    explore_chance,
    kernel,
    learn,
    learn_true,
    settle,
)
from evenhand.policies._state import absorb_reward


@kernel(learn, None)
def _learn_by_regressions(rule, state, arm, group, x, reward):  # type: ignore[no-untyped-def]
    absorb_reward(state, arm, group, x, reward)


@kernel(learn_true, None)
def _learn_nothing_true(rule, state, arm, group, x, value, observed):  # type: ignore[no-untyped-def]
    pass


@kernel(settle, None)
def _settle_nothing(rule, state):  # type: ignore[no-untyped-def]
    pass


@kernel(draw, None)
def _draw_best(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return best(memory, available, uniform(key, PICKS))


@kernel(chance, None)
def _chance_best(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    return best_chance(memory, available, arm)


@kernel(explore, None)
def _explore_all(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return pick(available, uniform(key, PICKS))


@kernel(explore_chance, None)
def _explore_all_chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    return available[arm] / np.sum(available)
