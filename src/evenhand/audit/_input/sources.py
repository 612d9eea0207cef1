"""Where a log is: files, a table of a database, a table of Spark, or a frame in memory."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand import _checks
from evenhand._columns.convert import AS_WRITTEN, AS_WRITTEN_SPARK, from_excel, in_utf8
from evenhand._columns.marks import Marks
from evenhand._columns.reading import Reading
from evenhand._columns.words import as_written, written
from evenhand.audit._input.addresses import hidden, passwords_in, without_password
from evenhand.audit._input.engines import (
    VIEW,
    Progress,
    answer_of,
    for_spark,
    open_duckdb,
    open_postgres,
    open_spark,
    spark_csv,
    tables_of,
    told,
)
from evenhand.audit._input.files import NO_PARQUET, Files, as_pattern, find_files
from evenhand.audit._input.json_files import duckdb_json, duckdb_kinds, spark_json
from evenhand.audit._input.spark_files import check_spark
from evenhand.errors import DataError, InputError, MissingExtraError, setting

ENGINES = ("duckdb", "spark")
TABLES = "duckdb:///FILE::TABLE, postgresql://USER@HOST/DATABASE::TABLE or spark::TABLE"
SNIFFED = 100_000  # rows of a CSV file that say what its columns are
# What DuckDB says of a Parquet file that was cut off, or of which bytes were changed.
DAMAGED = (
    "too small to be a Parquet file|No magic bytes found|corrupt|TProtocolException|Out of buffer|"
    "don't know what type|Information loss on integer cast"
)
TRUTH = {"true", "false"}  # what is 0 or 1 in a CSV file; other words are words
# Columns in the answer to a query. PostgreSQL allows 1664; DuckDB dies of too many sums at once.
WIDEST = {"postgres": 1500, "duckdb": 2000, "pyspark": 2000}


@dataclass(frozen=True, eq=False)
class Source:
    """A log as an Ibis table, and the engine that holds it."""

    table: Any
    engine: Any
    label: str
    ours: bool = True  # whether the connection was made here
    progress: Progress | None = None  # told how much of a query is done, in percent
    paths: tuple[str, ...] = ()  # of all files, where the user has them
    files: tuple[str, ...] = ()  # of CSV, as the engine reads them
    reading: Mapping[str, Any] = field(default_factory=dict)  # how they are read
    called: Mapping[str, str] = field(default_factory=dict)  # where files that were converted were
    json: Mapping[str, str] | None = None  # the kinds of columns of JSON files, by name
    decimal: str = "."  # what stands before the decimals of numbers in text
    unnamed: tuple[str, ...] = ()  # columns that have no name but one that was made up
    repeated: Mapping[str, str] = field(default_factory=dict)  # made up for a name used before
    taken: frozenset[tuple[str, str]] = frozenset()  # columns and their marks, gone already
    idle: tuple[str, ...] = ()  # columns that nobody named, and that are no role and no feature
    passwords: tuple[str, ...] = field(default=(), repr=False)  # never to be shown

    @property
    def kind(self) -> str:
        """The name of the engine: duckdb, postgres, pyspark."""
        return str(self.engine.name)

    @property
    def widest(self) -> int | None:
        """How many columns the answer to a query may have, if there is a limit."""
        return WIDEST.get(self.kind)

    def close(self) -> None:
        """Let go of the engine, unless it is the caller's; Spark's session stays for the next."""
        if self.ours and self.kind != "pyspark":
            self.engine.disconnect()

    def as_text(self) -> Any | None:
        """CSV files as they are written, with their marks; None of others, and with Spark."""
        if not self.files or self.kind != "duckdb":
            return None
        read = {key: one for key, one in self.reading.items() if key not in ("types", "nullstr")}
        with _quiet():
            paths = [as_pattern(one) for one in self.files]
            return self.engine.read_csv(paths, **read, all_varchar=True)

    def with_labels(self, names: Sequence[str]) -> Source:
        """The log with these columns of CSV files as they are written, whatever they look like.

        "no" is no truth value there, "007" no number and "1" not the same as "1.0". Other columns
        that an engine takes for truth values are, if they say true and false, and words if they
        say anything else.
        """
        if not self.files and self.json is None:
            return self
        try:
            with _quiet():
                return replace(self, table=self._with_labels(set(names)))
        except (InputError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise self._told(error) from error

    def _with_labels(self, names: set[str]) -> Any:
        schema = self.table.schema()
        if self.json is not None:
            if self.kind == "pyspark":
                return spark_json(self.engine, self.paths, names)
            return duckdb_json(self.engine, self.paths, self.json, names)
        if self.kind == "pyspark":
            return spark_csv(self.engine, self.files, self.reading, names)
        written: Any = self.as_text()
        for name in [name for name, kind in schema.items() if kind.is_boolean()]:
            words = written.select(word=written[name].strip().lower()).limit(SNIFFED)
            if not set(self.fetch(words.distinct())["word"].dropna()) <= TRUTH:
                names = {*names, name}
        wanted = [name for name in names if name in schema.names and not schema[name].is_string()]
        if not wanted:
            return self.table
        types = {**self.reading.get("types", {}), **dict.fromkeys(wanted, "VARCHAR")}
        paths = [as_pattern(one) for one in self.files]
        return self.engine.read_csv(paths, **{**self.reading, "types": types})

    def fetch(self, query: Any) -> pd.DataFrame:
        """Run a query whose answer is small."""

        def run() -> pd.DataFrame:
            found: pd.DataFrame = self.engine.to_pyarrow(query).to_pandas()
            return found

        try:
            with _quiet():
                if self.kind == "duckdb":
                    return answer_of(run, self.engine.con, self.progress)
                return run()
        except Exception as error:
            raise self._told(error) from error

    def _told(self, error: Exception) -> DataError:
        return _told(self.label, error, self.passwords, self.called)

    def stream(self, query: Any, take: Callable[[Any], None], most: int) -> None:
        """Run a query of DuckDB whose answer is large: Arrow batches, each seen once.

        Args:
            query: what to ask.
            take: called with each batch.
            most: rows of a batch.
        """

        def run() -> None:
            asked = self.engine.con.sql(self.engine.compile(query))
            # DuckDB 1 has another name for it.
            read = getattr(asked, "to_arrow_reader", None) or asked.fetch_record_batch
            for batch in read(most):
                take(batch)

        try:
            with _quiet():
                self.engine._run_pre_execute_hooks(query)
                answer_of(run, self.engine.con, self.progress)
        except Exception as error:
            raise _told(self.label, error, self.passwords) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of engines about each other's versions, which users cannot heed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet", FutureWarning)
        warnings.filterwarnings("ignore", "fetch_arrow_table", DeprecationWarning)
        yield


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
        with _quiet():
            return replace(opener(), passwords=passwords)
    except MissingExtraError:
        raise
    except InputError as error:
        if not passwords:
            raise
        raise type(error)(hidden(error.message, passwords), parameter=error.parameter) from None
    except Exception as error:
        raise _told(label, error, passwords) from (None if passwords else error)


def _told(
    label: str,
    error: Exception,
    passwords: Sequence[str] = (),
    called: Mapping[str, str] | None = None,
) -> DataError:
    """What an engine complains of, in one line and in words of users where it is about a file."""
    said = str(error)
    for read, path in (called or {}).items():
        said = said.replace(read, path)
    one = re.search(r"(?:file '|file = )([^'\n]+)", said, re.IGNORECASE)
    name = one[1].strip() if one and not Path(label).is_file() else label  # one of many files
    if "not utf-8 encoded" in said:
        line = re.search(r"Line: (\d+)", said)
        return DataError(
            f"{name}{f' (line {line[1]})' if line else ''} is no UTF-8 text; say what it is in, "
            f"such as {setting('encoding', 'latin-1')} or {setting('encoding', 'windows-1252')}"
        )
    if re.search(DAMAGED, said):
        return DataError(f"{name} {NO_PARQUET}")
    plain = error if said == str(error) else RuntimeError(said)
    return DataError(hidden(told(label, plain).message, passwords))


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
            f"column {twice[0]!r} is there more than once, or with another case; allowed are "
            "columns with names of their own: rename or drop one"
        )
    con, taken = open_duckdb(spill) if engine == "duckdb" else open_spark(), set[tuple[str, str]]()
    for name in named.columns:  # engines do not know pandas' categories
        if isinstance(named[name].dtype, pd.CategoricalDtype):
            named[name] = named[name].astype(object)
        if isinstance(named[name].dtype, pd.DatetimeTZDtype):  # DuckDB does not do with ns
            named[name] = named[name].dt.as_unit("us")
        here = marks.of_column(name)
        if here and named[name].dtype == object:  # Arrow takes no column of numbers and words
            words = named[name].map(written, na_action="ignore")
            taken |= {(name, mark) for mark in here if words.eq(mark).any()}
            named[name] = named[name].mask(words.isin(["", *here]), None).infer_objects()
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
        check_spark(con, files, how)
    moved = {}
    if not spill and (form == "excel" or not how.is_utf8):
        raise InputError("spill is empty; allowed is a folder: files that are converted go there")
    if form == "excel":
        moved = from_excel(paths, how.sheet, spill)
    elif not how.is_utf8:
        moved = in_utf8(paths, str(how.encoding), spill)
    opened = replace(
        opened,
        files=tuple(moved.get(one, one) for one in paths),
        called={there: path for path, there in moved.items()},
    )
    try:
        if engine == "spark":
            return _spark_csv(opened, form, how)
        return _duckdb_csv(opened, form, how, marks)
    except Exception as error:
        raise opened._told(error) from error


def _parquet(con: Any, paths: Sequence[str]) -> Any:
    if con.name == "pyspark":  # Ibis reads one path; Spark a list
        con._session.read.parquet(*map(for_spark, paths)).createOrReplaceTempView(VIEW)
        return con.table(VIEW)
    return con.read_parquet(list(map(as_pattern, paths)), **_several(paths))


def _several(paths: Sequence[str]) -> dict[str, Any]:
    return {"union_by_name": True} if len(paths) > 1 else {}  # also for kinds that differ


def _spark_csv(opened: Source, form: str, how: Reading) -> Source:
    tabs = all(".tsv" in Path(one).suffixes for one in opened.files)
    between = how.delimiter or ("\t" if tabs else ",")
    # A quote within quotes is written twice, as others write and read it.
    read: dict[str, Any] = {"header": True, "sep": between, "escape": '"'}
    read |= AS_WRITTEN_SPARK if form == "excel" else {}
    read["inferSchema"] = True
    table = spark_csv(opened.engine, opened.files, read, set())
    return replace(opened, table=table, reading=read)


def _duckdb_csv(opened: Source, form: str, how: Reading, marks: Marks) -> Source:
    con, escaped = opened.engine, [as_pattern(one) for one in opened.files]
    read = {"sample_size": SNIFFED, **_several(escaped), **how.for_duckdb()}
    read |= AS_WRITTEN if form == "excel" else {}
    read |= {"nullstr": ["", *marks.every]} if marks.every else {}
    table = con.read_csv(escaped, **read)
    # A mark of its own in a column that looks like numbers comes late, and would be an error.
    late = [
        name
        for name, words in marks.own.items()
        if name in table.columns
        and table.schema()[name].is_numeric()
        and any(as_written(one) is None for one in words)
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
    folded = [one.lower() for one in known] if where == "spark" else known  # it ignores case
    if (last.lower() if where == "spark" else last) not in folded:
        if scheme:
            con.disconnect()
        raise InputError(
            f"{setting('log')} is {label!r}, and there is no table {table!r}; there are "
            f"{', '.join(sorted(known)[:20]) or 'none'}",
            value=label,
        )
    return Source(con.table(last, database=".".join(schema) if schema else None), con, label)
