"""What events make of a policy, from the beginning of a log or from a snapshot: the same bits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from evenhand.events.event import Event, RewardObserved, RowsAbsorbed
from evenhand.events.header import About
from evenhand.events.ledger import Snapshot
from evenhand.policies.base import Policy
from evenhand.policies.saving import from_dict, to_dict
from evenhand.recording._standing import Standing


def start(about: About, snapshot: Snapshot | None) -> tuple[Policy, Standing]:
    """The policy and the standing of a log in a snapshot, or at its beginning."""
    if snapshot is None:
        return from_dict(about.policy), Standing(about)
    standing = Standing.from_dict(about, snapshot.seq, snapshot.state)
    return from_dict(snapshot.state["policy"]), standing


def fold(policy: Policy, standing: Standing, events: Iterable[Event]) -> None:
    """Take in events: rewards are learned in the order in which they came."""
    arms: list[int] = []
    contexts: list[Any] = []
    rewards: list[float] = []
    for event in events:
        earned = standing.take(event)
        if earned is not None and isinstance(event, RewardObserved):
            arms.append(earned[0])
            contexts.append(earned[1])
            rewards.append(event.reward)
        elif isinstance(event, RowsAbsorbed):
            arms.extend(event.arms)
            contexts.extend(event.contexts)
            rewards.extend(event.rewards)
    if rewards:
        table = np.array(contexts, dtype=np.float64).reshape(-1, policy.n_features)
        policy.absorb(np.array(arms, dtype=np.int64), table, np.array(rewards))
    policy.round = standing.round


def state_of(policy: Policy, standing: Standing) -> dict[str, Any]:
    """What a snapshot keeps."""
    return {**standing.to_dict(), "policy": to_dict(policy)}


def is_saved_whole(policy: Policy) -> bool:
    """Whether `to_dict` has everything that a policy knows.

    One that learns in a way of its own may know more; replaying all its rewards gives that back.
    """
    kind = type(policy)
    return kind.absorb is Policy.absorb and kind.update is Policy.update
