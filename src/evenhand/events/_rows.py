"""The rows of a log: built from events, as a table of the schema, and back.

A table has all events of a log except true rewards that a later one replaced, which are in
`replaced`. Events that the rows already have are skipped, so a journal can be read again after it
was put into the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._membership import cells_of
from evenhand.errors import DamagedError
from evenhand.events._candidates import CHANCES, CONTEXTS, candidates, from_json
from evenhand.events._header import NUMBERED, About
from evenhand.events._schema import NAMES, checked
from evenhand.events.columns import ORDER
from evenhand.events.event import (
    Context,
    DecisionMade,
    Event,
    Overridden,
    RewardObserved,
    RowsAbsorbed,
    TrueRewardObserved,
)
from evenhand.groups import Groups

# The fields of a row, in this order; `context` and the fields about all arms are lists.
FIELDS = (
    *("timestamp", "round", "arm", "propensity", "reward", "true_reward", "override", "explored"),
    *("learned", "context", "contexts", "propensities", *ORDER),
)
TIME, ROUND, ARM, PROPENSITY, REWARD, TRUE, OVERRIDE, EXPLORED = range(8)
LEARNED, CONTEXT, ARMS, PROPENSITIES, ID, SEQ, REWARD_SEQ, REWARD_AT, TRUE_SEQ, TRUE_AT = range(
    8, 18
)
_NOWHERE = np.iinfo(np.int64).min


def frame_of(about: About, columns: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Columns, by the names of `FIELDS`, as a table in the schema's order and types.

    None means missing. The columns about all arms are used only if the log keeps candidates.
    """
    arms = np.array(columns["arm"], dtype=np.int64)
    table = np.array(columns["context"], dtype=np.float64).reshape(len(arms), len(about.features))
    typed: dict[str, Any] = {
        "timestamp": _times(columns["timestamp"]),
        "round": _whole(columns["round"]),
        "arm": arms,
        "position": pd.array(np.zeros(len(arms), dtype=np.int64), dtype="Int64"),
        "reward": np.array(columns["reward"], dtype=np.float64),
        "propensity": np.array(columns["propensity"], dtype=np.float64),
        "group": pd.array(groups_of_rows(about, arms, table), dtype="str"),
        "true_reward": np.array(columns["true_reward"], dtype=np.float64),
        "override": _whole(columns["override"]),
        "explored": pd.array(list(columns["explored"]), dtype="boolean"),
        "learned": _whole(columns["learned"]),
    }
    named = {NAMES[role]: values for role, values in typed.items()}
    for name in ORDER:
        if name == ORDER[0]:
            named[name] = pd.array(list(columns[name]), dtype="str")
        else:
            named[name] = (_times if name.endswith("_at") else _whole)(columns[name])
    named |= dict(zip(about.features, table.T, strict=True))
    if about.candidates:
        for name, values in ((CONTEXTS, "contexts"), (CHANCES, "propensities")):
            named[name] = pd.Series(list(columns[values]), dtype=object)
    return pd.DataFrame(named)


def groups_of_rows(
    about: About, arms: NDArray[np.int64], contexts: NDArray[np.float64]
) -> NDArray[Any]:
    """The group of every row: that of its arm, or the one that came with its context."""
    levels = about.policy["settings"]["groups"].get("per_round")
    if levels is None or not len(arms):
        return np.array(about.labels, dtype=object)[arms]
    groups = Groups.per_round(len(about.labels), levels)
    return np.array(cells_of(groups, contexts[:, -len(groups.columns) :]), dtype=object)


def with_unlearned(frame: pd.DataFrame, rewards: Mapping[str, tuple[float, int]]) -> pd.DataFrame:
    """The table with rewards that have no event, in the rows in force that have no reward.

    They have a time but no number: a replay does not learn them, but an audit sees them.
    """
    ids = frame[ORDER[0]]
    open_ = frame[NAMES["override"]].isna() & frame[NAMES["reward"]].isna() & ids.isin(rewards)
    if not open_.any():
        return frame
    pairs = [rewards[id] for id in ids[open_]]
    filled = frame.copy()
    filled.loc[open_, NAMES["reward"]] = [reward for reward, _ in pairs]
    filled.loc[open_, "reward_at"] = _times([at for _, at in pairs]).to_numpy()
    return filled


def _times(values: Sequence[int | None]) -> pd.Series:
    stamps = np.array([_NOWHERE if t is None else t for t in values], dtype="datetime64[us]")
    return pd.Series(stamps).dt.tz_localize("UTC")


def _whole(values: Sequence[int | None]) -> Any:
    return pd.array(list(values), dtype="Int64")


def rows_of(about: About, table: pd.DataFrame) -> list[list[Any]]:
    """The arguments of `frame_of` for a table, row by row."""
    return [list(row) for row in zip(*columns_of(about, table), strict=True)]


def columns_of(about: About, table: pd.DataFrame) -> list[list[Any]]:
    """The columns of `FIELDS` in a table. A table of an older version has no order of events."""
    columns: list[list[Any]] = []
    for field in FIELDS:
        name = NAMES.get(field, field)
        if field == "context":
            contexts = table[list(about.features)].to_numpy(dtype=np.float64)
            columns.append(contexts.tolist())
        elif field in ("contexts", "propensities"):
            named = CONTEXTS if field == "contexts" else CHANCES
            columns.append(table[named].to_list() if about.candidates else [None] * len(table))
        elif name not in table or name in about.features:
            columns.append([None] * len(table))
        else:
            columns.append(_plain(table[name]))
    return columns


