"""Errors that do not trust equal noise, or that allow for rows that belong together.

With the scores of single rows, or their sums over clusters, B is the sum of their squares, and the
covariance is A^-1 B A^-1, times the correction that is usual for one regression with all groups in
it (HC1 and CR1). Clusters with rows in several groups make these depend on each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.audit.clusters import cluster_counts, cluster_products
from evenhand.audit.scores import (
    Fits,
    check_same_rows,
    counted_again,
    numbered,
    with_residuals,
)
from evenhand.audit.sources import Source
from evenhand.audit.summing import fetch_by
from evenhand.audit.values import number
from evenhand.bias.fitting import ARMS, by_arms, by_pulls
from evenhand.bias.statistics import Array, Bools, Statistics, totals

CLASSICAL, ROBUST, CLUSTERED = "classical", "robust", "cluster"
FEW_ROWS = 20  # for every coefficient: with as many, robust errors are too small by 3 % or so
FEW_EVENTS = 10  # rewards of 1, or of 0, in a regression


@dataclass(frozen=True, eq=False)
class Errors:
    """Covariances of the groups' vectors about the centres, by group, and degrees of freedom."""

    kind: str
    covariances: dict[str, Array] | None = None
    freedom: dict[str, float] | None = None
    clusters: dict[str, int] | None = None
    total: int = 0  # clusters
    crossing: int = 0  # clusters with rows in more than one group
    between: dict[tuple[str, str], Array] | None = None  # of two groups, if there are such
    classical: tuple[str, ...] = ()  # groups with too few rows for the errors of the others


def robust(
    source: Source,
    rows: Any,
    stats: Statistics,
    fits: Fits,
    weighting: str,
    binary: bool,
    careful: bool,
    enough: Bools,
) -> Errors:
    """The covariances from squared residuals of single rows, of the groups that have enough.

    A group that has not keeps the errors of its own fit. Each group chooses for itself: a third
    group of three rows must not take away what protects the other two.

    Args:
        source: where the rows are.
        rows: as `prepared` made them.
        stats: their sums.
        fits: the regressions.
        weighting: by arms or by pulls.
        binary: whether rewards are 0 and 1.
        careful: whether to make up for few rows and few events, or to give HC1 as it is.
        enough: whether each group has rows enough.
    """
    scored = with_residuals(source, numbered(rows, fits), fits)
    d = fits.vectors.shape[1]
    x = [number(1.0), *(scored[f"z{i}"] for i in range(d - 1))]
    weight = scored["e"] * scored["e"]
    asked = {f"s{i}_{j}": (weight * x[i] * x[j]).sum() for i in range(d) for j in range(i, d)}
    frame = fetch_by(source, scored, ["k"], asked | counted_again(scored))
    check_same_rows(source, frame, fits)
    meat = np.zeros((len(fits.labels), d, d))
    for row in frame.to_dict(orient="records"):
        for i in range(d):
            for j in range(i, d):
                meat[int(row["k"]), i, j] = meat[int(row["k"]), j, i] = row[f"s{i}_{j}"]
    factors = _corrections(fits, careful)
    parts = fits.inverse @ meat @ fits.inverse * factors[:, None, None]
    if binary and careful:
        parts += _few_events(fits)[:, None, None] * fits.inverse
    whole = totals(fits.part[:, None, None] ** 2 * parts, fits.of, len(stats.groups))
    freedom = _by_group(stats) - np.bincount(fits.of, fits.rank, len(stats.groups))
    usable = np.flatnonzero((freedom > 0.0) & enough)
    rest = classical(stats, fits, weighting, binary)
    own = {stats.groups[g]: _symmetric(whole[g]) for g in usable}
    # Groups that nobody names here keep the covariance of their own fit.
    others = {name: one for name, one in (rest.covariances or {}).items() if name not in own}
    return Errors(
        ROBUST,
        own | others,
        {stats.groups[g]: float(freedom[g]) for g in usable}
        | {name: (rest.freedom or {})[name] for name in others},
        classical=tuple(
            name
            for name, n, ok in zip(stats.groups, _by_group(stats), enough, strict=True)
            if n > 0.0 and not ok
        ),
    )


