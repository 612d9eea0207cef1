"""The bias within time windows: the same regressions with the window held equal.

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

from evenhand.audit.cells import Cells
from evenhand.audit.robust import Errors
from evenhand.audit.values import as_number, number
from evenhand.bias.contexts import Contexts
from evenhand.bias.designs import solve_designs
from evenhand.bias.fitting import ARMS, AUTO, settled
from evenhand.bias.making import MEAN, bias_report
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Array, Statistics, totals

# Statistics, rows and weighting in; the errors of the regressions out.
ErrorsOf = Callable[[Statistics, Any, str], Errors]


@dataclass(frozen=True, eq=False)
class Held:
    """The windows in which all groups can be compared, and their parts of the rows in them."""

    windows: tuple[int, ...]
    shares: Array  # of all but the first, in few digits: they stand in queries too


def within_windows(
    cells: Cells, rows: Any, count: int, whole: BiasReport, errors_of: ErrorsOf
) -> BiasReport | None:
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
    return _without_windows(found, stats, whole)


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
