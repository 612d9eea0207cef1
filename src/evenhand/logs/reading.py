"""Reading a log: the table, and what a journal beside it has that is not in the table yet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from evenhand.logs.about import DAMAGE, About, one_line
from evenhand.logs.candidates import candidates
from evenhand.logs.journal import journal_of, read_journal
from evenhand.logs.rows import Rows
from evenhand.logs.schema import checked
from evenhand.logs.stored import Held, expected, not_whole, read_table
from evenhand.logs.tables import beside, log_path

ATTRS = "evenhand"
TRIES = 5


def read_log(path: str | Path, columns: Mapping[str, str] | None = None) -> pd.DataFrame:
    """The rows of a log, checked: a ValueError names the column and the row of what is wrong.

    Rows of a log that is being written, or whose writer was killed, are there as well. Logs of
    others are read by the same names and those of the Open Bandit data; columns that the schema
    does not know are left as they are. Of a log that evenhand wrote, the groups of all arms and the
    names of the features are in `attrs["evenhand"]` of the frame.

    Args:
        path: a Parquet or CSV file.
        columns: in logs of others, the roles of columns with names of their own, such as
            {"reward": "paid"}.

    Example:
        >>> import numpy as np, evenhand as eh, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.csv"
        >>> with eh.log_to(path, eh.TopInterval(["F", "M"], n_features=1, seed=1)) as logged:
        ...     logged.update(logged.select(np.ones((2, 1))), reward=0.5)
        >>> eh.read_log(path)[["round", "item_id", "group", "reward", "propensity_score", "x1"]]
           round  item_id group  reward  propensity_score   x1
        0      1        0     F     0.5               0.5  1.0
    """
    found = read_whole(log_path(path), columns)
    if found is None:
        raise ValueError(f"path is {str(path)!r}, where there is no log")
    about, frame = found
    return frame if about is None else labelled(frame, about)


def labelled(frame: pd.DataFrame, about: About) -> pd.DataFrame:
    """The frame, with the groups of all arms and the names of the features in its `attrs`.

    Rows alone do not tell the group of an arm that was never chosen. pandas hands `attrs` on to
    what is made from a frame, so these are small.
    """
    frame.attrs[ATTRS] = {"groups": list(about.labels), "features": list(about.features)}
    return frame


def read_whole(
    path: Path, columns: Mapping[str, str] | None = None
) -> tuple[About | None, pd.DataFrame] | None:
    """What a log is about and its rows; None if there is none.

    A log is up to three files. If a writer changed them while they were read, they may not fit
    together, and are read again.
    """
    for _ in range(TRIES - 1):
        before = _files(path)
        try:
            return _read_once(path, columns)
        except ValueError:
            if _files(path) == before:
                raise
    return _read_once(path, columns)


def _files(path: Path) -> list[tuple[int, ...] | None]:
    found: list[tuple[int, ...] | None] = []
    for file in (path, beside(path), journal_of(path)):
        try:
            now = file.stat()
            found.append((now.st_ino, now.st_size, now.st_mtime_ns))
        except OSError:
            found.append(None)
    return found


def _read_once(
    path: Path, columns: Mapping[str, str] | None
) -> tuple[About | None, pd.DataFrame] | None:
    journal = read_journal(path)  # first: a writer that closes now puts it into the table
    try:
        written = read_table(path, columns, going_on=journal is not None)
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
        except DAMAGE as error:
            raise ValueError(
                f"{journal_of(path)}: line {number} is damaged: {one_line(error)}"
            ) from error
    should, found = expected(about), Held(rows.decisions(), rows.learned, None)
    if should is not None and (found.rounds < should.rounds or found.learned < should.learned):
        raise ValueError(f"{path}: {not_whole(path, found, should)}")
    try:
        frame = checked(rows.to_frame(), about.features)
        if about.candidates:
            candidates(frame, len(about.labels), about.features)
        return about, frame
    except DAMAGE as error:
        raise ValueError(f"{journal_of(path)} is damaged: {one_line(error)}") from error
