"""Columns that cannot be used as they are: what they seem to be, and what to do about it.

Most are columns of text where numbers are wanted. The functions look at the different values of a
column, as text; whatever holds the rows, pandas or an engine, supplies them.

Every message is one line, and its advice can be pasted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand._columns.file_formats import Reading
from evenhand._columns.missing_marks import LIKELY, Marks, without_marks
from evenhand._columns.table_files import read_table
from evenhand._columns.words import NUMBER, as_written, is_bad, tell, written
from evenhand._prose import number_of
from evenhand.errors import DataError, InputError, blank, setting

SHOWN = 6  # values in a message
DECIMAL_COMMA = "numbers with a decimal comma"
LOOKED_AT = 1000  # values of a column, enough to judge what it holds
SIGNS = r"[\s'$€£%]"  # what people write in numbers, besides commas
THOUSANDS = r"^[+-]?\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d*)?$"  # also 12,34,567
DECIMAL = r"^[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)?,\d+$"  # one comma, and points as separators
# 2024-01-31, 31.1.2024 or 1/31/24, with or without a time after it; or a time, 12:30.
DATE = re.compile(r"\s*(\d{1,4}([-/.])\d{1,2}\2\d{1,4}([T ].*)?|\d{1,2}:\d{2}(:\d{2}[.\d]*)?)\s*")
# Values of a reward that the advice guesses to be 0; the user has to check it anyway.
NOES = ("0", "n", "no", "not", "never", "f", "false", "negative", "lost")


class NumbersAsText(NamedTuple):
    """What a column of text that is mostly numbers holds, and what to do about it if known."""

    what: str
    advice: str
    word: str | None = None  # one of the values that are not numbers


def counted(values: Sequence[tuple[str, int]]) -> str:
    """Values and their numbers of rows, in words.

    Example:
        >>> from evenhand._columns.diagnosis import counted
        >>> counted([("yes", 1200), ("no", 7)])
        "'yes' in 1,200 rows, 'no' in 7 rows"
    """
    shown = ", ".join(f"{value[:40]!r} in {number_of(n, 'row')}" for value, n in values[:SHOWN])
    return shown + (" and others" if len(values) > SHOWN else "")


def dates_in_text(values: Sequence[str]) -> bool:
    """Whether these values of a column of text are dates or times: all or, of many, nearly all.

    Example:
        >>> from evenhand._columns.diagnosis import dates_in_text
        >>> dates_in_text(["2024-01-31", "2024-02-01 12:30", "31.1.2024"])
        True
    """
    some = sum(DATE.fullmatch(value) is not None for value in values)
    return some > 0 and some > 0.9 * len(values)


def numbers_in_text(
    values: Sequence[str], marks: Marks, decimal: str = "."
) -> NumbersAsText | None:
    """What a column of text with these values holds, if they are numbers except for some words.

    They are if most are numbers, or if all others are words that people write for a missing value.
    Two plain numbers and no word are the names of two categories.

    Args:
        values: different values of the column.
        marks: those that are known, to be repeated with the new ones.
        decimal: what was said to stand in place of a decimal point.

    Example:
        >>> from evenhand._columns.diagnosis import numbers_in_text
        >>> from evenhand._columns.missing_marks import Marks
        >>> numbers_in_text(["31", "54", "?"], Marks()).what
        "numbers as text and words, such as '?'"
        >>> numbers_in_text(["cook", "nurse", "0"], Marks()) is None
        True
    """
    text = pd.Series(list(values), dtype=object)
    bare, commas = _bare(text)
    numbers = pd.to_numeric(bare, errors="coerce").abs() < np.inf
    words = text[~numbers].str.strip().tolist()
    only_gaps = bool(words) and {word.lower() for word in words} <= LIKELY
    plain = text.str.strip().str.contains(NUMBER.replace("(", "(?:"), regex=True)
    names = len(text) < 3 and not (numbers & ~plain).any()
    mostly = 2 * numbers.sum() > len(text) and not names
    if not numbers.any() or not (mostly or only_gaps):
        return None
    beside = f" and words, such as {words[0]!r}" if words else ""
    first = text[~numbers].iloc[0] if words else None
    if commas.any():
        return _with_commas(text, bare, commas, decimal, beside, first)
    signs = text[numbers & ~plain]
    if len(signs):
        return NumbersAsText(
            f"numbers with separators or signs, such as {signs.iloc[0]!r}, as text{beside}",
            f"write them without ({bare[signs.index[0]]})",
            first,
        )
    fit = [word for word in words[:SHOWN] if "," not in word]
    if not fit:
        return NumbersAsText(f"numbers as text{beside}", "", first)
    named = setting("missing_marks", marks.with_more(fit))
    return NumbersAsText(
        f"numbers as text{beside}", f"name the marks of missing values, {named}", first
    )


def _with_commas(
    text: pd.Series[str],
    bare: pd.Series[str],
    commas: pd.Series[bool],
    decimal: str,
    beside: str,
    first: str | None,
) -> NumbersAsText:
    """What a column with decimal commas holds. A setting that was given helps no more."""
    grouped = commas & text.str.contains(".", regex=False)
    shown = int((grouped if grouped.any() else commas).to_numpy().argmax())
    advice = f"write them with a point ({bare.iloc[shown]}), or say {setting('decimal', ',')} if "
    advice += "they are in a CSV file"
    if decimal != ".":
        advice = f"write all of them without points ({bare.iloc[shown].replace('.', decimal)})"
    what = f"{DECIMAL_COMMA}, such as {text.iloc[shown]!r}, as text{beside}"
    return NumbersAsText(what, advice, first)


def _bare(text: pd.Series[str]) -> tuple[pd.Series[str], pd.Series[bool]]:
    """Numbers with a decimal point, and which values show that the comma is decimal.

    A comma separates thousands only if that fits every value: "28,380" may be either, and a
    single "28,38" settles that it does not.
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
    decimal: str = ".",
) -> DataError:
    """The error for a role that must be a number and is not.

    Args:
        role: the name of the setting, such as "reward".
        name: the column.
        kind: what it is a column of.
        values: its most frequent values, if they are text, and their numbers of rows.
        marks: those that are known.
        where: the row of the first that is not a number, if it is known.
        decimal: what was said to stand in place of a decimal point.
    """
    start = f"{setting(role)} is {name!r}, a column of {kind}"
    other = f"name another column, such as {setting(role, blank('COLUMN'))}"

    def error(text: str) -> DataError:
        return DataError(text, value=name)

    if not values:
        return error(f"{start}; allowed are numbers: {other}")
    held = numbers_in_text([value for value, _ in values], marks, decimal)
    if held is not None and (held.advice or len(values) > SHOWN):
        return error(
            f"{start} that holds {held.what}{where}; {held.advice or 'turn it into numbers'}, or "
            f"{other}"
        )
    start = f"{start} with {counted(values)}{where}; allowed are numbers"
    if "reward" not in role:
        return error(f"{start}: {other}")
    if len(values) > SHOWN:
        return error(
            f"{start}: give a number for each value in {setting('reward_values')}, or {other}"
        )
    words = list(dict.fromkeys(value.strip() for value, _ in values))
    likely = [word for word in words if word.lower() in LIKELY]
    worth = _guesses([word for word in words if word not in likely])
    missing = f" {setting('missing_marks', marks.with_more(likely))}" if likely else ""
    return error(
        f"{start}: give each a number{', or mark it as missing' if likely else ''}, such as "
        f"{setting('reward_values', worth or None)}{missing}, or {other}"
    )


