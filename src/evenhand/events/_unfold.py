"""The events of a log, from its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.errors import DamagedError
from evenhand.events._rows import Rows
from evenhand.events.event import Event
from evenhand.events.header import About
from evenhand.events.read import Whole
from evenhand.events.schema import NAMES

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
    kept = tuple(one for one in whole.replaced if one.seq > after)
    rows = Rows(replace(about, replaced=kept), frame[later.to_numpy(dtype=bool)])
    yield from rows.events(after)


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
