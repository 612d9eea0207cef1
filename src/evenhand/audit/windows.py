"""The bias in every time window, with the weighting and the errors that the whole log has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.audit.cells import Cells
from evenhand.audit.clusters import cluster_products
from evenhand.audit.deciding import rows_suffice
from evenhand.audit.robust import CLASSICAL, CLUSTERED, Errors
from evenhand.audit.scores import (
    Fits,
    check_same_rows,
    counted_again,
    fits_of,
    in_windows,
    numbered,
    with_effects,
)
from evenhand.audit.sources import Source
from evenhand.audit.summing import fetch_by
from evenhand.bias.fitting import ARMS, AUTO, PULLS, settled
from evenhand.bias.making import bias_report
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Array, Bools, Statistics

# Of all windows together: as many rows would be looked up in.
MOST_FITS = 2000


@dataclass(frozen=True, eq=False)
class Windows:
    """A report per window, at the average context of the whole log.

    `spread` has the covariances of the groups' feedback there, (windows, groups, windows, groups):
    the same person may be in several. It is None where errors are classical.
    """

    reports: list[BiasReport]
    weighting: str
    errors: str
    spread: Array | None
    freedom: float  # of errors of clusters
    common: tuple[str, ...]  # the groups that are known in every window

    def freedoms(self, group: int) -> Array:
        """The degrees of freedom of the bias of a group in each window."""
        found = np.array([one.by_group["freedom"].iloc[group] for one in self.reports], dtype=float)
        return np.minimum(np.where(np.isnan(found), np.inf, found), self.freedom)

    def covariance(self, group: int) -> Array:
        """Of the bias of a group in the windows, (windows, windows)."""
        if self.spread is None:
            errors = [one.by_group["standard_error"].iloc[group] for one in self.reports]
            return np.diag(np.square(np.array(errors, dtype=np.float64)))
        weights = np.nan_to_num([one._weights[group] for one in self.reports])
        found: Array = np.einsum("tg,tgsh,sh->ts", weights, self.spread, weights)
        return found


def make_windows(
    source: Source,
    rows: Any,
    cells: Cells,
    count: int,
    report: BiasReport,
    errors: Errors,
    settled_errors: bool,
) -> Windows:
    """Fit every window.

    Args:
        source: where the rows are.
        rows: as `prepared` made them.
        cells: sums by window.
        count: how many windows there are.
        report: of the whole log, about the centres.
        errors: of the whole log.
        settled_errors: whether they are these in windows too, however few rows there are.
    """
    parts, weighting = [cells.statistics(report.groups, t) for t in range(count)], PULLS
    if report.weighting == ARMS:
        by_arm = [cells.statistics(report.groups, t, by_arm=True) for t in range(count)]
        if all(settled(one, AUTO)[0] == ARMS for one in by_arm if one.n.any()):
            parts, weighting = by_arm, ARMS
    reports = [
        bias_report(
            one,
            reference=report.reference,
            level=report.level,
            weighting=weighting,
            feature_names=report.features,
            average=report.overall,
        )
        for one in parts
    ]
    common = np.all([one._fit.usable for one in reports], axis=0)
    if report.reference is None and common.sum() >= 2:
        # A group that is not in all windows must not move the mean of the others.
        weights = np.eye(len(common)) - common / common.sum()
        reports = [replace(one, _weights=weights) for one in reports]
    fits = in_windows([fits_of(one, weighting, cells.places()) for one in parts])
    kind, spread = errors.kind, None
    enough: Bools = np.array([rows_suffice(one, weighting) for one in parts])
    enough |= kind == CLUSTERED or settled_errors
    if len(fits.labels) > MOST_FITS or not enough.any():
        kind = CLASSICAL
    if kind != CLASSICAL and report.overall is not None:
        n = sum(float(one.n.sum()) for one in parts)
        spread = _spread(source, rows, fits, report.overall, n, errors)
        spread = _by_group(spread, fits, parts)
        # A group with few rows in a window has the errors of its own fit there, as in a whole log.
        for t, g in np.argwhere(~enough):
            own = report.overall @ reports[t]._fit.covariances[g] @ report.overall
            spread[t, g, t, g] = np.nan_to_num(own)
    freedom = min((errors.freedom or {}).values(), default=np.inf)
    names = tuple(name for name, ok in zip(report.groups, common, strict=True) if ok)
    return Windows(
        reports, weighting, kind, spread, freedom if kind == CLUSTERED else np.inf, names
    )


def _spread(
    source: Source, rows: Any, fits: Fits, context: Array, n: float, errors: Errors
) -> Array:
    """The covariances of what the regressions say at a context, (fits, fits)."""
    rows = numbered(rows.filter(rows["t"].notnull()), fits)
    scored = with_effects(source, rows, fits, context)
    left = max(n - float(fits.rank.sum()), 1.0)
    if errors.kind == CLUSTERED:
        products = cluster_products(source, scored, [scored["v"]], fits, crossing=True)
        many = float(errors.total)
        found: Array = products[:, :, 0, 0] * many / (many - 1.0) * (n - 1.0) / left
        return found
    squares_of = {"v": (scored["v"] * scored["v"]).sum(), **counted_again(scored)}
    frame = fetch_by(source, scored, ["k"], squares_of)
    check_same_rows(source, frame, fits)
    squares = np.zeros(len(fits.labels))
    squares[frame["k"].to_numpy(dtype=np.int64)] = frame["v"].to_numpy(dtype=np.float64)
    return np.diag(squares * n / left)


def _by_group(spread: Array, fits: Fits, parts: list[Statistics]) -> Array:
    groups, windows = len(parts[0].groups), len(parts)
    window = np.array([label[-1] for label in fits.labels], dtype=np.int64)
    found = np.zeros((windows, groups, windows, groups))
    first, second = np.indices(spread.shape)
    at = (window[first], fits.of[first], window[second], fits.of[second])
    np.add.at(found, at, spread)
    return found