def _guesses(words: Sequence[str]) -> dict[str, float]:
    """A number for each word of a reward: 0 for those that say no; numbers stay as they are."""
    read = {word: as_written(word) for word in words}
    numbers = {word: value for word, value in read.items() if value is not None}
    if len(numbers) == len(words):
        return {
            word: int(value) if value == int(value) else value for word, value in numbers.items()
        }
    noes = [word for word in words if word.lower() in NOES or is_bad(word)] or words[1:]
    ordered = [*(word for word in words if word not in noes), *noes]
    return {word: 0 if word in noes and len(words) > 1 else 1 for word in ordered}


def numbers_as_text(name: str, held: NumbersAsText, where: str = "") -> DataError:
    """The error for a feature of numbers as text, which would be treated as categories."""
    advice = held.advice or "turn it into numbers, with empty cells where they are missing"
    return DataError(
        f"feature {name!r} holds {held.what}{where}; {advice}, leave it out with "
        f"{setting('leave_out', [name])}, or say {setting('nominal_columns', [name])} if it is "
        "categories",
        parameter="features",
        value=name,
    )


def dates(name: str, role: str = "") -> DataError:
    """The error for a feature that is a date or a time.

    Args:
        name: the column.
        role: the role of a time, if there is one.
    """
    named = f"name its role, such as {setting(role, name)}, " if role else ""
    return DataError(
        f"feature {name!r} holds dates or times; turn it into numbers (ages, durations), leave "
        f"it out with {setting('leave_out', [name])}, {named}or say "
        f"{setting('nominal_columns', [name])} if it is categories",
        parameter="features",
        value=name,
    )


