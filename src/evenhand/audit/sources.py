"""Where a log is: files, a table of a database, a table of Spark, or a frame in memory."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pandas as pd

from evenhand import _checks
from evenhand.audit.complaints import told
from evenhand.audit.marks import as_written, word
from evenhand.audit.waiting import Progress, answer_of

ENGINES = ("duckdb", "spark")
MEMORY = "1000MB"  # of DuckDB's buffers; Python, Ibis and the report take a few hundred more
TABLES = "duckdb:///FILE::TABLE, postgresql://USER@HOST/DATABASE::TABLE or spark::TABLE"
ENDINGS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv"}
SNIFFED = 100_000  # rows of a CSV file that say what its columns are
# PostgreSQL allows 1664 columns in a query.
VIEW = "evenhand_log"  # of files in Spark
WIDEST = {"postgres": 1500}


@dataclass(frozen=True, eq=False)
class Source:
    """A log as an Ibis table, and the engine that holds it."""

    table: Any
    engine: Any
    label: str
    ours: bool = True  # whether the connection was made here
    progress: Progress | None = None  # told how much of a query is done, in percent
    files: tuple[str, ...] = ()  # of CSV
    unnamed: tuple[str, ...] = ()  # columns that have no name but one that was made up
    repeated: Mapping[str, str] = field(default_factory=dict)  # made up for a name used before
    taken: frozenset[tuple[str, str]] = frozenset()  # columns and their marks, gone already

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
        with _quiet():
            return self.engine.read_csv(list(self.files), sample_size=SNIFFED, all_varchar=True)

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
            raise _told(self.label, error) from error


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
    marks: Sequence[str] = (),
    own: Mapping[str, Sequence[str]] | None = None,
) -> Source:
    """Open a log.

    Args:
        log: a Parquet or CSV file, a folder of them, a glob, WHERE::TABLE, a frame, or an Ibis
            table.
        engine: "duckdb" or "spark" for files; tables are summed up where they are.
        marks: what stands for missing values, so that a CSV file's columns get the right kind.
        own: the same of single columns, by name.
    """
    if engine is not None:
        _checks.one_of("engine", engine, ENGINES)
    _needs_ibis()
    if hasattr(log, "get_backend") and hasattr(log, "schema"):
        name = log.get_name() if hasattr(log, "get_name") else "a table"
        return Source(log, log.get_backend(), str(name), ours=False)
    if isinstance(log, pd.DataFrame):
        return _from_frame(log, engine or "duckdb", marks, own or {})
    name, files = str(log), tuple[str, ...]()
    opener: Callable[[], tuple[Any, Any]]
    if "::" in name:
        where, table = name.rsplit("::", 1)
        opener = lambda: _open_table(name, where, table, engine)  # noqa: E731
    else:
        paths, form = _files(name)
        files = tuple(paths) if form == "csv" else ()
        opener = lambda: _open_files(paths, form, engine or "duckdb", marks, own or {})  # noqa: E731
    try:
        with _quiet():
            return Source(*opener(), name, files=files)
    except (ValueError, ImportError):
        raise
    except Exception as error:
        raise _told(name, error) from error


def _told(label: str, error: Exception) -> ValueError:
    """What an engine complains of, in one line and in words of users where it is about a file."""
    said = str(error)
    one = re.search(r"(?:file '|file = )([^'\n]+)", said, re.IGNORECASE)
    name = one[1].strip() if one and not Path(label).is_file() else label  # one of many files
    if "not utf-8 encoded" in said:
        line = re.search(r"Line: (\d+)", said)
        return ValueError(
            f"{name}{f' (line {line[1]})' if line else ''} is no UTF-8 text; convert it, such as "
            "with iconv -f LATIN1 -t UTF-8, or read it in pandas with read_csv(..., "
            "encoding='latin-1') and audit the frame"
        )
    if re.search("too small to be a Parquet file|No magic bytes found", said):
        return ValueError(f"{name} is no Parquet file, or not a whole one; write it again")
    return told(label, error)


def _needs_ibis() -> None:
    try:
        import ibis  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "audits need Ibis and DuckDB: install them with pip install 'evenhand[audit]'"
        ) from error


def _from_frame(
    frame: pd.DataFrame, engine: str, marks: Sequence[str], own: Mapping[str, Sequence[str]]
) -> Source:
    named = frame.rename(columns=str).reset_index(drop=True)
    twice = named.columns[named.columns.str.casefold().duplicated()]
    if len(twice):
        raise ValueError(
            f"column {twice[0]!r} is there more than once, or with another case; allowed are "
            "columns with names of their own: rename or drop one"
        )
    con, taken = _duckdb() if engine == "duckdb" else _spark(), set[tuple[str, str]]()
    for name in named.columns:  # engines do not know pandas' categories
        if isinstance(named[name].dtype, pd.CategoricalDtype):
            named[name] = named[name].astype(object)
        if isinstance(named[name].dtype, pd.DatetimeTZDtype):  # DuckDB does not do with ns
            named[name] = named[name].dt.as_unit("us")
        here = (*marks, *own.get(name, ()))
        if here and named[name].dtype == object:  # Arrow takes no column of numbers and words
            words = named[name].map(word, na_action="ignore")
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
        raise ValueError(
            f"column {mixed[1]!r} holds values of several kinds, such as numbers and text; make "
            "them one kind, or name those that stand for a missing value in missing_marks"
        ) from error
    return Source(ibis.memtable(arrow), con, "a frame", taken=frozenset(taken))


def _files(name: str) -> tuple[list[str], str]:
    """The files that a path, a folder or a glob means, and their format."""
    path = Path(name)
    if path.is_dir():
        for form in ("parquet", "csv"):
            found = sorted(
                str(one)
                for one in path.rglob("*")
                if one.is_file() and _form(one) == form and not one.name.startswith(("_", "."))
            )
            if found:
                return found, form
        raise ValueError(f"LOG is {name!r}, a folder without Parquet or CSV files")
    found = [name] if path.is_file() else sorted(glob(name, recursive=True))  # noqa: PTH207
    if not found:
        raise ValueError(
            f"LOG is {name!r}, where there is nothing; allowed are a Parquet or CSV file, a "
            f"folder, a glob, or a table as {TABLES}"
        )
    forms = {_form(Path(one)) for one in found}
    if len(forms) != 1 or "" in forms:
        raise ValueError(f"LOG is {name!r}; allowed are files that end in {', '.join(ENDINGS)}")
    if all(Path(one).stat().st_size == 0 for one in found):
        raise ValueError(f"LOG is {name!r}, which is empty; an audit needs columns and rows")
    return found, forms.pop()


def _form(path: Path) -> str:
    ending = path.with_suffix("").suffix if path.suffix in (".gz", ".zst") else path.suffix
    return ENDINGS.get(ending.lower(), "")


def _open_files(
    paths: list[str],
    form: str,
    engine: str,
    marks: Sequence[str],
    own: Mapping[str, Sequence[str]],
) -> tuple[Any, Any]:
    if engine == "spark":
        con = _spark()
        reader, read = con._session.read, dict[str, Any]()
        if form == "csv":
            tabs = all(".tsv" in Path(one).suffixes for one in paths)
            read = {"header": True, "inferSchema": True, "sep": "\t" if tabs else ","}
        # Ibis reads one path; Spark itself reads a list.
        reader.format(form).options(**read).load(paths).createOrReplaceTempView(VIEW)
        return con.table(VIEW), con
    con = _duckdb()
    if form == "parquet":
        return con.read_parquet(paths), con
    read = {"sample_size": SNIFFED} | ({"nullstr": ["", *marks]} if marks else {})
    table = con.read_csv(paths, **read)
    # A mark of its own in a column that looks like numbers comes late, and would be an error.
    late = [
        name
        for name, words in own.items()
        if name in table.columns
        and table.schema()[name].is_numeric()
        and any(as_written(one) is None for one in words)
    ]
    if late:
        table = con.read_csv(paths, types=dict.fromkeys(late, "VARCHAR"), **read)
    return table, con


def _open_table(name: str, where: str, table: str, engine: str | None) -> tuple[Any, Any]:
    scheme = urlsplit(where).scheme
    if where == "spark":
        con = _spark()
    elif engine == "spark":
        raise ValueError(f"LOG is {name!r} and engine is 'spark'; a table of Spark is spark::TABLE")
    elif scheme in ("postgresql", "postgres"):
        con = _postgres(where)
    elif scheme in ("duckdb", ""):
        path = Path(where.removeprefix("duckdb://"))
        if not path.is_file():
            raise ValueError(f"LOG is {name!r}; there is no file {path}")
        con = _duckdb(path)
    else:
        raise ValueError(f"LOG is {name!r}; allowed for a table is {TABLES}")
    *schema, last = table.split(".")
    known = _tables(con, ".".join(schema))
    folded = [one.lower() for one in known] if where == "spark" else known  # it ignores case
    if (last.lower() if where == "spark" else last) not in folded:
        if scheme:
            con.disconnect()
        raise ValueError(
            f"LOG is {name!r}, and there is no table {table!r}; there are "
            f"{', '.join(sorted(known)[:20]) or 'none'}"
        )
    return con.table(last, database=".".join(schema) if schema else None), con


def _tables(con: Any, schema: str) -> list[str]:
    if con.name != "duckdb":
        return list(con.list_tables(database=schema) if schema else con.list_tables())
    # Ibis 12 asks DuckDB 2 for a method that is gone.
    sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = ?"
    return [name for (name,) in con.con.execute(sql, [schema or "main"]).fetchall()]


def _duckdb(path: Path | None = None) -> Any:
    """DuckDB with a bound on its memory; what does not fit goes to disk."""
    import ibis

    con = ibis.duckdb.connect(
        ":memory:" if path is None else str(path),
        read_only=path is not None,
        # A folder of its own: that of another user could not be written.
        temp_directory=str(Path(tempfile.gettempdir()) / f"evenhand-duckdb-{uuid4().hex}"),
        memory_limit=MEMORY,
        preserve_insertion_order=False,
    )
    con.raw_sql("SET TimeZone = 'UTC'")
    # It is asked how far it is, and must not print that itself.
    con.raw_sql("SET enable_progress_bar = true")
    con.raw_sql("SET enable_progress_bar_print = false")
    return con


def _postgres(address: str) -> Any:
    import ibis

    try:
        return ibis.connect(address.replace("postgresql://", "postgres://", 1))
    except ImportError as error:
        raise ImportError(
            "PostgreSQL needs psycopg: install it with pip install 'evenhand[audit]'"
        ) from error


def _spark() -> Any:
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