def classical(stats: Statistics, fits: Fits, weighting: str, binary: bool) -> Errors:
    """Those of the fit itself; with hardly any rewards of 1, or of 0, more than these."""
    few = _few_events(fits) if binary else np.zeros(len(fits.labels))
    if not few.any():
        return Errors(CLASSICAL)
    fit = (by_arms if weighting == ARMS else by_pulls)(stats, None)
    parts = (fits.part**2 * few)[:, None, None] * fits.inverse
    more = totals(parts, fits.of, len(stats.groups))
    known = [g for g in range(len(stats.groups)) if fit.freedom[g] > 0.0]
    return Errors(
        CLASSICAL,
        {stats.groups[g]: _symmetric(fit.covariances[g] + more[g]) for g in known},
        {stats.groups[g]: float(fit.freedom[g]) for g in known},
    )


def _by_group(stats: Statistics) -> Array:
    """The rows of each group."""
    return np.bincount(stats.of, stats.n, len(stats.groups)).astype(np.float64)


def _corrections(fits: Fits, careful: bool) -> Array:
    """n / (n - d) of the whole, or of a regression that has so few rows that its own is larger."""
    own = fits.n
    n, few = own.sum(), careful & (own < FEW_ROWS * fits.vectors.shape[1])
    whole = n / max(n - fits.rank.sum(), 1.0)
    found: Array = np.where(few, np.maximum(own / np.maximum(own - fits.rank, 1.0), whole), whole)
    return found


def _few_events(fits: Fits) -> Array:
    """The variance of a reward of 0 or 1 where a regression has hardly any of one of them.

    What is left over is then zero or near it, and says nothing: so one more of each is added.
    Weights count by their part of the whole, and their mean makes up for what they add to X'WX.
    """
    mean = np.maximum(fits.weight, 1e-300) / np.maximum(fits.n, 1.0)
    ones = fits.total / mean
    chance = (ones + 1.0) / (fits.n + 2.0)
    few = np.minimum(ones, fits.n - ones) < FEW_EVENTS
    found: Array = np.where(few, mean * chance * (1.0 - chance), 0.0)
    return found


def clustered(source: Source, rows: Any, stats: Statistics, fits: Fits) -> Errors:
    """The covariances from the sums of scores of clusters."""
    counts = cluster_counts(source, rows)
    alone = [name for name, many in counts.by_group.items() if many < 2]
    if alone:
        raise ValueError(
            f"cluster: group {alone[0]} has a single cluster; errors need several in every group: "
            "leave --cluster out, or name another column"
        )
    scored = with_residuals(source, numbered(rows, fits), fits)
    d = fits.vectors.shape[1]
    scores = [scored["e"], *(scored["e"] * scored[f"z{i}"] for i in range(d - 1))]
    crossing = counts.crossing > 0 or "a" in fits.keys
    meat = cluster_products(source, scored, scores, fits, crossing)
    n, many = stats.n.sum(), float(counts.total)
    factor = many / (many - 1.0) * (n - 1.0) / max(n - fits.rank.sum(), 1.0)
    whole = factor * _between_groups(fits, meat, len(stats.groups))
    names = [name for name in stats.groups if name in counts.by_group]
    at = {name: stats.groups.index(name) for name in names}
    pairs = [(one, other) for i, one in enumerate(names) for other in names[i + 1 :]]
    return Errors(
        CLUSTERED,
        {name: _symmetric(whole[at[name], at[name]]) for name in names},
        {name: counts.by_group[name] - 1.0 for name in names},
        counts.by_group,
        counts.total,
        counts.crossing,
        {(one, other): whole[at[one], at[other]] for one, other in pairs}
        if counts.crossing
        else None,
    )


def _between_groups(fits: Fits, meat: Array, groups: int) -> Array:
    """The covariances of all pairs of groups' vectors, (groups, groups, d, d)."""
    d = fits.vectors.shape[1]
    found = np.zeros((groups, groups, d, d))
    reach = fits.part[:, None, None] * fits.inverse
    for i, j in np.argwhere(meat.any(axis=(2, 3))):
        found[fits.of[i], fits.of[j]] += reach[i] @ meat[i, j] @ reach[j]
    return found


def _symmetric(matrix: Array) -> Array:
    found: Array = (matrix + matrix.T) / 2.0
    return found
