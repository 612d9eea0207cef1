"""Shared by commands that take a log: a service's ledger in its place, and flags about columns."""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError, setting

if TYPE_CHECKING:
    from evenhand._columns.file_formats import Reading

HELP = "the CONFIG of a service, for its ledger"


@contextmanager
def as_log(given: str | Path) -> Iterator[str | Path]:
    """The log itself or, for a configuration of a service, an export of its current ledger."""
    if not str(given).endswith(".toml") or not Path(given).is_file():
        yield given
        return
    from evenhand import service  # noqa: F401  # says what to install
    from evenhand.service._ledger.copies import export
    from evenhand.service.config import load

    config = load(given)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{Path(given).stem}.parquet"
        export(config.store, path)
        yield path if isinstance(given, Path) else str(path)


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
        help="marks of missing values, such as '?,NA,-9' (with = if it begins with -); "
        "COLUMN=MARK for one column; may be repeated",
    )  # fmt: skip


def add_reading(group: Any, start: str = "") -> None:
    """Declare the flags that say how files are read; `start` says which files, if not all."""
    for name, what, words in (
        ("encoding", "NAME", "encoding of CSV files (default utf-8)"),
        ("decimal", ".|,", "decimal point or comma in CSV files (default .)"),
        ("delimiter", "CHARACTER", "character between columns of CSV files (default: detected)"),
        ("sheet", "NAME", "sheet of an Excel file (default: the only one)"),
    ):
        group.add_argument(f"--{name}", metavar=what, help=f"{start}{words}")


def reading_of(options: argparse.Namespace) -> Reading:
    """How files are read, by these flags."""
    from evenhand._columns.file_formats import Reading

    return Reading(options.encoding, options.decimal, options.delimiter, options.sheet)


def marks_of(text: str) -> dict[str, list[str]]:
    """Marks by column, from MARK,COLUMN=MARK; those without a column are for all, "*"."""
    marks: dict[str, list[str]] = {}
    for part in text.split(","):
        name, sign, mark = part.partition("=")
        column, mark = (name.strip(), mark) if sign and name.strip() else ("*", part)
        marks.setdefault(column, []).append(mark)
    return marks


def choice_of(text: str) -> str | dict[str, str]:
    """What to do about missing values: a word, or COLUMN=WORD,COLUMN=WORD."""
    parts = [part.rpartition("=") for part in text.split(",")]
    return {name.strip(): word.strip() for name, _, word in parts} if "=" in text else text


def worth_of(text: str) -> dict[str, float]:
    """Numbers by value, from VALUE=NUMBER,VALUE=NUMBER."""
    pairs, at = dict[str, float](), 0
    while at < len(text):
        match = WORTH.match(text, at)
        if match is None or match[1].strip() in pairs:
            raise InputError(
                f"{setting('reward_values')} is {text!r}; allowed are values with their numbers, "
                "each once, such as approved=1,denied=0"
            )
        pairs[match[1].strip()] = float(match[2])
        at = match.end()
    return pairs
