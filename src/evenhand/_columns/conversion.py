"""Conversion of files that engines cannot read to CSV in UTF-8, in a folder of ours; JSON.

The rows pass through in pieces and are never in memory together, except for a sheet of Excel, which
has a million rows at most.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand._columns.compression import DAMAGED, damaged, opened
from evenhand._columns.words import word
from evenhand.errors import DataError, InputError, MissingExtraError, setting

PIECE = 1 << 22  # bytes
# How to read what is written here, whatever an engine would guess.
AS_WRITTEN = {"delim": ",", "quote": '"', "escape": '"', "header": True}
AS_WRITTEN_SPARK = {"sep": ",", "multiLine": True}


def in_utf8(paths: Iterable[str], encoding: str, folder: str) -> dict[str, str]:
    """CSV files converted to UTF-8: the new path of each, by its old one."""
    targets = {}
    for number, path in enumerate(paths):
        target = Path(folder) / f"utf8-{number}{'.tsv' if '.tsv' in path.lower() else '.csv'}"
        _transcode(path, encoding, target)
        targets[path] = str(target)
    return targets


def _transcode(path: str, encoding: str, target: Path) -> None:
    decoder, lines = codecs.getincrementaldecoder(encoding)("strict"), 1
    try:
        with opened(path) as file, target.open("w", encoding="utf-8", newline="") as out:
            while piece := file.read(PIECE):
                text = decoder.decode(piece)
                lines += text.count("\n")
                out.write(text)
            out.write(decoder.decode(b"", final=True))
    except UnicodeDecodeError as error:
        bad = error.object[error.start : error.start + 1].hex()
        lines += error.object[: error.start].count(b"\n")
        raise undecodable(path, f"has a byte (0x{bad}, near line {lines:,})", encoding) from error
    except DAMAGED as error:
        raise damaged(path, error) from error


def is_utf16(start: bytes) -> bool:
    """Whether text begins as UTF-16 does: with its mark, or with a zero in every other byte.

    Example:
        >>> from evenhand._columns.conversion import is_utf16
        >>> is_utf16("sex;paid".encode("utf-16")), is_utf16("sex;paid".encode("utf-16-le"))
        (True, True)
        >>> is_utf16(b"sex,paid,F,1" + bytes(1))
        False
    """
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    return any(4 * start[k::2].count(0) > len(start) for k in (0, 1))


def in_utf16(path: str) -> DataError:
    """The error for a file in UTF-16 that is read as UTF-8."""
    return DataError(
        f"{path} is UTF-16, not UTF-8; say so, {setting('encoding', 'utf-16')}",
        parameter="encoding",
    )


def check_zeros(path: str, start: bytes) -> None:
    """Refuse text that begins with UTF-16 or has a zero in it, which no text has."""
    if is_utf16(start):
        raise in_utf16(path)
    if b"\0" in start:
        line = start[: start.index(b"\0")].count(b"\n") + 1
        raise DataError(f"{path} has a byte 0 in line {line:,}, which is no text; write it again")


def undecodable(path: str, problem: str, encoding: str) -> DataError:
    """The error for a file that is not in the expected encoding."""
    other = "latin-1" if encoding != "latin-1" else "utf-8"
    return DataError(
        f"{path} {problem} that is not {encoding}; say what it is, such as "
        f"{setting('encoding', other)} or {setting('encoding', 'windows-1252')}",
        parameter="encoding",
    )


# Excel --------------------------------------------------------------------------------------------


def from_excel(
    paths: Iterable[str], sheet: str | None, folder: str, parameter: str = "log"
) -> dict[str, str]:
    """Sheets of Excel converted to CSV: the new path of each, by that of its file.

    Args:
        paths: of the files.
        sheet: its name; the only one that holds anything unless given.
        folder: where the CSV files are put.
        parameter: what the caller calls the file, for messages.
    """
    targets = {}
    for number, path in enumerate(paths):
        target = Path(folder) / f"sheet-{number}.csv"
        with target.open("w", encoding="utf-8", newline="") as out:
            csv.writer(out).writerows(_rows(path, sheet, parameter))
        targets[path] = str(target)
    return targets


def _rows(path: str, sheet: str | None, parameter: str) -> Iterator[list[str]]:
    """The rows of a sheet that hold anything, as CSV would have them."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError as error:
        raise MissingExtraError(
            "Excel files need python-calamine: install it with pip install 'evenhand[excel]'"
        ) from error
    try:
        with CalamineWorkbook.from_path(path) as book:
            rows = book.get_sheet_by_name(_sheet(book, path, sheet, parameter)).to_python()
    except (CalamineError, OSError) as error:
        if "password" in str(error).lower():
            raise DataError(f"{path} is protected by a password; save it without") from error
        raise DataError(f"{path} is not an Excel file, or is incomplete; save it again") from error
    # Midnight comes as a date, even in a column of times.
    times = {k for row in rows for k, cell in enumerate(row) if isinstance(cell, datetime)}
    for row in rows:
        cells = [_text(cell, k in times) for k, cell in enumerate(row)]
        if any(cells):
            yield cells


