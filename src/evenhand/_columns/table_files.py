"""Reading a table into pandas: a data frame of any kind, or a CSV, Parquet, JSON or Excel file.

Messages name a row by its label in the frame's index. The rows of a CSV file are numbered as in a
spreadsheet: the column names are row 1.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Collection, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from evenhand._checks import kind
from evenhand._columns.compression import DAMAGED, damaged, opened
from evenhand._columns.conversion import check_zeros, from_excel, read_json, undecodable
from evenhand._columns.delimiters import delimiter_of, first_records
from evenhand._columns.file_formats import (
    CSV,
    EXCEL,
    FIRST_BYTES,
    JSON,
    NO_PARQUET,
    PARQUET,
    UTF8,
    Reading,
    endings,
    form_of,
)
from evenhand._columns.header import apart, tell_of_nameless, tell_of_repeated
from evenhand._columns.kinds_of_text import CODE, TRUTHS, numbers_or_codes
from evenhand._columns.missing_marks import Given, Marks, without_marks
from evenhand._prose import number_of
from evenhand.errors import DataError, InputError, MissingExtraError, in_python, setting

IN_FILE = "row of the file"  # the name of the index of a table from a CSV file
PIECE = 1 << 22  # characters
# What pandas says of lines that are no rows.
UNEVEN = r"Expected (?P<names>\d+) fields in line (?P<line>\d+), saw (?P<values>\d+)"
UNCLOSED = r"EOF inside string starting at row (?P<row>\d+)"


def read_table(
    data: Any,
    missing_marks: Given | Marks = (),
    columns: Collection[str] | None = None,
    reading: Reading | None = None,
    labels: Collection[str] = (),
    nominal: Collection[str] = (),
) -> pd.DataFrame:
    """`data` as a pandas frame whose column names are texts.

    Only the `missing_marks` and, in a CSV file, the empty text stand for missing values: "NA" and
    "None" are often categories, and are kept. A column of a CSV file that has a code such as "01"
    is text, like all that hold anything but numbers: its zeros would be lost.

    Args:
        data: a frame (pandas, or anything with `to_pandas` or the Arrow interface), a mapping of
            columns, or the path of a file of one of the formats in `file_formats.py`.
        missing_marks: what stands for a missing value, ["?", -9], or such lists by column,
            {"age": [-1], "*": ["?"]}, with "*" for every column.
        columns: those that will be used; all unless given.
        reading: how a file is read, where it does not say so itself.
        labels: columns of groups, which have names: "1.1" and "1.10" are two of them.
        nominal: columns of categories, which a CSV file spells: "1.50" is not "1.5" there.

    Example:
        >>> from evenhand._columns.table_files import read_table
        >>> read_table({"sex": ["F", "M"], "paid": [1, 0]}).shape
        (2, 2)
    """
    how, given = reading or Reading(), Marks.of(missing_marks)
    names = {*labels, *nominal}
    frame = without_marks(_read(data, columns, how, names), given, how.decimal or ".", names)
    if not isinstance(data, (str, os.PathLike)) or form_of(str(data)) not in (CSV, EXCEL):
        return frame
    frame = frame.copy(deep=False)
    for name in {*labels} & {*frame} - {*nominal}:
        frame[name] = numbers_or_codes(frame[name], how.decimal or ".")
    if given:  # without marks, pandas has made truth values already
        for name in [name for name in frame.columns if name not in names]:
            frame[name] = _truths(frame[name])
    return frame


def _truths(column: pd.Series[Any]) -> pd.Series[Any]:
    """Truth values if all of a column's words are."""
    if not pd.api.types.is_string_dtype(column):
        return column
    known = column.dropna()
    are_truths = len(known) > 0 and known.isin(list(TRUTHS)).all()
    return column.map(TRUTHS).astype("boolean") if are_truths else column


def _read(
    data: Any,
    columns: Collection[str] | None,
    reading: Reading,
    names: Collection[str],
) -> pd.DataFrame:
    if isinstance(data, (str, os.PathLike)):
        frame = _read_file(Path(data).expanduser(), columns, reading, names)
    else:
        reading.check("", kind(data))
        frame = as_frame(data)
    check_levels(frame, "data")
    if not all(isinstance(name, str) for name in frame.columns):
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    return frame


