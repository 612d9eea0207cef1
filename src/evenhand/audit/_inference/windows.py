"""The bias in every time window, with the weighting and the errors that the whole log has.

The bias within time windows: the same regressions with the window held equal.

Where rewards rise over time and the share of a group rises as well, a comparison over the whole log
takes the one for a bias in favour of that group. With a column of 0 and 1 for every window but one,
groups are compared among people of the same time. No further sum is needed: the cells have the sums
of every window, and the products of such a column with all others are these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.audit._inference.robust import (
    CLASSICAL,
    CLUSTERED,
    Errors,
    cluster_products,
    rows_suffice,
)
from evenhand.audit._inference.scores import (
    Fits,
    check_same_rows,
    counted_again,
    fits_of,
    in_windows,
    numbered,
    with_effects,
)
from evenhand.audit._input.engines import as_number, number
from evenhand.audit._input.sources import Source
from evenhand.audit._sums.aggregate import fetch_by
from evenhand.audit._sums.cells import Cells
from evenhand.bias._contexts import Contexts
from evenhand.bias._fit import ARMS, AUTO, PULLS, settled, solve_designs
from evenhand.bias.estimate import MEAN, bias_report
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Array, Bools, Statistics, totals

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


# Statistics, rows and weighting in; the errors of the regressions out.
ErrorsOf = Callable[[Statistics, Any, str], Errors]


@dataclass(frozen=True, eq=False)
class Held:
    """The windows in which all groups can be compared, and their parts of the rows in them."""

    windows: tuple[int, ...]
    shares: Array  # of all but the first, in few digits: they stand in queries too


@dataclass(frozen=True, eq=False)
class Within:
    """The report with the time window held equal, and the rows and sums that it is made of."""

    report: BiasReport
    stats: Statistics  # with a column for every window but one, after the features
    rows: Any
    errors: Errors


def within_windows(
    cells: Cells, rows: Any, count: int, whole: BiasReport, errors_of: ErrorsOf
) -> Within | None:
    """The report about the centres with the time window held equal; None where it cannot be.

    Args:
        cells: sums by window.
        rows: as `prepared` made them.
        count: how many windows there are.
        whole: the report of the whole log, about the centres.
        errors_of: how the errors of the whole log were made.
    """
    held = _held(cells, whole.groups, count)
    if held is None or whole.overall is None:
        return None
    stats = _statistics(cells, whole, held)
    if whole.weighting == ARMS and settled(stats, AUTO)[0] != ARMS:
        return None  # another weighting would be another question
    d = len(whole.features)
    extra = {
        f"z{d - 1 + j}": as_number(rows["t"] == window) - number(float(share))
        for j, (window, share) in enumerate(zip(held.windows[1:], held.shares, strict=True))
    }
    kept = rows.filter(rows["t"].isin(list(held.windows))).mutate(**extra)
    errors = errors_of(stats, kept, whole.weighting)
    found = bias_report(
        stats,
        reference=whole.reference or MEAN,
        level=whole.level,
        weighting=whole.weighting,
        feature_names=[*whole.features, *(f"window {t + 1}" for t in held.windows[1:])],
        covariances=errors.covariances,
        freedom=errors.freedom,
        between=errors.between,
        average=np.append(whole.overall, np.zeros(len(held.shares))),
    )
    return Within(_without_windows(found, stats, whole), stats, kept, errors)


def _held(cells: Cells, groups: tuple[str, ...], count: int) -> Held | None:
    """Windows that have rows of every group, but of those that are hardly ever there."""
    frame = cells.frame.dropna(subset="t")
    n = np.zeros((count, len(groups)))
    window = frame["t"].to_numpy(dtype=np.int64)
    group = np.array([groups.index(str(one)) for one in frame["g"]], dtype=np.int64)
    np.add.at(n, (window, group), frame["n"].to_numpy(dtype=np.float64))
    usual = (n > 0.0).sum(axis=0) >= count / 2.0
    windows = np.flatnonzero((n[:, usual] > 0.0).all(axis=1))
    if usual.sum() < 2 or len(windows) < 2:
        return None
    sizes = n[windows].sum(axis=1)
    shares = np.array([float(f"{one:.6g}") for one in sizes[1:] / sizes.sum()])
    return Held(tuple(int(t) for t in windows), shares)


def _statistics(cells: Cells, whole: BiasReport, held: Held) -> Statistics:
    """The sums of the windows that are held equal, with a centred column for all but the first."""
    parts = [
        cells.statistics(whole.groups, t, by_arm=whole.weighting == ARMS) for t in held.windows
    ]
    base, d, more = parts[0], whole._fit.vectors.shape[1], len(held.shares)
    gram, moment = np.zeros((len(base.n), d + more, d + more)), np.zeros((len(base.n), d + more))
    gram[:, :d, :d] = sum(one.gram for one in parts)
    moment[:, :d] = sum(one.moment for one in parts)
    for j, one in enumerate(parts[1:], d):
        gram[:, :d, j] = gram[:, j, :d] = one.gram[:, 0]
        gram[:, j, j], moment[:, j] = one.gram[:, 0, 0], one.moment[:, 0]
    move = np.eye(d + more)
    move[0, d:] = -held.shares
    gram, moment = move.T @ gram @ move, moment @ move
    weight = np.maximum(gram[:, 0, 0], 1e-300)
    return replace(
        base,
        n=np.sum([one.n for one in parts], axis=0),
        gram=gram,
        moment=moment,
        square=np.sum([one.square for one in parts], axis=0),
        means=gram[:, 0] / weight[:, None],
        weights=None if base.weights is None else gram[:, 0, 0],
    )


def _without_windows(found: BiasReport, stats: Statistics, whole: BiasReport) -> BiasReport:
    """The report at the windows' average mix, in the features of the whole log's alone.

    The columns of windows are centred, so that is where they are 0, and what the others say there
    is the first block of vectors and covariances.
    """
    d, fit = len(whole.features), found._fit
    gram = stats.gram
    if len(fit.designs.rank) != len(gram):
        gram = totals(gram, stats.of, len(stats.groups))
    # What is left of the features once the windows are held equal.
    inner, cross = gram[:, d:, d:], gram[:, :d, d:]
    left = gram[:, :d, :d] - cross @ np.linalg.pinv(inner, hermitian=True) @ cross.swapaxes(1, 2)
    own = replace(
        fit,
        vectors=fit.vectors[:, :d],
        covariances=fit.covariances[:, :d, :d],
        designs=solve_designs(left, stats.precision),
        rounding=fit.rounding[:, :d, :d],
        between=None if fit.between is None else fit.between[:, :, :d, :d],
    )
    return replace(
        whole,
        observations=found.observations,
        average=None if found.average is None else found.average[:, :d],
        _fit=own,
        _weights=found._weights,
        _contexts=_first(found._contexts, d),
        _apart=None,
    )


def _first(contexts: Contexts, d: int) -> Contexts:
    return replace(
        contexts,
        means=None if contexts.means is None else contexts.means[:, :d],
        overall=None if contexts.overall is None else contexts.overall[:d],
        apart=None if contexts.apart is None else contexts.apart[:, :, :d],
        spread=contexts.spread[:d],
        kinds=contexts.kinds[:d],
        arms=None if contexts.arms is None else contexts.arms[:, :d],
    )
