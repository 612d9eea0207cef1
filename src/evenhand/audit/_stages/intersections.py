"""Several group columns: a report for each from the sums of cells, and cells that borrow."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from evenhand.audit._inference.standard_errors import CLUSTERED
from evenhand.audit._input.attributes import Crossing
from evenhand.audit._report.intersections import AS_THEY_ARE, MARGINS_ONLY, Intersections
from evenhand.audit._stages.blend import Blended, blend
from evenhand.audit._stages.cell_levels import common_levels, half_widths, own_levels
from evenhand.audit._stages.comparisons import against_truth, beside_logistic, over_time
from evenhand.audit._stages.fitting import AuditRun, Fitted
from evenhand.bias._margins import Shrunk, margins, shrink
from evenhand.bias.report import BiasReport


def intersect(
    run: AuditRun, fitted: Fitted, sums: pd.DataFrame, impact: pd.DataFrame, objection: str
) -> Intersections | None:
    """The comparisons by several group columns; None where there is one.

    Args:
        run: the audit by cell.
        fitted: the regressions of the cells.
        sums: of rewards by cell, as `group_sums` made them.
        impact: the impact tables.
        objection: why rewards cannot be measured against the true ones; empty if they can.
    """
    crossing = run.crossing
    if crossing is None:
        return None
    run.tell("comparing by each group column")
    attributes = {name: _by(name, run, fitted, crossing, objection) for name in crossing.attributes}
    cells, shrunk = _borrowed(fitted, crossing)
    rewards = sums.set_index("group").loc[cells["cell"]]
    mean = (rewards["sum_reward"] / rewards["n_reward"]).to_numpy()
    cells.insert(list(cells).index("estimate"), "mean_reward", mean)
    return Intersections(
        attributes={name: single.bias for name, single in attributes.items()},
        within={name: single.within for name, single in attributes.items() if single.within},
        against_truth={name: single.truth for name, single in attributes.items() if single.truth},
        blends={name: single.blend for name, single in attributes.items() if single.blend},
        changes={
            name: single.changes
            for name, single in attributes.items()
            if single.changes is not None
        },
        cells=cells,
        impact=impact,
        reference=fitted.centred.reference,
        tau=shrunk.tau,
        freedom=shrunk.freedom,
        level=fitted.centred.level,
    )


class Single(NamedTuple):
    """The comparisons by one of the group columns alone."""

    bias: BiasReport
    within: BiasReport | None  # with the time window held constant
    truth: BiasReport | None  # measured against true rewards
    blend: Blended | None  # equal averages and true rewards together
    changes: pd.DataFrame | None  # from window to window


def _by(name: str, run: AuditRun, fitted: Fitted, crossing: Crossing, objection: str) -> Single:
    """The comparison by one column: its sums are sums over cells."""
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
        look=replace(run.look, columns=columns, labels=None),
        crossing=None,
    )
    cells = replace(fitted.cells, frame=frame.assign(g=category))
    refitted = own.compared(cells, fitted.design, gaps, fitted.by_window)
    centred = refitted.centred
    timed = over_time(own, refitted)
    bias, *_ = beside_logistic(
        own, refitted, centred, refitted.stats, refitted.rows, refitted.errors, spare=True
    )
    inside, held = None, timed.within
    if held is not None:
        inside, *_ = beside_logistic(
            own, refitted, held.report, held.stats, held.rows, held.errors, spare=True
        )
    measured = None if objection else against_truth(own, cells, centred.reference)
    return Single(bias, inside, measured, blend(own, refitted, objection), timed.changes)


def _borrowed(fitted: Fitted, crossing: Crossing) -> tuple[pd.DataFrame, Shrunk]:
    """The gap of every cell at the average context: by itself, and with its margins."""
    report, stats = fitted.centred, fitted.stats
    levels = own_levels(report)
    few = levels.known.sum() < max(2.0, len(levels.known) / 2.0)
    if few and fitted.errors.kind != CLUSTERED and stats.weights is None:
        levels = common_levels(stats, report.reference, report.level) or levels
    known, held = levels.known, levels.contrast
    cells = crossing.cells.reindex(report.groups)
    shrunk = shrink(np.where(known, levels.level, np.nan), levels.spread, margins(cells))
    there = ~np.isnan(shrunk.level)
    # Cells of which nothing is known are in no comparison, so that they spoil none.
    gap = held @ np.where(there, shrunk.level, 0.0)
    half_width = half_widths(held, np.nan_to_num(shrunk.covariance), report.level)
    gap, half_width = np.where(there, gap, np.nan), np.where(there, half_width, np.nan)
    kind = levels.kind if shrunk.freedom > 0 else AS_THEY_ARE[levels.kind]
    table = levels.gaps.assign(
        shrunk=gap,
        shrunk_low=gap - half_width,
        shrunk_high=gap + half_width,
        own_weight=np.where(there, shrunk.own, np.nan),
        kind=np.where(known, kind, np.where(there, MARGINS_ONLY, "not known")),
        why=levels.why,
    )
    first = {"cell": list(report.groups), **{name: cells[name].to_numpy() for name in cells}}
    parts = pd.DataFrame({**first, "n": list(report.observations)})
    return pd.concat([parts, table], axis=1), shrunk
