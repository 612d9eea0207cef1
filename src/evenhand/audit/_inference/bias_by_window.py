"""The bias in every time window, with the weighting and the errors that the whole log has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from evenhand.audit._inference.cluster_errors import (
    cluster_correction,
    cluster_counts,
    cluster_products,
)
from evenhand.audit._inference.regression_scores import (
    Fits,
    fits_of,
    in_windows,
    numbered,
    with_effects,
)
from evenhand.audit._inference.second_pass import Question, SecondPass
from evenhand.audit._inference.standard_errors import (
    CLASSICAL,
    CLUSTERED,
    Errors,
    rows_suffice,
)
from evenhand.audit._input.sources import Source
from evenhand.audit._sums.cells import Cells
from evenhand.bias._fit import ARMS, AUTO, PULLS, settled
from evenhand.bias.estimate import bias_report
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Array, Bools, Statistics

# Of all windows together: coefficients are looked up in as many rows.
MOST_FITS = 2000
WINDOWS = "windows"  # what the second pass calls these regressions


@dataclass(frozen=True, eq=False)
class Parts:
    """The sums of every window, and the regressions from them."""

    stats: list[Statistics]
    weighting: str
    fits: Fits


def in_parts(cells: Cells, groups: tuple[str, ...], count: int, weighting: str) -> Parts:
    """The regressions of all windows.

    Args:
        cells: sums by window.
        groups: their names.
        count: how many windows there are.
        weighting: of the whole log; where arms lack rows in a window, theirs is by pulls.
    """
    stats, weighting_used = [cells.statistics(groups, t) for t in range(count)], PULLS
    if weighting == ARMS:
        by_arm = [cells.statistics(groups, t, by_arm=True) for t in range(count)]
        if all(settled(sums, AUTO)[0] == ARMS for sums in by_arm if sums.n.any()):
            stats, weighting_used = by_arm, ARMS
    fits = [fits_of(sums, weighting_used, cells.places) for sums in stats]
    return Parts(stats, weighting_used, in_windows(fits))


@dataclass(frozen=True, eq=False)
class Windows:
    """A report per window, at the average context of the whole log.

    `spread` has the covariances of the groups' feedback there, (windows, groups, windows, groups):
    the same person may be in several. `freedom` has the degrees of freedom of each, (windows,
    groups): those of the rows or clusters that are in the window, not in the log.
    """

    reports: list[BiasReport]
    weighting: str
    errors: str
    spread: Array
    freedom: Array
    shared: bool  # whether a cluster may be in several groups or windows
    common: tuple[str, ...]  # the groups that are known in every window

    def contrast(self, group: int) -> Array:
        """The weights of groups in the bias of a group in each window, (windows, groups)."""
        weights: Array = np.nan_to_num([report._weights[group] for report in self.reports])
        return weights

    def freedoms(self, group: int) -> Array:
        """The degrees of freedom of the bias of a group in each window; NaN without errors.

        By Welch and Satterthwaite, 1 / sum (s_g^2 / f_g) with s_g the share of the variance that
        group g adds; for dependent groups it is the least f_g, as in the whole log.
        """
        weights = self.contrast(group)
        variances = np.einsum("tgtg->tg", self.spread)
        parts = np.where(weights != 0.0, weights**2 * variances, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = parts / parts.sum(axis=1, keepdims=True)
            freedom = 1.0 / np.sum(np.where(parts > 0.0, share**2 / self.freedom, 0.0), axis=1)
        if self.shared:
            # Welch and Satterthwaite add up independent variances; where a cluster is in several
            # groups they are not.
            freedom = np.min(np.where(parts > 0.0, self.freedom, np.inf), axis=1)
        unknown = ((weights != 0.0) & ~(self.freedom > 0.0)).any(axis=1) | ~weights.any(axis=1)
        return np.where(unknown, np.nan, freedom)

    @cached_property
    def estimates(self) -> Array:
        """The bias of each group in each window, (windows, groups); NaN where it is not known."""
        rows = []
        for report in self.reports:
            fit, place = report._fit, report.overall
            assert place is not None
            reached = fit.reaches(fit.designs.reaches(place[None]))[:, 0]
            level = np.where(reached, fit.vectors @ place, np.nan)
            needed = np.where(report._weights != 0.0, report._weights * level, 0.0)
            rows.append(needed.sum(axis=1))
        return np.array(rows)

    def part(self, group: int, other: int) -> Array:
        """The part of another group in the covariance of the bias of a group."""
        weight = self.contrast(group)[:, other]
        part: Array = weight[:, None] * self.spread[:, other, :, other] * weight
        return part

    def covariance(self, group: int) -> Array:
        """The covariance of the bias of a group in the windows, (windows, windows)."""
        weights = self.contrast(group)
        covariance: Array = np.einsum("tg,tgsh,sh->ts", weights, self.spread, weights)
        return covariance


def make_windows(
    source: Source,
    rows: Any,
    parts: Parts,
    second: SecondPass,
    report: BiasReport,
    errors: Errors,
    settled_errors: bool,
) -> Windows:
    """Fit every window.

    Every window has regressions of its own. What they are compared with is the same in all of them:
    the context (everyone's average over the whole log), the reference and the weighting. So a
    difference between windows is one of feedback, and not of who came, or of what was asked.

    Robust errors and those of clusters are those of the whole log. A window has fewer rows, so they
    are used only where it has enough, and elsewhere the errors of its own fit. Rows of different
    windows are independent, but a person may come in several: then the estimates of windows depend
    on each other, which `spread` says.

    Args:
        source: where the rows are.
        rows: as `prepared` made them.
        parts: the regressions of all windows.
        second: the pass that sums up their residuals.
        report: of the whole log, about the centres.
        errors: of the whole log.
        settled_errors: whether windows have these errors too, however few rows there are.
    """
    weighting, fits = parts.weighting, parts.fits
    reports = [
        bias_report(
            sums,
            reference=report.reference,
            level=report.level,
            weighting=weighting,
            feature_names=report.features,
            average=report.overall,
        )
        for sums in parts.stats
    ]
    common = np.all([report._fit.usable for report in reports], axis=0)
    if report.reference is None and common.sum() >= 2:
        # A group that is not in all windows must not move the mean of the others.
        weights = np.eye(len(common)) - common / common.sum()
        reports = [replace(report, _weights=weights) for report in reports]
    kind, shared = errors.kind, False
    enough: Bools = np.array([rows_suffice(sums, weighting) for sums in parts.stats])
    enough |= kind == CLUSTERED or settled_errors
    # The rows would have to be looked up in a table as long.
    if len(fits.labels) > MOST_FITS or not enough.any() or report.overall is None:
        kind = CLASSICAL
    spread, freedom = _classical(reports, report.overall)
    if kind == CLUSTERED:
        here = rows.filter(rows["t"].notnull())
        counts = cluster_counts(source, here, "t")
        clusters = counts.table(report.groups, len(reports))
        factor = _corrections(fits, errors.total, None if settled_errors else clusters)
        products = _of_clusters(source, here, fits, report)
        # The correction of a variance is the square of `factor`; a covariance has one root from
        # each side.
        spread = _by_group(factor[:, None] * products * factor, fits, parts.stats)
        freedom, shared = clusters - 1.0, counts.crossing > 0
    elif kind != CLASSICAL and report.overall is not None:
        n = sum(float(sums.n.sum()) for sums in parts.stats)
        # HC1, as if the windows were one regression with all of their coefficients.
        left = max(n - float(fits.rank.sum()), 1.0)
        squares = second.squares(WINDOWS) * n / left
        robust = _by_group(np.diag(squares), fits, parts.stats)
        # A group with few rows in a window has the errors of its own fit there, as in a whole log.
        at = np.nonzero(enough)
        spread[(*at, *at)] = robust[(*at, *at)]
    names = tuple(name for name, ok in zip(report.groups, common, strict=True) if ok)
    return Windows(reports, weighting, kind, spread, freedom, shared, names)


def _classical(reports: list[BiasReport], context: Array | None) -> tuple[Array, Array]:
    """Variances and degrees of freedom of every window's own fits."""
    windows, groups = len(reports), len(reports[0].groups)
    spread, freedom = np.zeros((windows, groups, windows, groups)), np.zeros((windows, groups))
    for t, report in enumerate(reports):
        fit = report._fit
        freedom[t] = np.where(fit.usable, fit.freedom, np.nan)
        if context is not None:
            own = np.einsum("i,gij,j->g", context, fit.covariances, context)
            spread[t, np.arange(groups), t, np.arange(groups)] = np.nan_to_num(own)
    return spread, freedom


def _of_clusters(source: Source, rows: Any, fits: Fits, report: BiasReport) -> Array:
    """The sums of products of clusters' effects at the average context, (fits, fits)."""
    reach = Question(fits, rows, context=report.overall).reach
    scored = with_effects(source, numbered(rows, fits), fits, reach)
    return cluster_products(source, scored, [scored["v"]], fits, crossing=True)[:, :, 0, 0]


def _corrections(fits: Fits, total: int, clusters: Array | None) -> Array:
    """The roots of CR1's correction, for one regression of all windows or for each window alone.

    Windows have few clusters of a group, for which the correction of the whole is too small.
    """
    squares = np.full(len(fits.n), cluster_correction(total, fits.n.sum(), fits.rank.sum()))
    if clusters is not None:
        window = np.array([label[-1] for label in fits.labels], dtype=np.int64)
        # With a single cluster there is no variance at all, which the degrees of freedom say: they
        # are 0.
        many = np.maximum(clusters[window, fits.of], 2.0)
        squares = np.maximum(squares, cluster_correction(many, fits.n, fits.rank))
    roots: Array = np.sqrt(squares)
    return roots


def _by_group(spread: Array, fits: Fits, parts: list[Statistics]) -> Array:
    groups, windows = len(parts[0].groups), len(parts)
    window = np.array([label[-1] for label in fits.labels], dtype=np.int64)
    by_group = np.zeros((windows, groups, windows, groups))
    first, second = np.indices(spread.shape)
    at = (window[first], fits.of[first], window[second], fits.of[second])
    np.add.at(by_group, at, spread)
    return by_group
