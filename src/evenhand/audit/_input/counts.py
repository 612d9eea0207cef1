"""Rows that stand for several people: a column says for how many.

The engine repeats such a row once per person before anything else is done. So every number is that
of a log with a row per person by construction, and no formula needs to know.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evenhand._prose import number_of
from evenhand.audit._input.expressions import as_number, in_words, is_missing
from evenhand.audit._input.sources import Source
from evenhand.errors import DataError, setting

COPY = "evenhand_copy"
# Engines hold the copies of a batch of rows at once, in 8 bytes each: 400 MB for these.
MOST_PEOPLE = 50_000_000


def one_row_each(source: Source, column: str | None) -> Source:
    """A row per person. Rows that stand for nobody are dropped.

    Args:
        source: the log.
        column: says how many people a row stands for; None where every row is one.
    """
    import ibis

    if column is None:
        return source
    _check(source, column)
    many = as_number(source.table[column]).cast("int64")
    table = source.table.mutate(**{COPY: ibis.range(ibis.literal(0, "int64"), many)})
    return replace(source, table=table.unnest(COPY).drop(COPY))


def _check(source: Source, column: str) -> None:
    table = source.table
    if not table.schema()[column].is_numeric():
        raise DataError(
            f"{setting('count')} is {column!r}, a column of {in_words(table.schema()[column])}; "
            "allowed are whole numbers from 0 on: how many people a row stands for",
            value=column,
        )
    many: Any = as_number(table[column])
    checked = source.fetch(
        table.aggregate(
            rows=table.count(),
            missing=is_missing(table[column]).sum(),
            broken=(many != many.floor()).sum(),
            least=many.min(),
            people=many.sum(),
        )
    ).iloc[0]
    said = f"{setting('count')} is {column!r}, which has"
    allowed = "allowed are whole numbers from 0 on"
    if checked["missing"]:
        raise DataError(
            f"{said} {int(checked['missing']):,} missing values of {int(checked['rows']):,}; "
            f"{allowed}: put 0 for rows that stand for nobody",
            value=column,
        )
    broken = int(checked["broken"])
    if broken:
        raise DataError(
            f"{said} {number_of(broken, 'value')} that {'is' if broken == 1 else 'are'} not whole; "
            f"{allowed}: name weights that are not counts in {setting('weight')}",
            value=column,
        )
    if checked["least"] < 0:
        raise DataError(f"{said} a value of {checked['least']:g}; {allowed}", value=column)
    if not 0 < checked["people"] <= MOST_PEOPLE:
        raise DataError(
            f"{said} a sum of {checked['people']:g}; allowed are 1 to {MOST_PEOPLE:,} people: "
            "audit a part of the log, or a table with a row per person",
            value=column,
        )
