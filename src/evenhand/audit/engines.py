"""The engines that hold logs, opened: DuckDB, PostgreSQL and Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MEMORY = "1000MB"  # of DuckDB's buffers; Python, Ibis and the report take a few hundred more
VIEW = "evenhand_log"  # of files in Spark
PUSHDOWN = "partial_aggregate_pushdown"  # of DuckDB 2


def tables_of(con: Any, schema: str) -> list[str]:
    """The tables that there are."""
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
    # It repeats what a sum is of in every sum of a join: with hundreds of features, without end.
    known = [name for (name,) in con.con.execute("FROM duckdb_optimizers()").fetchall()]
    if PUSHDOWN in known:
        con.raw_sql(f"SET disabled_optimizers = '{PUSHDOWN}'")
    # It is asked how far it is, and must not print that itself.
    con.raw_sql("SET enable_progress_bar = true")
    con.raw_sql("SET enable_progress_bar_print = false")
    return con


def open_postgres(address: str, label: str) -> Any:
    """PostgreSQL at an address; the label is the address without a password."""
    import ibis

    try:
        urlsplit(address).port  # noqa: B018
    except ValueError:
        raise ValueError(
            f"LOG is {label!r}, an address that cannot be read; write characters such as / and @ "
            "in a user or password as %2F and %40"
        ) from None
    try:
        return ibis.connect(address.replace("postgresql://", "postgres://", 1))
    except ImportError as error:
        raise ImportError(
            "PostgreSQL needs psycopg: install it with pip install 'evenhand[audit]'"
        ) from error


def spark_csv(con: Any, paths: Sequence[str], read: Mapping[str, Any], text: set[str]) -> Any:
    """CSV files in Spark, with these columns as they are written."""
    escaped = [for_spark(one) for one in paths]
    rows = con._session.read.options(**read).csv(escaped)
    if text:
        from pyspark.sql.types import StringType, StructField, StructType

        fields = [
            StructField(one.name, StringType() if one.name in text else one.dataType)
            for one in rows.schema.fields
        ]
        kept = {key: value for key, value in read.items() if key != "inferSchema"}
        rows = con._session.read.options(**kept).schema(StructType(fields)).csv(escaped)
    rows.createOrReplaceTempView(VIEW)
    return con.table(VIEW)


def for_spark(path: str) -> str:
    """A path as Spark wants it, which takes every path for a pattern."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def open_spark() -> Any:
    """Spark's session of this process, or a local one."""
    try:
        import ibis
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ImportError(
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