def _sheet(book: Any, path: str, sheet: str | None, parameter: str) -> str:
    """The sheet that was named, or the only one that holds anything."""
    names: list[str] = book.sheet_names
    if sheet is not None:
        if sheet not in names:
            raise InputError(
                f"{setting('sheet')} is {sheet!r}, which {path} does not have; there are "
                f"{', '.join(map(repr, names))}",
                value=sheet,
            )
        return sheet
    full = [name for name in names if book.get_sheet_by_name(name).height] or names[:1]
    if len(full) != 1:
        raise InputError(
            f"{setting(parameter)} is {path!r}, which has the sheets {', '.join(map(repr, full))}; "
            f"name one, such as {setting('sheet', full[0])}",
            value=path,
        )
    return full[0]


def _text(cell: Any, among_times: bool = False) -> str:
    """A cell as a CSV file would have it: whole numbers without a point, times as ISO."""
    if cell is None or cell == "":
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ")
    if among_times and isinstance(cell, date):
        return f"{cell.isoformat()} 00:00:00"
    if isinstance(cell, (date, time)):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return word(cell.total_seconds())
    return repr(cell) if isinstance(cell, float) and not cell.is_integer() else word(cell)


# JSON ---------------------------------------------------------------------------------------------


def read_json(path: Path) -> pd.DataFrame:
    """Lines with an object each, or an array of objects: a key is a column.

    Text stays text, and an object without a key lacks the value. Numbers and text in one column
    make it text.
    """
    try:
        with opened(path) as file:
            text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name} is not UTF-8, as JSON must be; save it in UTF-8") from error
    except DAMAGED as error:
        raise damaged(path.name, error) from error
    rows = _objects(text, path.name)
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _as_column([row.get(name) for row in rows]) for name in names}
    return pd.DataFrame(columns)


def _objects(text: str, name: str) -> list[dict[str, Any]]:
    """The objects of a file: an array of them, or one in each line."""
    first, rows = 1, list[Any]()
    try:
        if text.lstrip().startswith("["):
            rows = json.loads(text)
        else:
            for first, line in enumerate(text.splitlines(), start=1):  # noqa: B007
                rows += [json.loads(line)] if line.strip() else []
    except (ValueError, RecursionError) as error:
        raise no_json(name, first + getattr(error, "lineno", 1) - 1) from error
    if not all(isinstance(row, dict) for row in rows):
        raise no_objects(name)
    return rows


OBJECTS = "allowed are lines with an object each, or an array of objects"


def no_json(name: str, line: int = 0) -> DataError:
    """The error for a file that is not JSON, in a line that may be known."""
    where = f" in line {line:,}" if line else ""
    return DataError(f"{name} is not valid JSON{where}; {OBJECTS}: write it again")


def no_objects(name: str) -> DataError:
    """The error for JSON whose values are no rows."""
    return DataError(f"{name} has values that are not objects; {OBJECTS}")


def _as_column(values: list[Any]) -> Any:
    """Numbers or truth values if all values are, and otherwise text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or kinds == {bool}:
        return pd.Series(values)
    return [
        None if value is None else value if isinstance(value, str) else json.dumps(value)
        for value in values
    ]
