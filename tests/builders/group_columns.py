"""Columns of groups of many kinds, and what an audit calls the groups in them."""

from __future__ import annotations

from tempfile import TemporaryDirectory

import pandas as pd

from evenhand.audit._input.group_names import with_group_names
from evenhand.audit._input.marks_and_words import cleaned
from evenhand.audit._input.opening import open_log
from evenhand.audit._settings import AuditSettings

COLUMNS = {
    "whole": [0, 1, 1, 0],
    "negative": [-1, 0, 7, 7],
    "large": [2**60, 2**60 + 1, 3, 3],
    "floats": [1.0, 2.0, 2.0, 1.0],
    "halves": [0.5, 1.0, -2.25, 1.0],
    "truths": [True, False, False, True],
    "words": ["F", "M", "M", "F"],
    "digits": ["0", "1", "1", "0"],
    "codes": ["01", "2", "2", "01"],
    "versions": ["1.1", "1.10", "1.1", "1.10"],
    "mixed": ["1", "other", "1", "other"],
    "answers": ["yes", "no", "no", "yes"],
    "spelled": ["TRUE", "false", "false", "TRUE"],
    "spaced": [" 1", "2", "2", " 1"],
}


def table_of(values: list[object]) -> pd.DataFrame:
    """A table whose groups are these values."""
    return pd.DataFrame({"g": values, "x": [1.0, 2.0, 3.5, 4.0], "reward": [1.0, 2.0, 2.5, 1.0]})


def names_in_audits(log: object, engine: str | None = None, **settings: object) -> set[str]:
    """The names that an audit has for the groups of a log."""
    chosen = AuditSettings(columns={"group": "g", "reward": "reward"}, **settings)
    with TemporaryDirectory() as spill:
        source = open_log(log, engine, chosen.marks, spill)
        try:
            source = with_group_names(cleaned(source, chosen), chosen)
            rows = source.table.select(g=source.table["g"].cast("string")).distinct()
            return set(source.fetch(rows)["g"].dropna())
        finally:
            source.close()
