"""The formats of a log, Parquet and CSV: open files are read and written, in whole or in parts.

`FORMATS`, at the end, has all that differs between them: a new format is an entry there.

The fingerprint of a log's rows is their number and a checksum of every value. It depends on values,
not on bytes. So CSV and Parquet have the same fingerprint, and a file that another program rewrote
without changing a value is still the log.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.errors import DataError, InputError
from evenhand.events._candidates import CHANCES, CONTEXTS, to_json
from evenhand.events._header import About
from evenhand.events._rows import are_older, groups_of_rows
from evenhand.events._schema import NAMES, ORDER_SCHEMA
from evenhand.events.columns import ORDER

PART = 50_000  # rows that are read together where not all are needed at once
_KEY = b"evenhand"
_ID = ORDER[0]
_TIMES = (NAMES["timestamp"], *(name for name in ORDER if ORDER_SCHEMA[name].kind == "time"))


def pyarrow(name: object) -> Any:
    """The library, or an error that says how to install it."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            f"path is {str(name)!r}, and Parquet needs pyarrow: install it with "
            "pip install 'evenhand[data]', or use a name that ends in .csv"
        ) from error
    return pyarrow


def write_parquet(file: IO[bytes], about: About, frame: pd.DataFrame, header: bool = True) -> None:
    """Write rows, with the header of the log in the metadata unless they are only part of a log."""
    arrow = pyarrow(file.name)
    table = arrow.Table.from_pandas(frame, preserve_index=False)
    for name in (CONTEXTS, CHANCES) if about.candidates else ():
        lists = arrow.array(frame[name], arrow.large_list(arrow.float64()), from_pandas=True)
        table = table.set_column(table.column_names.index(name), name, lists)
    if header:
        known = table.schema.metadata or {}
        table = table.replace_schema_metadata({**known, _KEY: about.to_json().encode()})
    arrow.parquet.write_table(table, file)


def parquet_about(file: IO[bytes]) -> About | None:
    """The header in a Parquet file, if evenhand wrote it."""
    header = (_open(file).schema_arrow.metadata or {}).get(_KEY)
    return None if header is None else About.from_json(header, file.name)


def read_parquet(file: IO[bytes]) -> pd.DataFrame:
    """All rows; the columns have their types."""
    try:
        frame: pd.DataFrame = _open(file).read().to_pandas()
    except Exception as error:  # damaged bytes can make the libraries raise anything
        raise _damaged(file, "Parquet") from error
    return frame


def parquet_parts(file: IO[bytes]) -> Iterator[pd.DataFrame]:
    """The rows, part by part."""
    for batch in _open(file).iter_batches(batch_size=PART):
        yield batch.to_pandas()


def _open(file: IO[bytes]) -> Any:
    arrow = pyarrow(file.name)
    file.seek(0)
    try:
        return arrow.parquet.ParquetFile(file)
    except Exception as error:
        raise _damaged(file, "Parquet") from error


def write_csv(file: IO[bytes], about: About, frame: pd.DataFrame) -> None:
    """Write rows; the header is in another file."""
    times = {name: _written(frame[name]) for name in _TIMES}
    more = (CONTEXTS, CHANCES) if about.candidates else ()
    lists = {name: frame[name].map(to_json) for name in more}
    # Python quotes line feeds, but not carriage returns, which end lines as well.
    returns = any("\r" in name for name in (*about.labels, *about.features))
    frame.assign(**times, **lists).to_csv(
        file,  # type: ignore[arg-type, unused-ignore]
        index=False,
        quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL,
        lineterminator="\n",
    )


def _written(times: pd.Series) -> Any:
    stamps = times.dt.tz_convert(None).to_numpy(dtype="datetime64[us]")
    text = np.datetime_as_string(stamps, unit="us", timezone="UTC").astype(object)
    text[np.isnat(stamps)] = ""
    return text


def read_csv(file: IO[bytes]) -> pd.DataFrame:
    """All rows. Names of groups and ids stay text even if they look numeric."""
    try:
        return _typed(pd.read_csv(file, dtype=str, keep_default_na=False))
    except Exception as error:
        raise _damaged(file, "CSV") from error


def csv_parts(file: IO[bytes]) -> Iterator[pd.DataFrame]:
    """The rows, part by part."""
    file.seek(0)
    with pd.read_csv(file, dtype=str, keep_default_na=False, chunksize=PART) as parts:
        for part in parts:
            yield _typed(part)


def _typed(text: pd.DataFrame) -> pd.DataFrame:
    new: dict[Any, pd.Series] = {}
    for name in text:
        if name == NAMES["group"]:  # a group may be called NA, or 01
            new[name] = text[name]
        elif name == _ID:
            new[name] = text[name].astype(object).where(text[name] != "", None)
        else:
            new[name] = _numbers_or_words(text[name])
    return pd.DataFrame(new)


def _numbers_or_words(text: pd.Series) -> pd.Series:
    """Numbers if all words are. Python reads the exact double that was written; pandas may not."""
    words = text.to_numpy(dtype=object)
    words[words == ""] = None
    try:
        numbers = words.astype(np.float64)
    except ValueError:
        return pd.Series(words, text.index, dtype=object)
    missing = np.isnan(numbers) & (words != None)  # noqa: E711
    return pd.Series(
        words if missing.any() else numbers, text.index, object if missing.any() else None
    )


