"""A policy that writes down what it does: the same face, and a log behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand.events.header import About
from evenhand.events.journal import Journal, event_line, reward_line
from evenhand.events.read import read_whole
from evenhand.events.schema import NAMES
from evenhand.events.tables import write_table
from evenhand.policies import _checks as checking
from evenhand.policies.base import Policy
from evenhand.policies.decision import Decision
from evenhand.recording._lines import line_with_candidates, now, plain_line, seen
from evenhand.recording._pending import Waiting
from evenhand.recording._replay import checksum


class LoggedPolicy:
    """What `log_to` gives: a policy whose `select`, `update` and `absorb` are logged.

    All else, such as `bias`, `counts` or `save`, is the policy's own. Everything it decides and
    learns has to go through this object. It is for one thread of one process.
    """

    def __init__(
        self,
        path: Path,
        journal: Journal,
        about: About,
        policy: Policy,
        waiting: Waiting,
        learned: int,
    ) -> None:
        self.path = path
        self.policy: Policy = policy
        """The policy itself."""
        self._journal, self._about, self._waiting = journal, about, waiting
        self._round, self._learned, self._open = int(policy.round), learned, True
        self._line = line_with_candidates if about.candidates else plain_line

    # What is logged -----------------------------------------------------------------------------

    def select(self, contexts: ArrayLike, available: ArrayLike | None = None) -> Decision:
        """Choose an arm for this round, as `Policy.select` does, and log it."""
        policy, journal, before = self.policy, self._journal, self._round
        if policy.round != before or not self._open:
            raise self._refusal()
        mark = journal.mark
        try:
            decision = policy.select(contexts, available)
            kept = seen(policy, decision, before + 1)
            journal.append(self._line(policy, kept, contexts, available))
            self._waiting.add(kept.round, kept.arm, kept.context)
            self._round = before + 1
        except BaseException:  # as if it had never been asked
            policy.round = self._round = before
            self._waiting.kept.pop(before + 1, None)
            if journal.mark != mark:
                journal.cut(mark)
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
        line = event_line("o", round, now(), chosen, rows[0].tolist())
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
        """Put everything into the file, and let go of it.

        The journal stays if that fails: it is removed only when the file was read back, and is as
        it should be.
        """
        if not self._open:
            return
        self._open = False
        try:
            self._journal.check()
            self._journal.sync()
            found = read_whole(self.path)
            assert found is not None and found[0] is not None
            self._stop_unless_all(found[1])
            was = found[0].rows if self.path.exists() else None
            about = replace(self._about, state=self._state(), before=was)
            write_table(self.path, about, found[1])
            self._journal.remove()
        finally:
            self._journal.release()

    def _stop_unless_all(self, frame: pd.DataFrame) -> None:
        """Rounds and rewards are as many as this object has seen."""
        made = self._about.first_round + int(frame[NAMES["propensity"]].notna().sum())
        learned = int(frame[NAMES["learned"]].notna().sum())
        if (made, learned) != (self._round, self._learned):
            raise ValueError(
                f"{self.path} would have rounds up to {made} and {learned} learned rewards, and "
                f"there were {self._round} and {self._learned}; it is left as it is, with its "
                "journal"
            )

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
        mark = self._journal.mark
        try:
            self._journal.append(line)
            learn(*what)
        except Exception:
            if self._journal.mark != mark:
                self._journal.cut(mark)
            raise
        except BaseException:  # nobody knows whether it was learned; the log says it was
            self._journal.broken = "an update was interrupted"
            raise
        self._learned += number
        for round in rounds:
            del self._waiting.kept[round]

    def _round_of(self, decision: Any) -> int:
        if isinstance(decision, Decision):
            return int(decision.round)
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
