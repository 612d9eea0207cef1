"""The rows of a log that evenhand wrote: nothing is missing, and every arm is one of the log's."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evenhand.errors import DamagedError
from evenhand.events.candidates import CHANCES, CONTEXTS, candidates, from_json
from evenhand.events.columns import ORDER
from evenhand.events.header import VERSION, About
from evenhand.events.schema import NAMES, checked


def are_older(about: About, frame: pd.DataFrame) -> bool:
    """Whether rows are those of version 1 or 2, also under a header of version 3.

    A crash can leave that of a CSV log: its header goes into its place before its rows.
    """
    known = set(ORDER) - set(about.features)
    return about.version < VERSION or not known & set(frame.columns)


def has_all_columns(about: About, frame: pd.DataFrame) -> None:
    """A DamagedError if a column is lost that evenhand wrote."""
    more = (CONTEXTS, CHANCES) if about.candidates else ()
    order = () if are_older(about, frame) else ORDER
    missing = [name for name in (*NAMES.values(), *order, *more) if name not in frame]
    if missing:
        raise DamagedError(f"the log has lost its column {missing[0]!r}")


def own(about: About, frame: pd.DataFrame, first: int, texts: bool) -> pd.DataFrame:
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