def too_many(name: str, many: int, held: NumbersAsText | None = None, role: str = "") -> DataError:
    """The error for a feature with too many categories.

    Args:
        name: the column.
        many: about how many there are.
        held: what it holds, if it is numbers as text.
        role: the role of a column that identifies rows, if there is one.
    """
    out = f"leave it out with {setting('leave_out', [name])}"
    if held is not None and held.advice:
        return DataError(
            f"feature {name!r} holds {held.what}; {held.advice}, or {out}",
            parameter="features",
            value=name,
        )
    plain = " or numbers stored as text do; if so, turn it into numbers," if held else " does;"
    other = f"name its role, such as {setting(role, name)}" if role else "merge rare ones"
    return DataError(
        f"feature {name!r} has about {many:,} categories, as an identifier{plain} {out}, or "
        f"{other}",
        parameter="features",
        value=name,
    )


def group_as_feature(name: str) -> InputError:
    """The error for a group that is named as a feature."""
    return InputError(
        f"{setting('features')}: {name!r} is the group; a group cannot be a feature, because "
        "groups are compared at the same features",
        value=name,
    )


def no_value(name: str) -> DataError:
    """The error for a feature without a single value."""
    return DataError(
        f"feature {name!r} has no value in any row; leave it out with "
        f"{setting('leave_out', [name])}",
        parameter="features",
        value=name,
    )


def likely_marks(frame: pd.DataFrame) -> list[str]:
    """What people wrote for missing values among numbers.

    Example:
        >>> import pandas as pd
        >>> from evenhand._columns.diagnosis import likely_marks
        >>> likely_marks(pd.DataFrame({"debt": ["1", "2.5", "?"], "job": ["cook", "NA", "cook"]}))
        ['?']
    """
    marks: list[str] = []
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        if pd.api.types.infer_dtype(column, skipna=True) == "string":
            values = as_texts(column)
            if numbers_in_text(values, Marks()) is not None:
                marks += [value for value in values if value and value.lower() in LIKELY]
    return list(dict.fromkeys(marks))


def read_with_likely_marks(
    path: Path, reading: Reading, labels: Collection[str] = ()
) -> tuple[pd.DataFrame, list[str]]:
    """A table that nobody has described yet, without what seems to stand for missing values.

    Args:
        path: the file.
        reading: how it is read, where it does not say so itself.
        labels: columns of names, in which "01" is not 1.

    Returns:
        The table, and the marks that were taken for missing values.
    """
    frame = read_table(path, reading=reading, labels=labels)
    if frame.empty:
        raise DataError(f"{path.name} has no rows; give a table with some")
    marks = likely_marks(frame)
    _tell_of_decimals(frame)
    return without_marks(frame, Marks.of(marks), reading.decimal or ".", labels), marks


def _tell_of_decimals(frame: pd.DataFrame) -> None:
    """Warn of numbers with a decimal comma, which would be taken for text."""
    for name in frame.columns:
        if pd.api.types.infer_dtype(frame[name], skipna=True) != "string":
            continue
        held = numbers_in_text(as_texts(frame[name]), Marks())
        if held is not None and held.what.startswith(DECIMAL_COMMA):
            tell(f"column {name!r} holds {held.what}; {held.advice}")


def as_texts(column: pd.Series[Any]) -> list[str]:
    """The different values of a column as text."""
    return list(dict.fromkeys(written(value) for value in pd.unique(column.dropna())))
