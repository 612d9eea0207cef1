"""Who was selected, by group: from the sums, or above the median where rewards are scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand.audit._input.expressions import as_number, number
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import AuditSettings
from evenhand.audit._sums.aggregate import fetch_by
from evenhand.audit._sums.cells import Cells
from evenhand.audit._sums.streamed import MOST_SORTED
from evenhand.bias.estimate import MEAN
from evenhand.fairness.impact import WEIGHTED, impact_table

if TYPE_CHECKING:
    from evenhand.audit._input.attributes import Crossing

TOGETHER = "no exact test: rows belong together"


@dataclass(frozen=True, eq=False)
class Selected:
    """How many people a group has, and how many are selected: sums of weights, if rows have any.

    Attributes:
        counts: by group column, and group of it: n, selected and, where rows have weights or belong
            together, square: n squared over the effective number of rows, that is of independent
            rows of equal weight. With weights alone it is the sum of their squares.
        scores: whether to be selected is to be above the median.
    """

    counts: dict[str, pd.DataFrame]
    scores: bool

    def table(self, column: str) -> pd.DataFrame:
        """The counts of an impact table."""
        table = self.counts[column].rename_axis("category").reset_index()
        if "square" in table:
            table["effective"] = table["n"] ** 2 / table.pop("square")
        return table


def count_selected(
    source: Source,
    rows: Any,
    cells: Cells,
    sums: pd.DataFrame,
    settings: AuditSettings,
    column: str,
    crossing: Crossing | None,
) -> Selected:
    """Count by group. A reward of 1 is a selection; of 0, where a higher reward is worse.

    Args:
        source: where the rows are.
        rows: as `prepared` made them.
        cells: their sums.
        sums: by group, as `group_sums` made them. Without weights rows that only lack a feature
            count as well.
        settings: whether a higher reward is worse for people.
        column: of the groups.
        crossing: of several group columns.
    """
    scores = "positives" not in sums
    if scores and cells.beyond is not None:
        beyond = rows["y"]
        counts = cells.beyond[["n", "below" if settings.unfavourable else "above"]]
        counts = counts.set_axis(["n", "selected"], axis=1)
    elif scores:
        beyond = _beyond_median(source, rows, cells.n.sum(), settings.unfavourable)
        counts = _counted(source, rows, beyond)
    elif "w" in cells.frame:
        beyond = rows["y"]
        frame = cells.frame[["w", "wy", "ww"]].astype(float)
        counts = frame.groupby(cells.frame["g"].astype(str)).sum()
        counts = counts.set_axis(["n", "selected", "square"], axis=1)
    else:
        beyond = rows["y"]
        counts = sums.set_index("group")[["n_reward", "positives"]].astype(float)
        counts = counts.set_axis(["n", "selected"], axis=1)
    if settings.unfavourable and not scores:
        counts["selected"] = counts["n"] - counts["selected"]
    by_column = {column: _with_clusters(source, rows, beyond, counts)}
    for name in () if crossing is None else crossing.attributes:
        category = crossing.cells[name] if crossing is not None else pd.Series(dtype=str)
        own = counts.groupby(category.reindex(counts.index), sort=True).sum()
        by_column[name] = _with_clusters(source, rows, beyond, own, category)
    return Selected(by_column, scores)


def _beyond_median(source: Source, rows: Any, n: float, unfavourable: bool) -> Any:
    """A column of 1 for rows above the median of all, or below it, and of 0 for the others."""
    y = rows["y"]
    middle = y.median() if n <= MOST_SORTED else y.approx_median()
    median = float(source.fetch(rows.aggregate(median=middle))["median"].iloc[0])
    return as_number(y < number(median) if unfavourable else y > number(median))


def _counted(source: Source, rows: Any, beyond: Any) -> pd.DataFrame:
    """The rows of each group, and those that are selected."""
    aggregates = {"n": rows.count(), "selected": beyond.sum()}
    if "w" in rows.columns:
        w = rows["w"]
        aggregates = {"n": w.sum(), "selected": (w * beyond).sum(), "square": (w * w).sum()}
    counts = fetch_by(source, rows, ["g"], aggregates)
    return counts.assign(g=counts["g"].astype(str)).set_index("g").astype(float)


def _with_clusters(
    source: Source,
    rows: Any,
    selected: Any,
    counts: pd.DataFrame,
    category: pd.Series[str] | None = None,
) -> pd.DataFrame:
    """The counts, with their effective number of rows where rows belong together.

    With the sums s_c of the selected and v_c of all rows in each of G clusters, the rate is
    r = sum s_c / sum v_c, with the variance of cluster sums (CR1)

        G / (G - 1) * sum (s_c - r v_c)^2 / (sum v_c)^2

    The effective number of rows is r (1 - r) over it. It is never more than that of independent
    rows and, where all or none are selected, never more than the number of clusters.
    """
    if "c" not in rows.columns:
        return counts
    weighted = "w" in rows.columns
    rows = rows.mutate(s=rows["w"] * selected if weighted else selected)
    if category is not None:
        rows = rows.mutate(g=rows["g"].cases(*category.items(), else_=None))
    size = rows["w"].sum() if weighted else rows.count().cast("float64")
    clusters = rows.group_by(["g", "c"]).aggregate(s=rows["s"].sum(), v=size)
    aggregates = {"clusters": clusters.count(), "v": clusters["v"].sum(), "s": clusters["s"].sum()}
    aggregates |= {
        "ss": (clusters["s"] * clusters["s"]).sum(),
        "sv": (clusters["s"] * clusters["v"]).sum(),
    }
    aggregates |= {"vv": (clusters["v"] * clusters["v"]).sum()}
    answer = fetch_by(source, clusters, ["g"], aggregates)
    sums = answer.assign(g=answer["g"].astype(str)).set_index("g").astype(float).loc[counts.index]
    rate, many = sums["s"] / sums["v"], sums["clusters"]
    squares = sums["ss"] - 2.0 * rate * sums["sv"] + rate**2 * sums["vv"]
    variance = many / (many - 1.0).clip(lower=0.5) * squares.clip(lower=0.0) / sums["v"] ** 2
    chance = rate * (1.0 - rate)
    independent = counts["square"] if "square" in counts else counts["n"]
    per_row = sums["v"] ** 2 * variance / chance.where(chance > 0.0)
    certain = sums["v"] ** 2 / many
    worth = per_row.fillna(certain) * (counts["n"] / sums["v"])  # rows that lack a feature too
    return counts.assign(square=worth.where(worth > independent, independent))


def impact_of(
    selected: Selected,
    column: str,
    settings: AuditSettings,
    crossing: Crossing | None,
    clustered: bool = False,
) -> pd.DataFrame:
    """The impact tables, one below the other: of every group column, and of the cells."""
    references = {column: None if settings.reference == MEAN else settings.reference}
    if crossing is not None:
        references = {
            **{name: crossing.references.get(name) for name in crossing.attributes},
            **references,
        }
    tables = [
        _named(selected.table(name), name, reference, settings.level)
        for name, reference in references.items()
    ]
    table = pd.concat(tables, ignore_index=True)
    if clustered:
        table["note"] = table["note"].str.replace(WEIGHTED, TOGETHER)
    return table


def _named(
    counts: pd.DataFrame, attribute: str, reference: str | None, level: float
) -> pd.DataFrame:
    known: Sequence[str] = counts["category"].tolist()
    table = impact_table(counts, reference if reference in known else None, level)
    table.insert(0, "attribute", attribute)
    return table
