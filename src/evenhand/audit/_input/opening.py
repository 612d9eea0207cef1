"""Opening a log: files, a table of a database, a table of Spark, or a frame in memory."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api import types

from evenhand import _checks
from evenhand._columns.buckets import plain
from evenhand._columns.file_formats import Reading
from evenhand._columns.missing_marks import Marks
from evenhand._columns.table_files import as_frame, check_levels
from evenhand._columns.words import word, written
from evenhand.audit._input.engines import (
    open_duckdb,
    open_postgres,
    open_spark,
    tables_of,
    told,
)
from evenhand.audit._input.format_readers import open_files
from evenhand.audit._input.log_paths import find_files
from evenhand.audit._input.passwords import hidden, passwords_in, without_password
from evenhand.audit._input.sources import Source, quiet, telling
from evenhand.errors import DataError, InputError, MissingExtraError, setting

ENGINES = ("duckdb", "spark")
POSTGRESQL = ("postgresql", "postgres")
MIXED = ("mixed", "mixed-integer")  # as pandas infers kinds
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
        name = str(getattr(log.op(), "name", "a table"))  # a query has none
        how.check("", name)
        return Source(log, log.get_backend(), name, ours=False)
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
        opener = lambda: open_files(files, engine or "duckdb", marks or Marks(), spill, how)  # noqa: E731
    try:
        with quiet(), telling(label, passwords, opening=True):
            return replace(opener(), passwords=passwords)
    except InputError as error:
        if not passwords:
            raise
        raise type(error)(hidden(error.message, passwords), parameter=error.parameter) from None


def as_log(log: Any) -> Any:
    """A log as `open_log` takes it: frames of other packages and mappings become one of pandas."""
    if isinstance(log, (str, os.PathLike, pd.DataFrame)) or hasattr(log, "get_backend"):
        return log
    return as_frame(log, "log")


def _needs_ibis() -> None:
    try:
        import ibis  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "audits need Ibis and DuckDB: install them with pip install 'evenhand[audit]'"
        ) from error


def _from_frame(frame: pd.DataFrame, engine: str, marks: Marks, spill: str) -> Source:
    if frame.columns.empty:
        raise DataError(f"{setting('log')} has no columns; give a table with some", value=frame)
    check_levels(frame, "log")
    named = frame.rename(columns=str).reset_index(drop=True)
    twice = named.columns[named.columns.str.casefold().duplicated()]
    if len(twice):
        raise DataError(
            f"column {twice[0]!r} occurs more than once, or in another case; allowed are "
            "columns with different names: rename or drop one"
        )
    con, taken = open_duckdb(spill) if engine == "duckdb" else open_spark(), set[tuple[str, str]]()
    categoricals = {
        name for name in named.columns if isinstance(named[name].dtype, pd.CategoricalDtype)
    }
    for name in named.columns:
        if name in categoricals:  # which engines do not know
            values = named[name].astype(object)
            is_dates = types.is_datetime64_any_dtype(named[name].cat.categories)
            named[name] = values if is_dates else values.map(word, na_action="ignore")
        if isinstance(named[name].dtype, pd.DatetimeTZDtype):  # DuckDB takes no ns here
            named[name] = named[name].dt.as_unit("us")
        own_marks = marks.of_column(name)
        if own_marks and named[name].dtype == object:  # Arrow refuses numbers mixed with words
            words = named[name].map(written, na_action="ignore")
            taken |= {(name, mark) for mark in own_marks if words.eq(mark).any()}
            named[name] = named[name].mask(words.isin(["", *own_marks]), None).infer_objects()
        # Which Arrow refuses. It takes lists, which an audit leaves aside.
        mixed = types.infer_dtype(named[name], skipna=True) in MIXED
        if mixed and not named[name].map(types.is_list_like).any():
            named[name] = plain(named[name])
    import ibis
    import pyarrow as pa

    try:
        arrow = pa.Table.from_pandas(named, preserve_index=False)
    except (pa.ArrowException, OverflowError) as error:
        refused = re.search("for column (.*) with type object", str(error))
        if refused is None:
            raise told("a frame", error) from error
        raise DataError(
            f"column {refused[1]!r} holds values of several kinds, such as numbers and text; make "
            "them one kind, or name those that stand for a missing value in "
            f"{setting('missing_marks')}",
            parameter="log",
            value=refused[1],
        ) from error
    for column in arrow.schema:
        if isinstance(column.type, pa.BaseExtensionType):  # such as intervals
            raise DataError(
                f"column {column.name!r} is of the type {named[column.name].dtype}; allowed are "
                "numbers, text, truth values, dates and times: turn it into one of these, or drop "
                "it",
                parameter="log",
                value=column.name,
            )
    return Source(
        ibis.memtable(arrow),
        con,
        "a frame",
        categoricals=frozenset(categoricals),
        taken=frozenset(taken),
    )


def _open_table(name: str, label: str, engine: str | None, spill: str) -> Source:
    where, table = name.rsplit("::", 1)
    scheme = where.partition("://")[0] if "://" in where else ""
    elsewhere = "Spark" if where == "spark" else "PostgreSQL" if scheme in POSTGRESQL else ""
    if elsewhere and engine == "duckdb":
        raise InputError(
            f"{setting('log')} is {label!r} and {setting('engine')} is 'duckdb'; a table of "
            f"{elsewhere} is summed up where it is: leave {setting('engine')} out",
            value=label,
        )
    if where == "spark":
        con = open_spark()
    elif engine == "spark":
        raise InputError(
            f"{setting('log')} is {label!r} and {setting('engine')} is 'spark'; a table of Spark "
            "is spark::TABLE",
            value=label,
        )
    elif scheme in POSTGRESQL:
        con = open_postgres(where, label)
    elif scheme in ("duckdb", ""):
        path = Path(where.removeprefix("duckdb://"))
        if not path.is_file():
            raise InputError(f"{setting('log')} is {label!r}; there is no file {path}", value=label)
        with path.open("rb") as file:
            if file.read(12)[8:] != b"DUCK":
                raise InputError(
                    f"{setting('log')} is {label!r}, and {path} is not a database of DuckDB; name "
                    "a file of rows without ::TABLE",
                    value=label,
                )
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
