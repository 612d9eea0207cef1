"""The steps of an audit: sum up, fit, compare windows, compare with the truth, put together."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd

from evenhand.audit._inference.cluster_means import of_groups, of_windows
from evenhand.audit._inference.clusters import clustered, fewest_in_an_arm
from evenhand.audit._inference.decomposition import averages, decomposition, unadjusted_by
from evenhand.audit._inference.drift import changes, drift
from evenhand.audit._inference.intersections import intersect
from evenhand.audit._inference.leakage import giveaways
from evenhand.audit._inference.logistic_groups import LogisticFit, fit_logistic
from evenhand.audit._inference.logistic_parts import by_logistic
from evenhand.audit._inference.regressions import WHOLE, Regressions, regressions
from evenhand.audit._inference.robust import Errors, classical, robust, robust_groups, weighting_of
from evenhand.audit._inference.scores import changed, fits_of
from evenhand.audit._inference.true_reward import ASSUMPTION, beside_truth, doubt, objection
from evenhand.audit._inference.units import about_zero
from evenhand.audit._inference.windows import Windows, make_windows
from evenhand.audit._inference.within import WITHIN, Within, within_windows
from evenhand.audit._input.attributes import Crossing
from evenhand.audit._input.scan import Look
from evenhand.audit._input.sources import Source
from evenhand.audit._report.logistic import LOGISTIC, Logistic, make_logistic
from evenhand.audit._report.result import Audit, Facts
from evenhand.audit._report.terms import terms_against_truth, terms_of
from evenhand.audit._report.two_models import second_model
from evenhand.audit._settings import Settings
from evenhand.audit._sums import missing as missing_values
from evenhand.audit._sums.aggregate import (
    aggregated,
    by_arm,
    by_window_only,
    extra_sums,
    group_sums,
    is_binary,
    prepared,
    spoiled,
)
from evenhand.audit._sums.cells import Cells, make_cells
from evenhand.audit._sums.checks import (
    check_weights,
    effective_rows,
    not_finite,
    recentred,
    whole_weights,
)
from evenhand.audit._sums.design import Design, make_design
from evenhand.audit._sums.impact import count_selected, impact_of
from evenhand.audit._sums.missing import Gaps
from evenhand.audit._sums.truth import known_truth
from evenhand.bias._fit import ARMS, AUTO, PULLS
from evenhand.bias._sentences import clear_features, clear_totals, same_findings
from evenhand.bias.estimate import MEAN, bias_report
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Statistics
from evenhand.errors import DataError, InputError, setting
from evenhand.events.columns import Columns
from evenhand.fairness import fairness_report

Tell = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Fitted:
    """Sums of a log, and the report about the centres that is made of them."""

    cells: Cells
    design: Design
    gaps: Gaps
    rows: Any  # as `prepared` made them
    by_window: bool
    stats: Statistics
    binary: bool
    errors: Errors
    centred: BiasReport
    regressions: Regressions

    def in_units(self, report: BiasReport, settings: Settings) -> BiasReport:
        """A report about the centres in the columns' own units."""
        design = self.design
        return about_zero(report, design.centres, design.reward_centre, settings.units)


@dataclass(frozen=True, eq=False)
class OverTime:
    """The groups in every time window; nothing where there are no times."""

    windows: Windows | None = None  # None too where only means are known
    drift: pd.DataFrame | None = None
    changes: pd.DataFrame | None = None
    within: Within | None = None


