"""A policy that writes down what it does: the same face, and a log behind it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from time import time_ns
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand import _checks
from evenhand.logs.about import About, feature_names
from evenhand.logs.journal import Journal, decision_line, event_line, reward_line
from evenhand.logs.reading import read_whole
from evenhand.logs.schema import NAMES
from evenhand.logs.tables import log_path, write_table
from evenhand.policies import checking
from evenhand.policies.base import Policy
from evenhand.policies.decision import Decision
from evenhand.policies.saving import to_dict
from evenhand.recording.replaying import checksum, restored
from evenhand.recording.waiting import Waiting


def log_to(
    path: str | Path,
    policy: Policy | None = None,
    features: Sequence[object] | None = None,
    sync: float = 1.0,
) -> LoggedPolicy:
    """A policy that logs every decision and every reward to a Parquet or CSV file.

    What happens goes to a journal beside the file before a call returns, and into the file on
    `close`. A process that is killed loses nothing: the next `log_to`, `replay` or `read_log`
    finds the journal. A log that is there already is gone on with.

    Args:
        path: ends in .parquet (needs pyarrow) or .csv.
        policy: the policy that decides. For a log that is there already it must be in the state
            of the log, or left out: then it is made from the log, see `LoggedPolicy.policy`.
        features: the names of the context's columns; x1, x2, ... unless given.
        sync: the most seconds, while calls come in, after which what was written outlasts a
            failure of power too; 0 makes every call wait for the disk.

    Example:
        >>> import numpy as np, evenhand as eh, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.csv"
        >>> policy = eh.TopInterval(["F", "M"], n_features=1, horizon=10, seed=1)
        >>> with eh.log_to(path, policy, features=["age"]) as logged:
        ...     first, second = (logged.select(np.ones((2, 1))) for _ in range(2))
        ...     logged.update(second, reward=1.0)
        >>> with eh.log_to(path) as logged:  # days later
        ...     logged.waiting
        ...     logged.update(1, reward=0.5)
        [1]
        >>> eh.read_log(path)[["round", "reward", "learned", "age"]]
           round  reward  learned  age
        0      1     0.5        2  1.0
        1      2     1.0        1  1.0
    """
    file = log_path(path)
    if policy is not None and not isinstance(policy, Policy):
        raise ValueError(f"policy is {policy!r}; allowed is a policy, such as eh.TopInterval(...)")
    journal = Journal(file, _checks.number("sync", sync, 0.0, np.inf))
    try:
        return LoggedPolicy(file, journal, policy, features)
    except BaseException:
        journal.release()
        raise


class LoggedPolicy:
    """What `log_to` gives: a policy whose `select`, `update` and `absorb` are logged.

    All else, such as `bias`, `counts` or `save`, is the policy's own. Everything it decides and
    learns has to go through this object. It is for one thread of one process.
    """

    def __init__(
        self,
        path: Path,
        journal: Journal,
        policy: Policy | None,
        features: Sequence[object] | None,
    ) -> None:
        self.path = path
        self._journal = journal
        self._waiting = Waiting()
        self._learned = 0
        found = read_whole(path)
        if found is None:
            if policy is None:
                raise ValueError(f"path is {str(path)!r}, where there is no log; give a policy")
            about = About(feature_names(features, policy.n_features), to_dict(policy))
            about = About.from_json(about.to_json(), path)
        else:
            about, policy = self._go_on(*found, policy, features)
        self.policy: Policy = policy
        """The policy itself."""
        self._about, self._round, self._open = about, policy.round, True
        journal.begin(about)

    def _go_on(
        self,
        about: About | None,
        frame: Any,
        policy: Policy | None,
        features: Sequence[object] | None,
    ) -> tuple[About, Policy]:
        """Take up a log that is there already."""
        if about is None:
            raise ValueError(
                f"path is {str(self.path)!r}, a log that evenhand did not write; take another name"
            )
        past = restored(about, frame, self.path)
        if policy is not None and json.dumps(to_dict(policy)) != json.dumps(to_dict(past)):
            raise ValueError(
                f"path is {str(self.path)!r}, where there is a log of {past!r} in another state; "
                "leave the policy out to go on with it, or take another name"
            )
        if features is not None and feature_names(features, past.n_features) != about.features:
            raise ValueError(
                f"features is {list(features)}; the log has {', '.join(about.features)}"
            )
        self._learned = int(frame[NAMES["learned"]].notna().sum())
        self._waiting = Waiting.of_log(frame, about.features)
        return about, past if policy is None else policy

    # What is logged -----------------------------------------------------------------------------

    def select(self, contexts: ArrayLike, available: ArrayLike | None = None) -> Decision:
        """Choose an arm for this round, as `Policy.select` does, and log it."""
        policy, journal, before = self.policy, self._journal, self._round
        if policy.round != before or not self._open:
            raise self._refusal()
        size = journal.size
        try:
            decision = policy.select(contexts, available)
            arm, context = decision.arm, decision.context
            journal.append(
                decision_line(
                    decision.round,
                    time_ns() // 1000,
                    arm,
                    decision.propensity,
                    decision.explored,
                    context.tolist(),
                )
            )
            self._waiting.add(before + 1, arm, context)
            self._round = before + 1
        except BaseException:  # as if it had never been asked
            policy.round = self._round = before
            self._waiting.kept.pop(before + 1, None)
            if journal.size != size:
                journal.cut(size)
            raise
        return decision

    def update(
        self, decision: Decision | int | Sequence[Decision | int], reward: ArrayLike
    ) -> None:
        """Learn the observed reward of a decision, or of many, and log it.

        A decision may be given by its round, if the object is gone. A second reward for the same
        decision is refused. If a human overrode the decision, the reward is that of their arm.

        Args:
            decision: what `select` gave, or its round; or a list of them.
            reward: the observed reward of each.
        """
        if isinstance(decision, Decision):
            value = checking.reward_of(reward)
            round = self._find(decision)
            if round in self._waiting.overridden:
                decision = self._waiting.decision(round)
            line = reward_line(self._learned + 1, round, value)
            self._learn(line, 1, [round], self.policy.update, decision, value)
            return
        many = isinstance(decision, Iterable) and not isinstance(decision, str)
        given: list[Any] = list(decision) if many else [decision]  # type: ignore[arg-type]
        if not many and np.ndim(reward):
            raise ValueError(f"reward is {reward!r}; allowed is one number for one decision")
        rounds = [self._find(item) for item in given]
        if len(set(rounds)) < len(rounds):
            raise ValueError("decision names a round twice; a decision has one reward")
        made = [self._waiting.decision(round) for round in rounds]
        self._absorb(
            rounds,
            [item.arm for item in made],
            np.reshape([item.context for item in made], (-1, self.policy.n_features)),
            reward,
        )

    def absorb(self, arms: ArrayLike, contexts: ArrayLike, rewards: ArrayLike) -> None:
        """Learn from rows as `Policy.absorb` does. They are logged without round and propensity."""
        self._absorb(None, arms, contexts, rewards)

    def override(self, decision: Decision | int, arm: int, context: ArrayLike) -> None:
        """Log that a human chose `arm`, with this context, instead. The reward is then that arm's.

        Args:
            decision: what `select` gave, or its round.
            arm: the arm that was taken in its place.
            context: of that arm.
        """
        round = self._find(decision)
        if round in self._waiting.overridden:
            raise ValueError(f"decision of round {round} was overridden before")
        numbers, rows, _ = checking.observations(
            [arm], np.atleast_2d(np.asarray(context)), [0.0], *self.policy._shape
        )
        chosen = int(numbers[0])
        if chosen == self._waiting.decision(round).arm:
            raise ValueError(f"arm is {arm!r}, which the policy chose; allowed is another arm")
        line = event_line("o", round, time_ns() // 1000, chosen, rows[0].tolist())
        self._journal.append(line)
        self._waiting.add(round, chosen, rows[0])
        self._waiting.overridden.add(round)

    def true_reward(self, decision: Decision | int, value: float) -> None:
        """Log the true reward of a decision. The policy does not learn it; the last one counts.

        Args:
            decision: what `select` gave, or its round.
            value: any finite number.
        """
        round = self._round_of(decision)
        if not self._about.first_round < round <= self._round or not self._open:
            raise self._refusal(round)
        self._journal.append(event_line("t", [round], [checking.reward_of(value)]))

    # The log ------------------------------------------------------------------------------------

    @property
    def waiting(self) -> list[int]:
        """The rounds whose reward has not come."""
        return sorted(self._waiting.kept)

    def flush(self) -> None:
        """Wait until everything so far outlasts a failure of power."""
        if self._open:
            self._journal.sync()

    def close(self) -> None:
        """Put everything into the file, and let go of it. If that fails the journal stays."""
        if not self._open:
            return
        self._open = False
        try:
            self._journal.check()
            self._journal.sync()
            found = read_whole(self.path)
            assert found is not None
            write_table(self.path, replace(self._about, state=self._state()), found[1])
            self._journal.remove()
        finally:
            self._journal.release()

    def _state(self) -> dict[str, Any]:
        """What `replay` is held to."""
        return {"round": self._round, "learned": self._learned, "sha256": checksum(self.policy)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "policy":
            raise AttributeError(name)
        return getattr(self.policy, name)

    def __repr__(self) -> str:
        return f"LoggedPolicy({self.policy!r}, {str(self.path)!r})"

    # Inside -------------------------------------------------------------------------------------

    def _absorb(
        self, rounds: list[int] | None, arms: ArrayLike, contexts: ArrayLike, rewards: ArrayLike
    ) -> None:
        if not self._open:
            raise self._refusal()
        numbers, rows, values = checking.observations(arms, contexts, rewards, *self.policy._shape)
        if not values.size:
            return
        first, learned = self._learned + 1, values.tolist()
        if rounds is None:
            line = event_line("a", first, numbers.tolist(), rows.tolist(), learned)
        else:
            line = event_line("r", first, rounds, learned)
        self._learn(line, values.size, rounds or [], self.policy.absorb, numbers, rows, values)

    def _learn(self, line: bytes, number: int, rounds: list[int], learn: Any, *what: Any) -> None:
        """Log first, then learn: what was learned cannot be taken back, a line can."""
        size = self._journal.size
        try:
            self._journal.append(line)
            learn(*what)
        except Exception:
            if self._journal.size != size:
                self._journal.cut(size)
            raise
        except BaseException:  # nobody knows whether it was learned; the log says it was
            self._journal.broken = "an update was interrupted"
            raise
        self._learned += number
        for round in rounds:
            del self._waiting.kept[round]

    def _round_of(self, decision: Any) -> int:
        if isinstance(decision, Decision):
            return decision.round
        if isinstance(decision, bool) or not isinstance(decision, (int, np.integer)):
            raise ValueError(f"decision is {decision!r}; allowed is what `select` gave, or a round")
        return int(decision)

    def _find(self, decision: Any) -> int:
        """The round of a decision whose reward may come."""
        round = self._round_of(decision)
        if round not in self._waiting.kept or not self._open:
            raise self._refusal(round)
        if isinstance(decision, Decision) and not self._waiting.is_this(decision):
            raise ValueError(
                f"decision is {decision!r}, which is not what this log has for round {round}; "
                "it was changed, or made by another policy"
            )
        return round

    def _refusal(self, round: int | None = None) -> ValueError:
        if not self._open:
            return ValueError(f"{self.path} is closed; open it again with eh.log_to")
        if round is None:
            return ValueError(
                f"the policy is in round {self.policy.round}, its log in round {self._round}: "
                "it decided outside of its log; open the log again"
            )
        first = self._about.first_round
        if first < round <= self._round:
            return ValueError(f"decision of round {round} has its reward already; it counts once")
        return ValueError(
            f"decision of round {round} is not in this log, which has rounds {first + 1} to "
            f"{self._round}; learn it with absorb"
        )
