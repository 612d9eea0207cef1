"""The rows of a log while it is put together from what happened, event by event.

An event is a list that begins with its kind:

    ["d", round, microseconds, arm, propensity, explored, context]    a decision; two more if the
                                                                      log keeps candidates
    ["r", learned, rounds, rewards]                                   rewards of decisions
    ["a", learned, arms, contexts, rewards]                           rows from elsewhere
    ["o", round, microseconds, arm, context]                          a human chose another arm
    ["t", rounds, true rewards]

`learned` is the number of the first reward in the event, counted from 1. Events that the rows have
already are passed over, so that a journal can be read again after it became a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand.events.candidates import CHANCES, CONTEXTS, Array, from_base64
from evenhand.events.header import About
from evenhand.events.schema import NAMES

TIME, ROUND, ARM, PROPENSITY, REWARD, TRUE, OVERRIDE, EXPLORED, LEARNED, CONTEXT = range(10)
ARMS, PROPENSITIES = 10, 11  # of all candidates


class Rows:
    """Rows in the order in which they came; rewards find theirs by the round."""

    def __init__(self, about: About, table: pd.DataFrame | None = None) -> None:
        self.about = about
        self.rows: list[list[Any]] = [] if table is None else _from_table(table, about)
        self.row_of: dict[int, int] = {}  # of a round: the arm in force, that of the human if any
        self._own_row: dict[int, int] = {}  # of a round that was overridden: the policy's arm
        self.round, self.learned = about.first_round, 0
        for number, row in enumerate(self.rows):
            if row[ROUND] is not None:
                if row[PROPENSITY] is None and row[ROUND] in self.row_of:
                    self._own_row[row[ROUND]] = self.row_of[row[ROUND]]
                self.row_of[row[ROUND]] = number
                self.round = max(self.round, row[ROUND])
            self.learned = max(self.learned, row[LEARNED] or 0)
        self._known = (self.round, self.learned, {r for r in self.row_of if self._overridden(r)})
        self._early: dict[
            int, float | None
        ] = {}  # true rewards that a human's arm had in the table

    def apply(self, event: Sequence[Any]) -> None:
        """Take in an event; ValueError if it cannot come next."""
        kind, *what = event
        kinds: dict[Any, Callable[..., None]] = {
            "d": self._decide,
            "r": self._reward,
            "a": self._absorb,
            "o": self._override,
            "t": self._true,
        }
        if kind not in kinds:
            raise ValueError(f"no event is of the kind {kind!r}")
        kinds[kind](*what)

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
            raise ValueError(f"a decision has {len(more)} parts about other arms")
        if round <= self._known[0]:
            return
        if round != self.round + 1:
            raise ValueError(f"round {round} comes after round {self.round}")
        row = self._add(round, time, arm, propensity, bool(explored), context)
        row[ARMS:] = map(from_base64, more or (None, None))
        self.round = round

    def _reward(self, learned: int, rounds: list[int], rewards: list[float]) -> None:
        if self._is_new(learned, len(rewards)):
            for round, reward in zip(rounds, rewards, strict=True):
                row = self.rows[self.row_of[round]]
                if row[LEARNED] is not None:
                    raise ValueError(f"round {round} has a second reward")
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
            if round in self._early:  # they came before it, so that they are the policy's arm's
                own, human = self.rows[self._own_row[round]], self.rows[self.row_of[round]]
                own[TRUE], human[TRUE] = human[TRUE], self._early.pop(round)
            return
        row = self.rows[self.row_of[round]]
        if self._overridden(round) or row[LEARNED] is not None:
            raise ValueError(f"round {round} cannot be overridden any more")
        row[OVERRIDE] = arm
        self._add(round, time, arm, None, None, context)

    def _true(self, rounds: list[int], values: list[float]) -> None:
        for round, value in zip(rounds, values, strict=True):
            row = self.rows[self.row_of[round]]
            if round in self._known[2]:  # the table may know an override that comes only later here
                self._early.setdefault(round, row[TRUE])
            row[TRUE] = float(value)

    def _overridden(self, round: int) -> bool:
        return self.rows[self.row_of[round]][PROPENSITY] is None

    def _is_new(self, learned: int, number: int) -> bool:
        if learned + number - 1 <= self._known[1]:
            return False
        if learned != self.learned + 1:
            raise ValueError(f"reward number {learned} comes after number {self.learned}")
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
            raise ValueError(f"arm {arm} with {len(context)} features cannot be in this log")
        row = [time, round, arm, propensity, None, None, None, explored, None, context, None, None]
        if round is not None:
            self.row_of[round] = len(self.rows)
        self.rows.append(row)
        return row

    def decisions(self) -> int:
        """How many there are."""
        return sum(row[PROPENSITY] is not None for row in self.rows)

    def to_frame(self) -> pd.DataFrame:
        """The table of the schema."""
        columns = list(zip(*self.rows, strict=True)) if self.rows else [()] * 12
        return frame_of(
            self.about,
            columns[TIME],
            columns[ROUND],
            columns[ARM],
            columns[PROPENSITY],
            columns[REWARD],
            columns[TRUE],
            columns[OVERRIDE],
            columns[EXPLORED],
            columns[LEARNED],
            columns[CONTEXT],
            columns[ARMS],
            columns[PROPENSITIES],
        )


def frame_of(
    about: About,
    times: Sequence[int | None],
    rounds: Sequence[int | None],
    arms: Sequence[int],
    propensities: Sequence[float | None],
    rewards: Sequence[float | None],
    true_rewards: Sequence[float | None],
    overrides: Sequence[int | None],
    explored: Sequence[bool | None],
    learned: Sequence[int | None],
    contexts: Sequence[Sequence[float]],
    candidates: Sequence[Array | None] = (),
    chances: Sequence[Array | None] = (),
) -> pd.DataFrame:
    """Columns as a table in the schema's order and types; None is missing.

    The last two are looked at only if the log keeps candidates.
    """
    nowhere = np.iinfo(np.int64).min
    stamps = np.array([nowhere if t is None else t for t in times], dtype="datetime64[us]")
    labels = about.labels
    columns: dict[str, Any] = {
        "timestamp": pd.Series(stamps).dt.tz_localize("UTC"),
        "round": pd.array(list(rounds), dtype="Int64"),
        "arm": np.array(arms, dtype=np.int64),
        "position": pd.array(np.zeros(len(arms), dtype=np.int64), dtype="Int64"),
        "reward": np.array(rewards, dtype=np.float64),
        "propensity": np.array(propensities, dtype=np.float64),
        "group": pd.array([labels[arm] for arm in arms], dtype="str"),
        "true_reward": np.array(true_rewards, dtype=np.float64),
        "override": pd.array(list(overrides), dtype="Int64"),
        "explored": pd.array(list(explored), dtype="boolean"),
        "learned": pd.array(list(learned), dtype="Int64"),
    }
    table = np.array(contexts, dtype=np.float64).reshape(len(arms), len(about.features))
    named = {NAMES[role]: values for role, values in columns.items()}
    named |= dict(zip(about.features, table.T, strict=True))
    if about.candidates:
        for name, values in ((CONTEXTS, candidates), (CHANCES, chances)):
            named[name] = pd.Series(list(values), dtype=object)
    return pd.DataFrame(named)


def _from_table(table: pd.DataFrame, about: About) -> list[list[Any]]:
    order = ("timestamp", "round", "arm", "propensity", "reward", "true_reward", "override")
    columns = []
    for role in (*order, "explored", "learned"):
        column = table[NAMES[role]]
        there = column.notna()
        if role == "timestamp":
            column = column.dt.tz_convert(None).astype("int64")
        columns.append(column.astype("object").where(there, None).tolist())
    columns.append(table[list(about.features)].to_numpy(dtype=np.float64).tolist())
    for name in (CONTEXTS, CHANCES):
        columns.append(table[name].to_list() if about.candidates else [None] * len(table))
    return [list(row) for row in zip(*columns, strict=True)]
