"""Reading a log: the table, and what a journal beside it has that is not in the table yet."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from evenhand.logs.about import About
from evenhand.logs.journal import journal_of, read_journal
from evenhand.logs.rows import Rows
from evenhand.logs.schema import checked
from evenhand.logs.tables import log_path, read_table


def read_log(path: str | Path) -> pd.DataFrame:
    """The rows of a log, checked: a ValueError names the column and the row of what is wrong.

    Rows of a log that is being written, or whose writer was killed, are there as well. Logs of
    others are read by the same names and those of the Open Bandit data; columns that the schema
    does not know are left as they are.

    Args:
        path: a Parquet or CSV file.

    Example:
        >>> import numpy as np, evenhand as eh, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.csv"
        >>> with eh.log_to(path, eh.TopInterval(["F", "M"], n_features=1, seed=1)) as logged:
        ...     logged.update(logged.select(np.ones((2, 1))), reward=0.5)
        >>> eh.read_log(path)[["round", "item_id", "group", "reward", "propensity_score", "x1"]]
           round  item_id group  reward  propensity_score   x1
        0      1        0     F     0.5               0.5  1.0
    """
    found = read_whole(log_path(path))
    if found is None:
        raise ValueError(f"path is {str(path)!r}, where there is no log")
    return found[1]


def read_whole(path: Path) -> tuple[About | None, pd.DataFrame] | None:
    """What a log is about and its rows; None if there is none."""
    journal = read_journal(path)  # first: a writer that closes now puts it into the table
    try:
        written = read_table(path)
    except FileNotFoundError:
        written = None
    if journal is None:
        return written
    begun, events = journal
    about, table = written or (begun, None)
    if about is None or not about.begins_like(begun):
        raise ValueError(
            f"{journal_of(path)} is the journal of another log than {path.name}; "
            "move one of them away"
        )
    rows = Rows(about, table)
    for number, event in enumerate(events, start=2):
        try:
            rows.apply(event)
        except (ValueError, TypeError, LookupError) as error:
            raise ValueError(
                f"{journal_of(path)}: line {number} is damaged: "
                f"{error if isinstance(error, ValueError) else repr(error)}"
            ) from error
    try:
        return about, checked(rows.to_frame(), about.features)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{journal_of(path)} is damaged: {error}") from error
