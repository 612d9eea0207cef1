"""Several group columns in an audit: sentences for the summary, and the part of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand._html.tables import Table, of_frame
from evenhand._prose import quoted
from evenhand.audit._report.blend import arrival_sentence, together
from evenhand.audit._report.intersections import (
    AS_THEY_ARE,
    COMMON_SLOPES,
    MARGINS_ONLY,
    OWN_ROWS,
    SHRUNK,
    Intersections,
)
from evenhand.bias._contrasts import few as few_of
from evenhand.bias._sentences import rounded, totals
from evenhand.bias._terms import Terms

if TYPE_CHECKING:
    from evenhand.audit._report.result import Audit

MOST_DRAWN = 60  # cells: more would not be read


def cell_sentences(audit: Audit) -> list[str]:
    """The findings by each group column, and in the cells where they meet."""
    crossed = audit.intersections
    if crossed is None:
        return []
    sentences = list[str]()
    for name in crossed.attributes:
        sentences += [
            f"By {quoted(name)}, {_lower(sentence)}" for sentence in _of_attribute(audit, name)
        ]
    return [*sentences, *_furthest(crossed, audit.bias._terms), *_borrowing(crossed)]


def _of_attribute(audit: Audit, name: str) -> list[str]:
    """By one group column alone: the gaps, against the truth, and over time."""
    crossed = audit.intersections
    assert crossed is not None
    report = crossed.believed(name)
    start = ""
    if report is not crossed.attributes[name]:
        start = "within time windows, which disagree with the whole log, "
    sentences = [f"{start}{_lower(sentence)}" for sentence in totals(report)]
    if name in crossed.against_truth:
        true = quoted(str(audit.facts.columns.true_reward))
        measured = totals(crossed.against_truth[name])
        sentences += [f"measured against {true}, {_lower(sentence)}" for sentence in measured]
        blended = crossed.blends.get(name)
        if blended is not None and blended.measured is not None:
            sentences += [
                *together(blended, f"from equal averages and {true} combined, "),
                arrival_sentence(blended, quoted(audit.facts.columns.reward), true),
            ]
    tests = crossed.changes.get(name)
    if tests is None or tests.empty:
        return sentences
    moved = [quoted(str(group)) for group in tests[tests["changes"]]["group"]]
    if moved:
        return [*sentences, f"the gap changes over time for group {few_of(moved)}: see the table."]
    return [*sentences, "no change of a gap over time can be told apart from chance."]


def _lower(sentence: str) -> str:
    return f"{sentence[0].lower()}{sentence[1:]}"


def _against(crossed: Intersections) -> str:
    return "the mean of the cells" if crossed.reference is None else quoted(crossed.reference)


def _furthest(crossed: Intersections, terms: Terms) -> list[str]:
    """The cell that is furthest from the reference, once cells borrow from their margins."""
    cells = crossed.cells
    cells = cells[(cells["cell"] != crossed.reference) & cells["kind"].isin(OWN_ROWS)]
    *most, last = map(quoted, crossed.attributes)
    meet = f"Where {', '.join(most)} and {last} meet"
    where = f"{meet}, with every cell {SHRUNK}" if crossed.freedom > 0 else meet
    if cells.empty:
        return [
            f"{meet}, each cell has too few rows for gaps at the same features: the "
            "cells are shown with plain rates and means."
        ]
    apart = cells[(cells["shrunk_low"] > 0.0) | (cells["shrunk_high"] < 0.0)]
    at = f"{100 * crossed.level:.6g} % interval of that cell alone"
    if apart.empty:
        return [
            f"{where}, no cell can be distinguished from {_against(crossed)} by its "
            f"{100 * crossed.level:.6g} % interval."
        ]
    row = apart.iloc[int(apart["shrunk"].abs().argmax())]
    low, high = sorted((abs(row["shrunk_low"]), abs(row["shrunk_high"])))
    size, low, high = (rounded(end, (high - low) / 2.0) for end in (abs(row["shrunk"]), low, high))
    side = "lower" if row["shrunk"] < 0.0 else "higher"
    return [
        f"{where}, the {terms.outcome} {terms.alike} is furthest from that of "
        f"{_against(crossed)} for {quoted(row['cell'])}: {size} {side}, {at} "
        f"{low} to {high}."
    ]


def _borrowing(crossed: Intersections) -> list[str]:
    cells, sentences = crossed.cells, list[str]()
    if cells["kind"].isin([COMMON_SLOPES, AS_THEY_ARE[COMMON_SLOPES]]).any():
        sentences.append(
            "Hardly any cell has rows for a regression of its own, so all of them are adjusted "
            "with the same slopes: a feature is assumed to have one effect in all cells, and the "
            "noise to be equal in all cells."
        )
    own = cells[cells["kind"].isin(OWN_ROWS)]["own_weight"]
    if crossed.freedom < 1:
        sentences.append(
            "There are too few cells to separate margins from cells, so no cell is shrunk."
        )
    elif len(own):
        sentences.append(
            f"A cell's own rows count for {100 * own.min():.0f} % to {100 * own.max():.0f} % of "
            "its shrunk gap, and its margins for the rest."
        )
    few = cells[cells["kind"] == MARGINS_ONLY]
    if len(few):
        names = few_of([quoted(name) for name in few["cell"]])
        sentences.append(
            f"For {names} there are too few rows for an estimate from own rows: only that from the "
            "margins is shown."
        )
    return sentences


def intersections_view(audit: Audit) -> dict[str, Any] | None:
    """What the page shows of several group columns; None with a single one."""
    crossed = audit.intersections
    if crossed is None:
        return None
    return {
        "attributes": [(name, _tables(crossed, name)) for name in crossed.attributes],
        "truth": str(audit.facts.columns.true_reward),
        "timed": audit.facts.columns.timestamp is not None,
        "against": _against(crossed),
        "level": f"{100 * crossed.level:.6g} %",
        "shrunk": crossed.freedom > 0,
        "tau": f"{crossed.tau:.3g}",
        "picture": _picture(crossed, quoted(audit.facts.columns.reward)),
        "outcome": quoted(audit.facts.columns.reward),
        "cells": of_frame(crossed.cells),
    }


def _tables(crossed: Intersections, name: str) -> list[tuple[str, Table]]:
    """By one group column: the gap, the same within time windows and against the truth, changes."""
    reports = [("over the whole log", crossed.attributes[name])]
    if name in crossed.within:
        reports.append(("within time windows", crossed.within[name]))
    if name in crossed.against_truth:
        reports.append(("measured against the truth", crossed.against_truth[name]))
    blended = crossed.blends.get(name)
    if blended is not None and blended.bias is not None:
        reports.append(("equal averages and the truth together", blended.bias))
    tables = [(words, _at_average(report, words)) for words, report in reports]
    if name in crossed.changes and not crossed.changes[name].empty:
        changes = crossed.changes[name]
        words = "the test for change over time windows"
        tables.append((words, of_frame(changes, caption=words)))
    return tables


def _at_average(report: Any, which: str) -> Table:
    ends = {"simultaneous_low": "low", "simultaneous_high": "high", "observations": "rows"}
    table = report.by_group.reset_index().drop(columns=["low", "high"])
    table = table.rename(columns={**ends, "estimate": "gap"})
    table = table[table["group"] != report.reference]
    words = f"{which}, compared with {report.against}"
    return of_frame(table[["group", "rows", "gap", "low", "high", "why"]], caption=words)


def _picture(crossed: Intersections, outcome: str) -> Any:
    from evenhand import charts  # the summary needs neither
    from evenhand._html import drawn

    cells: pd.DataFrame = crossed.cells
    if cells["shrunk"].notna().sum() < 2:
        return None
    if len(cells) > MOST_DRAWN:  # those with the most people
        cells = cells.loc[cells["n"].nlargest(MOST_DRAWN).index]
    axis = f"gap to {_against(crossed)}, in units of {outcome}"
    return drawn(
        charts.to_svg(charts.cells_chart(cells, crossed.reference, crossed.level, "", axis))
    )
