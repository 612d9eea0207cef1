"""Reading a table: what others wrote, or what evenhand wrote, if it is whole and unchanged."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple

import pandas as pd

from evenhand.logs.about import DAMAGE, About, one_line
from evenhand.logs.fingerprint import fingerprint
from evenhand.logs.formats import parquet_about, read_csv, read_parquet
from evenhand.logs.own import has_all_columns, own
from evenhand.logs.schema import NAMES, checked
from evenhand.logs.tables import beside


class Held(NamedTuple):
    """How much a log has, to be held against what it should have. None: it is not known."""

    rounds: int
    learned: int
    rows: int | None

    def __str__(self) -> str:
        rows = "" if self.rows is None else f" in {self.rows} rows"
        return f"{self.rounds} rounds and {self.learned} learned rewards{rows}"


def expected(about: About) -> Held | None:
    """What a log had when it was closed."""
    if about.state is None:
        return None
    rows = None if about.rows is None else about.rows["number"]
    return Held(about.state["round"] - about.first_round, about.state["learned"], rows)


def not_whole(path: Path, found: Held, should: Held) -> ValueError:
    """The error for a log that has less, or more, than it says."""
    told = beside(path)
    hint = f", or move {told.name} away to read what is there as a log of others"
    return ValueError(
        f"the log has {found}, and should have {should}, as it had when it was closed: rows were "
        f"cut off, lost or added; put the whole file back{hint if told.exists() else ''}"
    )


def read_table(
    path: Path, columns: Mapping[str, str] | None = None, going_on: bool = False
) -> tuple[About | None, pd.DataFrame]:
    """What a file says about itself, None if it was written by others, and its rows, checked.

    Args:
        path: of the log.
        columns: the roles of columns with names of their own, in logs of others.
        going_on: whether there is a journal. Then a CSV file may be older than the file beside it:
            a crash came between the two, and the journal has the difference.
    """
    is_csv = path.suffix == ".csv"
    first = 2 if is_csv else 0
    with path.open("rb") as file:
        if is_csv:
            told = beside(path)
            about = About.from_json(told.read_bytes(), told) if told.exists() else None
            frame = read_csv(file, (columns or {}).get("group", NAMES["group"]))
            torn = not _ends_with_a_line(file)
        else:
            about, frame, torn = parquet_about(file), read_parquet(file), False
    try:
        if about is None:
            return None, checked(frame, given=columns, first=first)
        return _as_written(path, about, frame, first, torn, going_on)
    except DAMAGE as error:
        raise ValueError(f"{path}: {one_line(error)}") from error


def _ends_with_a_line(file: IO[bytes]) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _as_written(
    path: Path, about: About, frame: pd.DataFrame, first: int, torn: bool, going_on: bool
) -> tuple[About, pd.DataFrame]:
    """The rows of a log that evenhand wrote, if they are those that it wrote.

    `rows` of what is given back is the fingerprint of the rows that are there.
    """
    has_all_columns(about, frame)
    should = expected(about)
    allowed = [one for one in (about.rows, about.before if going_on else None) if one is not None]
    if should is not None and not going_on and _held(frame) != _like(should, len(frame)):
        raise not_whole(path, _held(frame), should)
    if should is not None and allowed and len(frame) not in [one["number"] for one in allowed]:
        raise not_whole(path, _held(frame), should)
    try:
        rows = own(about, frame, first, texts=path.suffix == ".csv")
        found = fingerprint(about, [rows])
        if allowed and found not in allowed:
            raise ValueError(
                "the rows are not those that were written: a value was changed or damaged; put "
                "the file back as it was"
            )
    except DAMAGE as error:
        if torn and should is not None:
            raise not_whole(path, _held(frame[:-1]), should) from error
        raise
    return replace(about, rows=found), rows


def _held(frame: pd.DataFrame) -> Held:
    rounds, learned = (int(frame[NAMES[role]].notna().sum()) for role in ("propensity", "learned"))
    return Held(rounds, learned, len(frame))


def _like(should: Held, rows: int) -> Held:
    """Older evenhands did not count rows."""
    return should if should.rows is not None else should._replace(rows=rows)
