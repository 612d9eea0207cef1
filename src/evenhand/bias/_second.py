"""What another model of the same rewards says about the claims of a report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SecondModel:
    """Claims that rest on the form of the model, and the sentences that say so in their place.

    A report with this claims neither the changes nor the gaps that are named here.
    """

    changes: frozenset[tuple[int, int]] = frozenset()  # group and feature, by number
    gaps: frozenset[int] = frozenset()  # groups, by number, at the average context
    by: str = ""  # which model the gaps of the report are of, where another one comes first
    before: tuple[str, ...] = ()  # what comes before the gaps
    about_gaps: tuple[str, ...] = ()  # what comes after them
    about_changes: tuple[str, ...] = ()  # what comes after the changes
