"""UniformRandom: any arm at random, as a baseline for the other policies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand._random import uniform
from evenhand.policies._best_arm import pick
from evenhand.policies._kernels import PICKS, chance, draw, kernel, score
from evenhand.policies._scores import add_up, score_arms
from evenhand.policies.base import Policy


class _UniformRandomRule(NamedTuple):
    """No numbers of its own."""


@kernel(score, _UniformRandomRule)
def _score(rule, memory, t):  # type: ignore[no-untyped-def]
    score_arms(memory, t)
    add_up(memory)


@kernel(draw, _UniformRandomRule)
def _draw(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return pick(available, uniform(key, PICKS))


@kernel(chance, _UniformRandomRule)
def _chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    return available[arm] / np.sum(available)


class UniformRandom(Policy):
    """Every available arm with the same probability. It learns regressions, but does not use them.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> policy = eh.UniformRandom(["F", "F", "M", "M"], n_features=1, seed=5)
        >>> policy.select(np.ones((4, 1))).propensity
        0.25
    """

    takes_membership = True

    def rule(self) -> _UniformRandomRule:
        """No numbers of its own."""
        return _UniformRandomRule()
