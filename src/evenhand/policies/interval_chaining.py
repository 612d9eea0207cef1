"""IntervalChaining: a random choice among all arms that may be as good as the best one.

These are the arms in the chain of overlapping intervals around the highest. The interval of an arm
is that of its score: estimate and correction, with the widths of both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand._compile import compiled, woven
from evenhand._random import uniform
from evenhand.policies._best_arm import best, pick
from evenhand.policies._kernels import PICKS, chance, draw, kernel, score
from evenhand.policies._scores import add_up, score_arms
from evenhand.policies._state import CORRECTION, CORRECTION_WIDTH, ESTIMATE, UPPER, WIDTH
from evenhand.policies.base import Policy


@woven
def _chained_arms(rule, memory, allowed):  # type: ignore[no-untyped-def]
    """The allowed arms whose intervals are chained to the highest of them, as a mask.

    For rules that have a field `two_passes`.
    """
    return _chain(rule.two_passes, memory.work, allowed, best(memory, allowed, 0.0))


@compiled
def _chain(two_passes, work, available, top):  # type: ignore[no-untyped-def]
    """The arms linked by overlapping intervals to the one with the highest upper end."""
    n = available.size
    lower, upper = np.empty(n), work[UPPER]
    for i in range(n):
        middle = work[ESTIMATE, i] + work[CORRECTION, i]
        lower[i] = middle - (work[WIDTH, i] + work[CORRECTION_WIDTH, i])
    if two_passes:
        return _two_passes(lower, upper, available, top)
    return _closure(lower, upper, available, top)


@compiled
def _closure(lower, upper, available, top):  # type: ignore[no-untyped-def]
    """No upper end is above the top one's, so an arm joins if it reaches the chain's lower end."""
    chained = np.zeros(available.size, dtype=np.bool_)
    chained[top] = True
    low, grew = lower[top], True
    # Each pass adds an arm or is the last. An arm that joins may lower the end of the chain for
    # arms looked at before it.
    while grew:
        grew = False
        for i in range(available.size):
            if available[i] and not chained[i] and upper[i] >= low:
                chained[i] = True
                if lower[i] < low:
                    low, grew = lower[i], True
    return chained


@compiled
def _two_passes(lower, upper, available, top):  # type: ignore[no-untyped-def]
    """The chain of the authors' code: two passes over the arms by index, with a span [low, high].

    If an interval overlaps the lower end of the span, that end becomes the interval's *upper* end.
    So the span shrinks where it should grow, and links are missed.
    """
    chained = np.zeros(available.size, dtype=np.bool_)
    chained[top] = True
    low, high = lower[top], upper[top]
    for _ in range(2):
        for i in range(available.size):
            if not available[i]:
                continue
            if low <= lower[i] <= high:
                high = max(high, upper[i])
            elif low <= upper[i] <= high:
                low = upper[i]
            elif upper[i] >= high and lower[i] <= low:
                low, high = lower[i], upper[i]
            else:
                continue
            chained[i] = True
    return chained


class _IntervalChainingRule(NamedTuple):
    """Whether to chain as the authors' code does."""

    two_passes: bool


@kernel(score, _IntervalChainingRule)
def _score(rule, memory, t):  # type: ignore[no-untyped-def]
    score_arms(memory, t)
    add_up(memory)


@kernel(draw, _IntervalChainingRule)
def _draw(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return pick(_chained_arms(rule, memory, available), uniform(key, PICKS))


@kernel(chance, _IntervalChainingRule)
def _chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    chained = _chained_arms(rule, memory, available)
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
