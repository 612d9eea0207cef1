"""The pending decisions of a log, which wait for their reward, and the counts of the log.

They depend on the events alone, and the same code updates them while a log is written and when it
is read again. Once a decision has its reward, only an id that the user gave it is kept.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from struct import Struct
from struct import error as StructError
from typing import Any

import numpy as np

from evenhand._checks import MALFORMED
from evenhand.errors import DamagedError, InputError
from evenhand.events import _ids
from evenhand.events._header import About, one_line
from evenhand.events.event import (
    Context,
    DecisionMade,
    Event,
    Overridden,
    RewardObserved,
    RowsAbsorbed,
    whole,
)
from evenhand.policies.decision import Decision, Scores

_ARM = Struct("<q")


class Pending:
    """By round, the arm in force and its context as bytes: 0.15 kB for a waiting decision."""

    def __init__(self, about: About) -> None:
        self._key, self.first = about.key, about.first_round
        self.seq, self.round, self.learned = 0, about.first_round, 0
        self._packed = Struct(f"<q{len(about.features)}d")
        self.kept: dict[int, bytes] = {}
        self.overridden: set[int] = set()
        self.learns_truth = about.truth
        self.true: set[int] = set()  # rounds whose true reward was learned
        self._named: dict[str, int] = {}  # ids that the user gave
        self._names: dict[int, str] = {}

    # Ids ----------------------------------------------------------------------------------------

    def id_of(self, round: int) -> str:
        """The id of a decision that was made."""
        return self._names.get(round) or _ids.id_of(self._key, round)

    def round_of(self, id: str) -> int | None:
        """The round of a decision that was made; None if there is none with this id."""
        round = self._named.get(id)
        if round is None:
            round = _ids.round_of(self._key, id)
            if round in self._names:  # this decision has another id
                return None
        return round if round is not None and self.has(round) else None

    def has(self, round: int) -> bool:
        """Whether a decision was made in this log."""
        return self.first < round <= self.round

    def new_id(self, id: object) -> str:
        """The id of the next decision: the user's, if no other decision has it."""
        if id is None:
            return _ids.id_of(self._key, self.round + 1)
        name = _ids.checked_id(self._key, id)
        if name in self._named:
            raise InputError(
                f"id is {name!r}, which the decision of round {self._named[name]} has; allowed is "
                "an id that no decision has: was this decision already made?",
                value=name,
            )
        return name

    # Events -------------------------------------------------------------------------------------

    def take(self, event: Event) -> tuple[int, Context, int] | None:
        """Apply an event; a DamagedError if it cannot come next.

        For a reward, returns the arm that earned it, its context and its round.
        """
        if event.seq != self.seq + 1:
            raise DamagedError(f"event {event.seq} comes after event {self.seq}")
        if isinstance(event, DecisionMade):
            if event.round != self.round + 1:
                raise DamagedError(f"round {event.round} comes after round {self.round}")
            if event.id != _ids.id_of(self._key, event.round):
                if event.id in self._named:
                    raise DamagedError(f"decision {event.id!r} occurs twice")
                self._named[event.id], self._names[event.round] = event.round, event.id
            self.kept[event.round] = self._pack(event)
            self.round = event.round
        elif isinstance(event, RewardObserved):
            round = self._waiting(event.id)
            arm, *context = self._packed.unpack(self.kept.pop(round))
            self.overridden.discard(round)
            self.learned += 1
            self.seq = event.seq
            return arm, tuple(context), round
        elif isinstance(event, RowsAbsorbed):
            self.learned += len(event.rewards)
        elif isinstance(event, Overridden):
            round = self._waiting(event.id)
            self.kept[round] = self._pack(event)
            self.overridden.add(round)
        else:
            self._take_true(event.id)
        self.seq = event.seq
        return None

    def _take_true(self, id: str) -> None:
        round = self.round_of(id)
        if round is None:
            raise DamagedError(f"a true reward is for decision {id!r}, which does not exist")
        if self.learns_truth:
            if round in self.true:
                raise DamagedError(f"decision {id!r} has two true rewards")
            self.true.add(round)

    def undo(self, event: DecisionMade) -> None:
        """Undo a decision, even if it was only partly applied."""
        self.kept.pop(event.round, None)
        self._named.pop(self._names.pop(event.round, ""), None)
        self.round, self.seq = event.round - 1, event.seq - 1

    def _pack(self, event: DecisionMade | Overridden) -> bytes:
        try:
            return self._packed.pack(event.arm, *event.context)
        except StructError as error:
            number = len(event.context)
            raise DamagedError(
                f"arm {event.arm} with {number} features cannot be in this log"
            ) from error

    def _waiting(self, id: str) -> int:
        round = self.round_of(id)
        if round is None or round not in self.kept:
            raise DamagedError(f"decision {id!r} does not wait for a reward")
        return round

    # Decisions ----------------------------------------------------------------------------------

    def made_round(self, decision: object) -> int:
        """The round of a decision of this log, given by itself, by its round or by its id."""
        round = self._given_round(decision)
        if not self.has(round):
            raise InputError(
                f"decision of round {round} is not in this log, which has rounds {self.first + 1} "
                f"to {self.round}; learn it with absorb"
            )
        return round

    def waiting_round(self, decision: object) -> int:
        """The same, for a decision that waits for its reward."""
        round = self.made_round(decision)
        if round not in self.kept:
            raise InputError(f"decision of round {round} already has its reward; it counts once")
        if isinstance(decision, Decision) and not self.is_this(decision):
            raise self._another(decision)
        return round

    def check_alike(self, decision: Decision, made: Decision) -> None:
        """Raise if a decision is not the one that was made in its round."""
        if int(decision.arm) != made.arm or not np.array_equal(decision.row, made.row):
            raise self._another(decision)

    def _another(self, decision: Decision) -> InputError:
        return InputError(
            f"decision is {decision!r}, which differs from that of round {decision.round} in this "
            "log; it was changed, or made by another policy",
            value=decision,
        )

    def without_truth(self, decision: object) -> int:
        """The same, for a decision whose true reward was not learned yet."""
        round = self.made_round(decision)
        if round in self.true:
            raise InputError(
                f"decision of round {round} already has its true reward; it counts once"
            )
        waits = isinstance(decision, Decision) and round in self.kept
        if isinstance(decision, Decision) and waits and not self.is_this(decision):
            raise self._another(decision)
        return round

    def _given_round(self, decision: object) -> int:
        if isinstance(decision, Decision):
            return int(decision.round)
        if isinstance(decision, str):
            round = self.round_of(decision)
            if round is None:
                raise InputError(
                    f"decision is {decision!r}, an id that no decision of this log has; allowed is "
                    "the result of select, its round or its id",
                    value=decision,
                )
            return round
        if isinstance(decision, bool) or not isinstance(decision, (int, np.integer)):
            raise InputError(
                f"decision is {decision!r}; allowed is the result of select, its round or its id",
                value=decision,
            )
        return int(decision)

    def is_this(self, decision: Decision) -> bool:
        """Whether it is the decision of its round, unless a human overrode that."""
        context = np.asarray(decision.row, dtype="<f8").tobytes()
        return decision.round in self.overridden or (
            self.kept[decision.round] == _ARM.pack(int(decision.arm)) + context
        )

    def decision(self, round: int) -> Decision:
        """The decision of a round, as far as learning needs it."""
        arm, *context = self._packed.unpack(self.kept[round])
        scores = Scores(np.empty((5, 0)))
        return Decision(arm, np.nan, False, round, np.array(context, dtype=np.float64), scores)

    # Snapshots ----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data; contexts are the bytes of little-endian doubles."""
        return {
            "round": self.round,
            "learned": self.learned,
            "waiting": [[round, b64encode(row).decode()] for round, row in self.kept.items()],
            "overridden": sorted(self.overridden),
            "named": self._named,
            **({"true": sorted(self.true)} if self.learns_truth else {}),
        }

    @classmethod
    def from_dict(cls, about: About, seq: int, state: dict[str, Any]) -> Pending:
        """The pending decisions that `to_dict` described, after event `seq`."""
        pending = cls(about)
        try:
            pending.seq = seq
            pending.round, pending.learned = whole(state["round"]), whole(state["learned"])
            pending.kept = {
                int(round): b64decode(row, validate=True) for round, row in state["waiting"]
            }
            pending.overridden = set(state["overridden"])
            pending.true = set(state["true"]) if pending.learns_truth else set()
            pending._named = dict(state["named"])
        except MALFORMED as error:
            raise DamagedError(f"the snapshot is damaged: {one_line(error)}") from error
        length = pending._packed.size
        if any(len(row) != length for row in pending.kept.values()):
            raise DamagedError(f"a waiting decision does not have {length} bytes")
        pending._names = {round: id for id, round in pending._named.items()}
        return pending
