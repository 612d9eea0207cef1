"""Logs as files: Parquet, or CSV with a small JSON file beside it. Whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.logs.about import About
from evenhand.logs.candidates import CHANCES, CONTEXTS, candidates, from_json, to_json
from evenhand.logs.schema import NAMES, checked

SUFFIXES = (".parquet", ".csv")
_KEY = b"evenhand"


def log_path(path: str | Path) -> Path:
    """`path` if a log can stand there."""
    file = Path(path)
    if file.suffix not in SUFFIXES:
        raise ValueError(f"path is {str(path)!r}; allowed is a name that ends in .parquet or .csv")
    if file.is_dir() or not file.parent.is_dir():
        raise ValueError(f"path is {str(path)!r}; allowed is a file in a folder that exists")
    if file.suffix == ".parquet":
        _parquet(path)
    return file


def beside(path: Path) -> Path:
    """Where a CSV log says what it is about."""
    return path.with_name(path.name + ".json")


def read_table(
    path: Path, columns: Mapping[str, str] | None = None
) -> tuple[About | None, pd.DataFrame]:
    """What a file says about itself, None if it was written by others, and its rows, checked.

    `columns` are the roles of columns with names of their own, in logs of others.
    """
    about, frame = (_read_parquet if path.suffix == ".parquet" else _read_csv)(path)
    first = 2 if path.suffix == ".csv" else 0
    try:
        if about is None:
            return None, checked(frame, given=columns, first=first)
        return about, _own(about, frame, first, texts=path.suffix == ".csv")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _own(about: About, frame: pd.DataFrame, first: int, texts: bool) -> pd.DataFrame:
    """The rows of a log that evenhand wrote."""
    more = (CONTEXTS, CHANCES) if about.candidates else ()
    missing = [name for name in (*NAMES.values(), *more) if name not in frame]
    if missing:
        raise ValueError(f"the log has lost its column {missing[0]!r}")
    frame = checked(frame, about.features, first=first)
    if about.candidates:
        if texts:
            frame = frame.assign(**{name: from_json(frame[name], first) for name in more})
        candidates(frame, len(about.labels), about.features, first)
    return frame


def write_table(path: Path, about: About, frame: pd.DataFrame) -> None:
    """Write a log; a crash leaves the old file or the new one."""
    if path.suffix == ".parquet":
        _replace(path, lambda part: _write_parquet(part, about, frame))
        return
    _replace(beside(path), lambda part: part.write_text(about.to_json(), encoding="utf-8"))
    _replace(path, lambda part: _write_csv(part, about, frame))


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    part = path.with_name(path.name + ".part")
    try:
        write(part)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(path)
        sync_folder(path.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make new and removed names in a folder last, where the system knows how."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _parquet(path: str | Path) -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ValueError(
            f"path is {str(path)!r}, and Parquet needs pyarrow: install it with "
            "pip install 'evenhand[data]', or take a name that ends in .csv"
        ) from error
    return pyarrow


def _write_parquet(part: Path, about: About, frame: pd.DataFrame) -> None:
    arrow = _parquet(part)
    table = arrow.Table.from_pandas(frame, preserve_index=False)
    for name in (CONTEXTS, CHANCES) if about.candidates else ():
        lists = arrow.array(frame[name], arrow.large_list(arrow.float64()), from_pandas=True)
        table = table.set_column(table.column_names.index(name), name, lists)
    known = table.schema.metadata or {}
    table = table.replace_schema_metadata({**known, _KEY: about.to_json().encode()})
    arrow.parquet.write_table(table, part)


def _read_parquet(path: Path) -> tuple[About | None, pd.DataFrame]:
    arrow = _parquet(path)
    try:
        table = arrow.parquet.ParquetFile(path).read()  # one file, not a folder of parts
        frame = table.to_pandas()
    except (arrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path} is not a Parquet file, or is damaged: {reason}") from error
    told = (table.schema.metadata or {}).get(_KEY)
    return None if told is None else About.from_json(told, path), frame


def _write_csv(part: Path, about: About, frame: pd.DataFrame) -> None:
    stamps = frame["timestamp"].dt.tz_convert(None).to_numpy(dtype="datetime64[us]")
    text = np.datetime_as_string(stamps, unit="us", timezone="UTC").astype(object)
    text[np.isnat(stamps)] = ""
    more = (CONTEXTS, CHANCES) if about.candidates else ()
    lists = {name: frame[name].map(to_json) for name in more}
    frame.assign(timestamp=text, **lists).to_csv(part, index=False)


def _read_csv(path: Path) -> tuple[About | None, pd.DataFrame]:
    try:
        text = pd.read_csv(path, dtype=str, keep_default_na=False)  # a group may be called NA
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"{path} is not a CSV file, or is damaged: {reason}") from error
    frame = pd.DataFrame(
        {name: text[name] if name == "group" else _numbers_or_words(text[name]) for name in text}
    )
    told = beside(path)
    return About.from_json(told.read_bytes(), told) if told.exists() else None, frame


def _numbers_or_words(text: pd.Series) -> pd.Series:
    """Python reads the double that was written, to the last bit; pandas need not."""
    words = text.to_numpy(dtype=object)
    words[words == ""] = None
    try:
        numbers = words.astype(np.float64)
    except ValueError:
        return pd.Series(words, dtype=object)
    missing = np.isnan(numbers) & (words != None)  # noqa: E711
    return pd.Series(words, dtype=object) if missing.any() else pd.Series(numbers)