def check_levels(frame: pd.DataFrame, parameter: str) -> None:
    """Refuse a frame whose columns have names of several levels."""
    if isinstance(frame.columns, pd.MultiIndex):
        raise InputError(
            f"{setting(parameter)} has column names of several levels; give each column one name"
        )


def _read_file(
    path: Path, columns: Collection[str] | None, reading: Reading, names: Collection[str]
) -> pd.DataFrame:
    if path.is_dir():
        raise a_folder("data", path)
    if not path.is_file():
        raise InputError(
            f"{setting('data')} is {str(path)!r}, but there is no such file; give the path of one",
            value=str(path),
        )
    form = form_of(path)
    if not form:
        raise InputError(
            f"{setting('data')} is {str(path)!r}; allowed are files that end in {endings()}",
            value=str(path),
        )
    reading.check(form, path.name)
    if form == CSV:
        return _read_csv(path, columns, reading, names, path.name)
    if form == EXCEL:
        return _read_excel(path, columns, reading, names)
    if form == JSON:
        return read_json(path)
    if form == PARQUET:
        return _read_parquet(path, columns)
    raise AssertionError(f"nothing here reads {form} files")


def a_folder(role: str, path: Path) -> InputError:
    """The error for a folder where a file is meant; only audits read several."""
    return InputError(
        f"{setting(role)} is {str(path)!r}, which is a folder; give the path of a file in it",
        value=str(path),
    )


def row_of(frame: pd.DataFrame, where: pd.Series[bool]) -> str:
    """The first of these rows in words, which also say how rows are counted."""
    label = frame.index[where][0]
    if frame.index.name == IN_FILE:
        return f"row {label} of the file (row 1 has the column names)"
    return f"the row with index {label}"


def as_frame(data: Any, parameter: str = "data") -> pd.DataFrame:
    """A frame of any kind, or a mapping of columns, as a frame of pandas.

    Args:
        data: the table.
        parameter: what the caller calls it, for messages.
    """
    if isinstance(data, pd.DataFrame):
        return data
    try:
        if isinstance(data, Mapping):
            return pd.DataFrame(dict(data))
        if hasattr(data, "to_pandas"):  # Polars, Arrow, Modin and others
            return pd.DataFrame(data.to_pandas())
        if hasattr(data, "__arrow_c_stream__") and not isinstance(data, pd.Series):
            import pyarrow

            return pd.DataFrame(pyarrow.table(data).to_pandas())
    except ImportError as error:
        raise MissingExtraError(
            f"{kind(data)} needs pyarrow: install it with pip install 'evenhand[data]'"
        ) from error
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{setting(parameter)} is {kind(data)} that cannot be turned into a table "
            f"({_line(error).rstrip('.')}); give columns of the same length",
            value=data,
        ) from error
    raise InputError(
        f"{setting(parameter)} is {kind(data)}; allowed is a data frame, a mapping of "
        "columns, or the path of a CSV, Parquet, JSON or Excel file",
        value=data,
    )


def _read_excel(
    path: Path, columns: Collection[str] | None, reading: Reading, names: Collection[str]
) -> pd.DataFrame:
    """A sheet, by way of CSV, so that it reads like the same sheet saved as CSV."""
    with TemporaryDirectory(prefix="evenhand-") as folder:
        sheet = from_excel([str(path)], reading.sheet, folder, "data")[str(path)]
        return _read_csv(Path(sheet), columns, Reading(delimiter=","), names, path.name)


