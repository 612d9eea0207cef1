"""Logs in JSON: lines with an object each, or files with an array of objects.

A key is a column, and an object without it lacks the value. Text stays text, so labels are what the
file says; numbers and text in one column make it text.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand._columns.compression import opened
from evenhand.audit._input.engines import VIEW, for_spark
from evenhand.audit._input.log_paths import as_pattern

TEXT = "VARCHAR"  # as DuckDB calls it
ALL_ROWS = -1  # a key that occurs only in late rows is a column too


def duckdb_kinds(con: Any, paths: Sequence[str]) -> dict[str, str]:
    """The types of the columns by DuckDB's names; mixed ones are text."""
    read = f"read_json({_listed(paths)}, sample_size={ALL_ROWS}, union_by_name=true)"
    rows = con.con.execute(f"DESCRIBE SELECT * FROM {read}").fetchall()
    return {name: TEXT if kind == "JSON" else kind for name, kind, *_ in rows}


def spark_kinds(table: Any) -> dict[str, str]:
    """The types of the columns as Spark infers them, with DuckDB's name for text."""
    kinds = table.schema().items()
    return {name: TEXT if kind.is_string() else str(kind) for name, kind in kinds}


def duckdb_json(
    con: Any, paths: Sequence[str], kinds: Mapping[str, str], text: Collection[str]
) -> Any:
    """JSON in DuckDB, with these columns as they are written."""
    kinds = {name: TEXT if name in text else kind for name, kind in kinds.items()}
    listed = ", ".join(f"{_quoted(name)}: {_quoted(kind)}" for name, kind in kinds.items())
    con.con.execute(
        f"CREATE OR REPLACE TEMP VIEW {VIEW} AS SELECT * FROM read_json({_listed(paths)}, "
        f"columns={{{listed}}})"
    )
    return con.table(VIEW)


def spark_json(con: Any, paths: Sequence[str], text: Collection[str]) -> Any:
    """JSON in Spark, with these columns as they are written."""
    from pyspark.sql.types import StringType, StructField, StructType

    arrays = any(_is_array(path) for path in paths)
    read = con._session.read.options(multiLine=arrays, inferTimestamp=True)
    escaped = [for_spark(path) for path in paths]
    fields = read.json(escaped).schema.fields
    first = list(_first_object(paths[0]))  # Spark has the columns in the order of the alphabet
    fields.sort(key=lambda field: first.index(field.name) if field.name in first else len(first))
    fields = [
        StructField(field.name, StringType() if field.name in text else field.dataType)
        for field in fields
    ]
    read.schema(StructType(fields)).json(escaped).createOrReplaceTempView(VIEW)
    return con.table(VIEW)


def _is_array(path: str) -> bool:
    return ".json" in (suffix.lower() for suffix in Path(path).suffixes)


def _first_object(path: str) -> dict[str, Any]:
    """The first object of a file, for the order of its keys; empty where that is not easy."""
    try:
        with opened(path) as file:
            start = file.read(1 << 20).decode("utf-8-sig", "ignore").lstrip(" \t\r\n[")
        first, _ = json.JSONDecoder().raw_decode(start)
    except (ValueError, OSError):
        return {}
    return first if isinstance(first, dict) else {}


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def _listed(paths: Sequence[str]) -> str:
    return f"[{', '.join(_quoted(as_pattern(path)) for path in paths)}]"