def _plain(column: pd.Series) -> list[Any]:
    known = column.notna()
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert(None).astype("int64")
    values: list[Any] = column.astype("object").where(known, None).tolist()
    return values


def are_older(about: About, frame: pd.DataFrame) -> bool:
    """Whether rows have version 1 or 2, even under a header of version 3.

    A crash can leave a CSV log like this, because its header is replaced before its rows.
    """
    known = set(ORDER) - set(about.features)
    return about.version < NUMBERED or not known & set(frame.columns)


def has_all_columns(about: About, frame: pd.DataFrame) -> None:
    """Raise a DamagedError if a column that evenhand wrote is missing."""
    more = (CONTEXTS, CHANCES) if about.candidates else ()
    order = () if are_older(about, frame) else ORDER
    missing = [name for name in (*NAMES.values(), *order, *more) if name not in frame]
    if missing:
        raise DamagedError(f"the log has lost its column {missing[0]!r}")


def typed_rows(about: About, frame: pd.DataFrame, first: int, texts: bool) -> pd.DataFrame:
    """The rows of a log that evenhand wrote, with the types of the schema."""
    has_all_columns(about, frame)
    frame = checked(frame, about.features, first=first, order=not are_older(about, frame))
    arms = pd.to_numeric(frame[NAMES["arm"]], errors="coerce")
    wrong = ~arms.isin(range(len(about.labels))).to_numpy()
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DamagedError(
            f"{arms.name} in row {row + first} is {frame[NAMES['arm']].iloc[row]!r}; allowed are "
            f"whole numbers from 0 to {len(about.labels) - 1}"
        )
    if about.candidates:
        if texts:
            lists = {name: from_json(frame[name], first) for name in (CONTEXTS, CHANCES)}
            frame = frame.assign(**lists)
        candidates(frame, len(about.labels), about.features, first)
    return frame


class LogRows:
    """Rows in the order in which they came; events name theirs by the id of the decision.

    With `gaps`, rounds may be missing because their decisions were erased.
    """

    def __init__(self, about: About, table: pd.DataFrame | None = None, gaps: bool = False) -> None:
        self.about, self.gaps = about, gaps
        self.rows: list[list[Any]] = [] if table is None else rows_of(about, table)
        self.replaced = [TrueRewardObserved(*event) for event in about.replaced]
        self.find()

    def find(self) -> None:
        """Index all rows again: the row of each decision, and the last numbers."""
        self.row_of: dict[str, int] = {}  # by id: the row in force, the human's if there is one
        self.round, self.learned, self.head = self.about.first_round, 0, 0
        for number, row in enumerate(self.rows):
            if row[ROUND] is not None:
                self.row_of[row[ID]] = number
                self.round = max(self.round, row[ROUND])
            self.learned = max(self.learned, row[LEARNED] or 0)
            self.head = max(self.head, *(row[field] or 0 for field in (SEQ, REWARD_SEQ, TRUE_SEQ)))
        self.head = max(self.head, *(event.seq for event in self.replaced), 0)
        self._known = self.head

    def apply(self, event: Event) -> None:
        """Apply an event; a DamagedError if it cannot come next."""
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
                row[TIME] = None  # it is not a decision of this log
                self._learn(row, event, reward)
        elif isinstance(event, Overridden):
            row = self._row(event.id)
            if row[PROPENSITY] is None or row[LEARNED] is not None:
                raise DamagedError(f"decision {event.id!r} cannot be overridden any more")
            row[OVERRIDE] = event.arm
            self._add(event, row[ROUND], event.arm, event.context)
        else:
            row = self._row(event.id)
            if row[TRUE_SEQ] is not None:
                self.replaced.append(
                    TrueRewardObserved(row[TRUE_SEQ], row[TRUE_AT], row[ID], row[TRUE])
                )
            row[TRUE], row[TRUE_SEQ], row[TRUE_AT] = event.reward, event.seq, event.at
        self.head = event.seq

    def _row(self, id: str) -> list[Any]:
        """The row in force of a decision."""
        if id not in self.row_of:
            raise DamagedError(f"decision {id!r} does not exist")
        return self.rows[self.row_of[id]]

    def _decide(self, event: DecisionMade) -> None:
        if (event.contexts is not None) != self.about.candidates:
            more = 0 if event.contexts is None else 2
            raise DamagedError(f"a decision has {more} parts about other arms")
        if event.round <= self.round or not (self.gaps or event.round == self.round + 1):
            raise DamagedError(f"round {event.round} comes after round {self.round}")
        if event.id in self.row_of:
            raise DamagedError(f"decision {event.id!r} occurs twice")
        row = self._add(event, event.round, event.arm, event.context)
        row[PROPENSITY], row[EXPLORED] = event.propensity, event.explored
        row[ARMS], row[PROPENSITIES] = event.contexts, event.propensities
        self.round = event.round

    def _reward(self, event: RewardObserved) -> None:
        row = self._row(event.id)
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
        """The number of decisions."""
        return sum(row[PROPENSITY] is not None for row in self.rows)

    def to_frame(self) -> pd.DataFrame:
        """The table of the schema."""
        columns = list(zip(*self.rows, strict=True)) if self.rows else [()] * len(FIELDS)
        return frame_of(self.about, dict(zip(FIELDS, columns, strict=True)))
