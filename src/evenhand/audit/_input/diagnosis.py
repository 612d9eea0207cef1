"""Errors for columns of a log that cannot be used as they are, from their values in an engine.

`evenhand._columns.diagnosis` says what they seem to be and what to do about it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from evenhand._columns import diagnosis
from evenhand._columns.diagnosis import LOOKED_AT, SHOWN
from evenhand._columns.missing_marks import Marks
from evenhand.audit._input.expressions import in_words
from evenhand.audit._input.sources import Source
from evenhand.errors import DataError, blank, setting
from evenhand.events.columns import Columns


def values_of(source: Source, column: Any, most: int = SHOWN + 1) -> list[tuple[str, int]]:
    """The most frequent values of a column as text, and how many rows have each."""
    import ibis

    table = source.table.select(value=column.cast("string"))
    table = table.filter(table.value.notnull())
    counts = table.group_by("value").aggregate(n=table.count())
    frame = source.fetch(counts.order_by([ibis.desc("n"), "value"]).limit(most))
    frame = frame.sort_values(["n", "value"], ascending=[False, True], kind="stable")
    return [(str(value), int(n)) for value, n in zip(frame["value"], frame["n"], strict=True)]


def no_number(source: Source, role: str, name: str, marks: Marks) -> DataError:
    """The error for a role that has to be a number and is not."""
    kind = source.table.schema()[name]
    text = kind.is_string()
    values = values_of(source, source.table[name], LOOKED_AT) if text else []
    return diagnosis.no_number(role, name, in_words(kind), values, marks, decimal=source.decimal)


def too_many(source: Source, name: str, many: int, nominal: bool, marks: Marks) -> DataError:
    """The error for a feature with too many categories."""
    held = None
    if not nominal:
        some = [value for value, _ in values_of(source, source.table[name], LOOKED_AT)]
        if diagnosis.dates_in_text(some):
            return diagnosis.dates(name, role="timestamp")
        held = diagnosis.numbers_in_text(some, marks, source.decimal)
    return diagnosis.too_many(name, many, held, role="cluster")


def check_categories(name: str, values: Sequence[str], marks: Marks, decimal: str = ".") -> None:
    """An error for text that holds dates or numbers, which would be taken for categories."""
    if not values:
        raise diagnosis.no_value(name)
    if diagnosis.dates_in_text(values):
        raise diagnosis.dates(name, role="timestamp")
    held = diagnosis.numbers_in_text(values, marks, decimal)
    if held is not None:
        raise diagnosis.numbers_as_text(name, held)


def check_nan(source: Source, columns: Columns, counts: Mapping[str, int], marks: Marks) -> None:
    """An error for "NaN" in a CSV file, which is a word like "NA" until it is named as a mark.

    Args:
        source: the log.
        columns: its columns by role.
        counts: the values of each column that an engine reads as NaN.
        marks: those that are known.
    """
    for name, many in counts.items():
        if not many or "nan" in map(str.lower, marks.of_column(name)):
            continue
        word, written = "NaN", source.as_text()
        if written is not None:
            text = written.select(word=written[name].strip())
            examples = source.fetch(text.filter(text.word.lower().contains("nan")).limit(1))
            word = examples["word"].iloc[0] if len(examples) else word
        for role in ("reward", "true_reward", "propensity", "weight"):
            if name == getattr(columns, role):
                raise diagnosis.no_number(role, name, "text", [("0", 1), (word, many)], marks)
        held = diagnosis.numbers_in_text(["0", word], marks)
        if held is not None:
            raise diagnosis.numbers_as_text(name, held)


def one_group(name: str, groups: Sequence[tuple[str, int]]) -> DataError:
    """The error for a group column that leaves nobody to compare with."""
    only = f"only {groups[0][0]!r}" if groups else "no value"
    return DataError(
        f"{setting('group')} is {name!r}, with {only} in it; an audit compares at least two "
        f"groups: name another column, such as {setting('group', blank('COLUMN'))}",
        value=name,
    )


def aside(role: str, name: str, named: Collection[str]) -> str:
    """How not to use a column in a role, as advice: it was named so, or recognised by its name.

    Args:
        role: the role.
        name: the column.
        named: the roles that the user named.

    Example:
        >>> from evenhand.audit._input.diagnosis import aside
        >>> from evenhand.errors import in_language
        >>> in_language(aside("propensity", "p", ["propensity"]), "command line")
        'leave --propensity out'
        >>> in_language(aside("propensity", "pscore", []), "command line")
        'leave it out with --leave-out pscore'
    """
    if role in named:
        return f"leave {setting(role)} out"
    return f"leave it out with {setting('leave_out', [name])}"


def check_propensities(name: str, low: Any, high: Any, named: Collection[str] = ()) -> None:
    """Raise unless `low` to `high` may be propensities; both are missing if all of them are."""
    if pd.isna(low) or (low >= 0.0 and high <= 1.0 + 1e-5):  # rounded to single precision
        return
    raise DataError(
        f"{setting('propensity')} is {name!r}, which has values outside 0 to 1, such as "
        f"{low if low < 0.0 else high:g}; allowed are numbers above 0 and up to 1: correct them, "
        f"name another column, such as {setting('propensity', blank('COLUMN'))}, or "
        f"{aside('propensity', name, named)}",
        value=name,
    )