def _ends_with_a_line(file: IO[bytes]) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _damaged(file: IO[bytes], kind: str) -> DataError:
    return DataError(f"{file.name} is not a {kind} file, or is damaged; use an undamaged copy")


_LENGTHS = "\0lengths"  # of lists; a name that no column has


def fingerprint(about: About, frames: Iterable[pd.DataFrame]) -> dict[str, Any]:
    """The fingerprint of rows with the types of the schema, in one frame or in several.

    Each column has its own checksum, so rows can be added part by part.
    """
    sums: dict[str, Any] = {}
    number = 0
    for frame in frames:
        sums = sums or {name: hashlib.sha256() for name in _names(about, are_older(about, frame))}
        number += len(frame)
        for name, checksum in sums.items():
            checksum.update(_bytes(frame, name, about))
    sums = sums or {name: hashlib.sha256() for name in _names(about, older=False)}
    whole = json.dumps([[name, checksum.hexdigest()] for name, checksum in sums.items()])
    return {"number": number, "sha256": hashlib.sha256(whole.encode()).hexdigest()}


def _names(about: About, older: bool) -> list[str]:
    names = [*NAMES.values(), *about.features, *(() if older else ORDER)]
    if about.candidates:
        names += [name + part for name in (CONTEXTS, CHANCES) for part in ("", _LENGTHS)]
    return names


def _bytes(frame: pd.DataFrame, name: str, about: About) -> bytes:
    """A column as little-endian doubles, NaN for missing values; with four exceptions."""
    if name in _TIMES and name not in about.features:
        times: NDArray[Any] = frame[name].dt.tz_convert(None).to_numpy(dtype="datetime64[us]")
        return times.astype("<i8").tobytes()
    if name == NAMES["group"]:  # the arm or the context determines its text
        arms, written = frame[NAMES["arm"]].to_numpy(), frame[name].to_numpy(dtype=object)
        expected = groups_of_rows(
            about, arms, frame[list(about.features)].to_numpy(dtype=np.float64)
        )
        # Older logs have the label of the arm where groups came with the context.
        older = np.array(about.labels, dtype=object)[arms]
        same: NDArray[np.bool_] = np.asarray((written == expected) | (written == older))
        return same.tobytes()
    if name == _ID and name not in about.features:  # ids have no line breaks
        return "".join(f"{'' if pd.isna(id) else id}\n" for id in frame[name]).encode()
    if name in (CONTEXTS + _LENGTHS, CHANCES + _LENGTHS):
        lists = frame[name.removesuffix(_LENGTHS)]
        return np.array([-1 if row is None else len(row) for row in lists], "<i8").tobytes()
    if name in (CONTEXTS, CHANCES):
        arrays = [np.asarray(row, dtype=np.float64) for row in frame[name] if row is not None]
        return _doubles(np.concatenate([np.empty(0), *arrays]))
    return _doubles(frame[name].to_numpy(dtype=np.float64, na_value=np.nan))


def _doubles(values: NDArray[np.float64]) -> bytes:
    return np.where(np.isnan(values), np.nan, values).astype("<f8").tobytes()


class Format(NamedTuple):
    """How a file holds the rows of a log.

    `write` writes rows with the header of the log, if the format has a place for it, and
    `write_rows` those that are only part of a log. `read` gives all rows, and `parts` gives them
    part by part. `header` reads the header; it is None if that is in a file beside the rows.
    `is_whole` says whether the last row was not cut off. `is_text` says that values have no types
    of their own, and `first_row` is the number of the first row in messages. `need` raises an error
    if a library is missing.
    """

    write: Callable[[IO[bytes], About, pd.DataFrame], None]
    write_rows: Callable[[IO[bytes], About, pd.DataFrame], None]
    read: Callable[[IO[bytes]], pd.DataFrame]
    parts: Callable[[IO[bytes]], Iterator[pd.DataFrame]]
    header: Callable[[IO[bytes]], About | None] | None
    is_whole: Callable[[IO[bytes]], bool]
    is_text: bool
    first_row: int
    media_type: str
    need: Callable[[object], object]


FORMATS = {
    ".parquet": Format(
        write=write_parquet,
        write_rows=partial(write_parquet, header=False),
        read=read_parquet,
        parts=parquet_parts,
        header=parquet_about,
        is_whole=lambda _: True,  # its end says how long it is
        is_text=False,
        first_row=0,
        media_type="application/vnd.apache.parquet",
        need=pyarrow,
    ),
    ".csv": Format(
        write=write_csv,
        write_rows=write_csv,
        read=read_csv,
        parts=csv_parts,
        header=None,
        is_whole=_ends_with_a_line,
        is_text=True,
        first_row=2,  # below the names of the columns, as in a spreadsheet
        media_type="text/csv",
        need=lambda _: None,
    ),
}
FORMATS_BY_NAME = {suffix.removeprefix("."): FORMATS[suffix] for suffix in sorted(FORMATS)}


def format_of(path: Path) -> Format:
    """The format of a log, by the ending of its name.

    Example:
        >>> from pathlib import Path
        >>> from evenhand.events._formats import format_of
        >>> format_of(Path("loans.csv")).media_type
        'text/csv'
    """
    return FORMATS[path.suffix]
