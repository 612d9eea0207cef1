"""Copying a ledger as it is: from SQLite to PostgreSQL or back, or to a file as a backup."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from evenhand.errors import DamagedError, InputError
from evenhand.service._ledger import schema
from evenhand.service._ledger.database import Connection, Database, marks
from evenhand.service._ledger.verifying import Verified, verify

TOGETHER = 5000
# Sessions and unused tokens belong to the server that gave them.
LEFT = {"sessions", "tokens"}


def copy(source: str, target: str) -> Verified:
    """Copy everything of a ledger to an empty store, and verify the copy.

    The source may be in use: the copy is of one moment.
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
            raise InputError(f"{after.name} has a ledger already; give an empty store")
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
        raise DamagedError(f"the copy in {after.name} ends elsewhere; try again")
    return verified


def _copy_table(reader: Connection, writer: Connection, table: str, columns: list[str]) -> None:
    names = ", ".join(f'"{name}"' for name in columns)
    rows: Iterator[tuple[Any, ...]] = reader.stream(f"SELECT {names} FROM {table}")
    while some := list(islice(rows, TOGETHER)):
        writer.many(f"INSERT INTO {table} ({names}) VALUES ({marks(columns)})", some)
