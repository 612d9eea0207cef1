"""The files of a log as a table of DuckDB or Spark: Parquet, CSV, JSON and Excel.

A new format is an ending in `evenhand._columns.file_formats`, a case in `open_files`, and one in
`evenhand._columns.table_files` for worlds and off-policy values, which read files into pandas. A
format without its case is an error of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evenhand._columns.compression import ZIP, ZSTANDARD, opened
from evenhand._columns.conversion import (
    AS_WRITTEN,
    AS_WRITTEN_SPARK,
    from_excel,
    in_utf8,
    no_objects,
)
from evenhand._columns.delimiters import delimiter_of
from evenhand._columns.file_formats import CSV, EXCEL, JSON, PARQUET, UTF8, Reading
from evenhand._columns.missing_marks import Marks
from evenhand._columns.words import as_written
from evenhand.audit._input.csv_kinds import corrected
from evenhand.audit._input.engines import VIEW, for_spark, open_duckdb, open_spark, spark_csv
from evenhand.audit._input.json_files import duckdb_json, duckdb_kinds, spark_json, spark_kinds
from evenhand.audit._input.log_paths import Files, as_pattern
from evenhand.audit._input.sources import SNIFFED, Source, telling
from evenhand.errors import DataError, InputError, setting


def open_files(files: Files, engine: str, marks: Marks, spill: str, how: Reading) -> Source:
    """A log from its files."""
    paths, form, label, _ = files
    con = open_spark() if engine == "spark" else open_duckdb(spill)
    opened = Source(None, con, label, paths=tuple(paths), decimal=how.decimal or ".")
    if form == PARQUET:
        return replace(opened, table=_parquet(con, paths))
    if form == JSON and engine == "spark":
        table = spark_json(con, paths, ())
        return replace(opened, table=table, json=spark_kinds(table))
    if form == JSON:
        kinds = duckdb_kinds(con, paths)
        if list(kinds) == ["json"]:  # what DuckDB calls values without a key
            raise _without_rows(paths, label)
        return replace(opened, table=duckdb_json(con, paths, kinds, ()), json=kinds)
    if engine == "spark":
        _check_spark(con, files, how)
    if form not in (CSV, EXCEL):
        raise AssertionError(f"no engine reads {form} files")
    moved = {}
    foreign = paths if not how.is_utf8 else [path for path in paths if _is_packed(path, engine)]
    if not spill and (form == EXCEL or foreign):
        raise InputError("spill is empty; allowed is a folder: files that are converted go there")
    if form == EXCEL:
        moved = from_excel(paths, how.sheet, spill)
    elif foreign:
        moved = in_utf8(foreign, how.encoding or UTF8, spill)
    opened = replace(
        opened,
        files=tuple(moved.get(path, path) for path in paths),
        called={converted_path: path for path, converted_path in moved.items()},
    )
    with telling(label, called=opened.called, opening=True):
        if engine == "spark":
            return _spark_csv(opened, form, how, marks)
        return _duckdb_csv(opened, form, how, marks)


def _without_rows(paths: Sequence[str], label: str) -> DataError:
    """The error for JSON without a single object: an empty array, or values of other kinds."""
    for path in paths:
        with opened(path) as file:
            if file.read(100).strip() not in (b"", b"[]"):
                return no_objects(label)
    return DataError(f"{label} has no rows; an audit needs some")


def _is_packed(path: str, engine: str) -> bool:
    """Whether a file is compressed in a way that the engine cannot undo."""
    return path.lower().endswith((ZIP, ZSTANDARD) if engine == "spark" else ZIP)


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
    packed = any(_is_packed(path, "spark") for path in files.paths)
    converted = files.form == EXCEL or packed or not how.is_utf8
    if converted and not con._session.sparkContext.master.startswith("local"):
        raise DataError(
            f"{files.label} is converted on this machine, where a cluster of Spark cannot read it; "
            f"leave {setting('engine')} out, or write it as Parquet"
        )


def _spark_csv(opened: Source, form: str, how: Reading, marks: Marks) -> Source:
    given = Reading(delimiter=",") if form == EXCEL else Reading(delimiter=how.delimiter)
    between = delimiter_of(opened.files[0], given)
    # A quote within quotes is written twice, as others write and read it.
    read: dict[str, Any] = {"header": True, "sep": between, "escape": '"'}
    read |= AS_WRITTEN_SPARK if form == EXCEL else {}
    read["inferSchema"] = True
    guessed = spark_csv(opened.engine, opened.files, read, set())
    written = spark_csv(opened.engine, opened.files, read, {*guessed.columns})
    text, _ = corrected(replace(opened, table=guessed), written, marks)
    table = spark_csv(opened.engine, opened.files, read, {*text})
    return replace(opened, table=table, reading=read, text=frozenset(text))


def _duckdb_csv(opened: Source, form: str, how: Reading, marks: Marks) -> Source:
    con, escaped = opened.engine, [as_pattern(path) for path in opened.files]
    read = {"sample_size": SNIFFED, **_several(escaped), **how.for_duckdb()}
    read |= AS_WRITTEN if form == EXCEL else {}
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
    opened = replace(opened, table=table, reading=read)
    text, numbers = corrected(opened, opened.as_text(), marks)
    types = dict.fromkeys([*late, *text], "VARCHAR") | dict.fromkeys(numbers, "DOUBLE")
    if not types:
        return opened
    read["types"] = types
    return replace(opened, table=con.read_csv(escaped, **read), reading=read)
