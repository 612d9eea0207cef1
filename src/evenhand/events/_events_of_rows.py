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
from evenhand.events._read import Whole
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

_SEQS = ("seq", "reward_seq", "true_seq")


def events_of(about: About, whole: Whole, after: int = 0) -> Iterator[Event]:
    """The events after number `after`, in their order; a DamagedError if any is missing."""
    frame = whole.frame
    rounds = frame.loc[frame[NAMES["propensity"]].notna(), NAMES["round"]]
    _complete("learned", _numbers(frame[NAMES["learned"]]), 0)
    _complete("round", _numbers(rounds), about.first_round)
    replaced = [event.seq for event in whole.replaced]
    in_rows = [_numbers(frame[name]) for name in _SEQS]
    seqs = np.unique(np.concatenate([*in_rows, np.array(replaced, dtype=np.float64)]))
    _complete("seq", seqs, 0)
    later = (frame[list(_SEQS)] > after).fillna(False).any(axis=1)
    events = _events(columns_of(about, frame[later.to_numpy(dtype=bool)]))
    yield from sorted(
        (event for event in chain(events, whole.replaced) if event.seq > after), key=itemgetter(0)
    )


def _events(columns: list[list[Any]]) -> Iterator[Event]:
    """The events in the rows, kind by kind: whole columns are faster than row by row."""

    def of(kind: Callable[..., Event], where: list[bool], *fields: int) -> Iterator[Event]:
        return map(kind, *(compress(columns[field], where) for field in fields))

    columns[CONTEXT] = list(map(tuple, columns[CONTEXT]))
    has_round = [round is not None for round in columns[ROUND]]
    is_decision = [propensity is not None for propensity in columns[PROPENSITY]]
    yield from of(
        DecisionMade,
        is_decision,
        *(SEQ, TIME, ID, ROUND, ARM, PROPENSITY, EXPLORED, CONTEXT, ARMS, PROPENSITIES),
    )
    by_human = [here and not policy for here, policy in zip(has_round, is_decision, strict=True)]
    yield from of(Overridden, by_human, SEQ, TIME, ID, ARM, CONTEXT)
    rewarded = [
        here and seq is not None for here, seq in zip(has_round, columns[REWARD_SEQ], strict=True)
    ]
    yield from of(RewardObserved, rewarded, REWARD_SEQ, REWARD_AT, ID, REWARD)
    has_truth = [seq is not None for seq in columns[TRUE_SEQ]]
    yield from of(TrueRewardObserved, has_truth, TRUE_SEQ, TRUE_AT, ID, TRUE)
    fields = [columns[field] for field in (SEQ, REWARD_AT, ARM, CONTEXT, REWARD)]
    history = compress(zip(*fields, strict=True), [not here for here in has_round])
    for seq, rows in groupby(history, itemgetter(0)):
        _, times, arms, contexts, rewards = zip(*rows, strict=True)
        yield RowsAbsorbed(seq, times[0], None, arms, contexts, rewards)


def _numbers(column: pd.Series) -> NDArray[np.float64]:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(values[~np.isnan(values)])


def _complete(name: str, numbers: NDArray[np.float64], before: int) -> None:
    """Check that the numbers are before + 1, before + 2, ... without a gap."""
    expected = np.arange(before + 1, before + 1 + len(numbers))
    wrong = np.flatnonzero(np.sort(numbers) != expected)
    if wrong.size:
        raise DamagedError(
            f"{name} has no {expected[wrong[0]]}; rows are missing, or some belong to another log"
        )
