"""Reading a table into pandas: a data frame of any kind, or a CSV, Parquet, JSON or Excel file.

Messages name a row by its label in the frame's index. The rows of a CSV file are numbered as in a
spreadsheet: the column names are row 1.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Collection, Mapping
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from evenhand._checks import kind
from evenhand._columns.compression import DAMAGED, damaged, opened
from evenhand._columns.conversion import check_zeros, from_excel, read_json, undecodable
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
from evenhand._columns.missing_marks import Given, Marks, with_point, without_marks
from evenhand._columns.words import NUMBER, tell
from evenhand._prose import number_of
from evenhand.errors import DataError, InputError, MissingExtraError, in_python, setting

DELIMITERS = (",", ";", "\t", "|")
IN_FILE = "row of the file"  # the name of the index of a table from a CSV file
TRUTHS = {
    word: word.lower() == "true" for word in ("True", "TRUE", "true", "False", "FALSE", "false")
}
CODE = r"^[+-]?0[0-9]"  # a number with a zero in front, which would be lost
LOOKED_AT = 50  # records, to find the delimiter
# What pandas says of lines that are no rows.
UNEVEN = r"Expected (?P<names>\d+) fields in line (?P<line>\d+), saw (?P<values>\d+)"
UNCLOSED = r"EOF inside string starting at row (?P<row>\d+)"


def read_table(
    data: Any,
    missing_marks: Given | Marks = (),
    columns: Collection[str] | None = None,
    reading: Reading | None = None,
    labels: Collection[str] = (),
) -> pd.DataFrame:
    """`data` as a pandas frame whose column names are texts.

    Only the `missing_marks` and, in a CSV file, the empty text stand for missing values: "NA" and
    "None" are often categories, and are kept.

    Args:
        data: a frame (pandas, or anything with `to_pandas` or the Arrow interface), a mapping of
            columns, or the path of a file of one of the formats in `file_formats.py`.
        missing_marks: what stands for a missing value, ["?", -9], or such lists by column,
            {"age": [-1], "*": ["?"]}, with "*" for every column.
        columns: those that will be used; all unless given.
        reading: how a file is read, where it does not say so itself.
        labels: columns of names. Numbers with a zero in front are text there: "01" is not 1.

    Example:
        >>> from evenhand._columns.table_files import read_table
        >>> read_table({"sex": ["F", "M"], "paid": [1, 0]}).shape
        (2, 2)
    """
    how = reading or Reading()
    frame = _read(data, columns, how, labels)
    return without_marks(frame, Marks.of(missing_marks), how.decimal or ".")


def _read(
    data: Any,
    columns: Collection[str] | None,
    reading: Reading,
    labels: Collection[str],
) -> pd.DataFrame:
    if isinstance(data, (str, os.PathLike)):
        frame = _read_file(Path(data).expanduser(), columns, reading, labels)
    else:
        reading.check("", kind(data))
        frame = as_frame(data)
    if isinstance(frame.columns, pd.MultiIndex):
        raise InputError(
            f"{setting('data')} has column names of several levels; give each column one name"
        )
    if not all(isinstance(name, str) for name in frame.columns):
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    return frame


def _read_file(
    path: Path, columns: Collection[str] | None, reading: Reading, labels: Collection[str]
) -> pd.DataFrame:
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
        return _read_csv(path, columns, reading, labels)
    if form == EXCEL:
        return _read_excel(path, columns, reading, labels)
    if form == JSON:
        return read_json(path)
    if form == PARQUET:
        return _read_parquet(path, columns)
    raise AssertionError(f"nothing here reads {form} files")


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
    path: Path, columns: Collection[str] | None, reading: Reading, labels: Collection[str]
) -> pd.DataFrame:
    """A sheet, by way of CSV, so that it reads like the same sheet saved as CSV."""
    with TemporaryDirectory(prefix="evenhand-") as folder:
        sheet = from_excel([str(path)], reading.sheet, folder, "data")[str(path)]
        return _read_csv(Path(sheet), columns, Reading(delimiter=","), labels)


def _read_csv(
    path: Path, columns: Collection[str] | None, reading: Reading, labels: Collection[str]
) -> pd.DataFrame:
    try:
        if reading.is_utf8:
            with opened(path) as file:
                check_zeros(path.name, file.read(FIRST_BYTES))
        code = "utf-8-sig" if reading.is_utf8 else str(reading.encoding)
        mark = reading.delimiter or max(
            DELIMITERS, key=lambda guess: _fit(_head(path, guess, code))
        )
        head = _head(path, mark, code)
        if not head:
            raise DataError(f"{path.name} is empty; give a file with a line of column names")
        _check_first_row(path, head, mark)
        with opened(path) as file:
            frame = pd.read_csv(
                file,
                sep=mark,
                header=0,
                names=range(len(head[0])),
                index_col=False,
                keep_default_na=False,
                na_values=[""],
                low_memory=False,
                encoding=code,
                decimal=reading.decimal or ".",
                dtype={place: str for place, name in enumerate(head[0]) if name in labels},
            )
    except UnicodeDecodeError as error:
        problem = f"has a byte (0x{error.object[error.start : error.start + 1].hex()})"
        raise undecodable(path.name, problem, reading.encoding or UTF8) from error
    except (pd.errors.ParserError, csv.Error) as error:
        raise _unreadable(path.name, error) from error
    except DAMAGED as error:
        raise damaged(path.name, error) from error
    for place in [place for place, name in enumerate(head[0]) if name in labels]:
        frame[place] = numbers_or_codes(frame[place], reading.decimal or ".")
    kept = _kept(path, head[0], columns)
    frame.index = pd.RangeIndex(2, len(frame) + 2, name=IN_FILE)
    return frame[list(kept)].set_axis(list(kept.values()), axis=1)


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


def numbers_or_codes(text: pd.Series[Any], decimal: str) -> pd.Series[Any]:
    """Numbers or truth values if all of a column are, as in others; codes such as "01" stay.

    Example:
        >>> import pandas as pd
        >>> from evenhand._columns.table_files import numbers_or_codes
        >>> numbers_or_codes(pd.Series(["0", "1.5"]), ".").tolist()
        [0.0, 1.5]
        >>> numbers_or_codes(pd.Series(["01", "2"]), ".").tolist()
        ['01', '2']
    """
    truths = text.map(TRUTHS)
    if truths.notna().any() and truths.notna().equals(text.notna()):
        return truths.astype(object if truths.isna().any() else bool)
    words = with_point(text.dropna().str.strip(), decimal)
    numbers = len(words) > 0 and words.str.match(NUMBER).all()
    if not numbers or words.str.match(CODE).any():
        return text
    values = pd.to_numeric(words)
    if values.nunique() < words.nunique():
        return text  # "1.1" and "1.10" are two names
    return values.reindex(text.index)


def _head(path: Path, mark: str, encoding: str) -> list[list[str]]:
    """The first records, without blank lines."""
    with opened(path) as file:
        text = TextIOWrapper(file, encoding, newline="")
        records = islice(csv.reader(text, delimiter=mark), LOOKED_AT)
        return [record for record in records if record]


def _fit(records: list[list[str]]) -> tuple[bool, int]:
    """How well a delimiter fits: first whether all records have the same length, then how many."""
    width = len(records[0]) if records else 0
    return width > 1 and all(len(record) == width for record in records), width


def _check_first_row(path: Path, head: list[list[str]], mark: str) -> None:
    """Refuse a first row that is too long: pandas checks all rows but this one."""
    if len(head) > 1 and any(head[1][len(head[0]) :]):
        raise DataError(
            f"{path.name} has {len(head[0])} column names, but {len(head[1])} values in row 2 "
            f"(delimiter {mark!r}); correct it, or give the {setting('delimiter')}"
        )


def _kept(path: Path, names: list[str], columns: Collection[str] | None) -> dict[int, str]:
    """The columns to keep: those with a name, and the first of those with the same name."""
    repeated = {name for name in names if name and names.count(name) > 1}
    used = sorted(name for name in repeated if columns is None or name in columns)
    if used:
        tell(f"{path.name}: column {', '.join(used)} occurs more than once; the first is used")
    nameless = [str(place) for place, name in enumerate(names, 1) if not name.strip()]
    if nameless and columns is None:
        tell(
            f"{path.name}: column {', '.join(nameless)} has no name and is left out: such columns "
            "usually hold row numbers; name it to use it"
        )
    return {
        place: name
        for place, name in enumerate(names)
        if name.strip() and names.index(name) == place
    }


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
        raise DataError(f"{path.name} {NO_PARQUET}") from error


def _line(error: BaseException) -> str:
    """The first line of an error's message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
