"""Who was selected, by group: from the sums, or above the median where rewards are scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand.audit._input.engines import as_number, number
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import Settings
from evenhand.audit._sums.aggregate import fetch_by
from evenhand.audit._sums.cells import Cells
from evenhand.bias.estimate import MEAN
from evenhand.fairness.impact import impact_table

if TYPE_CHECKING:
    from evenhand.audit._input.attributes import Crossing

MOST_SORTED = 20_000_000  # rows of which the median is exact; of more it is an engine's estimate


@dataclass(frozen=True, eq=False)
class Selected:
    """How many people of each group there are and were selected: sums of weights, if rows have any.

    Attributes:
        counts: by group: n, selected and, with weights, square (the sum of their squares).
        scores: whether being above the median is being selected.
    """

    counts: pd.DataFrame
    scores: bool

    def by(self, category: pd.Series[str] | None = None) -> pd.DataFrame:
        """What an impact table is made from, of the groups or of what these are parts of."""
        counts = self.counts
        if category is not None:
            counts = counts.groupby(category.reindex(counts.index), sort=True).sum()
        table = counts.rename_axis("category").reset_index()
        if "square" in table:
            table["effective"] = table["n"] ** 2 / table.pop("square")
        return table


def count_selected(
    source: Source, rows: Any, cells: Cells, sums: pd.DataFrame, unfavourable: bool
) -> Selected:
    """Count by group. A reward of 1 is a selection; of 0, where a higher reward is worse.

    Args:
        source: where the rows are.
        rows: as `prepared` made them.
        cells: their sums.
        sums: by group, as `group_sums` made them. Without weights rows that only lack a feature
            count as well.
        unfavourable: whether a higher reward is worse for people.
    """
    if "positives" not in sums:
        return Selected(_beyond_median(source, rows, cells.n.sum(), unfavourable), scores=True)
    if "w" in cells.frame:
        frame = cells.frame[["w", "wy", "ww"]].astype(float)
        counts = frame.groupby(cells.frame["g"].astype(str)).sum()
        counts = counts.set_axis(["n", "selected", "square"], axis=1)
    else:
        counts = sums.set_index("group")[["n_reward", "positives"]].astype(float)
        counts = counts.set_axis(["n", "selected"], axis=1)
    if unfavourable:
        counts["selected"] = counts["n"] - counts["selected"]
    return Selected(counts, scores=False)


def _beyond_median(source: Source, rows: Any, n: float, unfavourable: bool) -> pd.DataFrame:
    """How many of each group are above the median of all, or below it."""
    y = rows["y"]
    middle = y.median() if n <= MOST_SORTED else y.approx_median()
    median = float(source.fetch(rows.aggregate(median=middle))["median"].iloc[0])
    beyond = as_number(y < number(median) if unfavourable else y > number(median))
    asked = {"n": rows.count(), "selected": beyond.sum()}
    if "w" in rows.columns:
        w = rows["w"]
        asked = {"n": w.sum(), "selected": (w * beyond).sum(), "square": (w * w).sum()}
    found = fetch_by(source, rows, ["g"], asked)
    return found.assign(g=found["g"].astype(str)).set_index("g").astype(float)


def impact_of(
    selected: Selected, column: str, settings: Settings, crossing: Crossing | None
) -> pd.DataFrame:
    """The impact tables, one below the other: of every group column, and of the cells."""
    named = None if settings.reference == MEAN else settings.reference
    whole = _named(selected.by(), column, named, settings.level)
    if crossing is None:
        return whole
    parts = [
        _named(
            selected.by(crossing.cells[name]), name, crossing.references.get(name), settings.level
        )
        for name in crossing.attributes
    ]
    return pd.concat([*parts, whole], ignore_index=True)


def _named(
    counts: pd.DataFrame, attribute: str, reference: str | None, level: float
) -> pd.DataFrame:
    known: Sequence[str] = counts["category"].tolist()
    table = impact_table(counts, reference if reference in known else None, level)
    table.insert(0, "attribute", attribute)
    return table
