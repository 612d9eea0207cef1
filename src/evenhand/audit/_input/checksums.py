"""A checksum of a log, so that whoever repeats an audit knows that the log is the same.

Files are hashed byte by byte, in a thread beside the queries. Rows of tables have no order, so
the checksum of a table is the sum of one hash for every row, which the engine computes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import pandas as pd

from evenhand.audit._input.engines import answer_of
from evenhand.audit._input.sources import Source, is_of_engine
from evenhand.errors import DataError

PIECE = 1 << 20  # bytes; after each, Ctrl-C takes effect
BYTES = "SHA-256 of the bytes of the file"
MANY = "SHA-256 of the list of all files, as sha256sum writes it"
NOT_A_FILE = "no checksum: the log is not a file"
# By engine: the SQL that sums up a hash of every row, and its description. Sums are modulo 2**64.
ROWS = {
    "duckdb": ("SUM(CAST(hash(log) AS HUGEINT))", "sum of DuckDB's hashes of all rows"),
    "postgres": (
        "SUM(CAST(hashtextextended(CAST(log AS text), 0) AS numeric))",
        "sum of PostgreSQL's hashes of all rows, as text",
    ),
    "pyspark": ("SUM(CAST(xxhash64(*) AS DECIMAL(38, 0)))", "sum of Spark's hashes of all rows"),
}


@dataclass(frozen=True)
class Checksum:
    """A checksum of a log.

    Attributes:
        method: how it is made, or why there is none.
        value: in hexadecimal digits; None where there is none.
        files: the name, the size in bytes and the SHA-256 of every file.
    """

    method: str
    value: str | None = None
    files: tuple[tuple[str, int, str], ...] = ()


@contextmanager
def checksum_of(log: Any, source: Source) -> Iterator[Future[Checksum]]:
    """Compute the checksum of a log beside the body of the `with`; files are read in a thread.

    Args:
        log: what the user gave.
        source: the same, just opened.
    """
    stop: Event = Event()
    with ThreadPoolExecutor(1) as pool:
        try:
            if source.paths:
                yield pool.submit(of_files, source.paths, stop)
            else:
                done: Future[Checksum] = Future()
                done.set_result(of_rows(log, source))
                yield done
        finally:
            stop.set()


def of_files(paths: Sequence[str], stop: Event | None = None) -> Checksum:
    """The checksum of files: of each, and of all of them together.

    Args:
        paths: of the files.
        stop: set when nobody waits for the result any more.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from evenhand.audit._input.checksums import of_files
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = (Path(folder) / "log.csv").write_text("a,b\\n")
        ...     checksum = of_files([f"{folder}/log.csv"])
        >>> checksum.value[:12], checksum.files[0][:2]
        ('5be08c9684a1', ('log.csv', 4))
    """
    above = os.path.commonpath([Path(path).parent for path in paths])
    names = {path: Path(os.path.relpath(path, above or ".")).as_posix() for path in paths}
    files, piece = [], memoryview(bytearray(PIECE))  # one for all: allocating new ones takes time
    for path in sorted(paths, key=names.__getitem__):
        before = Path(path).stat()
        digest = hashlib.sha256()
        with Path(path).open("rb", buffering=0) as file:
            while not (stop is not None and stop.is_set()) and (size := file.readinto(piece)):
                digest.update(piece[:size])
        after = Path(path).stat()
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise DataError(f"{path} changed while it was read; audit it again")
        files.append((names[path], after.st_size, digest.hexdigest()))
    if len(files) == 1:
        return Checksum(BYTES, files[0][2], tuple(files))
    listed = "".join(f"{digest}  {name}\n" for name, _, digest in files)
    return Checksum(MANY, hashlib.sha256(listed.encode()).hexdigest(), tuple(files))


def of_rows(log: Any, source: Source) -> Checksum:
    """The checksum of a frame or of a table, whatever the order of its rows."""
    if isinstance(log, pd.DataFrame):
        try:
            hashes = pd.util.hash_pandas_object(log, index=False)
        except TypeError:  # objects without a hash, such as lists: an audit does not need it
            return Checksum(NOT_A_FILE)
        return Checksum("sum of pandas' hashes of all rows", _hex(int(hashes.sum())))
    if source.kind not in ROWS:
        return Checksum(NOT_A_FILE)
    total_of_hashes, method = ROWS[source.kind]
    rows = source.engine.compile(source.table)
    try:
        total = _answer(source, f"SELECT {total_of_hashes} FROM ({rows}) AS log")
    except Exception as error:
        if not is_of_engine(error):
            raise
        return Checksum(NOT_A_FILE)  # some types of columns have no hash there, either
    return Checksum(method, _hex(int(total or 0)))


def _answer(source: Source, sql: str) -> Any:
    if source.kind == "duckdb":
        con = source.engine.con
        return answer_of(lambda: con.execute(sql).fetchall()[0][0], con, source.progress)
    if source.kind == "pyspark":
        return source.engine._session.sql(sql).first()[0]
    with source.engine.con.cursor() as cursor:
        try:
            return cursor.execute(sql).fetchone()[0]
        finally:  # a failed statement would block the queries after it
            source.engine.con.rollback()


def _hex(total: int) -> str:
    return f"{total % 2**64:016x}"
