"""The events of a log, from its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, compress, groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.errors import DamagedError
from evenhand.events._header import About
from evenhand.events._rows import (
    ARM,
    ARMS,
    CONTEXT,
    EXPLORED,
    ID,
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
    columns_of,
)
from evenhand.events._schema import NAMES
from evenhand.events.event import (
    DecisionMade,
    Event,
    Overridden,
    RewardObserved,
    RowsAbsorbed,
    TrueRewardObserved,
)
from evenhand.events.read import Whole

_SEQS = ("seq", "reward_seq", "true_seq")


def events_of(about: About, whole: Whole, after: int = 0) -> Iterator[Event]:
    """The events after number `after`, in their order; a DamagedError if any is lost."""
    frame = whole.frame
    made = frame.loc[frame[NAMES["propensity"]].notna(), NAMES["round"]]
    _complete("learned", _numbers(frame[NAMES["learned"]]), 0)
    _complete("round", _numbers(made), about.first_round)
    replaced = [one.seq for one in whole.replaced]
    found = [_numbers(frame[name]) for name in _SEQS]
    seqs = np.unique(np.concatenate([*found, np.array(replaced, dtype=np.float64)]))
    _complete("seq", seqs, 0)
    later = (frame[list(_SEQS)] > after).fillna(False).any(axis=1)
    told = _told(columns_of(about, frame[later.to_numpy(dtype=bool)]))
    yield from sorted(
        (one for one in chain(told, whole.replaced) if one.seq > after), key=itemgetter(0)
    )


def _told(columns: list[list[Any]]) -> Iterator[Event]:
    """What the rows say happened, kind by kind: columns at once are quicker than row by row."""

    def of(kind: Callable[..., Event], where: list[bool], *fields: int) -> Iterator[Event]:
        return map(kind, *(compress(columns[field], where) for field in fields))

    columns[CONTEXT] = list(map(tuple, columns[CONTEXT]))
    ours = [one is not None for one in columns[ROUND]]
    made = [one is not None for one in columns[PROPENSITY]]
    yield from of(
        DecisionMade,
        made,
        *(SEQ, TIME, ID, ROUND, ARM, PROPENSITY, EXPLORED, CONTEXT, ARMS, PROPENSITIES),
    )
    human = [mine and not its for mine, its in zip(ours, made, strict=True)]
    yield from of(Overridden, human, SEQ, TIME, ID, ARM, CONTEXT)
    paid = [mine and one is not None for mine, one in zip(ours, columns[REWARD_SEQ], strict=True)]
    yield from of(RewardObserved, paid, REWARD_SEQ, REWARD_AT, ID, REWARD)
    known = [one is not None for one in columns[TRUE_SEQ]]
    yield from of(TrueRewardObserved, known, TRUE_SEQ, TRUE_AT, ID, TRUE)
    fields = [columns[field] for field in (SEQ, REWARD_AT, ARM, CONTEXT, REWARD)]
    history = compress(zip(*fields, strict=True), [not mine for mine in ours])
    for seq, rows in groupby(history, itemgetter(0)):
        _, times, arms, contexts, rewards = zip(*rows, strict=True)
        yield RowsAbsorbed(seq, times[0], None, arms, contexts, rewards)


def _numbers(column: pd.Series) -> NDArray[np.float64]:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(values[~np.isnan(values)])


def _complete(name: str, numbers: NDArray[np.float64], before: int) -> None:
    """All of before + 1, before + 2, ... are there."""
    expected = np.arange(before + 1, before + 1 + len(numbers))
    wrong = np.flatnonzero(np.sort(numbers) != expected)
    if wrong.size:
        raise DamagedError(
            f"{name} has no {expected[wrong[0]]}; rows are missing, or not all are of this log"
        )
