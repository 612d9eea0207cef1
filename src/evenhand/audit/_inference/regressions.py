"""All regressions of an audit, known after the first pass over the log.

They are that of the whole log, those of time windows, and that with the window held constant. The
sums over rows that robust errors need are then queried for all of them at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenhand.audit._inference.bias_by_window import MOST_FITS, WINDOWS, Parts, in_parts
from evenhand.audit._inference.regression_scores import fits_of
from evenhand.audit._inference.second_pass import Question, SecondPass
from evenhand.audit._inference.windows_held_constant import WITHIN, HeldConstant, hold_windows
from evenhand.audit._input.sources import Source
from evenhand.audit._sums.cells import Cells
from evenhand.bias._contexts import describe
from evenhand.bias.statistics import Statistics

WHOLE = "whole"


@dataclass(frozen=True, eq=False)
class AuditRegressions:
    """The regressions, and the second pass that sums up their residuals."""

    second: SecondPass
    parts: Parts | None = None  # of time windows
    equal: HeldConstant | None = None  # with the window held constant


def regressions(
    source: Source, rows: Any, cells: Cells, stats: Statistics, weighting: str, windows: int
) -> AuditRegressions:
    """Plan the regressions, and what the second pass sums up for them.

    Args:
        source: where the rows are.
        rows: as `prepared` made them.
        cells: their sums.
        stats: the sums of the whole log.
        weighting: by arms or by pulls.
        windows: how many time windows there are sums of; 0 without.
    """
    second = SecondPass(source, rows, windows)
    second.questions[WHOLE] = Question(fits_of(stats, weighting, cells.places), rows)
    if not windows:
        return AuditRegressions(second)
    parts = in_parts(cells, stats.groups, windows, weighting)
    # Without an average context there is nothing to compare windows at.
    overall = describe(stats).overall
    if len(parts.fits.labels) <= MOST_FITS and overall is not None:
        timed = rows.filter(rows["t"].notnull())
        second.questions[WINDOWS] = Question(parts.fits, timed, context=overall)
    equal = hold_windows(cells, rows, stats.groups, windows, weighting)
    if equal is not None:
        second.questions[WITHIN] = equal.question
    return AuditRegressions(second, parts, equal)
