"""The bias within time windows: the same regressions with the window held constant.

Where rewards rise over time and the share of a group rises as well, a comparison over the whole log
takes the rise for a bias in favour of that group. With a column of 0 and 1 for every window but
one, groups are compared among people in the same period. No further sums are needed: the products
of such a column with all others are the sums of its window, which the cells have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.audit._inference.regression_scores import fits_of
from evenhand.audit._inference.second_pass import Question
from evenhand.audit._inference.standard_errors import Errors
from evenhand.audit._input.expressions import as_number, number
from evenhand.audit._sums.cells import Cells
from evenhand.bias._contexts import Contexts
from evenhand.bias._fit import ARMS, AUTO, settled, solve_designs
from evenhand.bias.estimate import MEAN, bias_report
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Array, Statistics, totals

WITHIN = "within"  # what the second pass calls these regressions


@dataclass(frozen=True, eq=False)
class ComparedWindows:
    """The windows in which all groups can be compared, and their parts of the rows in them."""

    windows: tuple[int, ...]
    shares: Array  # of all but the first, in few digits: they stand in queries too

    def lift(self, d: int) -> dict[int, Array]:
        """For each window, the matrix that adds the columns of windows to the features: (D, d)."""
        matrices = {}
        for place, window in enumerate(self.windows):
            matrix = np.zeros((d + len(self.shares), d))
            matrix[:d] = np.eye(d)
            matrix[d:, 0] = -self.shares
            if place:
                matrix[d + place - 1, 0] += 1.0
            matrices[window] = matrix
        return matrices


@dataclass(frozen=True, eq=False)
class HeldConstant:
    """The regressions with the window held constant: their sums, and what the second pass needs."""

    held: ComparedWindows
    stats: Statistics
    question: Question


def hold_windows(
    cells: Cells, rows: Any, groups: tuple[str, ...], count: int, weighting: str
) -> HeldConstant | None:
    """The regressions with the time window held constant; None where it cannot be.

    Args:
        cells: sums by window.
        rows: as `prepared` made them.
        groups: their names.
        count: how many windows there are.
        weighting: of the whole log.
    """
    held = _held(cells, groups, count)
    if held is None:
        return None
    stats = _statistics(cells, groups, weighting == ARMS, held)
    # Some arms lack rows in these windows.
    if weighting == ARMS and settled(stats, AUTO)[0] != ARMS:
        return None  # another weighting would be another question
    d = cells.gram.shape[1]
    extra = {
        f"z{d - 1 + j}": as_number(rows["t"] == window) - number(float(share))
        for j, (window, share) in enumerate(zip(held.windows[1:], held.shares, strict=True))
    }
    kept = rows.filter(rows["t"].isin(list(held.windows))).mutate(**extra)
    fits = fits_of(stats, weighting, cells.places)
    return HeldConstant(held, stats, Question(fits, kept, held.lift(d)))


@dataclass(frozen=True, eq=False)
class Within:
    """The report with the time window held constant, and the rows and sums that it is made of."""

    report: BiasReport
    stats: Statistics  # with a column for every window but one, after the features
    rows: Any
    errors: Errors


def within_windows(equal: HeldConstant, errors: Errors, whole: BiasReport) -> Within | None:
    """The report about the centres with the time window held constant.

    Args:
        equal: the regressions.
        errors: theirs, made as those of the whole log.
        whole: the report of the whole log, about the centres.
    """
    if whole.overall is None:
        return None
    held, stats = equal.held, equal.stats
    report = bias_report(
        stats,
        reference=whole.reference or MEAN,
        level=whole.level,
        weighting=whole.weighting,
        feature_names=[*whole.features, *(f"window {t + 1}" for t in held.windows[1:])],
        covariances=errors.covariances,
        freedom=errors.freedom,
        between=errors.between,
        blocked=errors.blocked,
        average=np.append(whole.overall, np.zeros(len(held.shares))),
    )
    inside = _without_windows(report, stats, whole)
    return Within(inside, stats, equal.question.rows, errors)


def _held(cells: Cells, groups: tuple[str, ...], count: int) -> ComparedWindows | None:
    """Windows with rows of every group, except groups that most windows lack."""
    frame = cells.frame.dropna(subset="t")
    n = np.zeros((count, len(groups)))
    window = frame["t"].to_numpy(dtype=np.int64)
    group = np.array([groups.index(str(name)) for name in frame["g"]], dtype=np.int64)
    np.add.at(n, (window, group), frame["n"].to_numpy(dtype=np.float64))
    # A group that is seldom there must not take away the windows in which the others can be
    # compared.
    usual = (n > 0.0).sum(axis=0) >= count / 2.0
    windows = np.flatnonzero((n[:, usual] > 0.0).all(axis=1))
    if usual.sum() < 2 or len(windows) < 2:
        return None
    sizes = n[windows].sum(axis=1)
    shares = np.array([float(f"{share:.6g}") for share in sizes[1:] / sizes.sum()])
    return ComparedWindows(tuple(int(t) for t in windows), shares)


def _statistics(
    cells: Cells, groups: tuple[str, ...], by_arm: bool, held: ComparedWindows
) -> Statistics:
    """The sums of the windows held constant, with a centred column for all but the first.

    The column of a window is 1 in its rows and 0 elsewhere. Its product with any feature, summed
    up, is that feature's sum in the window, which is the first row of X'WX there; its product with
    another window's column is 0. So all new sums are in the cells.

    `move` subtracts from each column its share of the rows, times the intercept. Then every column
    has the mean 0 over all of them, and a context with 0 in these places is one at the windows'
    average mix. Without it, 0 would mean the first window, and the intercept would compare groups
    as they were then. The vectors of features and their covariances do not change, nor does the
    fit.
    """
    parts = [cells.statistics(groups, t, by_arm=by_arm) for t in held.windows]
    base, d, more = parts[0], cells.gram.shape[1], len(held.shares)
    gram, moment = np.zeros((len(base.n), d + more, d + more)), np.zeros((len(base.n), d + more))
    gram[:, :d, :d] = sum(part.gram for part in parts)
    moment[:, :d] = sum(part.moment for part in parts)
    for j, part in enumerate(parts[1:], d):
        gram[:, :d, j] = gram[:, j, :d] = part.gram[:, 0]
        gram[:, j, j], moment[:, j] = part.gram[:, 0, 0], part.moment[:, 0]
    move = np.eye(d + more)
    move[0, d:] = -held.shares
    gram, moment = move.T @ gram @ move, moment @ move
    # A group may be in none of these windows.
    weight = np.maximum(gram[:, 0, 0], 1e-300)
    return replace(
        base,
        n=np.sum([part.n for part in parts], axis=0),
        gram=gram,
        moment=moment,
        square=np.sum([part.square for part in parts], axis=0),
        means=gram[:, 0] / weight[:, None],
        weights=None if base.weights is None else gram[:, 0, 0],
    )


def _without_windows(report: BiasReport, stats: Statistics, whole: BiasReport) -> BiasReport:
    """The report at the windows' average mix, with the features of the whole log alone.

    The columns of windows are centred, so they are 0 there, and the report for the others is the
    first block of vectors and covariances.
    """
    d, fit = len(whole.features), report._fit
    gram = stats.gram
    if len(fit.designs.rank) != len(gram):
        gram = totals(gram, stats.of, len(stats.groups))
    # The Schur complement: X'WX of the features, less what the columns of windows explain of it.
    inner, cross = gram[:, d:, d:], gram[:, :d, d:]
    # It is X'WX of the residuals of the features on the columns of windows: what tells the groups
    # apart within windows, and so which directions are known.
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
        observations=report.observations,
        average=None if report.average is None else report.average[:, :d],
        _fit=own,
        _weights=report._weights,
        _contexts=_first(report._contexts, d),
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
