"""IntervalChaining: a random choice among all arms that may be as good as the best one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand._streams import uniform
from evenhand.policies._chaining import chained_arms
from evenhand.policies._defaults import pick
from evenhand.policies._kernels import PICKS, chance, draw, kernel, score
from evenhand.policies._scores import add_up, score_arms
from evenhand.policies.base import Policy


class _IntervalChainingRule(NamedTuple):
    """Whether to chain as the authors' code does."""

    two_passes: bool


@kernel(score, _IntervalChainingRule)
def _score(rule, memory, t):  # type: ignore[no-untyped-def]
    score_arms(memory, t)
    add_up(memory)


@kernel(draw, _IntervalChainingRule)
def _draw(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return pick(chained_arms(rule, memory, available), uniform(key, PICKS))


@kernel(chance, _IntervalChainingRule)
def _chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    chained = chained_arms(rule, memory, available)
    return chained[arm] / np.sum(chained)


class IntervalChaining(Policy):
    """Play uniformly among the arms whose intervals are chained by overlap to the highest one.

    Individually fair: no arm is preferred to another before the data distinguish them. With many
    arms the chain is long, and it plays almost at random.

    References:
        Joseph, Kearns, Morgenstern and Roth (2016).

    Example:
        >>> import numpy as np, evenhand as eh
        >>> policy = eh.IntervalChaining(["F", "M"], n_features=1, horizon=100, exploration="none")
        >>> policy.absorb(arms=[0, 1], contexts=np.ones((2, 1)), rewards=[1.0, 2.0])
        >>> policy.select(np.ones((2, 1))).propensity
        0.5
    """

    def rule(self) -> _IntervalChainingRule:
        """How to chain, as the conventions say."""
        return _IntervalChainingRule(two_passes=self.conventions.chain == "two passes")
