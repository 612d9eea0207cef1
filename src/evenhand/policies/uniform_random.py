"""UniformRandom: any arm, whatever is known. The floor that others are compared with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand.policies._streams import uniform
from evenhand.policies.base import Policy
from evenhand.policies.kernels import PICKS, chance, draw, kernel, pick, score
from evenhand.policies.state import add_up, score_arms


class UniformRandomRule(NamedTuple):
    """Nothing of its own."""


@kernel(score, UniformRandomRule)
def _score(rule, memory, t):  # type: ignore[no-untyped-def]
    score_arms(memory, t)
    add_up(memory)


@kernel(draw, UniformRandomRule)
def _draw(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return pick(available, uniform(key, PICKS))


@kernel(chance, UniformRandomRule)
def _chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    return available[arm] / np.sum(available)


class UniformRandom(Policy):
    """Every available arm with the same probability. It keeps statistics, for its logs' sake.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> policy = eh.UniformRandom(["F", "F", "M", "M"], n_features=1, seed=5)
        >>> policy.select(np.ones((4, 1))).propensity
        0.25
    """

    def rule(self) -> UniformRandomRule:
        """No numbers of its own."""
        return UniformRandomRule()
