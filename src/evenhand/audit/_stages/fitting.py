"""The first stage of an audit: a log is summed up, and its groups are compared."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.audit._inference.cluster_errors import clustered, fewest_in_an_arm
from evenhand.audit._inference.own_units import about_zero
from evenhand.audit._inference.regression_scores import changed
from evenhand.audit._inference.regressions import WHOLE, AuditRegressions, regressions
from evenhand.audit._inference.standard_errors import (
    Errors,
    classical,
    robust,
    robust_groups,
    weighting_of,
)
from evenhand.audit._inference.windows_held_constant import WITHIN
from evenhand.audit._input.attributes import Crossing
from evenhand.audit._input.first_look import Look
from evenhand.audit._input.sources import Source
from evenhand.audit._report.terms import terms_of
from evenhand.audit._settings import AuditSettings
from evenhand.audit._sums import missing as missing_values
from evenhand.audit._sums.aggregate import (
    LogSums,
    aggregated,
    is_binary,
    prepared,
    spoiled,
)
from evenhand.audit._sums.cells import Cells, make_cells
from evenhand.audit._sums.checks import (
    check_chances,
    check_weights,
    not_finite,
    recentred,
)
from evenhand.audit._sums.design import Design, make_design
from evenhand.audit._sums.missing import Gaps
from evenhand.bias._fit import AUTO, PULLS
from evenhand.bias.estimate import bias_report
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Statistics
from evenhand.errors import DataError, setting

Tell = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Fitted:
    """The sums of a log, and the report about the centres that is computed from them."""

    cells: Cells
    design: Design
    gaps: Gaps
    rows: Any  # as `prepared` made them
    by_window: bool
    stats: Statistics
    binary: bool
    errors: Errors
    centred: BiasReport
    regressions: AuditRegressions

    def in_units(self, report: BiasReport, settings: AuditSettings) -> BiasReport:
        """A report about the centres in the columns' own units."""
        design = self.design
        return about_zero(report, design.centres, design.reward_centre, settings.units)


