"""A log that is open: its rows, the engine that has them, and what to call it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand._columns.conversion import no_json
from evenhand._columns.file_formats import NO_PARQUET
from evenhand.audit._input.engines import (
    Progress,
    answer_of,
    spark_csv,
    told,
)
from evenhand.audit._input.json_files import duckdb_json, spark_json
from evenhand.audit._input.log_paths import as_pattern
from evenhand.audit._input.passwords import hidden
from evenhand.errors import DataError, InputError, setting

# What DuckDB says of a Parquet file that was cut off, or whose bytes were changed.
DAMAGED = (
    "too small to be a Parquet file|No magic bytes found|corrupt|TProtocolException|Out of buffer|"
    "don't know what type|Information loss on integer cast"
)
# Packages whose errors are about a log, unless the class of the error is in WRONG_QUERIES.
ENGINES = {"duckdb", "_duckdb", "psycopg", "pyspark", "py4j", "pyarrow"}
WRONG_QUERIES = {
    "BinderException",
    "CatalogException",
    "InternalException",
    "ParserException",
    "SyntaxException",
    "AnalysisException",  # Spark's, as is the next
    "ParseException",
}
UNUSABLE = {"TableNotFound", "UnsupportedBackendType"}  # what Ibis says of a broken view or a type
NO_RIGHT = "42501"  # of PostgreSQL's states that begin with 42, the only one that is about the user
SAMPLE = 20_000  # rows by which the content of a column is judged
SNIFFED = 100_000  # rows of a CSV file by which the types of its columns are detected
SMALL = 50_000_000  # bytes up to which rows are read once, and kept
TRUTH = {"true", "false"}  # what means 0 or 1 in a CSV file; other words stay words
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
    text: frozenset[str] = frozenset()  # columns of CSV that Spark would take for numbers
    called: Mapping[str, str] = field(default_factory=dict)  # the originals of converted files
    json: Mapping[str, str] | None = None  # the kinds of columns of JSON files, by name
    decimal: str = "."  # what stands before the decimals of numbers in text
    unnamed: tuple[str, ...] = ()  # columns that have no name but one that was made up
    repeated: Mapping[str, str] = field(default_factory=dict)  # made up for a name used before
    categoricals: frozenset[str] = frozenset()  # columns of a frame that pandas calls categorical
    taken: frozenset[tuple[str, str]] = frozenset()  # columns and their marks, replaced already
    idle: tuple[str, ...] = ()  # columns that nobody named, and that are no role and no feature
    passwords: tuple[str, ...] = field(default=(), repr=False)  # never to be shown
    sampled: tuple[Any, pd.DataFrame] | None = field(default=None, repr=False)  # a table, its rows

    @property
    def kind(self) -> str:
        """The name of the engine: duckdb, postgres, pyspark."""
        return str(self.engine.name)

    @property
    def widest(self) -> int | None:
        """How many columns the answer to a query may have, if there is a limit."""
        return WIDEST.get(self.kind)

    def close(self) -> None:
        """Disconnect, unless the engine is the caller's; Spark's session stays for the next."""
        if self.ours and self.kind != "pyspark":
            self.engine.disconnect()

    def as_text(self) -> Any | None:
        """CSV files as they are written, with their marks; None for others, and with Spark."""
        if not self.files or self.kind != "duckdb":
            return None
        read = {
            key: value for key, value in self.reading.items() if key not in ("types", "nullstr")
        }
        with quiet():
            paths = [as_pattern(path) for path in self.files]
            return self.engine.read_csv(paths, **read, all_varchar=True)

    def with_labels(self, names: Sequence[str]) -> Source:
        """The log with these columns of CSV files as they are written, whatever they look like.

        "no" is no truth value there, "007" no number and "1" not the same as "1.0". Other columns
        that an engine takes for truth values stay so if they say only true and false, and are words
        otherwise.
        """
        if not self.files and self.json is None:
            return self
        with quiet(), telling(self.label, self.passwords, self.called, opening=True):
            return replace(self, table=self._read_once(self._with_labels(set(names))))

    def _read_once(self, table: Any) -> Any:
        """Small files as a table of the engine.

        DuckDB would guess the columns of a file and read its text again in every query. Large files
        stay where they are: they may not fit here.
        """
        paths = self.files or self.paths
        if self.kind != "duckdb" or sum(Path(path).stat().st_size for path in paths) > SMALL:
            return table
        return self._held(table)

    def _held(self, table: Any) -> Any:
        """The rows of a query as a table of DuckDB, which lasts as long as the connection."""
        from ibis.util import gen_name

        name = gen_name("evenhand")  # a used one would change what an older query reads
        create = f'CREATE TEMP TABLE "{name}" AS {self.engine.compile(table)}'
        self.engine._run_pre_execute_hooks(table)
        answer_of(lambda: self.engine.con.execute(create), self.engine.con, self.progress)
        return self.engine.table(name)

    def _with_labels(self, names: set[str]) -> Any:
        schema = self.table.schema()
        if self.json is not None:
            if self.kind == "pyspark":
                return spark_json(self.engine, self.paths, names)
            return duckdb_json(self.engine, self.paths, self.json, names)
        if self.kind == "pyspark":
            return spark_csv(self.engine, self.files, self.reading, {*names, *self.text})
        truths = [name for name, kind in schema.items() if kind.is_boolean()]
        written: Any = self.as_text() if truths else None
        for name in truths:
            words = written.select(word=written[name].strip()).limit(SNIFFED).distinct()
            known = {*self.fetch(words)["word"].dropna()} - {*self.reading.get("nullstr", ())}
            if not set(map(str.lower, known)) <= TRUTH:
                names = {*names, name}
        wanted = [name for name in names if name in schema.names and not schema[name].is_string()]
        if not wanted:
            return self.table
        types = {**self.reading.get("types", {}), **dict.fromkeys(wanted, "VARCHAR")}
        paths = [as_pattern(path) for path in self.files]
        return self.engine.read_csv(paths, **{**self.reading, "types": types})

    def fetch(self, query: Any) -> pd.DataFrame:
        """Run a query whose answer is small."""

        def run() -> pd.DataFrame:
            answer = self.engine.to_pyarrow(query)
            try:
                rows: pd.DataFrame = answer.to_pandas()
            except (ValueError, OverflowError) as error:  # such as a date after the year 9999
                raise told_of(self.label, error, self.passwords, self.called) from error
            return rows

        with quiet(), telling(self.label, self.passwords, self.called):
            if self.kind == "duckdb":
                return answer_of(run, self.engine.con, self.progress)
            return run()

    def first_rows(self, names: Sequence[str]) -> pd.DataFrame:
        """The first rows of these columns: those that were kept, if the table is still the same."""
        if self.sampled is not None:
            table, rows = self.sampled
            if table is self.table and set(names) <= set(rows.columns):
                return rows[list(names)]
        picked = {f"x{i}": self.table[name] for i, name in enumerate(names)}
        rows = self.fetch(self.table.select(**picked).limit(SAMPLE))
        return rows.set_axis(list(names), axis=1)

    def with_sample(self, names: Sequence[str]) -> Source:
        """The same, with the first rows of these columns kept for `first_rows`."""
        return replace(self, sampled=(self.table, self.first_rows(names)))

    def stream(self, query: Any, take: Callable[[Any], None], most: int) -> None:
        """Run a query of DuckDB whose answer is large: Arrow batches, each seen once.

        Args:
            query: what to ask.
            take: called with each batch.
            most: rows of a batch.
        """

        def run() -> None:
            relation = self.engine.con.sql(self.engine.compile(query))
            # DuckDB 1 has another name for it.
            read = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
            for batch in read(most):
                take(batch)

        with quiet(), telling(self.label, self.passwords, self.called):
            self.engine._run_pre_execute_hooks(query)
            answer_of(run, self.engine.con, self.progress)


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress engines' warnings about each other's versions, on which users cannot act."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet", FutureWarning)
        warnings.filterwarnings("ignore", "fetch_arrow_table", DeprecationWarning)
        yield


@contextmanager
def telling(
    label: str,
    passwords: Sequence[str] = (),
    called: Mapping[str, str] | None = None,
    opening: bool = False,
) -> Iterator[None]:
    """Turn what an engine says about a log into errors of ours; a mistake of ours passes as it is.

    Args:
        label: what to call the log.
        passwords: never to be shown.
        called: the originals of converted files.
        opening: whether the log is being opened; then its own columns can make a query wrong.
    """
    try:
        yield
    except Exception as error:
        quoted = any(password in str(error) for password in passwords)  # so it is of the address
        if isinstance(error, InputError) or not (quoted or _is_about_log(error, opening)):
            raise
        # The engine's own error may quote the password.
        raise told_of(label, error, passwords, called) from (None if passwords else error)


def _is_about_log(error: Exception, opening: bool) -> bool:
    """Whether an error comes from a log, or from the machine, and not from a mistake of ours."""
    if isinstance(error, (OSError, EOFError, MemoryError, RecursionError, UnicodeDecodeError)):
        return True
    kinds = _kinds(error)
    if not is_of_engine(error):
        return opening and any(name in UNUSABLE for package, name in kinds if package == "ibis")
    if isinstance(error, (TypeError, AttributeError, LookupError)):  # engines' own have these too
        return False
    if WRONG_QUERIES & {name for _, name in kinds} or type(error).__name__ == "Py4JError":
        return opening or re.search(DAMAGED, str(error)) is not None
    state = str(getattr(error, "sqlstate", None) or "")  # of PostgreSQL
    return not state.startswith("42") or state == NO_RIGHT


def is_of_engine(error: Exception) -> bool:
    """Whether an error is one of an engine's own."""
    return bool(ENGINES & {package for package, _ in _kinds(error)})


def _kinds(error: Exception) -> list[tuple[str, str]]:
    """The package and the name of an error's class and its bases."""
    return [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(error).__mro__]


def told_of(
    label: str,
    error: Exception,
    passwords: Sequence[str] = (),
    called: Mapping[str, str] | None = None,
) -> DataError:
    """An engine's error in one line, and in users' words where it is about a file."""
    said = str(error)
    for read, path in (called or {}).items():
        said = said.replace(read, path)
    named = re.search(r"(?:file '|file = )([^'\n]+)", said, re.IGNORECASE)
    name = named[1].strip() if named and not Path(label).is_file() else label  # one of many files
    if "not utf-8 encoded" in said:
        line = re.search(r"Line: (\d+)", said)
        return DataError(
            f"{name}{f' (line {line[1]})' if line else ''} is not UTF-8 text; say what it is, "
            f"such as {setting('encoding', 'latin-1')} or {setting('encoding', 'windows-1252')}",
            parameter="encoding",
        )
    if re.search(DAMAGED, said):
        return DataError(f"{name} {NO_PARQUET}")
    if "Malformed JSON" in said:
        return no_json(name)
    plain = error if said == str(error) else RuntimeError(said)
    return DataError(hidden(told(label, plain).message, passwords))
