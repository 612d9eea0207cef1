"""The rows of a log while it is put together from what happened, event by event.

A table has all events of a log but one kind: true rewards that a later one replaced. They are in
`replaced`. Events that the rows have already are passed over, so that a journal can be read again
after it became a table.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from evenhand.errors import DamagedError
from evenhand.events._frames import (
    ARM,
    ARMS,
    CONTEXT,
    EXPLORED,
    FIELDS,
    ID,
    LEARNED,
    OVERRIDE,
    PROPENSITIES,
    PROPENSITY,
    REWARD,
    REWARD_AT,
    REWARD_SEQ,
    ROUND,
    SEQ,
    TIME,
    TRUE,
    TRUE_AT,
    TRUE_SEQ,
    frame_of,
    rows_of,
)
from evenhand.events.event import (
    Context,
    DecisionMade,
    Event,
    Overridden,
    RewardObserved,
    RowsAbsorbed,
    TrueRewardObserved,
)
from evenhand.events.header import About


class Rows:
    """Rows in the order in which they came; events find theirs by the id of the decision."""

    def __init__(self, about: About, table: pd.DataFrame | None = None) -> None:
        self.about = about
        self.rows: list[list[Any]] = [] if table is None else rows_of(about, table)
        self.replaced = [TrueRewardObserved(*one) for one in about.replaced]
        self.find()

    def find(self) -> None:
        """Look at all rows anew: who is where, and what came last."""
        self.row_of: dict[str, int] = {}  # of an id: the arm in force, that of the human if any
        self.round, self.learned, self.head = self.about.first_round, 0, 0
        for number, row in enumerate(self.rows):
            if row[ROUND] is not None:
                self.row_of[row[ID]] = number
                self.round = max(self.round, row[ROUND])
            self.learned = max(self.learned, row[LEARNED] or 0)
            self.head = max(self.head, *(row[one] or 0 for one in (SEQ, REWARD_SEQ, TRUE_SEQ)))
        self.head = max(self.head, *(one.seq for one in self.replaced), 0)
        self._known = self.head

    def apply(self, event: Event) -> None:
        """Take in an event; a DamagedError if it cannot come next."""
        if event.seq <= self._known:
            return
        if event.seq != self.head + 1:
            raise DamagedError(f"event {event.seq} comes after event {self.head}")
        if isinstance(event, DecisionMade):
            self._decide(event)
        elif isinstance(event, RewardObserved):
            self._reward(event)
        elif isinstance(event, RowsAbsorbed):
            for arm, context, reward in zip(event.arms, event.contexts, event.rewards, strict=True):
                row = self._add(event, None, arm, context)
                row[TIME] = None  # it is none of this log's decisions
                self._learn(row, event, reward)
        elif isinstance(event, Overridden):
            row = self.rows[self.row_of[event.id]]
            if row[PROPENSITY] is None or row[LEARNED] is not None:
                raise DamagedError(f"decision {event.id!r} cannot be overridden any more")
            row[OVERRIDE] = event.arm
            self._add(event, row[ROUND], event.arm, event.context)
        else:
            row = self.rows[self.row_of[event.id]]
            if row[TRUE_SEQ] is not None:
                self.replaced.append(
                    TrueRewardObserved(row[TRUE_SEQ], row[TRUE_AT], row[ID], row[TRUE])
                )
            row[TRUE], row[TRUE_SEQ], row[TRUE_AT] = event.reward, event.seq, event.at
        self.head = event.seq

    def _decide(self, event: DecisionMade) -> None:
        if (event.contexts is not None) != self.about.candidates:
            more = 0 if event.contexts is None else 2
            raise DamagedError(f"a decision has {more} parts about other arms")
        if event.round != self.round + 1:
            raise DamagedError(f"round {event.round} comes after round {self.round}")
        if event.id in self.row_of:
            raise DamagedError(f"decision {event.id!r} is there twice")
        row = self._add(event, event.round, event.arm, event.context)
        row[PROPENSITY], row[EXPLORED] = event.propensity, event.explored
        row[ARMS], row[PROPENSITIES] = event.contexts, event.propensities
        self.round = event.round

    def _reward(self, event: RewardObserved) -> None:
        row = self.rows[self.row_of[event.id]]
        if row[LEARNED] is not None:
            raise DamagedError(f"decision {event.id!r} has a second reward")
        self._learn(row, event, event.reward)

    def _learn(self, row: list[Any], event: Event, reward: float) -> None:
        self.learned += 1
        row[REWARD], row[LEARNED] = reward, self.learned
        row[REWARD_SEQ], row[REWARD_AT] = event.seq, event.at

    def _add(self, event: Event, round: int | None, arm: int, context: Context) -> list[Any]:
        if len(context) != len(self.about.features) or not 0 <= arm < len(self.about.labels):
            raise DamagedError(f"arm {arm} with {len(context)} features cannot be in this log")
        row: list[Any] = [None] * len(FIELDS)
        row[TIME], row[ROUND], row[ARM], row[CONTEXT] = event.at, round, arm, context
        row[SEQ], row[ID] = event.seq, event.id
        if event.id is not None:
            self.row_of[event.id] = len(self.rows)
        self.rows.append(row)
        return row

    def decisions(self) -> int:
        """How many there are."""
        return sum(row[PROPENSITY] is not None for row in self.rows)

    def to_frame(self) -> pd.DataFrame:
        """The table of the schema."""
        columns = list(zip(*self.rows, strict=True)) if self.rows else [()] * len(FIELDS)
        return frame_of(self.about, dict(zip(FIELDS, columns, strict=True)))
