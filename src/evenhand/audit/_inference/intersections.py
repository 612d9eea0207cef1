"""Several group columns: a report for each from the sums of the cells, and cells that borrow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import ndtri

from evenhand.audit._input.attributes import Crossing
from evenhand.audit._report.intersections import MARGINS_ONLY, SHRUNK, Intersections
from evenhand.bias._contrasts import compare
from evenhand.bias._margins import Shrunk, margins, shrink
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Array, Bools

if TYPE_CHECKING:
    from evenhand.audit._pipeline import Fitted, Run

SPARE = 2  # rows more than coefficients that a cell needs for an estimate of its own
LEAST_FREEDOM = 0.5  # of Student's variance, which there is none of with two degrees


def intersect(
    run: Run, fitted: Fitted, sums: pd.DataFrame, impact: pd.DataFrame
) -> Intersections | None:
    """What several group columns say; None where there is one.

    Args:
        run: the audit by cell.
        fitted: what it found.
        sums: of rewards by cell, as `group_sums` made them.
        impact: the impact tables.
    """
    crossing = run.crossing
    if crossing is None:
        return None
    run.tell("comparing by each group column")
    attributes = {name: _by(name, run, fitted, crossing) for name in crossing.attributes}
    cells, shrunk = _borrowed(fitted.centred, crossing)
    rewards = sums.set_index("group").loc[cells["cell"]]
    mean = (rewards["sum_reward"] / rewards["n_reward"]).to_numpy()
    cells.insert(list(cells).index("estimate"), "mean_reward", mean)
    return Intersections(
        attributes=attributes,
        cells=cells,
        impact=impact,
        reference=fitted.centred.reference,
        tau=shrunk.tau,
        freedom=shrunk.freedom,
        level=fitted.centred.level,
    )


def _by(name: str, run: Run, fitted: Fitted, crossing: Crossing) -> BiasReport:
    """The report by one column: its sums are sums over cells, so only robust errors read rows."""
    frame = fitted.cells.frame
    category = crossing.cells[name].reindex(frame["g"].astype(str)).to_numpy()
    table, gaps = run.source.table, fitted.gaps
    if gaps.left_out:  # rows that lack another of the columns are in no cell
        table = table.filter(table[crossing.column].notnull())
        lacking = gaps.columns.get(crossing.column, 0)
        gaps = replace(gaps, columns={**gaps.columns, name: lacking})
    columns = replace(run.look.columns, group=name)
    settings = replace(run.settings, reference=crossing.references.get(name))
    own = replace(
        run,
        source=replace(run.source, table=table),
        settings=settings,
        look=replace(run.look, columns=columns),
        crossing=None,
    )
    cells = replace(fitted.cells, frame=frame.assign(g=category))
    found = own.compared(cells, fitted.design, gaps, by_window=False)
    return found.in_units(found.centred, settings)


def _borrowed(report: BiasReport, crossing: Crossing) -> tuple[pd.DataFrame, Shrunk]:
    """The gap of every cell at the average context: by itself, and with its margins."""
    level, spread, known, why = _levels(report)
    cells = crossing.cells.reindex(report.groups)
    shrunk = shrink(np.where(known, level, np.nan), spread, margins(cells))
    held = np.nan_to_num(report._weights)
    there = ~np.isnan(shrunk.level)
    # Cells that nothing is known of are in no comparison, so that they spoil none.
    gap = held @ np.where(there, shrunk.level, 0.0)
    variance = np.einsum("ci,ij,cj->c", held, shrunk.covariance, held)
    reach = float(ndtri(0.5 + report.level / 2.0)) * np.sqrt(np.maximum(variance, 0.0))
    gap, reach = np.where(there, gap, np.nan), np.where(there, reach, np.nan)
    raw = report.by_group
    named = ["estimate", "standard_error", "low", "high"]
    table = raw[named].copy()
    table.loc[~known] = np.nan
    table = table.assign(
        shrunk=gap,
        shrunk_low=gap - reach,
        shrunk_high=gap + reach,
        own_weight=np.where(there, shrunk.own, np.nan),
        kind=np.where(known, SHRUNK, np.where(there, MARGINS_ONLY, "not known")),
        why=[own or other for own, other in zip(why, raw["why"], strict=True)],
    )
    first = {"cell": list(report.groups), **{name: cells[name].to_numpy() for name in cells}}
    parts = pd.DataFrame({**first, "n": list(report.observations)})
    return pd.concat([parts, table.reset_index(drop=True)], axis=1), shrunk


def _levels(report: BiasReport) -> tuple[Array, Array, Bools, list[str]]:
    """The feedback for each cell at the average context, the covariance, and what is known.

    With few rows the variance itself is an estimate: it is that of Student's distribution.
    """
    m, d = len(report.groups), len(report.features)
    place = np.zeros(d) if report.overall is None else report.overall
    fit = report._fit
    found = compare(fit, np.eye(m), np.tile(place, (m, 1)), report.level, report.features)
    n = np.array(report.observations)
    known: Bools = found.identified & (n >= d + SPARE)
    spread = np.array([[fit.covariance(i, j, place) for j in range(m)] for i in range(m)])
    freedom = np.where(np.isfinite(found.freedom), found.freedom, np.inf)
    with np.errstate(invalid="ignore"):
        more = np.where(np.isinf(freedom), 1.0, freedom / np.maximum(freedom - 2.0, LEAST_FREEDOM))
    spread[np.arange(m), np.arange(m)] *= more
    few = f"fewer than {d + SPARE} rows, too few for a regression of its own with {d} coefficients"
    why = [few if many < d + SPARE else "" for many in n]
    return found.estimate, np.nan_to_num(spread), known, why
