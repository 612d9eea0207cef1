"""When to explore: the probability that round t picks an arm at random."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._compile import woven
from evenhand.errors import InputError, blank, in_python, setting

Exploration = str | float | Sequence[float] | Callable[[int], float]


class Schedule(NamedTuple):
    """The probability in round t: table[t - 1], or its last entry; without a table scale t^-power.

    Example:
        >>> from evenhand.policies.exploration import schedule
        >>> schedule(0.1, horizon=None).scale
        0.1
    """

    scale: float
    power: float
    table: NDArray[np.float64]


@woven
def probability(schedule, t):  # type: ignore[no-untyped-def]
    """The probability of exploring in round `t`, counted from 1.

    Example:
        >>> from evenhand.policies.exploration import probability, schedule
        >>> probability(schedule([1.0, 0.5], horizon=None), 7)  # the last one is kept
        0.5
    """
    if schedule.table.size:
        return schedule.table[min(t, schedule.table.size) - 1]
    if schedule.power == 0.0:
        return schedule.scale
    return schedule.scale * t**-schedule.power


def schedule(exploration: Exploration, horizon: int | None) -> Schedule:
    """The schedule for "paper", "none", a constant, a list or a function of the round.

    Example:
        >>> from evenhand.policies.exploration import probability, schedule
        >>> probability(schedule("paper", 1000), 8)
        0.5
        >>> probability(schedule(lambda t: 1 / t, 1000), 4)
        0.25
    """
    empty = np.zeros(0)
    if isinstance(exploration, str):
        named = {"paper": Schedule(1.0, 1 / 3, empty), "none": Schedule(0.0, 0.0, empty)}
        if exploration not in named:
            raise InputError(_allowed(exploration), value=exploration)
        return named[exploration]
    if isinstance(exploration, Real) and not isinstance(exploration, bool):
        return Schedule(_chance(exploration), 0.0, empty)
    if callable(exploration):
        if horizon is None:
            raise InputError(
                "exploration given as a function needs a horizon: give "
                f"{setting('horizon', blank('ROUNDS'))}, or a list of probabilities whose last one "
                "is kept"
            )
        chances = [_chance(exploration(t)) for t in range(1, horizon + 1)]
    elif isinstance(exploration, Iterable):
        chances = [_chance(value) for value in exploration]
        if not chances:
            raise InputError(_allowed("an empty list"))
    else:
        raise InputError(_allowed(exploration), value=exploration)
    return Schedule(0.0, 0.0, np.array(chances))


def _chance(value: Any) -> float:
    try:
        chance = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(_allowed(value), value=value) from None
    if not 0.0 <= chance <= 1.0:
        raise InputError(_allowed(value), value=value)
    return chance


def _allowed(value: object) -> str:
    return (
        f"{setting('exploration')} is {_checks.shown(value)}; allowed are 'paper' (t^(-1/3)), "
        f"'none', a probability between 0 and 1, or a list{in_python(' or function')} that gives "
        "one for every round"
    )
