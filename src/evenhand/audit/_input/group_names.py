"""Names of groups: "F" is one by itself, and 1 is called "black=1", as in worlds and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from evenhand._columns.buckets import MOST_GROUPS, labels_of
from evenhand._columns.kinds_of_text import numbers_or_codes
from evenhand._columns.words import NUMBER, category
from evenhand.audit._input.expressions import as_number
from evenhand.audit._input.json_files import TEXT
from evenhand.audit._input.roles import columns_of
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import AuditSettings

OWN = {"round", "explored", "learned"}  # columns that evenhand's own logs have, in all versions
MOST_READ = 2 * MOST_GROUPS  # values: with more, the column is refused anyway
FIRST = 20_000  # rows of a file in which a word is looked for before all are read


def with_group_names(source: Source, settings: AuditSettings) -> Source:
    """The log with "black=1" in place of 1, if a group column holds numbers or truth values.

    Codes such as "01" are names, and so is what evenhand's own logs call a group.
    """
    if settings.group_probability is not None or {*source.table.columns} >= OWN:
        return source
    names = settings.attributes or (columns_of(source, settings).group,)
    named = {name: _named(source, name) for name in names}
    changed = {name: value for name, value in named.items() if value is not None}
    return replace(source, table=source.table.mutate(**changed)) if changed else source


def _named(source: Source, name: str) -> Any | None:
    """The names of groups as an expression; None if they are as the column has them."""
    column = source.table[name]
    kind, is_text = column.type(), column.type().is_string()
    if is_text and (not _may_be_numbers(source, name) or _has_word(source, name)):
        return None
    if not (is_text or kind.is_boolean() or kind.is_numeric()):
        return None
    if kind.is_numeric() and not kind.is_integer():
        column = as_number(column)
    values = _values(source, source.table.select(value=column))
    if values.empty or len(values) > MOST_READ:
        return None
    read = _as_read(source, values) if is_text else values
    names = dict(zip(values, labels_of(read.rename(name)), strict=True))
    return _expression(column, names, category(name, ""))


def _may_be_numbers(source: Source, name: str) -> bool:
    """Whether text may be numbers: labels of files are read as text, whatever they look like."""
    return bool(source.files) or (source.json is not None and source.json.get(name) != TEXT)


def _has_word(source: Source, name: str) -> bool:
    """Whether the first rows have a word, so that a large file need not be read once more."""
    values = _values(source, source.table.select(value=source.table[name]).limit(FIRST))
    return _as_read(source, values) is values


def _values(source: Source, rows: Any) -> pd.Series[Any]:
    """The different values in the only column of a query."""
    values = rows.filter(rows.value.notnull()).distinct().limit(MOST_READ + 1)
    return source.fetch(values)["value"]


def _as_read(source: Source, texts: pd.Series[Any]) -> pd.Series[Any]:
    """The texts of a file as other readers of tables take them; the same if they are words."""
    if source.json is not None and texts.str.match(NUMBER).all():
        return pd.to_numeric(texts)  # 1 and 1.0 are the same there
    return numbers_or_codes(texts, source.decimal)


def _expression(column: Any, names: Mapping[Any, str], prefix: str) -> Any:
    import ibis

    alike = column.type().is_string() or column.type().is_integer()  # spelled by all engines
    if alike and all(label == f"{prefix}{value}" for value, label in names.items()):
        return ibis.literal(prefix) + column.cast("string")
    return ibis.cases(*((column == value, label) for value, label in names.items()))
