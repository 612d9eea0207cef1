"""Copies of a ledger: as it is, in another store or a file; or as a log, for audits and replays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.errors import DamagedError, InputError
from evenhand.events._formats import format_of
from evenhand.events._header import About
from evenhand.events._rows import LogRows, with_unlearned
from evenhand.events._tables import log_path
from evenhand.events.event import Event
from evenhand.events.file_ledger import FileLedger
from evenhand.service._ledger import schema
from evenhand.service._ledger.fold import is_erased
from evenhand.service._ledger.sql_ledger import SqlLedger
from evenhand.service._ledger.sqlite_and_postgres import Connection, Database, marks
from evenhand.service._ledger.verification import Verified, verify

TOGETHER = 5000
# Sessions and unused tokens belong to the server that issued them.
LEFT = {"sessions", "tokens"}


def copy(source: str, target: str) -> Verified:
    """Copy a whole ledger to an empty store, and verify the copy.

    The source may be in use: the copy is its state at one moment.
    """
    before, after = Database(source), Database(target)
    if not before.exists():
        raise InputError(f"{before.name} has no ledger")
    if source == target:
        raise InputError(f"{after.name} is the ledger itself; give another store")
    before.upgrade()
    after.upgrade()
    writer = after.writer()
    try:
        if writer.row("SELECT 1 FROM entries LIMIT 1") is not None:
            raise InputError(f"{after.name} already has a ledger; give an empty store")
        writer.begin()
        with before.reading() as reader:
            moment = "BEGIN ISOLATION LEVEL REPEATABLE READ" if before.is_postgres else "BEGIN"
            reader.rows(moment)
            try:
                for table in schema.metadata.sorted_tables:
                    if table.name not in LEFT:
                        _copy_table(reader, writer, table.name, [c.name for c in table.columns])
                head = reader.row("SELECT seq, hash FROM head WHERE one = 1")
            finally:
                reader.rollback()
        writer.commit()
    except BaseException:
        writer.rollback()
        raise
    finally:
        writer.close()
        before.close()
        after.close()
    verified = verify(target)
    if head is None or (head[0], bytes(head[1]).hex()) != (verified.entries, verified.hash):
        raise DamagedError(
            f"the copy in {after.name} does not end where the ledger does; try again"
        )
    return verified


def _copy_table(reader: Connection, writer: Connection, table: str, columns: list[str]) -> None:
    names = ", ".join(f'"{name}"' for name in columns)
    rows: Iterator[tuple[Any, ...]] = reader.stream(f"SELECT {names} FROM {table}")
    while batch := list(islice(rows, TOGETHER)):
        writer.many(f"INSERT INTO {table} ({names}) VALUES ({marks(columns)})", batch)


class Exported(NamedTuple):
    """How many events a file has, and whether it is only a part, because others were erased."""

    events: int
    is_part: bool

    def to_words(self) -> str:
        """For the command line."""
        part = "; erased decisions are not in it, so it can be audited but not replayed"
        return f"{self.events:,} events{part if self.is_part else ''}"


def export(url: str, path: Path) -> Exported:
    """Write the events of a ledger to a Parquet or CSV file.

    Rewards that came too late, or wait until all have had the same time, are included; they have no
    number in the order of learning.

    `evenhand audit`, `evenhand value` and `eh.replay` read it like any other log. Where people were
    erased, it is a table of all other decisions without the header of a log: it can be audited, but
    not mistaken for the complete log of a policy.
    """
    if path.exists():
        raise InputError(f"{path} already exists; give another name")
    path = log_path(path)
    ledger = SqlLedger(url, write=False)
    try:
        if ledger.about is None:
            raise InputError(f"{ledger.name} has not begun")
        with ledger.database.reading() as connection:
            is_part = is_erased(connection)
        unlearned = ledger.unlearned()  # before the events, which have what is learned meanwhile
        if is_part:
            return Exported(_write_left(path, ledger, unlearned), True)
        return Exported(_write(path, ledger.about, ledger.read(), unlearned), False)
    finally:
        ledger.release()


def _write(
    path: Path, about: About, events: Iterator[Event], unlearned: Mapping[str, tuple[float, int]]
) -> int:
    file = FileLedger(path, sync=60.0)
    try:
        file.begin(about)
        while batch := list(islice(events, TOGETHER)):
            file.append(batch)
        number = file.head
        file.close(unlearned=unlearned)
    except BaseException:
        file.release()
        raise
    return number


def _write_left(path: Path, ledger: SqlLedger, unlearned: Mapping[str, tuple[float, int]]) -> int:
    """What is left of a ledger with erased entries, as a table, not as a log."""
    assert ledger.about is not None
    rows = LogRows(ledger.about, gaps=True)
    for event in ledger.left():
        rows.apply(event)
    frame = with_unlearned(rows.to_frame(), unlearned)
    with path.open("xb") as file:
        format_of(path).write_rows(file, ledger.about, frame)
    return rows.head
