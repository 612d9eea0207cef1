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

from evenhand._checks import MALFORMED
from evenhand.errors import DamagedError
from evenhand.events._candidates import from_base64
from evenhand.events._header import About, one_line
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
from evenhand.events.event import Context, real, reals, whole


def is_of_older_version(line: Any) -> bool:
    """Whether a line of a journal is of version 1 or 2: it begins with its kind, not a number."""
    return isinstance(line, list) and bool(line) and isinstance(line[0], str)


def _parsed(kind: str, parts: Sequence[Any]) -> tuple[Any, ...]:
    """The parts of a line with their types; any of MALFORMED if they are not those of its kind."""
    if kind == "d":
        round, time, arm, propensity, explored, context, *more = parts
        arrays = tuple(map(from_base64, more))
        return (*map(whole, (round, time, arm)), real(propensity), bool(explored), reals(context),
                *arrays)  # fmt: skip
    if kind == "o":
        round, time, arm, context = parts
        return (*map(whole, (round, time, arm)), reals(context))
    if kind == "t":
        rounds, values = parts
        return (_pairs(rounds, values),)
    if kind == "r":
        learned, rounds, rewards = parts
        return whole(learned), _pairs(rounds, rewards)
    if kind == "a":
        learned, arms, contexts, rewards = parts
        rows = zip(arms, contexts, rewards, strict=True)
        return whole(learned), [(whole(arm), reals(row), real(reward)) for arm, row, reward in rows]
    raise DamagedError(f"{kind!r} is not a kind of event")


def _pairs(rounds: Any, values: Any) -> list[tuple[int, float]]:
    return [(whole(round), real(value)) for round, value in zip(rounds, values, strict=True)]


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
        """Apply a line; a DamagedError if it is malformed, or cannot come next."""
        kind, *parts = event
        try:
            parsed = _parsed(kind, parts)
        except MALFORMED as error:
            raise DamagedError(one_line(error)) from error
        kinds: dict[str, Callable[..., None]] = {
            "d": self._decide,
            "r": self._reward,
            "a": self._absorb,
            "o": self._override,
            "t": self._true,
        }
        kinds[kind](*parsed)

    def _decide(
        self,
        round: int,
        time: int,
        arm: int,
        propensity: float,
        explored: bool,
        context: Context,
        *more: Any,
    ) -> None:
        if len(more) != (2 if self.about.candidates else 0):
            raise DamagedError(f"a decision has {len(more)} parts about other arms")
        if round <= self._known[0]:
            return
        if round != self.round + 1:
            raise DamagedError(f"round {round} comes after round {self.round}")
        row = self._add(round, time, arm, propensity, explored, context)
        row[ARMS : ARMS + 2] = more or (None, None)
        self.round = round

    def _reward(self, learned: int, rewards: list[tuple[int, float]]) -> None:
        if self._is_new(learned, len(rewards)):
            for round, reward in rewards:
                row = self._row(round)
                if row[LEARNED] is not None:
                    raise DamagedError(f"round {round} has a second reward")
                self.learned += 1
                row[REWARD], row[LEARNED] = reward, self.learned

    def _absorb(self, learned: int, rows: list[tuple[int, Context, float]]) -> None:
        if self._is_new(learned, len(rows)):
            for arm, context, reward in rows:
                self.learned += 1
                row = self._add(None, None, arm, None, None, context)
                row[REWARD], row[LEARNED] = reward, self.learned

    def _override(self, round: int, time: int, arm: int, context: Context) -> None:
        if round in self._known[2]:
            if round in self._early:  # they came before it, so they belong to the policy's arm
                own, human = self.rows[self._own_row[round]], self.rows[self.row_of[round]]
                own[TRUE], human[TRUE] = human[TRUE], self._early.pop(round)
            return
        row = self._row(round)
        if self._overridden(round) or row[LEARNED] is not None:
            raise DamagedError(f"round {round} cannot be overridden any more")
        row[OVERRIDE] = arm
        self._add(round, time, arm, None, None, context)

    def _true(self, rewards: list[tuple[int, float]]) -> None:
        for round, value in rewards:
            row = self._row(round)
            if round in self._known[2]:  # the table may have an override that comes later here
                self._early.setdefault(round, row[TRUE])
            row[TRUE] = value

    def _row(self, round: int) -> list[Any]:
        """The row in force of a round."""
        if round not in self.row_of:
            raise DamagedError(f"round {round} does not exist")
        return self.rows[self.row_of[round]]

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
        context: Context,
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
