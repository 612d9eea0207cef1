"""Columns that cannot be used as they are: what they seem to be, and what to do about it.

Most are columns of text where numbers are wanted. What is looked at is different values of a
column, as text; whoever has the rows, pandas or an engine, hands them over.

Every message is one line, and what it advises can be pasted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from evenhand._columns.marks import LIKELY, Marks
from evenhand._columns.words import NUMBER, as_written, is_bad, written
from evenhand.errors import DataError, blank, setting

SHOWN = 6  # values in a message
LOOKED_AT = 1000  # values of a column that are enough to see what it holds
SIGNS = r"[\s'$€£%]"  # what people write into numbers, besides commas
THOUSANDS = r"^[+-]?\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d*)?$"  # also 12,34,567
DECIMAL = r"^[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)?,\d+$"  # one comma, and points as separators
# 2024-01-31, 31.1.2024 or 1/31/24, with or without a time behind it.
DATE = re.compile(r"\s*\d{1,4}([-/.])\d{1,2}\1\d{1,4}([T ].*)?\s*")
# Of a reward, in the advice to give numbers: the user has to look at it all the same.
NOES = ("0", "n", "no", "not", "never", "f", "false", "negative", "lost")


class Held(NamedTuple):
    """What a column of text that is mostly numbers holds, and what to do about it, if it shows."""

    what: str
    advice: str
    word: str | None = None  # one of the values that are no numbers


def counted(values: Sequence[tuple[str, int]]) -> str:
    """Values and in how many rows they are, in words.

    Example:
        >>> from evenhand._columns.diagnosis import counted
        >>> counted([("yes", 1200), ("no", 7)])
        "'yes' in 1,200 rows, 'no' in 7 rows"
    """
    shown = ", ".join(f"{value[:40]!r} in {n:,} rows" for value, n in values[:SHOWN])
    return shown + (" and others" if len(values) > SHOWN else "")


def dates_in_text(values: Sequence[str]) -> bool:
    """Whether nearly all of some different values of a column of text read as dates.

    Example:
        >>> from evenhand._columns.diagnosis import dates_in_text
        >>> dates_in_text(["2024-01-31", "2024-02-01 12:30", "31.1.2024"])
        True
    """
    if len(values) < 3:
        return False
    return sum(DATE.fullmatch(one) is not None for one in values) > 0.9 * len(values)


def numbers_in_text(values: Sequence[str], marks: Marks) -> Held | None:
    """What a column of text with these values holds, if they are numbers but for some words.

    They are where most are numbers, or where all others are words that people write for a missing
    value. Two plain numbers and no word are the names of two categories.

    Args:
        values: some of the column, each once.
        marks: those that are known, to be named again beside new ones.

    Example:
        >>> from evenhand._columns.diagnosis import numbers_in_text
        >>> from evenhand._columns.marks import Marks
        >>> numbers_in_text(["31", "54", "?"], Marks()).what
        "numbers as text and words, such as '?'"
        >>> numbers_in_text(["cook", "nurse", "0"], Marks()) is None
        True
    """
    text = pd.Series(list(values), dtype=object)
    bare, decimal = _bare(text)
    numbers = pd.to_numeric(bare, errors="coerce").notna()
    words = text[~numbers].str.strip().tolist()
    only_gaps = bool(words) and {one.lower() for one in words} <= LIKELY
    plain = text.str.strip().str.contains(NUMBER.replace("(", "(?:"), regex=True)
    names = len(text) < 3 and not (numbers & ~plain).any()
    mostly = 2 * numbers.sum() > len(text) and not names
    if not numbers.any() or not (mostly or only_gaps):
        return None
    beside = f" and words, such as {words[0]!r}" if words else ""
    first = text[~numbers].iloc[0] if words else None
    if decimal.any():
        shown = int(decimal.to_numpy().argmax())
        return Held(
            f"numbers with a decimal comma, such as {text.iloc[shown]!r}, as text{beside}",
            f"write them with a point ({bare.iloc[shown]}), in pandas with "
            "read_csv(..., decimal=',') or str.replace; an audit of CSV files takes "
            f"{setting('decimal', ',')}",
            first,
        )
    signs = text[numbers & ~plain]
    if len(signs):
        return Held(
            f"numbers with separators or signs, such as {signs.iloc[0]!r}, as text{beside}",
            f"write them without ({bare[signs.index[0]]}), in pandas with "
            "read_csv(..., thousands=',') or str.replace",
            first,
        )
    fit = [one for one in words[:SHOWN] if "," not in one]
    if not fit:
        return Held(f"numbers as text{beside}", "", first)
    named = setting("missing_marks", marks.with_more(fit))
    return Held(f"numbers as text{beside}", f"name what stands for a missing value, {named}", first)


def _bare(text: pd.Series[str]) -> tuple[pd.Series[str], pd.Series[bool]]:
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


def no_number(
    role: str,
    name: str,
    kind: str,
    values: Sequence[tuple[str, int]],
    marks: Marks,
    where: str = "",
) -> DataError:
    """The error for a role that has to be a number and is not.

    Args:
        role: such as "reward", as the setting is called.
        name: the column.
        kind: what it is a column of.
        values: its most frequent values, if they are text, and in how many rows they are.
        marks: those that are known.
        where: the row of the first that is no number, if it is known.
    """
    start = f"{setting(role)} is {name!r}, a column of {kind}"
    other = f"name another column, such as {setting(role, blank('COLUMN'))}"
    if not values:
        return DataError(f"{start}; allowed are numbers: {other}")
    held = numbers_in_text([value for value, _ in values], marks)
    if held is not None and (held.advice or len(values) > SHOWN):
        return DataError(
            f"{start} that holds {held.what}{where}; {held.advice or 'make it numbers'}, or {other}"
        )
    start = f"{start} with {counted(values)}{where}; allowed are numbers"
    if "reward" not in role:
        return DataError(f"{start}: {other}")
    if len(values) > SHOWN:
        return DataError(
            f"{start}: say what each value is worth in {setting('reward_values')}, or {other}"
        )
    words = list(dict.fromkeys(value.strip() for value, _ in values))
    gone = [one for one in words if one.lower() in LIKELY]
    worth = _guesses([one for one in words if one not in gone])
    missing = f" {setting('missing_marks', marks.with_more(gone))}" if gone else ""
    return DataError(
        f"{start}: say what each is worth{', or that it is missing' if gone else ''}, such as "
        f"{setting('reward_values', worth or None)}{missing}, or {other}"
    )


def _guesses(words: Sequence[str]) -> dict[str, float]:
    """A number for each word of a reward: 0 for those that say no, and what numbers are."""
    read = {one: as_written(one) for one in words}
    found = {one: value for one, value in read.items() if value is not None}
    if len(found) == len(words):
        return {one: int(value) if value == int(value) else value for one, value in found.items()}
    noes = [one for one in words if one.lower() in NOES or is_bad(one)] or words[1:]
    ordered = [*(one for one in words if one not in noes), *noes]
    return {one: 0 if one in noes and len(words) > 1 else 1 for one in ordered}


def numbers_as_text(name: str, held: Held, where: str = "") -> DataError:
    """The error for a feature of numbers as text, which would be taken for categories."""
    advice = held.advice or "make it numbers with empty cells where they are missing"
    return DataError(
        f"feature {name!r} holds {held.what}{where}; {advice}, leave it out with "
        f"{setting('leave_out', [name])}, or say {setting('nominal_columns', [name])} if it is "
        "categories"
    )


def dates(name: str, role: str = "") -> DataError:
    """The error for a feature that is a date or a time.

    Args:
        name: the column.
        role: of a time, where there is one to name.
    """
    named = f"name its role, such as {setting(role, name)}, " if role else ""
    return DataError(
        f"feature {name!r} holds dates or times; make a number of it (an age, a duration), leave "
        f"it out with {setting('leave_out', [name])}, {named}or say "
        f"{setting('nominal_columns', [name])} if it is categories"
    )


def too_many(name: str, many: int, held: Held | None = None, role: str = "") -> DataError:
    """The error for a feature with more categories than a feature has.

    Args:
        name: the column.
        many: about how many there are.
        held: what it holds, if it is numbers as text.
        role: of a column that tells rows apart, where there is one to name.
    """
    out = f"leave it out with {setting('leave_out', [name])}"
    if held is not None and held.advice:
        return DataError(f"feature {name!r} holds {held.what}; {held.advice}, or {out}")
    plain = " or numbers as text have; make it numbers if it is," if held else " has;"
    other = f"name its role, such as {setting(role, name)}" if role else "merge rare ones"
    return DataError(
        f"feature {name!r} has about {many:,} categories, as an identifier{plain} {out}, or {other}"
    )


def no_value(name: str) -> DataError:
    """The error for a feature without a single value."""
    return DataError(
        f"feature {name!r} has no value in any row; leave it out with "
        f"{setting('leave_out', [name])}"
    )


def likely_marks(frame: pd.DataFrame) -> list[str]:
    """What people write for a missing value, where it stands among numbers.

    Example:
        >>> import pandas as pd
        >>> from evenhand._columns.diagnosis import likely_marks
        >>> likely_marks(pd.DataFrame({"debt": ["1", "2.5", "?"], "job": ["cook", "NA", "cook"]}))
        ['?']
    """
    found: list[str] = []
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        if pd.api.types.infer_dtype(column, skipna=True) == "string":
            values = as_texts(column)
            if numbers_in_text(values, Marks()) is not None:
                found += [one for one in values if one and one.lower() in LIKELY]
    return list(dict.fromkeys(found))


def as_texts(column: pd.Series[Any]) -> list[str]:
    """The different values of a column of a frame as text."""
    return list(dict.fromkeys(written(one) for one in pd.unique(column.dropna())))
