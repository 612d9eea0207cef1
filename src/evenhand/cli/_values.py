"""What the values of columns mean, as flags: the same for every command that reads a table."""

from __future__ import annotations

import re
from typing import Any

from evenhand.errors import InputError, setting

# VALUE=NUMBER and a comma; a value may have commas in it.
WORTH = re.compile(r"(.*?)=\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?:,|$)", re.DOTALL)


def add_values(group: Any) -> None:
    """Declare the flags that say what values mean."""
    group.add_argument(
        "--reward-values", metavar="VALUE=NUMBER,...",
        help="numbers for a reward in words, such as approved=1,denied=0",
    )  # fmt: skip
    group.add_argument(
        "--missing-marks", action="append", metavar="MARK,...",
        help="what stands for missing values, such as '?,NA,-9' (with = if it begins with -); "
        "COLUMN=MARK for one column; may be repeated",
    )  # fmt: skip


def marks_of(text: str) -> dict[str, list[str]]:
    """Marks by column, from MARK,COLUMN=MARK; those without a column are of every one, "*"."""
    found: dict[str, list[str]] = {}
    for part in text.split(","):
        name, sign, mark = part.partition("=")
        column, mark = (name.strip(), mark) if sign and name.strip() else ("*", part)
        found.setdefault(column, []).append(mark)
    return found


def choice_of(text: str) -> str | dict[str, str]:
    """What is done about missing values: a word, or COLUMN=WORD,COLUMN=WORD."""
    parts = [part.rpartition("=") for part in text.split(",")]
    return {name.strip(): word.strip() for name, _, word in parts} if "=" in text else text


def worth_of(text: str) -> dict[str, float]:
    """Numbers by value, from VALUE=NUMBER,VALUE=NUMBER."""
    pairs, at = dict[str, float](), 0
    while at < len(text):
        found = WORTH.match(text, at)
        if found is None or found[1].strip() in pairs:
            raise InputError(
                f"{setting('reward_values')} is {text!r}; allowed are values with their numbers, "
                "each once, such as approved=1,denied=0"
            )
        pairs[found[1].strip()] = float(found[2])
        at = found.end()
    return pairs
