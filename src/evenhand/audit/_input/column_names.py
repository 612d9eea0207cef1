"""The names of a log's columns, as its file has them: engines silently complete and number them."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from evenhand._columns.compression import DAMAGED, opened
from evenhand._columns.delimiters import DELIMITERS
from evenhand._columns.header import tell_of_nameless, tell_of_repeated
from evenhand.audit._input.roles import columns_of, idle_names
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import AuditSettings
from evenhand.errors import DataError, setting

# Names that pandas makes up, for a header without one and for an index; blanks are no name.
MADE_UP = r"\s*|Unnamed: \d+|__index_level_\d+__"


def with_names(source: Source) -> Source:
    """The source, knowing which columns have no name, or one that another column has."""
    names = source.table.columns
    if source.files:
        _check_apart(source, names)
    header = _header(source, names) if source.files else names
    pairs = list(zip(names, header, strict=True))
    return replace(
        source,
        unnamed=tuple(name for name, read in pairs if re.fullmatch(MADE_UP, read)),
        repeated={name: read for name, read in pairs if name != read and read.strip()},
    )


def _check_apart(source: Source, names: Sequence[str]) -> None:
    """An error if the whole first line of a CSV file was taken for one column."""
    header, path = names[0], source.files[0]
    called = source.called.get(path, path)
    between = [mark for mark in DELIMITERS if mark in header]
    if len(names) > 1 or not between:
        return
    said = f"{setting('log')} is {called!r}, whose columns cannot be told apart"
    said += f": the first line is {header!r}"
    if Path(path).suffix.lower() in (".csv", ".tsv"):
        with Path(path).open(encoding="utf-8", errors="replace", newline="") as lines:
            rows = csv.reader(lines, delimiter=max(between, key=header.count))
            count = len(next(rows))
            other = next((row for row in rows if len(row) not in (0, count)), None)
            if other is not None:
                said += f" with {count} values, and line {rows.line_num} has {len(other)}"
    raise DataError(f"{said}; allowed are lines with equally many values")


def _header(source: Source, names: Sequence[str]) -> Sequence[str]:
    """The names of columns as a CSV file has them."""
    path = source.files[0]
    engine_separator = source.reading.get("delim", source.reading.get("sep", ","))
    for separator in dict.fromkeys((engine_separator, *DELIMITERS)):
        try:
            with opened(path) as file:
                first = pd.read_csv(
                    file, sep=separator, header=None, nrows=1, dtype=str, keep_default_na=False
                )
        except (ValueError, ImportError, *DAMAGED):  # whatever it is, the engine has read it
            continue
        header = [str(cell) for cell in first.to_numpy(dtype=object).ravel()]
        # Some engines number every one of the columns that share a name.
        folded = [cell.casefold() for cell in header]
        odd = [cell for cell in header if cell.strip() and folded.count(cell.casefold()) == 1]
        if len(header) == len(names) and set(odd) <= set(names):
            return header
    return names


def tell_of_names(source: Source, settings: AuditSettings) -> None:
    """Warn of columns without a name that are left out, and of names that occur again."""
    if settings.features is None:  # otherwise nobody expects other columns
        idle = idle_names(source, settings)
        tell_of_nameless(source.label, [source.table.columns.index(name) + 1 for name in idle])
    used = columns_of(source, settings).used
    for name, read in source.repeated.items():
        if name in used:
            tell_of_repeated(source.label, read, source.table.columns.index(name) + 1, name)