@dataclass(frozen=True, eq=False)
class AuditRun:
    """An audit after the first look at its log: what all stages read."""

    source: Source
    settings: AuditSettings
    look: Look
    tell: Tell
    crossing: Crossing | None = None  # of several group columns

    def fit(self) -> Fitted:
        """Sum up, and compare the groups."""
        return self.compared(*self._sums())

    def compared(self, cells: Cells, design: Design, gaps: Gaps, by_window: bool) -> Fitted:
        """Compare the groups, from their sums."""
        stats = cells.statistics(cells.groups())
        rows = prepared(self.source, self.look, self.settings, design, gaps)
        clusters = None
        if self.look.columns.cluster is not None:
            by_arm = stats.arms is not None and self.settings.weighting != PULLS
            clusters = fewest_in_an_arm(self.source, rows) if by_arm else 0
        weighting, instead = weighting_of(stats, self.settings, clusters)
        binary = is_binary(cells.frame, design.reward_centre)
        times = self.look.times
        count = times.count if times is not None and by_window else 0
        planned = regressions(self.source, rows, cells, stats, weighting, count)
        errors = self.errors_of(planned, WHOLE, stats, weighting, binary)
        report = bias_report(
            stats,
            reference=self._reference(stats, errors),
            level=self.settings.level,
            weighting=weighting,
            feature_names=design.names,
            covariances=errors.covariances,
            freedom=errors.freedom,
            between=errors.between,
            blocked=errors.blocked,
            columns=design.columns(*cells.ends(design.features)),
        )
        terms = terms_of(self.look.columns, self.settings.reward_values)
        report = replace(report, _instead=instead, _terms=terms)
        if clusters is not None or self.weighted:
            report = replace(report, _apart=None)  # it would raise false alarms
        return Fitted(cells, design, gaps, rows, by_window, stats, binary, errors, report, planned)

    def _sums(self) -> tuple[Cells, Design, Gaps, bool]:
        """Sum up as if nothing were missing; look closer only if something is."""
        gaps = missing_values.NONE
        missing_values.chosen(self.look, self.settings)  # raises for unknown choices
        design = make_design(self.look, {}, fill=False)
        sums = self._aggregate(design, gaps)
        check_chances(self.source, sums.frame, self.look.columns.propensity, self.settings)
        if self.look.unseen or spoiled(sums.frame, self.weighted):
            self.tell("counting missing values")
            gaps = missing_values.count_gaps(self.source, self.look, self.settings)
            design = make_design(self.look, gaps.to_fill, bool(gaps.fill))
            sums = self._aggregate(design, gaps)
            if spoiled(sums.frame, self.weighted):
                raise not_finite(sums.frame, design, self.look.columns, self.settings)
        check_weights(sums.frame, self.look.columns, self.settings)
        cells = make_cells(sums.frame, len(design.features))
        self._check_rows(cells, gaps.rows - gaps.left_out if gaps.rows else self.look.rows)
        far = cells.far()
        # The first centres come from a sample. If the means turn out to be far from them, products
        # have lost digits, and a second pass about better centres costs less than wrong numbers.
        if far[0].any() or far[1]:
            design = recentred(design, cells, *far)
            sums = self._aggregate(design, gaps)
            before, cells = cells.n.sum(), make_cells(sums.frame, len(design.features))
            self._check_rows(cells, before)
        cells = replace(cells, beyond=sums.beyond)
        alike = cells.constant(design.centres)
        if alike and len(alike) < len(design.features):  # the intercept says the same
            cells, design = cells.without(alike), design.without(alike)
        return cells, design, gaps, sums.by_window

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.look.columns.weight is not None or self.settings.weigh_by_propensity

    def _aggregate(self, design: Design, gaps: Gaps) -> LogSums:
        self.tell(f"summing up {f'{self.look.rows:,} ' if self.look.rows else ''}rows")
        return aggregated(self.source, self.look, self.settings, design, gaps)

    def _check_rows(self, cells: Cells, before: float) -> None:
        """An error if the sums are of more or fewer rows than were seen before."""
        if before and cells.n.sum() != before:
            raise changed(self.source, "the whole log", before, float(cells.n.sum()))

    def errors_of(
        self, planned: AuditRegressions, name: str, stats: Statistics, weighting: str, binary: bool
    ) -> Errors:
        """The errors of one of the planned regressions: of clusters, robust, or classical.

        Clusters come first: if rows belong together, no error that takes them one by one is right,
        however many there are. Robust errors need enough rows, so a log without any group that has
        them keeps those of the fit.

        Args:
            planned: the regressions, with the pass that sums up their residuals.
            name: WHOLE or WITHIN; the second has coefficients for time windows.
            stats: their sums.
            weighting: by arms or by pulls.
            binary: whether rewards are 0 and 1.
        """
        question = planned.second.questions[name]
        if self.look.columns.cluster is not None:
            self.tell("errors of clusters")
            held = planned.equal.held.windows if planned.equal is not None else ()
            careful = name == WITHIN and self.settings.errors == AUTO
            windows = len(held) if careful else 1
            return clustered(self.source, question.rows, stats, question.fits, windows)
        enough = robust_groups(stats, self.settings, weighting, self.weighted)
        if not enough.any():
            return classical(stats, question.fits, weighting, binary)
        self.tell("robust errors")
        careful = self.settings.errors == AUTO
        meat = planned.second.products(name)
        return robust(meat, stats, question.fits, weighting, binary, careful, enough)

    def _reference(self, stats: Statistics, errors: Errors) -> str:
        """The group to compare with. It must have standard errors, or no comparison has any."""
        given, blocked = self.settings.reference, errors.blocked or {}
        if given in blocked:
            raise DataError(
                f"{setting('reference')} is {given!r}, and {blocked[given]}, so nothing can be "
                f"compared with it; choose another group, or leave {setting('cluster')} out"
            )
        return given or _largest(stats, blocked)


def _largest(stats: Statistics, without: Container[str]) -> str:
    """The group to compare with unless one is named: the largest is known best."""
    rows = np.bincount(stats.of, stats.n, len(stats.groups))
    known = [g for g, name in enumerate(stats.groups) if name not in without]
    return stats.groups[max(known, key=lambda g: rows[g])]