def _read_csv(
    path: Path,
    columns: Collection[str] | None,
    reading: Reading,
    names: Collection[str],
    called: str,
) -> pd.DataFrame:
    try:
        if reading.is_utf8:
            with opened(path) as file:
                check_zeros(called, file.read(FIRST_BYTES))
        mark = delimiter_of(path, reading)
        head = first_records(path, mark, reading)
        if not head:
            raise DataError(f"{called} is empty; give a file with a line of column names")
        _check_first_row(called, head, mark)
        kept = _kept(called, head[0], columns)
        how: dict[str, Any] = {
            "sep": mark,
            "header": 0,
            "names": range(len(head[0])),
            "index_col": False,
            "keep_default_na": False,
            "na_values": [""],
            "low_memory": False,
            "encoding": reading.codec,
            "decimal": reading.decimal or ".",
        }
        as_text = dict.fromkeys([place for place, name in kept.items() if name in names], str)
        with opened(path) as file:
            frame = pd.read_csv(file, dtype=as_text, **how)
        numbers = [place for place in kept if pd.api.types.is_numeric_dtype(frame[place])]
        if columns is not None:
            numbers = [place for place in numbers if kept[place] in columns]
        if numbers and _may_have_codes(path, mark, reading.codec):
            with opened(path) as file:
                text = pd.read_csv(file, dtype=str, usecols=numbers, **how)
            codes = [place for place in numbers if text[place].str.strip().str.match(CODE).any()]
            frame[codes] = text[codes]
    except UnicodeDecodeError as error:
        problem = f"has a byte (0x{error.object[error.start : error.start + 1].hex()})"
        raise undecodable(called, problem, reading.encoding or UTF8) from error
    except (pd.errors.ParserError, csv.Error) as error:
        raise _unreadable(called, error) from error
    except DAMAGED as error:
        raise damaged(called, error) from error
    frame.index = pd.RangeIndex(2, len(frame) + 2, name=IN_FILE)
    named: pd.DataFrame = frame[list(kept)].set_axis(list(kept.values()), axis=1)
    return named


def _unreadable(name: str, error: Exception) -> DataError:
    """The error for a CSV file whose lines are no rows."""
    advice = f"correct the file{in_python(', or read it with pandas and give the frame')}"
    uneven, unclosed = re.search(UNEVEN, str(error)), re.search(UNCLOSED, str(error))
    if uneven:
        values, names = int(uneven["values"]), int(uneven["names"])
        return DataError(
            f"{name} has {number_of(values, 'value')} in line {int(uneven['line']):,}, and "
            f"{number_of(names, 'column name')}; {advice}"
        )
    if unclosed:
        return DataError(
            f"{name} has a quote in line {int(unclosed['row']) + 1:,} that is never closed; "
            f"{advice}"
        )
    return DataError(f"{name} cannot be read as CSV ({_line(error)}); {advice}")


def _may_have_codes(path: Path, mark: str, codec: str) -> bool:
    """Whether any value of a CSV file begins with a zero and another digit, such as "01"."""
    begins = re.compile(rf"[\r\n \"{re.escape(mark)}][+-]?0[0-9]")
    with opened(path) as file:
        text, end = TextIOWrapper(file, codec, newline=""), ""
        while piece := text.read(PIECE):
            if begins.search(end + piece):
                return True
            end = piece[-3:]
    return False


def _check_first_row(called: str, head: list[list[str]], mark: str) -> None:
    """Refuse a first row that is too long: pandas checks all rows but this one."""
    if len(head) > 1 and any(head[1][len(head[0]) :]):
        raise DataError(
            f"{called} has {len(head[0])} column names, but {len(head[1])} values in row 2 "
            f"(delimiter {mark!r}); correct it, or give the {setting('delimiter')}"
        )


def _kept(called: str, read: Sequence[str], columns: Collection[str] | None) -> dict[int, str]:
    """The columns that have a name, by their places."""
    names = apart(read)
    nameless = [place for place, name in enumerate(names, 1) if not name]
    if columns is None:
        tell_of_nameless(called, nameless)
    for place, name in enumerate(names):
        if name != read[place].strip() and (columns is None or name in columns):
            tell_of_repeated(called, read[place].strip(), place + 1, name)
    return {place: name for place, name in enumerate(names) if name}


def _read_parquet(path: Path, columns: Collection[str] | None) -> pd.DataFrame:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtraError(
            "Parquet files need pyarrow: install it with pip install 'evenhand[data]'"
        ) from error
    try:
        known = parquet.read_schema(path).names
        all_known = columns is not None and set(columns) <= set(known)
        return pd.read_parquet(path, columns=sorted(set(columns or ())) if all_known else None)
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # such as missing permission
            raise damaged(path.name, error) from error
        raise DataError(f"{path.name} {NO_PARQUET}") from error


def _line(error: BaseException) -> str:
    """The first line of an error's message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
