"""The arm with the highest upper bound, ties at random; and one of several arms at random."""

from __future__ import annotations

import numpy as np

from evenhand._compile import inlined, open_to_users, subroutine
from evenhand.policies._state import UPPER


@inlined
def pick(chosen, u):  # type: ignore[no-untyped-def]
    """One of the arms marked in `chosen`, all equally likely, by the uniform number `u`.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import PICKS, explore, kernel, pick, uniform
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(explore, MyRule)
        ... def my_explore(rule, memory, available, key):
        ...     return pick(available, uniform(key, PICKS))
    """
    count = 0
    for i in range(chosen.size):
        count += chosen[i]
    # u is below 1, but u times a count may round up to it.
    place = min(int(u * count), count - 1)
    for i in range(chosen.size):
        if chosen[i]:
            if place == 0:
                return i
            place -= 1
    return -1


@open_to_users
def best(memory, allowed, u):  # type: ignore[no-untyped-def]
    """The allowed arm with the highest upper bound; ties by `u`, or the first by convention.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import PICKS, best, draw, kernel, uniform
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(draw, MyRule)
        ... def my_draw(rule, memory, available, key):
        ...     return best(memory, available, uniform(key, PICKS))
    """
    return _best(memory.work, memory.settings.first_of_ties, allowed, u)


@open_to_users
def best_chance(memory, allowed, arm):  # type: ignore[no-untyped-def]
    """The probability that `best` returns `arm`.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import best_chance, chance, kernel
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(chance, MyRule)
        ... def my_chance(rule, memory, available, arm):
        ...     return best_chance(memory, available, arm)
    """
    return _best_chance(memory.work, memory.settings.first_of_ties, allowed, arm)


@inlined
def _best(work, first_of_ties, allowed, u):  # type: ignore[no-untyped-def]
    top, ties, arm = -np.inf, 0, -1
    for i in range(allowed.size):
        if allowed[i]:
            upper = work[UPPER, i]
            if arm < 0 or upper > top:
                top, ties, arm = upper, 1, i
            elif upper == top:
                ties += 1
    if ties == 1 or first_of_ties:
        return arm
    place = min(int(u * ties), ties - 1)
    for i in range(arm, allowed.size):
        if allowed[i] and work[UPPER, i] == top:
            if place == 0:
                return i
            place -= 1
    return arm


@subroutine
def _best_chance(work, first_of_ties, allowed, arm):  # type: ignore[no-untyped-def]
    upper = work[UPPER]
    if not allowed[arm]:
        return 0.0
    ties = 0
    for i in range(allowed.size):
        if allowed[i]:
            if upper[i] > upper[arm]:
                return 0.0
            if upper[i] == upper[arm]:
                if i < arm and first_of_ties:
                    return 0.0
                ties += 1
    return 1.0 if first_of_ties else 1.0 / ties
