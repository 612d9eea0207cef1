"""Connections to SQLite and PostgreSQL, with one way to call both, and their schemas by Alembic.

SQL is written with `?` for parameters. There is one writing connection; all others only read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from evenhand.errors import InputError

Rows = list[tuple[Any, ...]]
NEWEST = "0003"  # of the schemas in `migrations`
KNOWN = ("0001", "0002", "0003")


class Unavailable(Exception):
    """The store cannot be reached, or refuses: nothing was committed."""


class InDoubt(Unavailable):
    """The connection was lost during a commit: it may have happened or not."""


class Connection:
    """A connection of either kind."""

    def __init__(self, raw: Any, is_postgres: bool, failures: tuple[type[Exception], ...]) -> None:
        self.raw, self.is_postgres, self._failures = raw, is_postgres, failures

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Rows:
        """The rows that a query returns, if any."""
        try:
            cursor = self.raw.execute(_dollar(sql) if self.is_postgres else sql, parameters)
            return cursor.fetchall() if cursor.description else []
        except self._failures as error:
            raise Unavailable(_told(error)) from error

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row, or None."""
        rows = self.rows(sql, parameters)
        return rows[0] if rows else None

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for all rows."""
        if not rows:
            return
        try:
            if self.is_postgres:
                with self.raw.cursor() as cursor:
                    cursor.executemany(_dollar(sql), rows)
            else:
                self.raw.executemany(sql, rows)
        except self._failures as error:
            raise Unavailable(_told(error)) from error

    def stream(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query of any size, a few at a time."""
        try:
            if not self.is_postgres:
                yield from self.raw.execute(sql, parameters)
                return
            with self.raw.transaction(), self.raw.cursor(name="stream") as cursor:
                cursor.itersize = 5000
                cursor.execute(_dollar(sql), parameters)
                yield from cursor
        except self._failures as error:
            raise Unavailable(_told(error)) from error

    def begin(self) -> None:
        """Begin to write; others wait. The lock of PostgreSQL is the row `head`."""
        self.rows("BEGIN" if self.is_postgres else "BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Commit; raises InDoubt if it is unknown whether that happened."""
        try:
            self.raw.execute("COMMIT")
        except self._failures as error:
            if not self.is_postgres:
                raise Unavailable(_told(error)) from error
            kind = InDoubt if self.raw.closed or self.raw.broken else Unavailable
            raise kind(_told(error)) from error

    def rollback(self) -> None:
        """Undo what was not committed, if the connection is still there."""
        try:
            self.raw.execute("ROLLBACK")
        except Exception:  # not in a transaction, or the connection is gone: nothing is kept
            return

    def close(self) -> None:
        """Close it, whatever state it is in."""
        try:
            self.raw.close()
        except Exception:
            return


class Database:
    """A place for a ledger: `sqlite:FILE` or `postgresql://...`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_postgres = url.startswith("postgres")
        self.path = None if self.is_postgres else Path(url.removeprefix("sqlite:"))
        self.is_beside = False  # another process serves this file, and does its checkpoints
        self._readers: SimpleQueue[Connection] = SimpleQueue()

    @property
    def name(self) -> str:
        """Where it is, without a password."""
        if self.path is not None:
            return str(self.path)
        before, at, rest = self.url.partition("@")
        return f"{before.split('://')[0]}://...@{rest}" if at else self.url

    @property
    def lock(self) -> str:
        """What to add to a query of `head` so that others wait."""
        return " FOR UPDATE" if self.is_postgres else ""

    def upgrade(self) -> None:
        """Make the tables, or bring those of an older schema up to date."""
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = self.writer()
        try:
            version = self._version(connection)
        finally:
            connection.close()
        if version != NEWEST:
            if version is not None and version not in KNOWN:
                raise InputError(
                    f"{self.name} has schema {version!r} of a newer evenhand; update evenhand"
                )
            upgrade(self.url)

    def exists(self) -> bool:
        """Whether there are tables of a ledger."""
        if self.path is not None and not self.path.exists():
            return False
        with self.reading() as connection:
            return self._version(connection) is not None

    def _version(self, connection: Connection) -> str | None:
        sql = "SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'"
        if self.is_postgres:
            sql = "SELECT 1 FROM pg_tables WHERE tablename = 'alembic_version'"
        if connection.row(sql) is None:
            return None
        row = connection.row("SELECT version_num FROM alembic_version")
        return None if row is None else str(row[0])

    def writer(self) -> Connection:
        """A connection that writes."""
        if self.is_postgres:
            return self._postgres()
        try:
            raw = sqlite3.connect(
                str(self.path), isolation_level=None, check_same_thread=False, timeout=10.0,
                cached_statements=256,
            )  # fmt: skip
            raw.execute("PRAGMA page_size = 16384")  # of a new file: entries waste less space
            raw.execute("PRAGMA journal_mode = WAL")
            raw.execute("PRAGMA synchronous = FULL")
            if self.is_beside:
                raw.execute("PRAGMA wal_autocheckpoint = 0")
            raw.execute("PRAGMA cache_size = -4000")
            raw.execute("PRAGMA secure_delete = ON")  # erased bytes do not stay in free pages
        except sqlite3.Error as error:
            raise Unavailable(f"{self.path}: {_told(error)}") from error
        return Connection(raw, False, (sqlite3.Error,))

    def _postgres(self) -> Connection:
        import psycopg

        try:
            raw = psycopg.connect(
                self.url, autocommit=True, connect_timeout=5, prepare_threshold=2,
                options="-c statement_timeout=30000 -c idle_in_transaction_session_timeout=20000"
                " -c lock_timeout=10000 -c tcp_user_timeout=5000",
            )  # fmt: skip
        except psycopg.Error as error:
            raise Unavailable(_told(error)) from error
        return Connection(raw, True, (psycopg.Error,))

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading, which is reused afterwards."""
        try:
            connection = self._readers.get_nowait()
        except Empty:
            connection = self._reader()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._readers.put(connection)

    def _reader(self) -> Connection:
        if self.is_postgres:
            return self._postgres()
        try:
            raw = sqlite3.connect(
                f"file:{self.path}?mode=ro", uri=True, isolation_level=None, timeout=10.0,
                check_same_thread=False,
            )  # fmt: skip
        except sqlite3.Error as error:
            raise Unavailable(f"{self.path}: {_told(error)}") from error
        return Connection(raw, False, (sqlite3.Error,))

    def close(self) -> None:
        """Close the reading connections."""
        while True:
            try:
                self._readers.get_nowait().close()
            except Empty:
                return


def marks(values: Iterable[Any]) -> str:
    """A question mark per value."""
    return ", ".join("?" for _ in values)


@lru_cache(maxsize=512)
def _dollar(sql: str) -> str:
    return sql.replace("?", "%s")


def _told(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def upgrade(url: str, revision: str = NEWEST) -> None:
    """Bring a database to a schema."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(files(__package__) / "migrations"))
    config.attributes["url"] = for_sqlalchemy(url)
    command.upgrade(config, revision)


def for_sqlalchemy(url: str) -> str:
    """The address of a store as SQLAlchemy writes it."""
    if url.startswith("sqlite:"):
        return f"sqlite:///{url.removeprefix('sqlite:')}"
    return f"postgresql+psycopg://{url.partition('://')[2]}"
