"""Columns that cannot be used as they are: what they seem to be, and what to do about it.

Most are columns of text where numbers are wanted.

Every message is one line, and what it advises can be pasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import Any, NamedTuple

import pandas as pd

from evenhand.audit.input.expressions import LIKELY, NUMBER, as_written, word
from evenhand.audit.input.sources import Source

SHOWN = 6  # values in a message
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


def no_number(source: Source, role: str, name: str, marks: Sequence[str]) -> ValueError:
    """The error for a role that has to be a number and is not."""
    kind, flag = source.table.schema()[name], f"--{role.replace('_', '-')}"
    start = f"{role} is {name!r}, a column of {kind}"
    other = f"name another column, such as {flag} COLUMN"
    if not kind.is_string():
        return ValueError(f"{start}; allowed are numbers: {other}")
    values = values_of(source, source.table[name], most=1000)
    held = numbers_in_text([value for value, _ in values], marks)
    if held is not None and (held.advice or len(values) > SHOWN):
        return ValueError(
            f"{start} that holds {held.what}; {held.advice or 'make it numbers'}, or {other}"
        )
    start = f"{start} with {counted(values)}; allowed are numbers"
    if "reward" not in role or not values:
        return ValueError(f"{start}: {other}")
    if len(values) > SHOWN:
        return ValueError(
            f"{start}: say what each value is worth, --reward-values VALUE=NUMBER,VALUE=NUMBER, or "
            f"{other}"
        )
    words = list(dict.fromkeys(value.strip() for value, _ in values))
    gone = [one for one in words if one.lower() in LIKELY]
    worth = _guesses([one for one in words if one not in gone])
    said = quote(",".join(f"{one}={guess}" for one, guess in worth.items()))
    also = quote(",".join([*marks, *gone]))
    missing = f" --missing-marks{_joint(also)}{also}" if gone else ""
    return ValueError(
        f"{start}: say what each is worth{', or that it is missing' if gone else ''}, such as "
        f"--reward-values {said if worth else 'VALUE=NUMBER'}{missing}, or {other}"
    )


def _guesses(words: Sequence[str]) -> dict[str, str]:
    """A number for each word of a reward: 0 for those that say no, and what numbers are."""
    if all(as_written(one) is not None for one in words):
        return {one: word(as_written(one)) for one in words}
    noes = [one for one in words if one.lower() in NOES] or words[1:]
    ordered = [*(one for one in words if one not in noes), *noes]
    return {one: "0" if one in noes and len(words) > 1 else "1" for one in ordered}


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
    named = quote(",".join([*marks, *fit]))
    return Held(
        f"numbers as text{beside}",
        f"name what stands for a missing value, --missing-marks{_joint(named)}{named}",
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


def _joint(value: str) -> str:
    """Between a flag and its value: what begins with a minus would be taken for a flag."""
    return "=" if value.lstrip("'").startswith("-") else " "


def numbers_as_text(name: str, values: Sequence[str], marks: Sequence[str]) -> ValueError | None:
    """The error for a feature of numbers as text, which would be taken for categories."""
    held = numbers_in_text(values, marks)
    if held is None:
        return None
    advice = held.advice or "make it numbers with empty cells where they are missing"
    return ValueError(
        f"feature {name!r} holds {held.what}; {advice}, leave it out with --leave-out "
        f"{quote(name)}, or say --nominal {quote(name)} if it is categories"
    )


def too_many(
    source: Source, name: str, many: int, nominal: bool, marks: Sequence[str]
) -> ValueError:
    """The error for a feature with more categories than a feature has."""
    plain = ""
    if not nominal:
        some = [value for value, _ in values_of(source, source.table[name], most=1000)]
        held = numbers_in_text(some, marks)
        if held is not None and held.advice:
            return ValueError(
                f"feature {name!r} holds {held.what}; {held.advice}, or leave it out with "
                f"--leave-out {quote(name)}"
            )
        plain = " or numbers as text have; make it numbers if it is," if held else ""
    return ValueError(
        f"feature {name!r} has about {many:,} categories, as an identifier"
        f"{plain or ' has;'} leave it out with --leave-out {quote(name)}, or name its role, such "
        f"as --cluster {quote(name)}"
    )


def no_value(name: str) -> ValueError:
    """The error for a feature of text without a single value."""
    return ValueError(
        f"feature {name!r} has no value in any row; leave it out with --leave-out {quote(name)}"
    )


def one_group(name: str, groups: Sequence[tuple[str, int]]) -> ValueError:
    """The error for a group that leaves nobody to compare with."""
    only = f"only {groups[0][0]!r}" if groups else "no value"
    return ValueError(
        f"group is {name!r}, with {only} in it; an audit compares at least two groups: name "
        "another column, such as --group COLUMN"
    )


def check_propensities(name: str, low: Any, high: Any) -> None:
    """An error unless propensities from `low` to `high` are some; both are missing if all are."""
    if pd.isna(low) or (low >= 0.0 and high <= 1.0 + 1e-5):  # rounded to single precision
        return
    raise ValueError(
        f"propensity {name!r} has values outside of 0 to 1, such as {low if low < 0.0 else high:g};"
        " allowed are numbers above 0 and up to 1: correct them, name another column, such as "
        f"--propensity COLUMN, or leave it out with --leave-out {quote(name)}"
    )