@dataclass(frozen=True, eq=False)
class Run:
    """An audit of what a first look has found."""

    source: Source
    settings: Settings
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
        errors = self._errors(planned, WHOLE, stats, weighting, binary)
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
        if clusters is not None or self._weighted:
            report = replace(report, _apart=None)  # it would cry wolf
        return Fitted(cells, design, gaps, rows, by_window, stats, binary, errors, report, planned)

    def audit(self, begin: float) -> Audit:
        """All of it; `begin` is when the audit began, by `time.perf_counter`."""
        fitted = self.fit()
        cells, design, gaps, errors = fitted.cells, fitted.design, fitted.gaps, fitted.errors
        centred, binary = fitted.centred, fitted.binary
        timed = self.over_time(fitted)
        windows, within = timed.windows, timed.within
        bias, logistic, chances = self.beside_logistic(
            fitted, centred, fitted.stats, fitted.rows, errors
        )
        inside = None
        if within is not None:
            inside, *_ = self.beside_logistic(
                fitted, within.report, within.stats, within.rows, within.errors, spare=True
            )
        against = self._objection(cells, design.reward_centre)
        of_clusters = (
            None
            if self.look.columns.cluster is None
            else of_groups(self.source, fitted.rows, cells.groups())
        )
        sums = group_sums(cells, gaps, design.reward_centre, binary)
        metrics = fairness_report(
            sums,
            level=self.settings.level,
            unfavourable=self.settings.unfavourable and "positives" in sums,
            clusters=of_clusters,
        )
        means = averages(fitted.stats)
        # As the summary does: what changes over time must not count as bias.
        believed = centred
        if within is not None and inside is not None and not same_findings(bias, inside):
            believed = within.report
        if gaps.sums is not None:  # what is left is of the rows that lack nothing
            metrics_of_used = fairness_report(
                group_sums(cells, missing_values.NONE, design.reward_centre, binary),
                level=self.settings.level,
                unfavourable=self.settings.unfavourable and binary,
                clusters=of_clusters,
            )
        else:
            metrics_of_used = metrics
        unadjusted = unadjusted_by(metrics_of_used, centred.groups, means, weighted=self._weighted)
        explained = decomposition(
            believed, means, centred._columns, unadjusted, within=believed is not centred
        )
        if (
            logistic is not None
            and chances is not None
            and logistic.fits == LOGISTIC
            and believed is centred
            and centred.weighting != ARMS
        ):
            explained = by_logistic(
                explained, centred, chances, means, centred._columns, unadjusted
            )
        column = self.look.columns.group
        selected = count_selected(
            self.source, fitted.rows, cells, sums, self.settings, column, self.crossing
        )
        impact = impact_of(
            selected,
            column,
            self.settings,
            self.crossing,
            clustered=self.look.columns.cluster is not None,
        )
        return Audit(
            bias=bias,
            within=inside,
            logistic=logistic,
            against_truth=None if against else self.against_truth(cells, centred.reference),
            decomposition=explained,
            truth=known_truth(cells, design.reward_centre, self.settings.level),
            metrics=metrics,
            groups=sums,
            impact=impact,
            intersections=intersect(self, fitted, sums, impact, truth=not against),
            extras=extra_sums(cells),
            arms=by_arm(cells, design.reward_centre),
            drift=timed.drift,
            changes=timed.changes,
            missing=gaps.table,
            facts=Facts(
                settings=self.settings,
                columns=self.look.columns,
                label=self.source.label,
                engine=self.source.kind,
                made=datetime.now(UTC).isoformat(timespec="seconds"),
                left_out=_left_out(self.source, self.look.columns, self.settings.attributes),
                rows=gaps.rows or int(cells.n.sum()),
                used=int(cells.n.sum()),
                filled=gaps.filled,
                merged={name: many for name, many in self.look.merged.items() if many},
                rare={name: few for name, few in self.look.rare.items() if few},
                baselines={name: kept[0] for name, kept in design.kept.items()},
                arms=self.look.arms,
                by_arm=self.look.by_arm,
                binary=binary,
                errors=errors.kind,
                classical=errors.classical,
                clusters=errors.clusters,
                crossing=errors.crossing,
                constant=design.constant,
                objection=against,
                doubt=""
                if self.look.columns.true_reward is None
                else doubt(cells.frame, self.look.columns.reward, self.look.columns.true_reward),
                windows=None if windows is None else (windows.weighting, windows.errors),
                common=() if windows is None else windows.common,
                effective=effective_rows(cells, centred.groups),
                whole_weights=self.look.columns.weight is not None and whole_weights(cells),
                giveaways=giveaways(fitted.stats, design),
                seconds=time.perf_counter() - begin,
            ),
        )

    def over_time(self, fitted: Fitted) -> OverTime:
        """The groups in every time window, and compared with the window held equal."""
        times = self.look.times
        if times is None:
            return OverTime()
        self.tell("comparing time windows")
        cells, design, planned = fitted.cells, fitted.design, fitted.regressions
        frame = cells.frame
        if not fitted.by_window:
            frame = self._window_means(cells, design, fitted.gaps)
        windows, within = None, None
        if planned.parts is not None:
            must = self._weighted or self.settings.errors != AUTO
            centred, errors = fitted.centred, fitted.errors
            windows = make_windows(
                self.source, fitted.rows, planned.parts, planned.second, centred, errors, must
            )
            self.tell("comparing within time windows")
            within = self._within(fitted, centred)
        clusters = self._window_clusters(fitted)
        by_window = drift(frame, windows, times, fitted.centred, design.reward_centre, clusters)
        tests = changes(windows, fitted.centred.groups, self.settings.level)
        return OverTime(windows, by_window, tests, within)

    def beside_logistic(
        self,
        fitted: Fitted,
        centred: BiasReport,
        stats: Statistics,
        rows: Any,
        errors: Errors,
        spare: bool = False,
    ) -> tuple[BiasReport, Logistic | None, LogisticFit | None]:
        """A report in the columns' own units, and logistic models beside it for rewards of 0 and 1.

        With `spare` these are fitted only where the report has claims that they might not confirm.
        """
        report = fitted.in_units(centred, self.settings)
        if not fitted.binary or not self.settings.logistic:
            return report, None, None
        if spare and not clear_features(report) and not clear_totals(report):
            return report, None, None
        self.tell("logistic models")
        lines = fits_of(stats, centred.weighting, fitted.cells.places)
        careful = self.settings.errors == AUTO
        fit = fit_logistic(self.source, rows, stats, lines, errors, centred, careful)
        odds = None
        if not isinstance(fit, str):
            odds = fitted.in_units(replace(centred, _fit=fit.odds), self.settings)
        logistic = make_logistic(report, fit, odds, self._weighted)
        report = replace(report, _second=second_model(logistic, again=spare))
        return report, logistic, None if isinstance(fit, str) else fit

    def _objection(self, cells: Cells, centre: float) -> str:
        columns = self.look.columns
        if columns.true_reward is None:
            return ""
        return objection(cells.frame, centre, columns.reward, columns.true_reward)

    def against_truth(self, cells: Cells, reference: str | None) -> BiasReport | None:
        """The bias measured against true rewards, if there are any to compare groups by."""
        if "r_n" not in cells.frame:
            return None
        known = cells.frame.groupby("g")["r_n"].sum()
        names = {str(name) for name in known.index[known > 0]}
        if len(names) < 2 or (reference or min(names)) not in names:
            return None
        self.tell("comparing with true rewards")
        source, seen, settings = beside_truth(self.source, self.look, self.settings)
        settings = replace(settings, reference=reference or MEAN)
        try:
            fitted = Run(source, settings, seen, self.tell).fit()
        except InputError:  # too little is left where the truth is known
            return None
        report = fitted.in_units(fitted.centred, settings)
        terms = terms_against_truth(self.look.columns)
        return replace(report, assumption=ASSUMPTION, _terms=terms)

    def _sums(self) -> tuple[Cells, Design, Gaps, bool]:
        """Sum up as if nothing were missing; look closer only if something is."""
        gaps = missing_values.NONE
        missing_values.chosen(self.look, self.settings)  # refuses what is no choice
        design = make_design(self.look, {}, fill=False)
        frame, by_window = self._aggregate(design, gaps)
        if self.look.unseen or spoiled(frame, self._weighted):
            self.tell("counting missing values")
            gaps = missing_values.count_gaps(self.source, self.look, self.settings)
            design = make_design(self.look, gaps.to_fill, bool(gaps.fill))
            frame, by_window = self._aggregate(design, gaps)
            if spoiled(frame, self._weighted):
                raise not_finite(frame, design, self.look.columns, self.settings)
        check_weights(frame, self.look.columns, self.settings)
        cells = make_cells(frame, len(design.features))
        self._check_rows(cells, gaps.rows - gaps.left_out if gaps.rows else self.look.rows)
        far = cells.far()
        if far[0].any() or far[1]:
            design = recentred(design, cells, *far)
            frame, by_window = self._aggregate(design, gaps)
            before, cells = cells.n.sum(), make_cells(frame, len(design.features))
            self._check_rows(cells, before)
        alike = cells.constant(design.centres)
        if alike and len(alike) < len(design.features):  # the intercept says the same
            cells, design = cells.without(alike), design.without(alike)
        return cells, design, gaps, by_window

    @property
    def _weighted(self) -> bool:
        return self.look.columns.weight is not None or self.settings.weigh_by_propensity

    def _aggregate(self, design: Design, gaps: Gaps) -> tuple[pd.DataFrame, bool]:
        self.tell(f"summing up {f'{self.look.rows:,} ' if self.look.rows else ''}rows")
        return aggregated(self.source, self.look, self.settings, design, gaps)

    def _check_rows(self, cells: Cells, before: float) -> None:
        """An error if the sums are of more or fewer rows than were seen before."""
        if before and cells.n.sum() != before:
            raise changed(self.source, "the whole log", before, float(cells.n.sum()))

    def _window_means(self, cells: Cells, design: Design, gaps: Gaps) -> pd.DataFrame:
        means = by_window_only(self.source, self.look, self.settings, design, gaps)
        if means["n"].sum() != cells.n.sum():
            raise changed(self.source, "the whole log", cells.n.sum(), float(means["n"].sum()))
        return means

    def _within(self, fitted: Fitted, whole: BiasReport) -> Within | None:
        """The comparison with the time window held equal, where it can be."""
        planned = fitted.regressions
        if planned.equal is None:
            return None
        stats = planned.equal.stats
        try:
            errors = self._errors(planned, WITHIN, stats, whole.weighting, fitted.binary)
        except DataError:
            if self.look.columns.cluster is None:
                raise
            return None  # too few clusters are left in these windows
        return within_windows(planned.equal, errors, whole)

    def _errors(
        self, planned: Regressions, name: str, stats: Statistics, weighting: str, binary: bool
    ) -> Errors:
        question = planned.second.questions[name]
        if self.look.columns.cluster is not None:
            self.tell("errors of clusters")
            held = planned.equal.held.windows if planned.equal is not None else ()
            careful = name == WITHIN and self.settings.errors == AUTO
            windows = len(held) if careful else 1
            return clustered(self.source, question.rows, stats, question.fits, windows)
        enough = robust_groups(stats, self.settings, weighting, self._weighted)
        if not enough.any():
            return classical(stats, question.fits, weighting, binary)
        self.tell("robust errors")
        careful = self.settings.errors == AUTO
        meat = planned.second.products(name)
        return robust(meat, stats, question.fits, weighting, binary, careful, enough)

    def _reference(self, stats: Statistics, errors: Errors) -> str:
        """The group to compare with: one that has errors, for without it nothing has."""
        given, alone = self.settings.reference, errors.blocked or {}
        if given in alone:
            raise DataError(
                f"{setting('reference')} is {given!r}, and {alone[given]}, so that nothing can be "
                f"compared with it; choose another group, or leave {setting('cluster')} out"
            )
        return given or _largest(stats, alone)

    def _window_clusters(self, fitted: Fitted) -> Any:
        """The means of clusters in windows, where rows belong together."""
        times = self.look.times
        if times is None or self.look.columns.cluster is None:
            return None
        return of_windows(self.source, fitted.rows, fitted.centred.groups, times.count)


def _largest(stats: Statistics, without: Container[str]) -> str:
    """The group to compare with unless said: the largest is known best."""
    rows = np.bincount(stats.of, stats.n, len(stats.groups))
    known = [g for g, name in enumerate(stats.groups) if name not in without]
    return stats.groups[max(known, key=lambda g: rows[g])]


def _left_out(source: Source, columns: Columns, attributes: Sequence[str]) -> tuple[str, ...]:
    """The columns of the log that have no role and are no feature."""
    named = [value for value in vars(columns).values() if isinstance(value, str)]
    used = {*columns.features, *named, *attributes}
    return tuple(name for name in source.table.columns if name not in used)
