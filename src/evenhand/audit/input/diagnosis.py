"""Columns that cannot be used as they are: what they seem to be, and what to do about it.

Most are columns of text where numbers are wanted.

Every message is one line, and what it advises can be pasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from evenhand.audit.input.expressions import EVERY, LIKELY, NUMBER, as_written
from evenhand.audit.input.sources import Source
from evenhand.errors import DataError, blank, setting

SHOWN = 6  # values in a message
ANY_WORTH = {blank("VALUE"): blank("NUMBER")}
SIGNS = r"[\s'$€£%]"  # what people write into numbers, besides commas
THOUSANDS = r"^[+-]?\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d*)?$"  # also 12,34,567
DECIMAL = r"^[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)?,\d+$"  # one comma, and points as separators
# Of a reward, in the advice to give numbers: the user has to look at it all the same.
NOES = (
    "0", "n", "no", "not", "never", "f", "false", "bad", "negative", "denied", "rejected",
    "refused", "declined", "failed", "failure", "default", "defaulted", "unpaid", "lost",
)  # fmt: skip


def values_of(source: Source, column: Any, most: int = SHOWN + 1) -> list[tuple[str, int]]:
    """The most frequent values of a column as text, and in how many rows they are."""
    import ibis

    table = source.table.select(value=column.cast("string"))
    table = table.filter(table.value.notnull())
    counts = table.group_by("value").aggregate(n=table.count())
    frame = source.fetch(counts.order_by([ibis.desc("n"), "value"]).limit(most))
    frame = frame.sort_values(["n", "value"], ascending=[False, True], kind="stable")
    return [(str(value), int(n)) for value, n in zip(frame["value"], frame["n"], strict=True)]


def counted(values: Sequence[tuple[str, int]]) -> str:
    """Values and in how many rows they are, in words."""
    shown = ", ".join(f"{value[:40]!r} in {n:,} rows" for value, n in values[:SHOWN])
    return shown + (" and others" if len(values) > SHOWN else "")


def no_number(source: Source, role: str, name: str, marks: Sequence[str]) -> DataError:
    """The error for a role that has to be a number and is not."""
    kind = source.table.schema()[name]
    start = f"{role} is {name!r}, a column of {kind}"
    other = f"name another column, such as {setting(role, blank('COLUMN'))}"
    if not kind.is_string():
        return DataError(f"{start}; allowed are numbers: {other}")
    values = values_of(source, source.table[name], most=1000)
    held = numbers_in_text([value for value, _ in values], marks)
    if held is not None and (held.advice or len(values) > SHOWN):
        return DataError(
            f"{start} that holds {held.what}; {held.advice or 'make it numbers'}, or {other}"
        )
    start = f"{start} with {counted(values)}; allowed are numbers"
    if "reward" not in role or not values:
        return DataError(f"{start}: {other}")
    if len(values) > SHOWN:
        return DataError(
            f"{start}: say what each value is worth, {setting('reward_values', ANY_WORTH)}, or "
            f"{other}"
        )
    words = list(dict.fromkeys(value.strip() for value, _ in values))
    gone = [one for one in words if one.lower() in LIKELY]
    worth = _guesses([one for one in words if one not in gone])
    also = f" {_marked([*marks, *gone])}" if gone else ""
    return DataError(
        f"{start}: say what each is worth{', or that it is missing' if gone else ''}, such as "
        f"{setting('reward_values', worth or ANY_WORTH)}{also}, or {other}"
    )


def _guesses(words: Sequence[str]) -> dict[str, float]:
    """A number for each word of a reward: 0 for those that say no, and what numbers are."""
    if all(as_written(one) is not None for one in words):
        return {one: as_written(one) or 0 for one in words}
    noes = [one for one in words if one.lower() in NOES] or words[1:]
    ordered = [*(one for one in words if one not in noes), *noes]
    return {one: 0 if one in noes and len(words) > 1 else 1 for one in ordered}


class Held(NamedTuple):
    """What a column of text that is mostly numbers holds, and what to do about it, if it shows."""

    what: str
    advice: str


def numbers_in_text(values: Sequence[str], marks: Sequence[str]) -> Held | None:
    """What a column of text with these values holds, if most of them are numbers.

    Args:
        values: some of the column, each once.
        marks: those that are known, to be named again beside new ones.
    """
    text = pd.Series(list(values), dtype=object)
    bare, decimal = _bare(text)
    numbers = pd.to_numeric(bare, errors="coerce").notna()
    if len(text) < 3 or 2 * numbers.sum() <= len(text):
        return None
    plain = text.str.strip().str.contains(NUMBER.replace("(", "(?:"), regex=True)
    words = text[~numbers].str.strip().tolist()
    beside = f" and words, such as {words[0]!r}" if words else ""
    if decimal.any():
        shown = int(decimal.to_numpy().argmax())
        return Held(
            f"numbers with a decimal comma, such as {text.iloc[shown]!r}, as text{beside}",
            f"write them with a point ({bare.iloc[shown]}), in pandas with "
            "read_csv(..., decimal=',') or str.replace",
        )
    signs = text[numbers & ~plain]
    if len(signs):
        return Held(
            f"numbers with separators or signs, such as {signs.iloc[0]!r}, as text{beside}",
            f"write them without ({bare[signs.index[0]]}), in pandas with "
            "read_csv(..., thousands=',') or str.replace",
        )
    fit = [one for one in words[:SHOWN] if "," not in one]
    if not fit:
        return Held(f"numbers as text{beside}", "")
    return Held(
        f"numbers as text{beside}",
        f"name what stands for a missing value, {_marked([*marks, *fit])}",
    )


def _bare(text: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Numbers as a computer writes them, and which values show that a comma is a decimal one.

    A comma separates thousands only if that fits every value: "28,380" may be either, and one
    "28,38" beside it settles that it is not.
    """
    bare = text.str.replace(SIGNS, "", regex=True)
    thousands = bare.str.contains(THOUSANDS, regex=True)
    decimal = bare.str.contains(DECIMAL, regex=True) & ~thousands
    if not decimal.any():
        return bare.str.replace(",", "").where(thousands, bare), decimal
    point = bare.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    return point.where(bare.str.contains(DECIMAL, regex=True), bare), decimal


