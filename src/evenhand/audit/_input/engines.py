"""The engines that hold logs: DuckDB, PostgreSQL and Spark.

Opening them, waiting for them, and their errors in one line. A query of DuckDB runs in a thread of
its own, because a thread inside DuckDB notices Ctrl-C late or not at all; the drivers of the others
handle it themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import takewhile
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeVar
from urllib.parse import urlsplit

from evenhand._columns.words import as_written
from evenhand.errors import DataError, InputError, MissingExtraError, setting

MEMORY = "1000MB"  # of DuckDB's buffers; Python, Ibis and the report take a few hundred more
VIEW = "evenhand_log"  # of files in Spark
PUSHDOWN = "partial_aggregate_pushdown"  # of DuckDB 2


def tables_of(con: Any, schema: str) -> list[str]:
    """The tables of a schema."""
    if con.name != "duckdb":
        return list(con.list_tables(database=schema) if schema else con.list_tables())
    # Ibis 12 asks DuckDB 2 for a method that is gone.
    sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = ?"
    return [name for (name,) in con.con.execute(sql, [schema or "main"]).fetchall()]


def open_duckdb(spill: str, path: Path | None = None) -> Any:
    """DuckDB with a bound on its memory; what does not fit goes to disk, into this folder."""
    import ibis

    con = ibis.duckdb.connect(
        ":memory:" if path is None else str(path),
        read_only=path is not None,
        temp_directory=spill,
        memory_limit=MEMORY,
        preserve_insertion_order=False,
    )
    con.raw_sql("SET TimeZone = 'UTC'")
    # It copies the summed expressions into every sum of a join: with hundreds of features, planning
    # never ends.
    known = [name for (name,) in con.con.execute("FROM duckdb_optimizers()").fetchall()]
    if PUSHDOWN in known:
        con.raw_sql(f"SET disabled_optimizers = '{PUSHDOWN}'")
    # The progress is polled, and must not be printed by DuckDB itself.
    con.raw_sql("SET enable_progress_bar = true")
    con.raw_sql("SET enable_progress_bar_print = false")
    return con


def open_postgres(address: str, label: str) -> Any:
    """PostgreSQL at an address; the label is the address without a password."""
    import ibis

    try:
        urlsplit(address).port  # noqa: B018
    except ValueError:
        raise InputError(
            f"{setting('log')} is {label!r}, an address that cannot be read; write characters such "
            "as / and @ in a user or password as %2F and %40",
            value=label,
        ) from None
    try:
        return ibis.connect(address.replace("postgresql://", "postgres://", 1))
    except ImportError as error:
        raise MissingExtraError(
            "PostgreSQL needs psycopg: install it with pip install 'evenhand[audit]'"
        ) from error


def spark_csv(con: Any, paths: Sequence[str], read: Mapping[str, Any], text: set[str]) -> Any:
    """CSV files in Spark, with these columns as they are written."""
    escaped = [for_spark(path) for path in paths]
    rows = con._session.read.options(**read).csv(escaped)
    if text:
        from pyspark.sql.types import StringType, StructField, StructType

        fields = [
            StructField(field.name, StringType() if field.name in text else field.dataType)
            for field in rows.schema.fields
        ]
        kept = {key: value for key, value in read.items() if key != "inferSchema"}
        rows = con._session.read.options(**kept).schema(StructType(fields)).csv(escaped)
    rows.createOrReplaceTempView(VIEW)
    return con.table(VIEW)


def for_spark(path: str) -> str:
    """A path escaped for Spark, which takes every path for a pattern."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def open_spark() -> Any:
    """Spark's session of this process, or a local one."""
    try:
        import ibis
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingExtraError(
            "engine 'spark' needs PySpark: install it with pip install 'evenhand[spark]'"
        ) from error
    session = SparkSession.getActiveSession()
    if session is None:
        session = (
            SparkSession.builder.appName("evenhand audit")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "8")  # few cells come out of many rows
            # Hundreds of sums do not fit into one Java method; compiling them is in vain.
            .config("spark.sql.codegen.wholeStage", "false")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
    return ibis.pyspark.connect(session)


PAUSE = 0.1  # seconds between two polls of the progress

Answer = TypeVar("Answer")
Progress = Callable[[float], None]


def answer_of(
    query: Callable[[], Answer], connection: Any, progress: Progress | None = None
) -> Answer:
    """The answer to a query; Ctrl-C ends it.

    Args:
        query: runs it.
        connection: of DuckDB, on which it runs.
        progress: called again and again with the percentage that is done, if it is known.

    Example:
        >>> import duckdb
        >>> from evenhand.audit._input.engines import answer_of
        >>> con = duckdb.connect()
        >>> answer_of(lambda: con.execute("SELECT 6 * 7").fetchall(), con)
        [(42,)]
    """
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(query)
        try:
            while not wait([running], timeout=PAUSE).done:
                if progress is not None:
                    _tell(connection, progress)
        except BaseException:
            # It may not have begun yet, and then there is nothing to interrupt: try until it ends.
            while not running.done():
                connection.interrupt()
                wait([running], timeout=PAUSE)
            raise
        return running.result()


def _tell(connection: Any, progress: Progress) -> None:
    part = connection.query_progress()
    if part >= 0.0:  # a negative number: not known
        progress(min(float(part), 100.0))


# What DuckDB says of a CSV file whose first rows gave no hint of what comes later.
LATE = (
    r'(?s)Line: (?P<line>\d+).*converting column "(?P<column>[^"]+)"\. '
    r'Could not convert string "(?P<value>[^"]*)" to \'(?P<kind>\w+)\''
)

# Where what follows is about the query or the engine, and not about the log.
INTERNALS = r"LINE \d+:|Possible |Candidate|Stack Trace|DETAIL:|HINT:|== |JVM |\^|\[SQL"
MOST = 300  # characters


def told(label: str, error: Exception) -> DataError:
    """An engine's error, in one line."""
    if "Query interrupted" in str(error):  # DuckDB's words for Ctrl-C
        raise KeyboardInterrupt from error
    late = re.search(LATE, str(error))
    if late is not None and as_written(late["value"]) is None:
        return DataError(
            f"{label}: column {late['column']!r} has {late['value']!r} on line "
            f"{int(late['line']):,}, and {late['kind']} in all rows before; if it stands for a "
            f"missing value say {setting('missing_marks', [late['value']])}, or leave it out with "
            f"{setting('leave_out', [late['column']])}"
        )
    if isinstance(error, RecursionError):
        return DataError(
            f"{label} has too many columns for one query; leave some out with "
            f"{setting('leave_out')}, or name the features"
        )
    if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
        return DataError(
            f"{label} does not fit into memory; leave columns out with {setting('leave_out')}, or "
            "audit fewer rows"
        )
    return DataError(f"{label} cannot be read: {_plain(str(error)) or type(error).__name__}")


def _plain(said: str) -> str:
    """The first part of an engine's message, without what is meant for its developers."""
    lines = [line.strip() for line in said.splitlines()]
    kept = takewhile(lambda line: not re.match(INTERNALS, line), filter(None, lines))
    text = re.sub(r"^(?:[A-Z]\w*(?: \w+)? (?:Error|Exception): ?)+", "", " ".join(kept))
    return shorten(text, MOST, placeholder=" ...")
