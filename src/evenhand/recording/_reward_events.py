"""What rewards become: events for the log, and how the policy learns them once they are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike

from evenhand import _checks
from evenhand._prose import number_of
from evenhand.errors import InputError
from evenhand.events.event import Event, RewardObserved, TrueRewardObserved
from evenhand.events.ledger import Ledger
from evenhand.policies import _checks as checking
from evenhand.policies.base import Policy
from evenhand.policies.decision import Decision
from evenhand.recording._decision_records import now, past_decisions
from evenhand.recording._pending import Pending

Learn = Callable[[], None]


class RewardEvents:
    """The events of rewards, checked against the decisions that wait for them.

    Nothing is logged or learned here: a call of `LoggedPolicy` logs the events, and then learns.

    Args:
        policy: which learns.
        ledger: to read decisions of the past from.
        pending: the decisions that wait for a reward.
    """

    def __init__(self, policy: Policy, ledger: Ledger, pending: Pending) -> None:
        self._policy, self._ledger, self._pending = policy, ledger, pending
        # Decisions as `select` returned them, as long as somebody has them.
        self.made: WeakValueDictionary[int, Decision] = WeakValueDictionary()

    def observations(self, arms: Any, contexts: Any, rewards: Any) -> tuple[Any, Any, Any]:
        """Rows of arms, contexts and rewards, checked."""
        return checking.observations(arms, contexts, rewards, *self._policy._shape)

    def true_values(self, given: list[Any], true_reward: ArrayLike) -> list[float]:
        """The true rewards of decisions that may have one, checked."""
        _checks.unmasked("true_reward", true_reward)
        values = np.ravel(np.asarray(true_reward, dtype=object)).tolist()
        if len(values) != len(given):
            raise InputError(
                f"true_reward has {number_of(len(values), 'number')}; give one for each of "
                f"{number_of(len(given), 'decision')}"
            )
        rounds = [self._pending.without_truth(item) for item in given]
        if len(set(rounds)) < len(rounds):
            raise InputError("decision names a round twice; a decision has one true reward")
        return [checking.reward_of(value, "true_reward") for value in values]

    def observed(self, decision: Any, reward: ArrayLike) -> tuple[list[Event], Learn]:
        """The events of observed rewards, and how the policy learns them."""
        if isinstance(decision, Decision):
            value = checking.reward_of(reward)
            round = self._pending.waiting_round(decision)
            if round in self._pending.overridden:
                decision = self._pending.decision(round)
            return self._rewards([round], [value]), partial(self._policy.update, decision, value)
        is_batch = isinstance(decision, Iterable) and not isinstance(decision, str)
        given = list(decision) if is_batch else [decision]
        if not is_batch and np.ndim(reward):
            raise InputError(
                f"reward is {reward!r}; allowed is one number for one decision", value=reward
            )
        rounds = [self._pending.waiting_round(item) for item in given]
        if len(set(rounds)) < len(rounds):
            raise InputError("decision names a round twice; a decision has one reward")
        decisions = [self._pending.decision(round) for round in rounds]
        rows = np.reshape([item.row for item in decisions], (-1, self._policy._shape[1]))
        observations = self.observations([item.arm for item in decisions], rows, reward)
        if not rounds:
            return [], nothing
        by_round = (rounds,) if self._policy.learns_by_round else ()
        events = self._rewards(rounds, observations[2].tolist())
        return events, partial(self._policy.absorb, *observations, *by_round)

    def true(
        self, given: list[Any], values: list[float], after: Sequence[Event] = ()
    ) -> list[Event]:
        """The events of true rewards.

        Args:
            given: the decisions.
            values: their true rewards.
            after: the events of the same call that come before them.
        """
        at, first = now(), self._pending.seq + 1 + len(after)
        return [
            TrueRewardObserved(first + place, at, name, value)
            for place, (name, value) in enumerate(zip(self._ids(given), values, strict=True))
        ]

    def learn_true(self, given: list[Any], values: list[float], rewarded: bool = False) -> Learn:
        """How the policy learns true rewards: with the observed ones, which the log may have.

        Args:
            given: the decisions.
            values: their true rewards.
            rewarded: whether all observed rewards are in the log now. A decision given as an object
                may not have its own yet, and is read from the log then.
        """
        pending = self._pending
        if not pending.learns_truth:
            return nothing
        names = self._ids(given)
        sought = {
            name
            for name, item in zip(names, given, strict=True)
            if not self._has(item) or (rewarded and item.reward is None)
        }
        past = past_decisions(self._ledger.read(), sought) if sought else {}
        for name, item in zip(names, given, strict=True):
            if name in past and isinstance(item, Decision):
                pending.check_alike(item, past[name].made)
        decisions = [
            past[name].learned if name in past else item
            for name, item in zip(names, given, strict=True)
        ]
        return partial(self._policy.update, decisions, true_reward=values)

    def _ids(self, given: list[Any]) -> list[str]:
        """The ids of decisions that may have a true reward."""
        return [self._pending.id_of(self._pending.without_truth(item)) for item in given]

    def _has(self, item: Any) -> bool:
        """Whether this is a decision as `select` returned it, with the reward that it has."""
        pending = self._pending
        if not isinstance(item, Decision) or self.made.get(item.round) is not item:
            return False
        if item.round in pending.overridden:
            return False
        return item.reward is not None or (item.round in pending.kept and pending.is_this(item))

    def _rewards(self, rounds: list[int], values: list[float]) -> list[Event]:
        at, id_of = now(), self._pending.id_of
        pairs = enumerate(zip(rounds, values, strict=True), start=self._pending.seq + 1)
        return [RewardObserved(seq, at, id_of(round), value) for seq, (round, value) in pairs]


def nothing() -> None:
    """Policies learn nothing from overrides, and most of them nothing from true rewards."""
