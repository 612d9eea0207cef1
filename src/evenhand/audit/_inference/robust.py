"""Errors that do not assume equal noise, or that allow for rows that belong together.

With the scores of single rows, or their sums over clusters, B is the sum of their squares, and the
covariance is A^-1 B A^-1, times the usual correction for one regression with all groups in it (HC1
and CR1). Clusters with rows in several groups make the groups' estimates depend on each other.

There may be as many clusters as rows, so their products are summed in the engine too. Clusters
that lie within one regression need only a GROUP BY; the others are joined with themselves.

`robust_groups` and `weighting_of` settle what a user leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.audit._inference.scores import (
    Fits,
    check_same_rows,
    counted_again,
    numbered,
    with_residuals,
)
from evenhand.audit._input.engines import number
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import Settings
from evenhand.audit._sums.aggregate import fetch_by
from evenhand.bias._fit import ARMS, AUTO, PULLS, by_arms, by_pulls, settled
from evenhand.bias.statistics import Array, Bools, Statistics, totals
from evenhand.errors import DataError, InputError, setting

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
    factors = corrections(fits, careful)
    parts = fits.inverse @ meat @ fits.inverse * factors[:, None, None]
    if binary and careful:
        parts += _few_events(fits)[:, None, None] * fits.inverse
    whole = totals(fits.part[:, None, None] ** 2 * parts, fits.of, len(stats.groups))
    freedom = _by_group(stats) - np.bincount(fits.of, fits.rank, len(stats.groups))
    usable = np.flatnonzero((freedom > 0.0) & enough)
    rest = classical(stats, fits, weighting, binary)
    own = {stats.groups[g]: symmetric(whole[g]) for g in usable}
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
        {stats.groups[g]: symmetric(fit.covariances[g] + more[g]) for g in known},
        {stats.groups[g]: float(fit.freedom[g]) for g in known},
    )


def _by_group(stats: Statistics) -> Array:
    """The rows of each group."""
    return np.bincount(stats.of, stats.n, len(stats.groups)).astype(np.float64)


def corrections(fits: Fits, careful: bool) -> Array:
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
        raise DataError(
            f"cluster: group {alone[0]} has a single cluster; errors need several in every group: "
            f"leave {setting('cluster')} out, or name another column"
        )
    scored = with_residuals(source, numbered(rows, fits), fits)
    d = fits.vectors.shape[1]
    scores = [scored["e"], *(scored["e"] * scored[f"z{i}"] for i in range(d - 1))]
    crossing = counts.crossing > 0 or "a" in fits.keys
    meat = cluster_products(source, scored, scores, fits, crossing)
    n, many = stats.n.sum(), float(counts.total)
    factor = many / (many - 1.0) * (n - 1.0) / max(n - fits.rank.sum(), 1.0)
    whole = factor * between_groups(fits, meat, len(stats.groups))
    names = [name for name in stats.groups if name in counts.by_group]
    at = {name: stats.groups.index(name) for name in names}
    pairs = [(one, other) for i, one in enumerate(names) for other in names[i + 1 :]]
    return Errors(
        CLUSTERED,
        {name: symmetric(whole[at[name], at[name]]) for name in names},
        {name: counts.by_group[name] - 1.0 for name in names},
        counts.by_group,
        counts.total,
        counts.crossing,
        {(one, other): whole[at[one], at[other]] for one, other in pairs}
        if counts.crossing
        else None,
    )


def between_groups(fits: Fits, meat: Array, groups: int) -> Array:
    """The covariances of all pairs of groups' vectors, (groups, groups, d, d)."""
    d = fits.vectors.shape[1]
    found = np.zeros((groups, groups, d, d))
    reach = fits.part[:, None, None] * fits.inverse
    for i, j in np.argwhere(meat.any(axis=(2, 3))):
        found[fits.of[i], fits.of[j]] += reach[i] @ meat[i, j] @ reach[j]
    return found


def symmetric(matrix: Array) -> Array:
    found: Array = (matrix + matrix.T) / 2.0
    return found


@dataclass(frozen=True)
class Counts:
    """How many clusters there are: in all, in each group, and with rows in several groups."""

    total: int
    by_group: dict[str, int]
    crossing: int


def cluster_counts(source: Source, rows: Any) -> Counts:
    """Count clusters."""
    each = rows.group_by(["g", "c"]).aggregate(n=rows.count())
    frame = source.fetch(each.group_by("g").aggregate(clusters=each.count()))
    spread = each.group_by("c").aggregate(groups=each.count())
    total = source.fetch(
        spread.aggregate(all=spread.count(), crossing=(spread.groups > 1).cast("int32").sum())
    ).iloc[0]
    return Counts(
        int(total["all"]),
        dict(zip(frame["g"].astype(str), frame["clusters"].astype(int), strict=True)),
        int(total["crossing"]),
    )


def fewest_in_an_arm(source: Source, rows: Any) -> int:
    """How many clusters the arm of a group has that has the fewest."""
    each = rows.group_by(["g", "a", "c"]).aggregate(n=rows.count())
    arms = each.group_by(["g", "a"]).aggregate(clusters=each.count())
    return int(source.fetch(arms.aggregate(fewest=arms.clusters.min()))["fewest"].iloc[0])


