"""A policy that logs its decisions and rewards: the same interface, with a ledger behind it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from pathlib import Path
from threading import RLock
from typing import Any, NoReturn, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from evenhand import _checks
from evenhand.errors import InputError
from evenhand.events.event import (
    DecisionMade,
    Event,
    Overridden,
    RowsAbsorbed,
)
from evenhand.events.ledger import Ledger
from evenhand.policies._checks import joined
from evenhand.policies._settings import own_learner
from evenhand.policies.base import Policy
from evenhand.policies.decision import Decision
from evenhand.recording._decision_records import now, record_of, with_candidates
from evenhand.recording._pending import Pending
from evenhand.recording._replay import checksum, state_of
from evenhand.recording._reward_events import Learn, RewardEvents, nothing

Method = TypeVar("Method", bound=Callable[..., Any])


def _in_turn(method: Method) -> Method:
    """One thread after the other: the policy and its log have to change together."""

    @wraps(method)
    def locked(self: LoggedPolicy, *arguments: Any, **named: Any) -> Any:
        with self._turn:
            return method(self, *arguments, **named)

    return cast("Method", locked)


class LoggedPolicy:
    """The result of `log_to`: a policy whose `select`, `update` and `absorb` are logged.

    The rest, such as `bias`, `counts` or `save`, is the policy's own; `merge` and `learn`, which a
    replay could not repeat, are refused. Everything that the policy decides and learns has to go
    through this object. It is for one process; its threads take turns.

    A decision is given by the object that `select` returned, by its round, or by its id.

    Example:
        >>> import evenhand as eh, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.csv"
        >>> logged = eh.log_to(path, eh.UniformRandom(["F", "M"], n_features=1, seed=1))
        >>> logged.absorb([0], [[1.0]], [0.5])  # history
        >>> decision = logged.select([[1.0], [2.0]], available=[0], id="loan 17")
        >>> logged.override("loan 17", arm=1, context=[2.0])  # a human decides otherwise
        >>> logged.waiting, logged.id_of(1)
        ([1], 'loan 17')
        >>> logged.update(1, reward=0.5)  # that of arm 1
        >>> logged.true_reward("loan 17", 0.7)
        >>> logged.flush()
        >>> logged.counts.tolist()
        [1, 1]
        >>> logged.close()
    """

    def __init__(self, ledger: Ledger, policy: Policy, pending: Pending, every: int) -> None:
        self.ledger = ledger
        """Where events are kept."""
        self.policy: Policy = policy
        """The policy itself."""
        self.path: Path | None = getattr(ledger, "path", None)
        """The file of the log, if it is one."""
        self._pending, self._every, self._open, self._broken = pending, every, True, ""
        self._turn = RLock()
        self._wide = ledger.about is not None and ledger.about.candidates
        self._taken = pending.seq  # the last event that a snapshot was tried for, or the first
        self._tried = -1  # the same, of this object only
        # What the policy had learned when it last learned through this log, or elsewhere.
        self._known, self._is_outside = policy._changes[0], False
        self._rewards = RewardEvents(policy, ledger, pending)

    # What is logged -----------------------------------------------------------------------------

    @_in_turn
    def select(
        self,
        contexts: ArrayLike,
        available: ArrayLike | None = None,
        id: str | None = None,
        *,
        groups: Any = None,
    ) -> Decision:
        """Choose an arm for this round, as `Policy.select` does, and log it.

        Args:
            contexts: (n_arms, n_features), the context of every arm.
            available: a bool per arm, or the numbers of the arms that can be chosen this round.
            id: the id of the decision; by default the log chooses one, see `id_of`. An id that
                another decision has is refused.
            groups: the groups of the candidates, as for `Policy.select`.

        Example:
            >>> import evenhand as eh, tempfile, pathlib
            >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.csv"
            >>> logged = eh.log_to(path, eh.TopInterval(["F", "M"], n_features=1, seed=1))
            >>> decision = logged.select([[1.0], [2.0]], id="loan 17")
            >>> logged.update("loan 17", reward=0.5)
            >>> logged.close()
        """
        policy, ledger, pending = self.policy, self.ledger, self._pending
        self._check()
        before = pending.round
        if policy.round != before:
            raise InputError(
                f"the policy is in round {policy.round}, but its log in round {before}: it decided "
                "outside its log; open the log again"
            )
        name = pending.new_id(id)
        event, is_kept = None, False
        try:
            if policy.groups.changes:
                contexts = joined(policy, contexts, groups)
            decision = policy.select(contexts, available)
            record = record_of(policy, decision, before + 1)
            all_arms: Any = (None, None)
            if self._wide:
                all_arms = with_candidates(policy, record, contexts, available)
            event = DecisionMade(pending.seq + 1, now(), name, *record, *all_arms)
            ledger.append((event,))
            is_kept = True
            pending.take(event)
        except BaseException:  # undo everything
            policy.round = before
            if event is not None and is_kept:  # otherwise the ledger kept nothing, by its promise
                pending.undo(event)
                ledger.take_back(event.seq - 1)
            raise
        if pending.learns_truth:
            self._rewards.made[decision.round] = decision
        return decision

    @_in_turn
    def update(
        self,
        decision: Decision | int | str | Sequence[Decision | int | str],
        reward: ArrayLike | None = None,
        *,
        true_reward: ArrayLike | None = None,
    ) -> None:
        """Learn the observed reward of a decision, or of many, and log it.

        A second reward for the same decision is refused. If a human overrode the decision, the
        reward is that of their arm.

        Args:
            decision: the result of `select`, its round or its id; or a list of these.
            reward: the observed reward of each decision.
            true_reward: the true reward of each decision, see `true_reward`; given with the
                observed one, at any time after it, or without one.
        """
        self._check()
        rewards = self._rewards
        if true_reward is None:
            if reward is None:
                raise InputError("reward is missing; give the observed reward, or a true_reward")
            self._learn(*rewards.observed(decision, reward))
            return
        is_batch = not isinstance(decision, (Decision, str)) and isinstance(decision, Iterable)
        given: list[Any] = list(decision) if is_batch else [decision]  # type: ignore[arg-type]
        values = rewards.true_values(given, true_reward)
        if reward is None:
            self._learn(rewards.true(given, values), rewards.learn_true(given, values))
            return
        events, learn = rewards.observed(given if is_batch else given[0], reward)

        def learn_both() -> None:
            learn()
            rewards.learn_true(given, values, rewarded=True)()

        # One call is kept as a whole or not.
        self._learn([*events, *rewards.true(given, values, after=events)], learn_both)

    @_in_turn
    def absorb(
        self, arms: ArrayLike, contexts: ArrayLike, rewards: ArrayLike, *, groups: Any = None
    ) -> None:
        """Learn from rows as `Policy.absorb` does. They are logged without round and propensity."""
        self._check()
        if groups is not None:
            contexts = joined(self.policy, contexts, groups, of_arms=False)
        observations = self._rewards.observations(arms, contexts, rewards)
        if observations[2].size:
            numbers, rows, values = (column.tolist() for column in observations)
            contexts_ = tuple(map(tuple, rows))
            seq = self._pending.seq + 1
            event = RowsAbsorbed(seq, now(), None, tuple(numbers), contexts_, tuple(values))
            self._learn([event], partial(self.policy.absorb, *observations))

    @_in_turn
    def override(
        self, decision: Decision | int | str, arm: int, context: ArrayLike, *, groups: Any = None
    ) -> None:
        """Log that a human chose another arm. The reward then belongs to that arm.

        Args:
            decision: the result of `select`, its round or its id.
            arm: the arm that the human chose.
            context: the context of that arm.
            groups: a list with the membership of that candidate, if it came with the round.
        """
        self._check()
        round = self._pending.waiting_round(decision)
        if round in self._pending.overridden:
            raise InputError(f"decision of round {round} was already overridden")
        _checks.unmasked("context", context)
        given = np.atleast_2d(np.asarray(context))
        if self.policy.groups.changes:
            given = joined(self.policy, given, groups, of_arms=False)
        numbers, rows, _ = self._rewards.observations([arm], given, [0.0])
        chosen = int(numbers[0])
        if chosen == self._pending.decision(round).arm:
            raise InputError(
                f"arm is {arm!r}, which the policy chose; allowed is another arm", value=arm
            )
        name = self._pending.id_of(round)
        seq, row = self._pending.seq + 1, tuple(rows[0].tolist())
        self._learn([Overridden(seq, now(), name, chosen, row)], nothing)

    @_in_turn
    def true_reward(self, decision: Decision | int | str, value: float) -> None:
        """Log the true reward of a decision, and learn it if the policy learns from true rewards.

        If it does, a second one for the same decision is refused; otherwise the last counts. A
        decision that is given by its round or id is read from the log again, which takes one pass
        over the log: give many at once to `update`.

        Args:
            decision: the result of `select`, its round or its id.
            value: any finite number.
        """
        self._check()
        given, rewards = [decision], self._rewards
        values = rewards.true_values(given, value)
        self._learn(rewards.true(given, values), rewards.learn_true(given, values))

    # What is not logged -------------------------------------------------------------------------

    def merge(self, other: Policy) -> NoReturn:
        """Refused: a log has no event for it, so a replay would not know what was merged.

        Args:
            other: any policy.

        Example:
            >>> import evenhand as eh, tempfile, pathlib
            >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.csv"
            >>> logged = eh.log_to(path, eh.UniformRandom(["F", "M"], n_features=1, seed=1))
            >>> other = eh.UniformRandom(["F", "M"], n_features=1, seed=2)
            >>> logged.merge(other)  # doctest: +ELLIPSIS
            Traceback (most recent call last):
            ...
            evenhand.errors.InputError: merge is not logged, so what UniformRandom has learned ...
            >>> logged.close()
        """
        raise InputError(
            f"merge is not logged, so what {type(other).__name__} has learned would be lost when "
            "the log is opened again; merge policies before a log begins, or give the rows to "
            "absorb"
        )

    def learn(self, *_: Any) -> NoReturn:
        """Refused: `update` and `absorb` call it, and log what it learns.

        Example:
            >>> import numpy as np, evenhand as eh, tempfile, pathlib
            >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.csv"
            >>> logged = eh.log_to(path, eh.UniformRandom(["F", "M"], n_features=1, seed=1))
            >>> logged.learn(0, np.ones(1), 1.0)  # doctest: +ELLIPSIS
            Traceback (most recent call last):
            ...
            evenhand.errors.InputError: learn and learn_true are not logged; call update or ...
            >>> logged.close()
        """
        raise InputError(
            "learn and learn_true are not logged; call update or absorb, which call them"
        )

    learn_true = learn

    @property
    def own(self) -> Any:
        """What the policy's `learns` declares, read-only: only logged rewards change it."""
        own = self.policy.own
        views = [table.view() for table in own]
        for view in views:
            view.flags.writeable = False
        return own._make(views)

    # The log ------------------------------------------------------------------------------------

    @property
    @_in_turn
    def waiting(self) -> list[int]:
        """The rounds that wait for their reward."""
        return sorted(self._pending.kept)

    @_in_turn
    def id_of(self, decision: Decision | int) -> str:
        """The id of a decision in this log, to find it again after a restart or elsewhere.

        Args:
            decision: the result of `select`, or its round.
        """
        return self._pending.id_of(self._pending.made_round(decision))

    @_in_turn
    def flush(self) -> None:
        """Wait until everything so far would survive a power failure."""
        if self._open:
            self._check()
            self._sync()

    @_in_turn
    def close(self) -> None:
        """Finish the log, and release it.

        A log in files puts its journal into the table. If that fails, the journal stays.
        """
        if not self._open:
            return
        try:
            self._check()
            self._snapshot()
            pending = self._pending
            counted = {"round": pending.round, "learned": pending.learned}
            self._open = False
            self.ledger.close({**counted, "sha256": checksum(self.policy)})
        except BaseException:
            self._open = False
            self.ledger.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._broken:  # the error that broke it is what should be seen
            self._open = False
            self.ledger.release()
        else:
            self.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "policy":
            raise AttributeError(name)
        return getattr(self.policy, name)

    def __repr__(self) -> str:
        return f"LoggedPolicy({self.policy!r}, {self.ledger.name!r})"

    # Inside -------------------------------------------------------------------------------------

    def _learn(self, events: list[Event], learn: Learn) -> None:
        """Log first, then learn: an event can be taken back, but learning cannot."""
        if not events:
            return
        last, is_kept, before = self._pending.seq, False, self.policy._changes[0]
        self._is_outside |= self._known != before
        try:
            self.ledger.append(events)
            is_kept = True
            learn()
            for event in events:
                self._pending.take(event)
        except Exception:
            if self.policy._changes[0] != before:
                self._broken = "the policy failed while learning, and may have learned part of it"
            if is_kept:
                self.ledger.take_back(last)
            raise
        except BaseException:  # it may or may not have been learned; the log says that it was
            self._broken = "an update was interrupted"
            raise
        self._known = self.policy._changes[0]

    def _snapshot(self) -> None:
        """Save the state, if it is that of the log and can be restored completely.

        What a policy learns in a way of its own is restored by replaying all rewards. A snapshot
        only saves time: one that cannot be saved or written is a warning, whatever error it was.
        """
        policy, pending = self.policy, self._pending
        if self._tried == pending.seq:  # it would take the place of an older one
            return
        self._taken = self._tried = pending.seq
        is_outside = self._is_outside or self._known != policy._changes[0]
        if is_outside or policy.round != pending.round or own_learner(type(policy)):
            return
        try:
            state = state_of(policy, pending)
        except InputError as error:
            warnings.warn(
                f"{self.ledger.name} cannot keep snapshots, so opening it again replays all of it: "
                f"{error}",
                stacklevel=2,
            )
            return
        self._sync()  # an error of the disk about events is not one about a snapshot
        try:
            self.ledger.snapshot(state, pending.seq)
        except Exception as error:  # a database has errors of its own
            warnings.warn(
                f"{self.ledger.name} could not keep a snapshot, so opening it again takes longer: "
                f"{' '.join(str(error).split()) or repr(error)}",
                stacklevel=2,
            )

    def _sync(self) -> None:
        try:
            self.ledger.sync()
        except OSError:  # the system may have dropped what it could not write
            self._broken = "its disk failed"
            raise

    def _check(self) -> None:
        """Raise an error if calls are not allowed; write a snapshot if one is due."""
        if not self._open:
            raise InputError(f"{self.ledger.name} is closed; open it again with log_to")
        if self._broken:
            raise InputError(
                f"{self.ledger.name} cannot be continued: {self._broken}; open the log again"
            )
        if self._pending.seq - self._taken >= self._every:
            self._snapshot()
