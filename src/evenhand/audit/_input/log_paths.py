"""Which files a log is: a path, a folder or a pattern, of one kind and with the same columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any, NamedTuple

from evenhand._columns.compression import DAMAGED, damaged, opened
from evenhand._columns.conversion import check_zeros
from evenhand._columns.delimiters import delimiter_of, first_records
from evenhand._columns.file_formats import (
    CSV,
    FIRST_BYTES,
    NO_PARQUET,
    PARQUET,
    Reading,
    endings,
    form_of,
)
from evenhand.errors import DataError, InputError, setting

KINDS = "Parquet, CSV, JSON or Excel"
PATTERN = re.compile(r"([*?\[])")
LOOKED_AT = 1_000_000  # bytes in which damage is looked for


class Files(NamedTuple):
    """The files of a log, their format, and what to call them."""

    paths: list[str]
    form: str
    label: str
    shuffled: str = ""  # a file whose columns are in another order than those of the first


def find_files(name: str, otherwise: str, reading: Reading | None = None) -> Files:
    """The files that a path, a folder or a pattern means.

    A path that exists is taken literally, whatever characters it has.

    Args:
        name: the path, folder or pattern.
        otherwise: what else a log can be, for messages.
        reading: how files are read.
    """
    path, how = Path(name), reading or Reading()
    if path.is_file():
        return _checked(name, [name], name, how)
    if path.is_dir():
        inside = [
            file
            for file in path.rglob("*")
            if file.is_file() and form_of(file) and not file.name.startswith(("_", "."))
        ]
        # Next to tables, a .txt or an archive is a note, and a .json describes one of them or is a
        # report.
        tables = [file for file in inside if file.suffix.lower() not in (".txt", ".zip")] or inside
        logs = [file for file in tables if file.suffix.lower() != ".json"]
        paths = sorted(map(str, logs or tables))
        if not paths:
            raise InputError(
                f"{setting('log')} is {name!r}, a folder without {KINDS} files", value=name
            )
    else:
        paths = sorted(glob(name, recursive=True))  # noqa: PTH207
    if not paths:
        raise InputError(
            f"{setting('log')} is {name!r}, which matches no file; allowed are a {KINDS} "
            f"file, a folder, a glob, or a table as {otherwise}",
            value=name,
        )
    many = f"{len(paths)} file{'s' if len(paths) > 1 else ''}"
    return _checked(name, paths, f"{name} ({many})", how)


def as_pattern(path: str) -> str:
    """A path escaped for DuckDB, which takes every path for a pattern.

    Example:
        >>> from evenhand.audit._input.log_paths import as_pattern
        >>> as_pattern("log[1].csv")
        'log[[]1].csv'
    """
    return path if "\\" in path else PATTERN.sub(r"[\1]", path)


def _checked(name: str, paths: list[str], label: str, reading: Reading) -> Files:
    forms = {path: form_of(path) for path in paths}
    if "" in forms.values():
        raise InputError(
            f"{setting('log')} is {name!r}; allowed are files that end in {endings()}",
            value=name,
        )
    form = forms[paths[0]]
    other = next((path for path in paths if forms[path] != form), None)
    if other is not None:
        raise InputError(
            f"{setting('log')} is {name!r}, which has {paths[0]!r} and {other!r}; allowed are "
            "files of one kind: name them by a pattern, such as 'FOLDER/*.parquet'",
            value=name,
        )
    reading.check(form, label)
    # Engines write empty parts.
    nonempty = [path for path in paths if Path(path).stat().st_size > 0]
    if not nonempty:
        raise InputError(
            f"{setting('log')} is {name!r}, which is empty; an audit needs columns and rows",
            value=name,
        )
    if form == PARQUET:
        return Files(paths, form, label, _alike_parquet(paths) if len(paths) > 1 else "")
    return Files(nonempty, form, label, _alike_csv(nonempty, reading) if form == CSV else "")


# The columns of several files ---------------------------------------------------------------------


def _alike_parquet(paths: Sequence[str]) -> str:
    first = _kinds(paths[0])
    shuffled = ""
    for path in paths[1:]:
        kinds = _kinds(path)
        _same_names(paths[0], list(first), path, list(kinds))
        for column, kind in first.items():
            if kind != kinds[column] and "" not in (kind, kinds[column]):
                raise DataError(
                    f"column {column!r} is {kind} in {paths[0]} and {kinds[column]} in {path}; "
                    "allowed are files with the same columns: write one of them again"
                )
        first = {name: kind or kinds[name] for name, kind in first.items()}
        shuffled = shuffled or (path if list(first) != list(kinds) else "")
    return shuffled


def _kinds(path: str) -> dict[str, str]:
    """What the columns of a Parquet file hold, in words; "" for one without any value."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} {NO_PARQUET}") from error
    return {field.name: _kind(field.type) for field in schema}


def _kind(arrow: Any) -> str:
    from pyarrow import types

    if types.is_dictionary(arrow):
        return _kind(arrow.value_type)
    kinds: Mapping[str, tuple[Any, ...]] = {
        "": (types.is_null,),
        "true or false": (types.is_boolean,),
        "numbers": (types.is_integer, types.is_floating, types.is_decimal),
        "text": (types.is_string, types.is_large_string, types.is_binary, types.is_string_view),
        "times": (types.is_timestamp, types.is_date),
    }
    named = (kind for kind, tests in kinds.items() if any(test(arrow) for test in tests))
    return next(named, str(arrow))


def _alike_csv(paths: Sequence[str], reading: Reading) -> str:
    for path in paths:
        _check_text(path, reading)
    between = delimiter_of(paths[0], reading, errors="replace")
    header, shuffled = _header(paths[0], between, reading), ""
    for path in paths[1:]:
        names = _header(path, between, reading)
        _same_names(paths[0], header, path, names)
        shuffled = shuffled or (path if names != header else "")
    return shuffled


def _header(path: str, between: str, reading: Reading) -> list[str]:
    first = next(iter(first_records(path, between, reading, errors="replace")), [])
    return [cell.strip() for cell in first]


def _check_text(path: str, reading: Reading) -> None:
    """An error if a CSV file is damaged, or in an encoding that engines do not read."""
    try:
        with opened(path) as file:
            start = file.read(LOOKED_AT)
    except DAMAGED as error:
        raise damaged(path, error) from error
    if reading.is_utf8:
        check_zeros(path, start[:FIRST_BYTES])


def _same_names(path: str, names: Sequence[str], other: str, others: Sequence[str]) -> None:
    if sorted(names) == sorted(others):
        return
    lacks = [name for name in names if name not in others]
    more = [name for name in others if name not in names]
    parts = [f"lacks {lacks[0]!r}" if lacks else "", f"has {more[0]!r}" if more else ""]
    difference = (
        " and ".join(filter(None, parts)) or f"has {len(others)} columns and not {len(names)}"
    )
    raise DataError(
        f"{other} {difference}, unlike {path}; allowed are files with the same columns: name those "
        "that belong together by a pattern, or write them alike"
    )
