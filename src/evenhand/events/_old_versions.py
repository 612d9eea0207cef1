"""Logs of versions 1 and 2: their rows, the lines of their journals, and numbers for both.

Their events have no numbers and name their decision by its round. A line is a list that begins
with its kind:

    ["d", round, microseconds, arm, propensity, explored, context]    a decision; two more if the
                                                                      log keeps candidates
    ["r", learned, rounds, rewards]                                   rewards of decisions
    ["a", learned, arms, contexts, rewards]                           rows from elsewhere
    ["o", round, microseconds, arm, context]                          a human chose another arm
    ["t", rounds, true rewards]

`learned` is the number of the first reward in the event, counted from 1.

`numbered` gives the rows the numbers and ids of version 3. They depend only on the rows, so they
are the same whenever such a log is read, until it is written as version 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from evenhand.errors import DamagedError
from evenhand.events._candidates import from_base64
from evenhand.events._header import About
from evenhand.events._ids import id_of
from evenhand.events._rows import (
    ARM,
    ARMS,
    CONTEXT,
    EXPLORED,
    FIELDS,
    ID,
    LEARNED,
    OVERRIDE,
    PROPENSITY,
    REWARD,
    REWARD_SEQ,
    ROUND,
    SEQ,
    TIME,
    TRUE,
    TRUE_SEQ,
    LogRows,
    rows_of,
)
from evenhand.events.columns import ORDER


class OlderRows:
    """Rows built from the lines of an older journal; rewards name their row by its round.

    Events that the table already has are skipped.
    """

    def __init__(self, about: About, table: pd.DataFrame | None = None) -> None:
        taken = set(ORDER) & set(about.features)
        if taken:
            raise DamagedError(
                f"a feature is called {min(taken)!r}, which is a column of logs since version 3; "
                "read this log with the evenhand that wrote it, and rename the feature"
            )
        self.about = about
        self.rows: list[list[Any]] = [] if table is None else rows_of(about, table)
        self.row_of: dict[int, int] = {}  # by round: the row in force, the human's if there is one
        self._own_row: dict[int, int] = {}  # by overridden round: the row of the policy's arm
        self.round, self.learned = about.first_round, 0
        for number, row in enumerate(self.rows):
            if row[ROUND] is not None:
                if row[PROPENSITY] is None and row[ROUND] in self.row_of:
                    self._own_row[row[ROUND]] = self.row_of[row[ROUND]]
                self.row_of[row[ROUND]] = number
                self.round = max(self.round, row[ROUND])
            self.learned = max(self.learned, row[LEARNED] or 0)
        self._known = (self.round, self.learned, {r for r in self.row_of if self._overridden(r)})
        # True rewards of humans' arms in the table.
        self._early: dict[int, float | None] = {}

    def apply(self, event: Sequence[Any]) -> None:
        """Apply a line; a DamagedError if it cannot come next."""
        kind, *parts = event
        kinds: dict[Any, Callable[..., None]] = {
            "d": self._decide,
            "r": self._reward,
            "a": self._absorb,
            "o": self._override,
            "t": self._true,
        }
        if kind not in kinds:
            raise DamagedError(f"{kind!r} is not a kind of event")
        kinds[kind](*parts)

    def _decide(
        self,
        round: int,
        time: int,
        arm: int,
        propensity: float,
        explored: int,
        context: list[float],
        *more: str | None,
    ) -> None:
        if len(more) != (2 if self.about.candidates else 0):
            raise DamagedError(f"a decision has {len(more)} parts about other arms")
        if round <= self._known[0]:
            return
        if round != self.round + 1:
            raise DamagedError(f"round {round} comes after round {self.round}")
        row = self._add(round, time, arm, propensity, bool(explored), context)
        row[ARMS : ARMS + 2] = map(from_base64, more or (None, None))
        self.round = round

    def _reward(self, learned: int, rounds: list[int], rewards: list[float]) -> None:
        if self._is_new(learned, len(rewards)):
            for round, reward in zip(rounds, rewards, strict=True):
                row = self.rows[self.row_of[round]]
                if row[LEARNED] is not None:
                    raise DamagedError(f"round {round} has a second reward")
                self.learned += 1
                row[REWARD], row[LEARNED] = float(reward), self.learned

    def _absorb(
        self, learned: int, arms: list[int], contexts: list[list[float]], rewards: list[float]
    ) -> None:
        if self._is_new(learned, len(rewards)):
            for arm, context, reward in zip(arms, contexts, rewards, strict=True):
                self.learned += 1
                row = self._add(None, None, arm, None, None, context)
                row[REWARD], row[LEARNED] = float(reward), self.learned

    def _override(self, round: int, time: int, arm: int, context: list[float]) -> None:
        if round in self._known[2]:
            if round in self._early:  # they came before it, so they belong to the policy's arm
                own, human = self.rows[self._own_row[round]], self.rows[self.row_of[round]]
                own[TRUE], human[TRUE] = human[TRUE], self._early.pop(round)
            return
        row = self.rows[self.row_of[round]]
        if self._overridden(round) or row[LEARNED] is not None:
            raise DamagedError(f"round {round} cannot be overridden any more")
        row[OVERRIDE] = arm
        self._add(round, time, arm, None, None, context)

    def _true(self, rounds: list[int], values: list[float]) -> None:
        for round, value in zip(rounds, values, strict=True):
            row = self.rows[self.row_of[round]]
            if round in self._known[2]:  # the table may have an override that comes later here
                self._early.setdefault(round, row[TRUE])
            row[TRUE] = float(value)

    def _overridden(self, round: int) -> bool:
        return self.rows[self.row_of[round]][PROPENSITY] is None

    def _is_new(self, learned: int, number: int) -> bool:
        if learned + number - 1 <= self._known[1]:
            return False
        if learned != self.learned + 1:
            raise DamagedError(f"reward number {learned} comes after number {self.learned}")
        return True

    def _add(
        self,
        round: int | None,
        time: int | None,
        arm: int,
        propensity: float | None,
        explored: bool | None,
        context: list[float],
    ) -> list[Any]:
        if len(context) != len(self.about.features) or not 0 <= arm < len(self.about.labels):
            raise DamagedError(f"arm {arm} with {len(context)} features cannot be in this log")
        row: list[Any] = [None] * len(FIELDS)
        row[TIME], row[ROUND], row[ARM], row[CONTEXT] = time, round, arm, context
        row[PROPENSITY], row[EXPLORED] = propensity, explored
        if round is not None:
            self.row_of[round] = len(self.rows)
        self.rows.append(row)
        return row

    def numbered(self) -> LogRows:
        """The same rows in version 3."""
        rows = LogRows(self.about)
        rows.rows = self.rows
        for number, (place, row) in enumerate(_in_order(self.rows), start=1):
            row[place] = number
            if row[ROUND] is None:
                row[REWARD_SEQ] = number  # it came with its reward
            else:
                row[ID] = id_of(self.about.key, row[ROUND])
        rows.find()
        return rows


def _in_order(rows: list[list[Any]]) -> list[tuple[int, list[Any]]]:
    """A possible order of events: rows in their order, and rewards in the order of learning.

    A reward comes as early as possible: after its own row, and after the rows of all rewards before
    it. A true reward comes right after its row, before a human could choose another arm.
    """
    events: list[tuple[tuple[int, int, int], int, list[Any]]] = []
    for number, row in enumerate(rows):
        events.append(((number, 0, 0), SEQ, row))
        if row[TRUE] is not None and row[ROUND] is not None:
            events.append(((number, 1, 0), TRUE_SEQ, row))
    learned = [pair for pair in enumerate(rows) if pair[1][LEARNED] is not None]
    last = 0
    for number, row in sorted(learned, key=lambda pair: int(pair[1][LEARNED])):
        last = max(last, number)
        if row[ROUND] is not None:
            events.append(((last, 2, row[LEARNED]), REWARD_SEQ, row))
    return [(place, row) for _, place, row in sorted(events, key=lambda event: event[0])]
