"""Decisions of the past, read from a log again when their true reward becomes known.

That may be years later, so nothing of them is kept in memory meanwhile: finding them is one pass
over the log, for any number of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from evenhand.events.event import (
    DecisionMade,
    Event,
    Overridden,
    RewardObserved,
    TrueRewardObserved,
)
from evenhand.policies.decision import Decision, Scores


def past_decisions(events: Iterable[Event], ids: Collection[str]) -> dict[str, Decision]:
    """The decisions with these ids, each as it was when its true reward came, or is now.

    Example:
        >>> from evenhand.events.event import DecisionMade, RewardObserved
        >>> from evenhand.recording._past import past_decisions
        >>> made = DecisionMade(1, 0, "a", 1, 2, 0.5, False, (1.0,), None, None)
        >>> past = past_decisions([made, RewardObserved(2, 0, "a", 3.0)], {"a"})
        >>> past["a"].arm, past["a"].reward
        (2, 3.0)
    """
    made: dict[str, Decision] = {}
    done: set[str] = set()
    for event in events:
        if event.id not in ids or event.id in done:
            continue
        if isinstance(event, DecisionMade):
            made[event.id] = _decision(event.round, event.arm, event.context)
        elif isinstance(event, Overridden):
            made[event.id] = _decision(made[event.id].round, event.arm, event.context)
        elif isinstance(event, RewardObserved):
            made[event.id].reward = event.reward
        elif isinstance(event, TrueRewardObserved):
            done.add(event.id)
    return made


def _decision(round: int, arm: int, context: Iterable[float]) -> Decision:
    row = np.array(tuple(context), dtype=np.float64)
    return Decision(arm, np.nan, False, round, row, Scores(np.empty((5, 0))))
