"""The words of auditors in reports on people's outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand._prose import quoted
from evenhand.bias._terms import Terms
from evenhand.events.columns import Columns

ALIKE = "among people with the same features"


def terms_of(columns: Columns, values: Mapping[Any, float] | None = None) -> Terms:
    """The words of a report on a log.

    Args:
        columns: of the log.
        values: numbers for rewards in words, if they are in words.
    """
    outcome = quoted(columns.reward)
    ones = [str(word) for word, number in (values or {}).items() if number == 1.0]
    return Terms(
        outcome=f"mean {outcome}",
        of="of",
        alike=ALIKE if columns.features else "overall",
        event=f"{outcome} = {quoted(ones[0]) if len(ones) == 1 else '1'}",
        unit=outcome,
        bias="gap",
        contexts="features",
    )


def terms_against_truth(columns: Columns) -> Terms:
    """The words of a report on outcomes less true rewards."""
    outcome, truth = quoted(columns.reward), quoted(str(columns.true_reward))
    return Terms(
        outcome=f"mean excess of {outcome} over {truth}",
        of="in",
        alike=ALIKE if columns.features else "overall",
        unit=outcome,
        bias="gap",
        contexts="features",
    )
