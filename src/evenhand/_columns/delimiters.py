"""What stands between the columns of a CSV file, by its first records."""

from __future__ import annotations

import csv
from io import TextIOWrapper
from itertools import islice
from pathlib import Path

from evenhand._columns.compression import opened
from evenhand._columns.file_formats import Reading

DELIMITERS = (",", ";", "\t", "|")
LOOKED_AT = 50  # records


def delimiter_of(path: str | Path, reading: Reading, errors: str = "strict") -> str:
    """The delimiter of a CSV file: the one that was given, or the one that fits it best.

    Args:
        path: the file.
        reading: how it is read.
        errors: what is done about bytes that are not in its encoding, as for `open`.

    Example:
        >>> import pathlib, tempfile
        >>> from evenhand._columns.delimiters import delimiter_of
        >>> from evenhand._columns.file_formats import Reading
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
        >>> _ = path.write_text("sex;paid\\nF;1,5\\nM;2,25\\n")
        >>> delimiter_of(path, Reading())
        ';'
    """
    if reading.delimiter is not None:
        return reading.delimiter
    return max(DELIMITERS, key=lambda guess: _fit(first_records(path, guess, reading, errors)))


def first_records(
    path: str | Path, delimiter: str, reading: Reading, errors: str = "strict"
) -> list[list[str]]:
    """The first records of a CSV file, without blank lines.

    Args:
        path: the file.
        delimiter: what stands between its columns.
        reading: how it is read.
        errors: what is done about bytes that are not in its encoding, as for `open`.
    """
    with opened(path) as file:
        text = TextIOWrapper(file, reading.codec, errors, newline="")
        records = islice(csv.reader(text, delimiter=delimiter), LOOKED_AT)
        return [record for record in records if record]


def _fit(records: list[list[str]]) -> tuple[bool, int]:
    """How well a delimiter fits: first whether all records have the same length, then how many."""
    width = len(records[0]) if records else 0
    return width > 1 and all(len(record) == width for record in records), width
