"""What an audit says about missing values, and what was done about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from evenhand._columns.missing import filled_words, left_out_words
from evenhand.audit._sums.missing import FILLED, NOT_FILLABLE

if TYPE_CHECKING:
    from evenhand.audit._report.result import Audit


def missing_sentences(audit: Audit) -> list[str]:
    """What is missing, and what was done about it."""
    facts, table, sentences = audit.facts, audit.missing, []
    if table.empty:
        return []
    left_out = facts.rows - facts.used
    if left_out:
        dropped = table[table["done"] != FILLED].groupby("column")["missing"].sum()
        lacks = {str(name): int(many) for name, many in dropped.items() if many}
        words = left_out_words(left_out, facts.rows, lacks, _stuck(table))
        sentences.append(f"{words}{_uneven(audit)}.")
    if facts.filled:
        filled = table[table["done"] == FILLED].groupby("column")["missing"].sum()
        lacks = {str(name): int(many) for name, many in filled.items()}
        sentences.append(f"{filled_words(facts.filled, lacks)}.")
    return sentences


def _stuck(table: pd.DataFrame) -> bool:
    """Whether rows are left out only because of what cannot be filled in."""
    done = set(table.loc[table["missing"] > 0, "done"]) - {FILLED}
    return done == {NOT_FILLABLE}


def _uneven(audit: Audit) -> str:
    """The part of each group that is left out, where that differs much."""
    table = audit.groups
    part = 1.0 - pd.Series(audit.bias.observations) / table["n"]
    if part.max() - part.min() < 0.05:
        return ""
    low, high = (table["group"].iloc[int(at)] for at in (part.argmin(), part.argmax()))
    return (
        f": {100 * part.max():.0f} % of group {high} and {100 * part.min():.0f} % of group {low}, "
        "so the remaining rows may not represent the whole log"
    )