def cluster_products(
    source: Source, rows: Any, scores: Sequence[Any], fits: Fits, crossing: bool
) -> Array:
    """The sum over clusters of s_i s_j', (fits, fits, d, d), where s_i sums a fit's scores.

    Args:
        source: where the rows are.
        rows: with the cluster in c and the number of the regression in k.
        scores: a column of the rows for each coefficient.
        fits: the regressions.
        crossing: whether a cluster may have rows in several of them.
    """
    d = len(scores)
    sums = {f"s{i}": one.sum() for i, one in enumerate(scores)}
    again = counted_again(rows)
    each = rows.group_by(["k", "c"]).aggregate(**sums, **again)
    found = np.zeros((len(fits.labels), len(fits.labels), d, d))
    pairs = [(i, j) for i in range(d) for j in range(i, d)]
    own = {f"p{i}_{j}": (each[f"s{i}"] * each[f"s{j}"]).sum() for i, j in pairs}
    own |= {name: each[name].sum() for name in again}
    frame = fetch_by(source, each, ["k"], own)
    check_same_rows(source, frame, fits)
    for row in frame.to_dict(orient="records"):
        k = int(row["k"])
        for i, j in pairs:
            found[k, k, i, j] = found[k, k, j, i] = row[f"p{i}_{j}"]
    if not crossing:
        return found
    spread = each.group_by("c").aggregate(many=each.count())
    several = spread.filter(spread.many > 1)
    left = each.semi_join(several, "c")
    right = left.view()
    right = right.select(l=right["k"], c=right["c"], **{f"r{i}": right[f"s{i}"] for i in range(d)})
    both = left.join(right, "c")
    both = both.filter(both["k"] < both["l"])
    cross = {f"p{i}_{j}": (both[f"s{i}"] * both[f"r{j}"]).sum() for i in range(d) for j in range(d)}
    for row in fetch_by(source, both, ["k", "l"], cross).to_dict(orient="records"):
        k, other = int(row["k"]), int(row["l"])
        block = np.array([[row[f"p{i}_{j}"] for j in range(d)] for i in range(d)])
        found[k, other], found[other, k] = block, block.T
    return found


# Above this many rows nobody pays for a second pass who did not ask for it.
ROBUST_UP_TO = 2_000_000
# Regressions times features: the square of it is how many products of clusters there can be.
MOST_SCORES = 2000
FEW_IN_AN_ARM = 10  # clusters: with two, intervals cover in 85 percent


def weighting_of(stats: Statistics, settings: Settings, clusters: int | None) -> tuple[str, str]:
    """The weighting, and why it is by pulls where it was to be by arms.

    Args:
        stats: the sums of the log.
        settings: what the user chose.
        clusters: how many the arm with the fewest has; None where rows do not belong together.
    """
    wanted = settings.weighting
    many = 0 if stats.arms is None else len(stats.arms) * stats.n_features
    if wanted == ARMS and stats.arms is None:
        raise InputError(
            f"{setting('weighting')} is 'arms', and a group has a single arm that serves other "
            f"groups as well; choose {setting('weighting', 'pulls')}"
        )
    if clusters is not None and stats.arms is not None and wanted != PULLS:
        # Scores of an arm with a single cluster sum to zero, and so would its error.
        few = f"an arm has only {clusters} cluster{'s' if clusters != 1 else ''}"
        if wanted == ARMS and clusters < 2:
            raise InputError(
                f"{setting('weighting')} is 'arms' with clusters, and {few}; errors need several "
                f"in every arm: choose {setting('weighting', 'pulls')}, or leave "
                f"{setting('cluster')} out"
            )
        if wanted == AUTO and clusters < FEW_IN_AN_ARM:
            return PULLS, f"{few}, too few for errors"
    if clusters is not None and many > MOST_SCORES and wanted != PULLS:
        why = f"{len(stats.arms or ())} arms times {stats.n_features} coefficients"
        if wanted == ARMS:
            raise InputError(
                f"{setting('weighting')} is 'arms' with clusters and {why}; allowed are "
                f"{MOST_SCORES:,} of them with clusters: choose {setting('weighting', 'pulls')}, "
                "or fewer features"
            )
        return PULLS, f"{why} are too many for errors of clusters"
    weighting, instead = settled(stats, wanted)
    return weighting, instead if wanted == AUTO else ""


def robust_groups(stats: Statistics, settings: Settings, weighting: str, weighted: bool) -> Bools:
    """Which groups have robust errors, of rows that do not belong together."""
    if settings.errors != AUTO or weighted:
        return np.full(len(stats.groups), settings.errors != CLASSICAL)
    if stats.n.sum() > ROBUST_UP_TO:
        return np.zeros(len(stats.groups), dtype=np.bool_)
    return rows_suffice(stats, weighting)


def rows_suffice(stats: Statistics, weighting: str) -> Bools:
    """Whether every regression of a group has rows enough for robust errors, by group."""
    n, few = stats.n, FEW_ROWS * stats.n_features
    if weighting != ARMS:
        n = np.bincount(stats.of, stats.n, len(stats.groups)).astype(np.float64)[stats.of]
    short = np.bincount(stats.of, (n > 0.0) & (n < few), len(stats.groups))
    found: Bools = short == 0.0
    return found
