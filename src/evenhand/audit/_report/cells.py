"""Several group columns in an audit: sentences for the summary, and the part of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand._html.tables import Table, of_frame
from evenhand._prose import quoted
from evenhand.audit._report.intersections import MARGINS_ONLY, SHRUNK, Intersections
from evenhand.bias._contrasts import few as few_of
from evenhand.bias._sentences import totals
from evenhand.bias._terms import Terms

if TYPE_CHECKING:
    from evenhand.audit._report.result import Audit

MOST_DRAWN = 60  # cells: more would not be read


def cell_sentences(audit: Audit) -> list[str]:
    """What is found by each group column, and in the cells where they meet."""
    found = audit.intersections
    if found is None:
        return []
    said = [
        f"By {quoted(name)}, {sentence[0].lower()}{sentence[1:]}"
        for name, report in found.attributes.items()
        for sentence in totals(report)
    ]
    return [*said, *_furthest(found, audit.bias._terms), *_borrowing(found)]


def _against(found: Intersections) -> str:
    return "the mean of the cells" if found.reference is None else quoted(found.reference)


def _furthest(found: Intersections, terms: Terms) -> list[str]:
    """The cell that is furthest from the reference, once cells borrow from their margins."""
    cells = found.cells
    cells = cells[(cells["cell"] != found.reference) & (cells["kind"] == SHRUNK)]
    *most, last = map(quoted, found.attributes)
    where = f"Where {', '.join(most)} and {last} meet, with every cell {SHRUNK}"
    if cells.empty:
        return []
    apart = cells[(cells["shrunk_low"] > 0.0) | (cells["shrunk_high"] < 0.0)]
    at = f"{100 * found.level:.6g} % interval of that cell alone"
    if apart.empty:
        return [
            f"{where}, no cell can be told from {_against(found)} by its {100 * found.level:.6g} % "
            "interval."
        ]
    row = apart.iloc[int(apart["shrunk"].abs().argmax())]
    low, high = sorted((abs(row["shrunk_low"]), abs(row["shrunk_high"])))
    side = "lower" if row["shrunk"] < 0.0 else "higher"
    return [
        f"{where}, the {terms.outcome} {terms.alike} is furthest from that of "
        f"{_against(found)} for {quoted(row['cell'])}: {abs(row['shrunk']):.3g} {side}, {at} "
        f"{low:.3g} to {high:.3g}."
    ]


def _borrowing(found: Intersections) -> list[str]:
    cells, said = found.cells, list[str]()
    own = cells[cells["kind"] == SHRUNK]["own_weight"]
    if found.freedom < 1:
        said.append(
            "There are too few cells to tell margins from cells, so that no cell is shrunk."
        )
    elif len(own):
        said.append(
            f"A cell's own rows count for {100 * own.min():.0f} % to {100 * own.max():.0f} % of "
            "its shrunk gap, and its margins for the rest."
        )
    few = cells[cells["kind"] == MARGINS_ONLY]
    if len(few):
        names = few_of([quoted(name) for name in few["cell"]])
        said.append(
            f"Of {names} too little is known for an estimate from own rows: shown is what the "
            "margins alone say."
        )
    return said


def intersections_view(audit: Audit) -> dict[str, Any] | None:
    """What the page shows of several group columns; None with a single one."""
    found = audit.intersections
    if found is None:
        return None
    return {
        "attributes": [(name, _at_average(report)) for name, report in found.attributes.items()],
        "against": _against(found),
        "level": f"{100 * found.level:.6g} %",
        "tau": f"{found.tau:.3g}",
        "picture": _picture(found, quoted(audit.facts.columns.reward)),
        "outcome": quoted(audit.facts.columns.reward),
        "cells": of_frame(found.cells),
    }


def _at_average(report: Any) -> Table:
    ends = {"simultaneous_low": "low", "simultaneous_high": "high", "observations": "rows"}
    table = report.by_group.reset_index().drop(columns=["low", "high"])
    table = table.rename(columns={**ends, "estimate": "gap"})
    table = table[table["group"] != report.reference]
    words = f"compared with {report.against}"
    return of_frame(table[["group", "rows", "gap", "low", "high", "why"]], caption=words)


def _picture(found: Intersections, outcome: str) -> Any:
    from evenhand import charts  # the summary needs neither
    from evenhand._html import drawn

    cells: pd.DataFrame = found.cells
    if cells["shrunk"].notna().sum() < 2:
        return None
    if len(cells) > MOST_DRAWN:  # those with the most people
        cells = cells.loc[cells["n"].nlargest(MOST_DRAWN).index]
    axis = f"gap to {_against(found)}, in units of {outcome}"
    return drawn(charts.to_svg(charts.cells_chart(cells, found.reference, found.level, "", axis)))