def _marked(words: Sequence[str]) -> str:
    """The advice to name these marks; those of single columns are COLUMN=MARK here."""
    own: dict[str, list[str]] = {}
    for one in words:
        column, equals, mark = one.partition("=")
        own.setdefault(column if equals else EVERY, []).append(mark if equals else one)
    return setting("missing_marks", own[EVERY] if set(own) == {EVERY} else own)


def numbers_as_text(name: str, values: Sequence[str], marks: Sequence[str]) -> DataError | None:
    """The error for a feature of numbers as text, which would be taken for categories."""
    held = numbers_in_text(values, marks)
    if held is None:
        return None
    advice = held.advice or "make it numbers with empty cells where they are missing"
    return DataError(
        f"feature {name!r} holds {held.what}; {advice}, leave it out with "
        f"{setting('leave_out', [name])}, or say {setting('nominal', [name])} if it is categories"
    )


def too_many(
    source: Source, name: str, many: int, nominal: bool, marks: Sequence[str]
) -> DataError:
    """The error for a feature with more categories than a feature has."""
    plain = ""
    if not nominal:
        some = [value for value, _ in values_of(source, source.table[name], most=1000)]
        held = numbers_in_text(some, marks)
        if held is not None and held.advice:
            return DataError(
                f"feature {name!r} holds {held.what}; {held.advice}, or leave it out with "
                f"{setting('leave_out', [name])}"
            )
        plain = " or numbers as text have; make it numbers if it is," if held else ""
    return DataError(
        f"feature {name!r} has about {many:,} categories, as an identifier{plain or ' has;'} leave "
        f"it out with {setting('leave_out', [name])}, or name its role, such as "
        f"{setting('cluster', name)}"
    )


def no_value(name: str) -> DataError:
    """The error for a feature of text without a single value."""
    return DataError(
        f"feature {name!r} has no value in any row; leave it out with "
        f"{setting('leave_out', [name])}"
    )


def one_group(name: str, groups: Sequence[tuple[str, int]]) -> DataError:
    """The error for a group that leaves nobody to compare with."""
    only = f"only {groups[0][0]!r}" if groups else "no value"
    return DataError(
        f"group is {name!r}, with {only} in it; an audit compares at least two groups: name "
        f"another column, such as {setting('group', blank('COLUMN'))}"
    )


def check_propensities(name: str, low: Any, high: Any) -> None:
    """An error unless propensities from `low` to `high` are some; both are missing if all are."""
    if pd.isna(low) or (low >= 0.0 and high <= 1.0 + 1e-5):  # rounded to single precision
        return
    raise DataError(
        f"propensity {name!r} has values outside of 0 to 1, such as "
        f"{low if low < 0.0 else high:g}; allowed are numbers above 0 and up to 1: correct them, "
        f"name another column, such as {setting('propensity', blank('COLUMN'))}, or leave it out "
        f"with {setting('leave_out', [name])}"
    )
