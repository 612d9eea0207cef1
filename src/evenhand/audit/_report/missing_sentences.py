"""What an audit says about missing values, and what was done about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from evenhand._columns.missing import listed
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
        why = ", because what they lack cannot be filled in" if _stuck(table) else ""
        sentences.append(
            f"{left_out:,} of {facts.rows:,} rows {'is' if left_out == 1 else 'are'} left out{why} "
            "(missing: "
            f"{listed({str(k): int(v) for k, v in dropped.items() if v})}){_uneven(audit)}."
        )
    if facts.filled:
        filled = table[table["done"] == FILLED].groupby("column")["missing"].sum()
        sentences.append(
            f"{facts.filled:,} row{' has' if facts.filled == 1 else 's have'} values filled in "
            "(missing: "
            f"{listed({str(k): int(v) for k, v in filled.items()})})."
        )
    return sentences


def _stuck(table: pd.DataFrame) -> bool:
    return bool((table["done"] == NOT_FILLABLE).any())


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
