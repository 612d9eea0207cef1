"""The stages after the first: groups over time, beside logistic models, and against the truth.

Each runs more queries on the rows of a run, for all its groups or for one of several group columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from evenhand.audit._inference.bias_by_window import Windows, make_windows
from evenhand.audit._inference.cluster_reward_means import of_windows
from evenhand.audit._inference.drift import changes, drift
from evenhand.audit._inference.logistic_groups import LogisticFit, fit_logistic
from evenhand.audit._inference.regression_scores import changed, fits_of
from evenhand.audit._inference.standard_errors import Errors
from evenhand.audit._inference.true_reward import ASSUMPTION, beside_truth, objection
from evenhand.audit._inference.windows_held_constant import WITHIN, Within, within_windows
from evenhand.audit._report.logistic import Logistic, make_logistic
from evenhand.audit._report.logistic_sentences import second_model
from evenhand.audit._report.terms import terms_against_truth
from evenhand.audit._stages.fitting import AuditRun, Fitted
from evenhand.audit._sums.aggregate import (
    by_window_only,
)
from evenhand.audit._sums.cells import Cells
from evenhand.audit._sums.design import Design
from evenhand.audit._sums.missing import Gaps
from evenhand.bias._findings import clear_features, clear_totals
from evenhand.bias._fit import AUTO
from evenhand.bias.estimate import MEAN
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Statistics
from evenhand.errors import DataError, InputError


@dataclass(frozen=True, eq=False)
class OverTime:
    """The groups in every time window; all None where there are no times."""

    windows: Windows | None = None  # None too where only means are known
    drift: pd.DataFrame | None = None
    changes: pd.DataFrame | None = None
    within: Within | None = None


def over_time(run: AuditRun, fitted: Fitted) -> OverTime:
    """The groups in every time window, and compared with the window held constant."""
    times = run.look.times
    if times is None:
        return OverTime()
    run.tell("comparing time windows")
    cells, design, planned = fitted.cells, fitted.design, fitted.regressions
    frame = cells.frame
    if not fitted.by_window:
        frame = _window_means(run, cells, design, fitted.gaps)
    windows, within = None, None
    if planned.parts is not None:
        must = run.weighted or run.settings.errors != AUTO
        centred, errors = fitted.centred, fitted.errors
        windows = make_windows(
            run.source, fitted.rows, planned.parts, planned.second, centred, errors, must
        )
        run.tell("comparing within time windows")
        within = _within(run, fitted, centred)
    clusters = _window_clusters(run, fitted)
    by_window = drift(frame, windows, times, fitted.centred, design.reward_centre, clusters)
    tests = changes(windows, fitted.centred.groups, run.settings.level)
    return OverTime(windows, by_window, tests, within)


def _within(run: AuditRun, fitted: Fitted, whole: BiasReport) -> Within | None:
    """The comparison with the time window held constant, where it can be."""
    planned = fitted.regressions
    if planned.equal is None:
        return None
    stats = planned.equal.stats
    try:
        errors = run.errors_of(planned, WITHIN, stats, whole.weighting, fitted.binary)
    except DataError:
        if run.look.columns.cluster is None:
            raise
        return None  # too few clusters are left in these windows
    return within_windows(planned.equal, errors, whole)


def _window_means(run: AuditRun, cells: Cells, design: Design, gaps: Gaps) -> pd.DataFrame:
    means = by_window_only(run.source, run.look, run.settings, design, gaps)
    if means["n"].sum() != cells.n.sum():
        raise changed(run.source, "the whole log", cells.n.sum(), float(means["n"].sum()))
    return means


def _window_clusters(run: AuditRun, fitted: Fitted) -> Any:
    """The means of clusters in windows, where rows belong to clusters."""
    times = run.look.times
    if times is None or run.look.columns.cluster is None:
        return None
    return of_windows(run.source, fitted.rows, fitted.centred.groups, times.count)


def beside_logistic(
    run: AuditRun,
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
    report = fitted.in_units(centred, run.settings)
    if not fitted.binary or not run.settings.logistic:
        return report, None, None
    # A logistic model takes several passes over the rows, and can only take claims back.
    if spare and not clear_features(report) and not clear_totals(report):
        return report, None, None
    run.tell("logistic models")
    lines = fits_of(stats, centred.weighting, fitted.cells.places)
    careful = run.settings.errors == AUTO
    fit = fit_logistic(run.source, rows, stats, lines, errors, centred, careful)
    odds = None
    if not isinstance(fit, str):
        odds = fitted.in_units(replace(centred, _fit=fit.odds), run.settings)
    logistic = make_logistic(report, fit, odds, run.weighted)
    report = replace(report, _second=second_model(logistic, again=spare))
    return report, logistic, None if isinstance(fit, str) else fit


def objection_of(run: AuditRun, cells: Cells, centre: float) -> str:
    """Why feedback and true rewards cannot be compared; empty if they can, or if there are none.

    Asked before anything is measured against the truth: two columns in other units would give a
    bias that looks like any other.
    """
    columns = run.look.columns
    if columns.true_reward is None:
        return ""
    return objection(cells.frame, centre, columns.reward, columns.true_reward)


def against_truth(run: AuditRun, cells: Cells, reference: str | None) -> BiasReport | None:
    """The bias measured against true rewards, if enough of them are known to compare groups."""
    if "r_n" not in cells.frame:
        return None
    known = cells.frame.groupby("g")["r_n"].sum()
    names = {str(name) for name in known.index[known > 0]}
    if len(names) < 2 or (reference or min(names)) not in names:
        return None
    run.tell("comparing with true rewards")
    source, seen, settings = beside_truth(run.source, run.look, run.settings)
    settings = replace(settings, reference=reference or MEAN)
    try:
        fitted = AuditRun(source, settings, seen, run.tell).fit()
    except InputError:  # too little is left where the truth is known
        return None
    report = fitted.in_units(fitted.centred, settings)
    terms = terms_against_truth(run.look.columns)
    return replace(report, assumption=ASSUMPTION, _terms=terms)
