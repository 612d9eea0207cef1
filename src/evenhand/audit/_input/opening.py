"""Opening a log: files, a table of a database, a table of Spark, or a frame in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand import _checks
from evenhand._columns.conversion import AS_WRITTEN, AS_WRITTEN_SPARK, from_excel, in_utf8
from evenhand._columns.file_formats import Reading
from evenhand._columns.marks import Marks
from evenhand._columns.words import as_written, written
from evenhand.audit._input.addresses import hidden, passwords_in, without_password
from evenhand.audit._input.engines import (
    VIEW,
    for_spark,
    open_duckdb,
    open_postgres,
    open_spark,
    spark_csv,
    tables_of,
    told,
)
from evenhand.audit._input.files import Files, as_pattern, find_files
from evenhand.audit._input.json_files import duckdb_json, duckdb_kinds, spark_json
from evenhand.audit._input.sources import SNIFFED, Source, quiet, told_of
from evenhand.errors import DataError, InputError, MissingExtraError, setting

ENGINES = ("duckdb", "spark")
TABLES = "duckdb:///FILE::TABLE, postgresql://USER@HOST/DATABASE::TABLE or spark::TABLE"


def open_log(
    log: Any,
    engine: str | None = None,
    marks: Marks | None = None,
    spill: str = "",
    reading: Reading | None = None,
) -> Source:
    """Open a log.

    Args:
        log: a Parquet, CSV, JSON or Excel file, a folder of them, a glob, WHERE::TABLE, a frame, or
            an Ibis table.
        engine: "duckdb" or "spark" for files; tables are summed up where they are.
        marks: what stands for missing values, so that a CSV file's columns get the right kind.
        spill: a folder for what does not fit into memory; without it that is an error.
        reading: how files are read, where they do not say so themselves.
    """
    how = reading or Reading()
    if engine is not None:
        _checks.one_of("engine", engine, ENGINES)
    _needs_ibis()
    if hasattr(log, "get_backend") and hasattr(log, "schema"):
        name = log.get_name() if hasattr(log, "get_name") else "a table"
        how.check("", str(name))
        return Source(log, log.get_backend(), str(name), ours=False)
    if isinstance(log, pd.DataFrame):
        how.check("", "a frame")
        return _from_frame(log, engine or "duckdb", marks or Marks(), spill)
    name = str(log)
    label, passwords = without_password(name), passwords_in(name)
    opener: Callable[[], Source]
    if "::" in name and not Path(name).exists():
        how.check("", label)
        opener = lambda: _open_table(name, label, engine, spill)  # noqa: E731
    else:
        files = find_files(name, TABLES, how)
        label = files.label
        opener = lambda: _open_files(files, engine or "duckdb", marks or Marks(), spill, how)  # noqa: E731
    try:
        with quiet():
            return replace(opener(), passwords=passwords)
    except MissingExtraError:
        raise
    except InputError as error:
        if not passwords:
            raise
        raise type(error)(hidden(error.message, passwords), parameter=error.parameter) from None
    except Exception as error:
        raise told_of(label, error, passwords) from (None if passwords else error)


def _needs_ibis() -> None:
    try:
        import ibis  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "audits need Ibis and DuckDB: install them with pip install 'evenhand[audit]'"
        ) from error


def _from_frame(frame: pd.DataFrame, engine: str, marks: Marks, spill: str) -> Source:
    named = frame.rename(columns=str).reset_index(drop=True)
    twice = named.columns[named.columns.str.casefold().duplicated()]
    if len(twice):
        raise DataError(
            f"column {twice[0]!r} occurs more than once, or with another case; allowed are "
            "columns with different names: rename or drop one"
        )
    con, taken = open_duckdb(spill) if engine == "duckdb" else open_spark(), set[tuple[str, str]]()
    for name in named.columns:  # engines do not know pandas' categories
        if isinstance(named[name].dtype, pd.CategoricalDtype):
            named[name] = named[name].astype(object)
        if isinstance(named[name].dtype, pd.DatetimeTZDtype):  # DuckDB takes no ns here
            named[name] = named[name].dt.as_unit("us")
        own_marks = marks.of_column(name)
        if own_marks and named[name].dtype == object:  # Arrow refuses numbers mixed with words
            words = named[name].map(written, na_action="ignore")
            taken |= {(name, mark) for mark in own_marks if words.eq(mark).any()}
            named[name] = named[name].mask(words.isin(["", *own_marks]), None).infer_objects()
    import ibis
    import pyarrow as pa

    try:
        arrow = pa.Table.from_pandas(named, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        mixed = re.search("for column (.*) with type object", str(error))
        if mixed is None:
            raise told("a frame", error) from error
        raise DataError(
            f"column {mixed[1]!r} holds values of several kinds, such as numbers and text; make "
            "them one kind, or name those that stand for a missing value in "
            f"{setting('missing_marks')}"
        ) from error
    return Source(ibis.memtable(arrow), con, "a frame", taken=frozenset(taken))


def _open_files(files: Files, engine: str, marks: Marks, spill: str, how: Reading) -> Source:
    paths, form, label, _ = files
    con = open_spark() if engine == "spark" else open_duckdb(spill)
    opened = Source(None, con, label, paths=tuple(paths), decimal=how.decimal or ".")
    if form == "parquet":
        return replace(opened, table=_parquet(con, paths))
    if form == "json" and engine == "spark":
        return replace(opened, table=spark_json(con, paths, ()), json={})
    if form == "json":
        kinds = duckdb_kinds(con, paths)
        return replace(opened, table=duckdb_json(con, paths, kinds, ()), json=kinds)
    if engine == "spark":
        _check_spark(con, files, how)
    moved = {}
    if not spill and (form == "excel" or not how.is_utf8):
        raise InputError("spill is empty; allowed is a folder: files that are converted go there")
    if form == "excel":
        moved = from_excel(paths, how.sheet, spill)
    elif not how.is_utf8:
        moved = in_utf8(paths, str(how.encoding), spill)
    opened = replace(
        opened,
        files=tuple(moved.get(path, path) for path in paths),
        called={there: path for path, there in moved.items()},
    )
    try:
        if engine == "spark":
            return _spark_csv(opened, form, how)
        return _duckdb_csv(opened, form, how, marks)
    except Exception as error:
        raise opened.told(error) from error


def _parquet(con: Any, paths: Sequence[str]) -> Any:
    if con.name == "pyspark":  # Ibis reads one path; Spark a list
        con._session.read.parquet(*map(for_spark, paths)).createOrReplaceTempView(VIEW)
        return con.table(VIEW)
    return con.read_parquet(list(map(as_pattern, paths)), **_several(paths))


def _several(paths: Sequence[str]) -> dict[str, Any]:
    return {"union_by_name": True} if len(paths) > 1 else {}  # also for kinds that differ


def _check_spark(con: Any, files: Files, how: Reading) -> None:
    """Raise for CSV or Excel files that Spark would misread."""
    if files.shuffled:
        raise DataError(
            f"{files.shuffled} has its columns in another order than {files.paths[0]}; Spark reads "
            f"CSV files by position: write them alike, or leave {setting('engine')} out"
        )
    if how.decimal == ",":
        raise InputError(
            f"{setting('decimal')} is ',', which Spark does not read; leave {setting('engine')} "
            "out, or write the numbers with a point"
        )
    converted = files.form == "excel" or not how.is_utf8
    if converted and not con._session.sparkContext.master.startswith("local"):
        raise DataError(
            f"{files.label} is converted on this machine, where a cluster of Spark cannot read it; "
            f"leave {setting('engine')} out, or write it as Parquet"
        )


def _spark_csv(opened: Source, form: str, how: Reading) -> Source:
    tabs = all(".tsv" in Path(path).suffixes for path in opened.files)
    between = how.delimiter or ("\t" if tabs else ",")
    # A quote within quotes is written twice, as others write and read it.
    read: dict[str, Any] = {"header": True, "sep": between, "escape": '"'}
    read |= AS_WRITTEN_SPARK if form == "excel" else {}
    read["inferSchema"] = True
    table = spark_csv(opened.engine, opened.files, read, set())
    return replace(opened, table=table, reading=read)


def _duckdb_csv(opened: Source, form: str, how: Reading, marks: Marks) -> Source:
    con, escaped = opened.engine, [as_pattern(path) for path in opened.files]
    read = {"sample_size": SNIFFED, **_several(escaped), **how.for_duckdb()}
    read |= AS_WRITTEN if form == "excel" else {}
    read |= {"nullstr": ["", *marks.every]} if marks.every else {}
    table = con.read_csv(escaped, **read)
    # A column's own mark may come late in what looks like numbers, and would be an error.
    late = [
        name
        for name, words in marks.own.items()
        if name in table.columns
        and table.schema()[name].is_numeric()
        and any(as_written(word) is None for word in words)
    ]
    if late:
        read["types"] = dict.fromkeys(late, "VARCHAR")
        table = con.read_csv(escaped, **read)
    return replace(opened, table=table, reading=read)


def _open_table(name: str, label: str, engine: str | None, spill: str) -> Source:
    where, table = name.rsplit("::", 1)
    scheme = where.partition("://")[0] if "://" in where else ""
    if where == "spark":
        con = open_spark()
    elif engine == "spark":
        raise InputError(
            f"{setting('log')} is {label!r} and {setting('engine')} is 'spark'; a table of Spark "
            "is spark::TABLE",
            value=label,
        )
    elif scheme in ("postgresql", "postgres"):
        con = open_postgres(where, label)
    elif scheme in ("duckdb", ""):
        path = Path(where.removeprefix("duckdb://"))
        if not path.is_file():
            raise InputError(f"{setting('log')} is {label!r}; there is no file {path}", value=label)
        con = open_duckdb(spill, path)
    else:
        raise InputError(
            f"{setting('log')} is {label!r}; allowed for a table is {TABLES}", value=label
        )
    *schema, last = table.split(".")
    known = tables_of(con, ".".join(schema))
    folded = str.lower if where == "spark" else str  # it ignores case
    if folded(last) not in map(folded, known):
        if scheme:
            con.disconnect()
        raise InputError(
            f"{setting('log')} is {label!r}, and there is no table {table!r}; there are "
            f"{', '.join(sorted(known)[:20]) or 'none'}",
            value=label,
        )
    return Source(con.table(last, database=".".join(schema) if schema else None), con, label)
