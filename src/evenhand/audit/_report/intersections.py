"""The bias by each of several group columns, and in the cells where they meet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand._prose import records
from evenhand.bias._findings import same_findings

if TYPE_CHECKING:
    from evenhand.audit._stages.blend import Blended
    from evenhand.bias.report import BiasReport

SHRUNK = "shrunk towards its margins"
COMMON_SLOPES = "with slopes of all cells, shrunk towards its margins"
MARGINS_ONLY = "its margins alone"
# What these are where there are too few cells to shrink any.
AS_THEY_ARE = {SHRUNK: "its own rows alone", COMMON_SLOPES: "with slopes of all cells"}
OWN_ROWS = (*AS_THEY_ARE, *AS_THEY_ARE.values())


@dataclass(frozen=True, eq=False, repr=False)
class Intersections:
    """The findings of an audit of several group columns.

    Attributes:
        attributes: the bias by each group column; the others are not among the features.
        within: the same with the time window held constant, where there are windows.
        against_truth: the same of rewards less true rewards, where these are known.
        blends: both together, and the tests, where true rewards are known.
        changes: by group column whether gaps change from window to window, as in `Audit.changes`.
        cells: a row per cell that occurs. `estimate`, `low` and `high` are the gap to `reference`
            at the average context from its own rows; `shrunk`, `shrunk_low` and `shrunk_high` are
            the same, shrunk towards its margins, and `own_weight` is how much its own rows count
            in it. `kind` says which it is, and `why` why there is no estimate of its own. Where
            hardly any cell has rows for a regression of its own, all have the same slopes.
        impact: impact tables of every group column and of the cells.
        reference: the cell that cells are compared with; None for their mean.
        tau: the standard deviation of what margins do not explain, in units of reward.
        freedom: how many comparisons of cells inform it.
        level: of the intervals.
    """

    attributes: dict[str, BiasReport]
    cells: pd.DataFrame
    impact: pd.DataFrame
    reference: str | None
    tau: float
    freedom: int
    level: float
    within: dict[str, BiasReport] = field(default_factory=dict)
    against_truth: dict[str, BiasReport] = field(default_factory=dict)
    blends: dict[str, Blended] = field(default_factory=dict)
    changes: dict[str, pd.DataFrame] = field(default_factory=dict)

    def believed(self, name: str) -> BiasReport:
        """The report of a group column: within time windows where that finds something else."""
        whole, within = self.attributes[name], self.within.get(name)
        return whole if within is None or same_findings(whole, within) else within

    def __repr__(self) -> str:
        return f"Intersections({', '.join(self.attributes)}; {len(self.cells)} cells)"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, except the impact tables, which an audit has beside it."""
        return {
            "attributes": {name: report.to_dict() for name, report in self.attributes.items()},
            "within_windows": {name: report.to_dict() for name, report in self.within.items()},
            "against_truth": {
                name: report.to_dict() for name, report in self.against_truth.items()
            },
            "blends": {name: both.to_dict() for name, both in self.blends.items()},
            "changes": {name: records(table) for name, table in self.changes.items()},
            "reference": self.reference,
            "level": self.level,
            "tau": self.tau,
            "freedom": self.freedom,
            "cells": records(self.cells),
        }
