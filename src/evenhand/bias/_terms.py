"""The words of a report: its names for what it compares, and sentences in place of claims."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Terms:
    """The words of a report. These defaults are those of bandits; an audit has its own.

    Attributes:
        outcome: what is compared: "the feedback for group F".
        of: the word between the outcome and a group.
        alike: where groups are compared: "at the average context".
        event: what a reward of 1 is.
        unit: what gaps are measured in.
        bias: what a gap that cannot be estimated is called.
        contexts: what the features of a decision are called together.
    """

    outcome: str = "feedback"
    of: str = "for"
    alike: str = "at the average context"
    event: str = "a reward of 1"
    unit: str = "reward"
    bias: str = "bias"
    contexts: str = "contexts"

    def compared(self, group: str) -> str:
        """ "feedback for group F" """
        return f"{self.outcome} {self.of} group {group}"

    def other(self, group: str) -> str:
        """ "that for group M" """
        return f"that {self.of} group {group}"

    def at(self, sentence: str) -> str:
        """A sentence that says where groups are compared: "At the average context ..." """
        comma = "" if self == Terms() else ","
        return f"{self.alike[0].upper()}{self.alike[1:]}{comma} {sentence}"


@dataclass(frozen=True)
class SecondModel:
    """Claims that rest on the form of the model, and the sentences that say so in their place.

    A report with this claims neither the changes nor the gaps that are named here.
    """

    changes: frozenset[tuple[int, int]] = frozenset()  # group and feature, by number
    gaps: frozenset[int] = frozenset()  # groups, by number, at the average context
    by: str = ""  # the model behind the gaps of the report, where another one comes first
    before: tuple[str, ...] = ()  # what comes before the gaps
    about_gaps: tuple[str, ...] = ()  # what comes after them
    about_changes: tuple[str, ...] = ()  # what comes after the changes
