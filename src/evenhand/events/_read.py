"""Reading a log: the table, and the events of a journal that are not in the table yet.

A table that evenhand wrote must be complete and unchanged; tables of others are only checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from evenhand._columns import table_files
from evenhand._columns.file_formats import Reading
from evenhand.errors import DamagedError, DataError, InputError, setting
from evenhand.events._candidates import candidates
from evenhand.events._formats import fingerprint, format_of
from evenhand.events._header import NUMBERED, About
from evenhand.events._journal import journal_of, read_journal
from evenhand.events._old_versions import OlderRows, is_of_older_version
from evenhand.events._rows import LogRows, are_older, has_all_columns, typed_rows
from evenhand.events._schema import NAMES, checked
from evenhand.events._tables import beside, log_path
from evenhand.events.event import TrueRewardObserved, from_line

ATTRS = "evenhand"
Others = Callable[[Path], pd.DataFrame]
TRIES = 5


def read_log(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    *,
    encoding: str | None = None,
    decimal: str | None = None,
    delimiter: str | None = None,
) -> pd.DataFrame:
    """The rows of a log, checked: an error names the column and the row that are wrong.

    A log that is being written, or whose writer was killed, can be read as well. In logs that
    evenhand did not write, columns are recognised by the schema's names and those of the Open
    Bandit data; unknown columns are left unchanged. For a log that evenhand wrote, the groups of
    all arms and the names of the features are in `attrs["evenhand"]` of the frame.

    Args:
        path: a Parquet or CSV file.
        columns: for logs that evenhand did not write, the roles of columns with other names, such
            as {"reward": "paid"}.
        encoding: of other logs in CSV, such as "latin-1"; UTF-8 unless given.
        decimal: "," for other logs in CSV that write 1,5 for one and a half.
        delimiter: between the columns of other logs in CSV; detected unless given.

    Example:
        >>> import numpy as np, evenhand as eh, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.csv"
        >>> with eh.log_to(path, eh.TopInterval(["F", "M"], n_features=1, seed=1)) as logged:
        ...     logged.update(logged.select(np.ones((2, 1))), reward=0.5)
        >>> eh.read_log(path)[["round", "item_id", "group", "reward", "propensity_score", "x1"]]
           round  item_id group  reward  propensity_score   x1
        0      1        0     F     0.5               0.5  1.0
    """
    reading = Reading(encoding, decimal, delimiter)
    whole = read_whole(log_path(path), partial(of_another, columns=columns, reading=reading))
    if whole is None:
        raise InputError(f"path is {str(path)!r}, where there is no log")
    refuse_for_own(whole, path, columns=columns, **reading.chosen)
    return whole.frame if whole.about is None else labelled(whole.frame, whole.about)


def labelled(frame: pd.DataFrame, about: About) -> pd.DataFrame:
    """The frame, with the groups of all arms and the names of the features in its `attrs`.

    The rows do not have the group of an arm that was never chosen. pandas copies `attrs` to every
    frame derived from this one, so they are kept small.
    """
    frame.attrs[ATTRS] = {"groups": list(about.labels), "features": list(about.features)}
    return frame


def of_another(
    path: Path, columns: Mapping[str, str] | None = None, reading: Reading | None = None
) -> pd.DataFrame:
    """The rows of a log that evenhand did not write, read like any table and checked."""
    labels = ((columns or {}).get("group", NAMES["group"]),)
    frame = table_files.read_table(path, reading=reading, labels=labels)
    try:
        return checked(frame, given=columns).reset_index(drop=True)
    except DataError as error:
        raise error.reworded(lambda text: f"{path}: {text}") from error


def refuse_for_own(whole: Whole, path: str | Path, **given: object) -> None:
    """Raise if a setting for logs of other programs was given for one that evenhand wrote."""
    wrong = [name for name, value in given.items() if value]
    if whole.about is not None and wrong:
        raise InputError(
            f"{setting(wrong[0])} is for logs that evenhand did not write; {path} names its own "
            "columns"
        )


class Whole(NamedTuple):
    """The files of a log, read together.

    `about` is None for a log that evenhand did not write. `head` is the number of the last event,
    and `replaced` are the true rewards that are no longer in the rows.
    """

    about: About | None
    frame: pd.DataFrame
    head: int = 0
    replaced: tuple[TrueRewardObserved, ...] = ()


def read_whole(path: Path, others: Others = of_another) -> Whole | None:
    """The header of a log and its rows; None if there is no log.

    A log has up to three files. If a writer changes them while they are read, they may not fit
    together, and are read again.

    Args:
        path: the path of the log.
        others: how to read a log that evenhand did not write.
    """
    for _ in range(TRIES - 1):
        before = _files(path)
        try:
            return _read_once(path, others)
        except ValueError:
            if _files(path) == before:
                raise
    return _read_once(path, others)


def _files(path: Path) -> list[tuple[int, ...] | None]:
    states: list[tuple[int, ...] | None] = []
    for file in (path, beside(path), journal_of(path)):
        try:
            now = file.stat()
            states.append((now.st_ino, now.st_size, now.st_mtime_ns))
        except OSError:
            states.append(None)
    return states


def _read_once(path: Path, others: Others) -> Whole | None:
    journal = read_journal(path)  # first: closing moves the journal into the table
    try:
        written = read_table(path, journal is not None, others)
    except FileNotFoundError:
        written = None
    if journal is None and (written is None or written[0] is None):
        return None if written is None else Whole(*written)
    begun, lines = journal or (None, iter(()))
    about, table = written or (begun, None)
    if about is None or not (begun is None or about.begins_like(begun)):
        raise DataError(
            f"{journal_of(path)} is the journal of another log, not of {path.name}; "
            "move one of them away"
        )
    if begun is None and table is not None and not are_older(about, table):
        return Whole(about, table, about.head, tuple(map(_true, about.replaced)))
    rows = _put_together(path, about, table, begun or about, lines)
    expected_counts, counts = expected(about), LogCounts(rows.decisions(), rows.learned, None)
    if expected_counts is not None and (
        counts.rounds < expected_counts.rounds or counts.learned < expected_counts.learned
    ):
        raise DamagedError(f"{path}: {not_whole(path, counts, expected_counts)}")
    try:
        frame = checked(rows.to_frame(), about.features, order=True)
        if about.candidates:
            candidates(frame, len(about.labels), about.features)
        return Whole(about, frame, rows.head, tuple(rows.replaced))
    except InputError as error:
        raise DamagedError(f"{journal_of(path)} is damaged: {error.message}") from error


def _true(replaced: tuple[int, int | None, str, float]) -> TrueRewardObserved:
    return TrueRewardObserved(*replaced)


def _put_together(
    path: Path, about: About, table: pd.DataFrame | None, begun: About, lines: Iterator[Any]
) -> LogRows:
    """The rows of a table and those that a journal adds; `begun` is the journal's header.

    In a journal that began as version 1 or 2, lines of that version come first. Rows of version 3
    already include them.
    """
    older = about.version < NUMBERED if table is None else are_older(about, table)
    before = OlderRows(about, table) if older else None
    rows = None if older else LogRows(about, table)
    numbers = begun.version >= NUMBERED  # whether lines with numbers have begun
    for number, line in enumerate(lines, start=2):
        try:
            if is_of_older_version(line):
                if numbers:
                    raise DamagedError("it has an older version than the lines before it")
                if before is not None:
                    before.apply(line)
                continue
            numbers = True
            if rows is None:
                assert before is not None
                rows = before.numbered()
            for event in from_line(line):
                rows.apply(event)
        except DamagedError as error:
            raise DamagedError(
                f"{journal_of(path)}: line {number} is damaged: {error.message}"
            ) from error
    if rows is None:
        assert before is not None
        rows = before.numbered()
    return rows


class LogCounts(NamedTuple):
    """How much a log has, to compare with what it should have. None means unknown."""

    rounds: int
    learned: int
    rows: int | None

    def __str__(self) -> str:
        rows = "" if self.rows is None else f" in {self.rows} rows"
        return f"{self.rounds} rounds and {self.learned} learned rewards{rows}"


def expected(about: About) -> LogCounts | None:
    """How much a log had when it was closed."""
    if about.state is None:
        return None
    rows = None if about.rows is None else about.rows["number"]
    return LogCounts(about.state["round"] - about.first_round, about.state["learned"], rows)


def not_whole(path: Path, held: LogCounts, should: LogCounts) -> DamagedError:
    """The error for a log that has less, or more, than when it was closed."""
    header = beside(path)
    hint = f", or move {header.name} away to read the rest like a log of another program"
    return DamagedError(
        f"the log has {held}, and should have {should}, as it had when it was closed: rows were "
        f"cut off, lost or added; restore the file{hint if header.exists() else ''}"
    )


def read_table(
    path: Path, going_on: bool = False, others: Others = of_another
) -> tuple[About | None, pd.DataFrame]:
    """The header of a file, None if evenhand did not write it, and its rows, checked.

    Args:
        path: the path of the log.
        going_on: whether there is a journal. Then a CSV file may be older than the file beside it:
            a crash came between the two, and the journal has the difference.
        others: how to read a log that evenhand did not write.
    """
    form = format_of(path)
    with path.open("rb") as file:
        about = _header_beside(path) if form.header is None else form.header(file)
        if about is None:
            return None, others(path)
        frame = form.read(file)
        torn = not form.is_whole(file)
    try:
        return _as_written(path, about, frame, torn, going_on)
    except InputError as error:
        raise DamagedError(f"{path}: {error.message}") from error


def _header_beside(path: Path) -> About | None:
    header = beside(path)
    return About.from_json(header.read_bytes(), header) if header.exists() else None


def _as_written(
    path: Path, about: About, frame: pd.DataFrame, torn: bool, going_on: bool
) -> tuple[About, pd.DataFrame]:
    """The rows of a log that evenhand wrote, if they are unchanged.

    In the header that is returned, `rows` is the fingerprint of these rows.
    """
    has_all_columns(about, frame)
    should = expected(about)
    # Rows of an older version under a header of version 3 are older than the header, too.
    late = going_on or (about.version >= NUMBERED and are_older(about, frame))
    allowed = [mark for mark in (about.rows, about.before if late else None) if mark is not None]
    if should is not None and not going_on and _held(frame) != _like(should, len(frame)):
        raise not_whole(path, _held(frame), should)
    if should is not None and allowed and len(frame) not in [mark["number"] for mark in allowed]:
        raise not_whole(path, _held(frame), should)
    try:
        form = format_of(path)
        rows = typed_rows(about, frame, form.first_row, form.is_text)
        actual = fingerprint(about, [rows])
        if allowed and actual not in allowed:
            raise DamagedError(
                "the rows are not those that were written: a value was changed or damaged; restore "
                "the file"
            )
    except InputError as error:
        if torn and should is not None:
            raise not_whole(path, _held(frame[:-1]), should) from error
        raise
    return replace(about, rows=actual), rows


def _held(frame: pd.DataFrame) -> LogCounts:
    rounds, learned = (int(frame[NAMES[role]].notna().sum()) for role in ("propensity", "learned"))
    return LogCounts(rounds, learned, len(frame))


def _like(should: LogCounts, rows: int) -> LogCounts:
    """What should be there; older versions of evenhand did not count the rows."""
    return should if should.rows is not None else should._replace(rows=rows)
