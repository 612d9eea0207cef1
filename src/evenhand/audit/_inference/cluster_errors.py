"""Errors that allow for rows that belong together, such as those of one person.

The scores of a cluster are summed up first, s_c = sum w e x over its rows. The covariance is
A^-1 B A^-1 with B = sum s_c s_c', times G / (G - 1) * (n - 1) / (n - d) for G clusters and d
coefficients in all (CR1).
Clusters with rows in several groups make the groups' estimates dependent.

There may be as many clusters as rows, so their products are summed in the engine too. Clusters
that lie within one regression need only a GROUP BY; the others are joined with themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.audit._inference.regression_scores import (
    Fits,
    check_same_rows,
    counted_again,
    numbered,
    with_residuals,
)
from evenhand.audit._inference.standard_errors import (
    CLUSTERED,
    Errors,
    symmetric,
)
from evenhand.audit._input.sources import Source
from evenhand.audit._sums.aggregate import fetch_by
from evenhand.bias.statistics import Array, Statistics
from evenhand.errors import DataError, setting


def clustered(source: Source, rows: Any, stats: Statistics, fits: Fits, windows: int = 1) -> Errors:
    """The covariances from the sums of scores of clusters.

    The scores of a regression sum to zero, so those of a single cluster say nothing: a group that
    has no other is compared with nobody, and the others keep their errors.

    The same holds for time windows with a coefficient of their own. The scores sum to zero in each
    of them, so a group of G clusters has lost more than the one degree of freedom for which CR1
    corrects by G / (G - 1). With L lost (`lost_to_windows`) the factor should be G / (G - L), so
    its variances are multiplied by (G - 1) / (G - L), and covariances of two groups by the root of
    the factor of each.

    Args:
        source: where the rows are.
        rows: with the cluster in c.
        stats: their sums.
        fits: the regressions.
        windows: how many time windows have a coefficient of their own, to correct for the degrees
            of freedom that they take; 1 for plain CR1.
    """
    counts = cluster_counts(source, rows)
    single = [name for name, many in counts.by_group.items() if many < 2]
    if single and len(counts.by_group) - len(single) < 2:
        raise DataError(
            f"cluster: group {single[0]} has a single cluster, and fewer than two groups have "
            f"more; standard errors need several in each: leave {setting('cluster')} out, or name "
            "another column"
        )
    scored = with_residuals(source, numbered(rows, fits), fits)
    d = fits.vectors.shape[1]
    scores = [scored["e"], *(scored["e"] * scored[f"z{i}"] for i in range(d - 1))]
    # Regressions are by arm: a cluster may be in several arms of one group.
    crossing = counts.crossing > 0 or "a" in fits.keys
    meat = cluster_products(source, scored, scores, fits, crossing)
    factor = cluster_correction(float(counts.total), stats.n.sum(), fits.rank.sum())
    whole = factor * between_groups(fits, meat, len(stats.groups))
    lost = lost_to_windows(source, rows, counts, windows)
    names = [name for name in stats.groups if counts.by_group.get(name, 0) - lost[name] > 0.0]
    inflation = np.ones(len(stats.groups))
    for g, name in enumerate(stats.groups):
        if name in names:
            clusters = counts.by_group[name]
            inflation[g] = (clusters - 1.0) / (clusters - lost[name])
    roots = np.sqrt(inflation)
    whole *= (roots[:, None] * roots)[:, :, None, None]
    # A group may also have lost all of its clusters to windows.
    blocked = [name for name in counts.by_group if name not in names]
    at = {name: stats.groups.index(name) for name in names}
    pairs = [(group, other) for i, group in enumerate(names) for other in names[i + 1 :]]
    return Errors(
        CLUSTERED,
        {name: symmetric(whole[at[name], at[name]]) for name in names},
        {name: counts.by_group[name] - lost[name] for name in names},
        counts.by_group,
        counts.total,
        counts.crossing,
        {(group, other): whole[at[group], at[other]] for group, other in pairs}
        if counts.crossing
        else None,
        blocked={name: _too_few(name, counts.by_group[name]) for name in blocked},
    )


def cluster_correction(clusters: Any, n: Any, coefficients: Any) -> Any:
    """CR1: G / (G - 1) times (n - 1) / (n - d), with G clusters, n rows and d coefficients."""
    return clusters / (clusters - 1.0) * (n - 1.0) / np.maximum(n - coefficients, 1.0)


def _too_few(group: str, clusters: int) -> str:
    if clusters < 2:
        return f"group {group} has a single cluster"
    return f"group {group} has hardly more clusters than time windows"


def lost_to_windows(source: Source, rows: Any, counts: Counts, windows: int) -> dict[str, float]:
    """How many degrees of freedom of its clusters each group loses: one, and more to windows.

    A cluster that is in one window says nothing about the difference between windows except through
    that window's level, so each level takes one degree. Clusters that are in all windows determine
    the levels by themselves, and then only one is lost. In general it is 1 + windows - k, with k
    the mean number of windows in which a cluster has rows.
    """
    if windows <= 1:
        return dict.fromkeys(counts.by_group, 1.0)
    in_windows = cluster_counts(source, rows, "t").by_cell
    pairs = dict.fromkeys(counts.by_group, 0)
    for (group, _), many in in_windows.items():
        pairs[str(group)] += many
    return {
        name: 1.0 + windows - pairs[name] / many if many else 1.0
        for name, many in counts.by_group.items()
    }


def between_groups(fits: Fits, meat: Array, groups: int) -> Array:
    """The covariances of all pairs of groups' vectors, (groups, groups, d, d)."""
    d = fits.vectors.shape[1]
    between = np.zeros((groups, groups, d, d))
    reach = fits.part[:, None, None] * fits.inverse
    for i, j in np.argwhere(meat.any(axis=(2, 3))):
        between[fits.of[i], fits.of[j]] += reach[i] @ meat[i, j] @ reach[j]
    return between


@dataclass(frozen=True)
class Counts:
    """How many clusters there are: in all, in each cell (a group, or a group in a time window), and
    with rows in several of these.
    """

    total: int
    by_cell: dict[tuple[object, ...], int]
    crossing: int

    @property
    def by_group(self) -> dict[str, int]:
        """The clusters of each group, where cells are groups."""
        return {str(name): many for (name, *_), many in self.by_cell.items()}

    def table(self, groups: Sequence[str], windows: int) -> Array:
        """The clusters of each window and group, where cells are these: (windows, groups)."""
        return np.array(
            [[float(self.by_cell.get((name, t), 0)) for name in groups] for t in range(windows)]
        )


def cluster_counts(source: Source, rows: Any, *more: str) -> Counts:
    """Count clusters by group and, if given, by another key such as the time window."""
    keys = ["g", *more]
    by_cluster = rows.group_by([*keys, "c"]).aggregate(n=rows.count())
    frame = source.fetch(by_cluster.group_by(keys).aggregate(clusters=by_cluster.count()))
    frame = frame.sort_values(keys)  # engines give groups in any order, and reports show it
    spread = by_cluster.group_by("c").aggregate(cells=by_cluster.count())
    total = source.fetch(
        spread.aggregate(all=spread.count(), crossing=(spread.cells > 1).cast("int32").sum())
    ).iloc[0]
    cells = zip(frame["g"].astype(str), *(frame[key].astype(int) for key in more), strict=True)
    return Counts(
        int(total["all"]),
        dict(zip(cells, frame["clusters"].astype(int).tolist(), strict=True)),
        int(total["crossing"]),
    )


def fewest_in_an_arm(source: Source, rows: Any) -> int:
    """The number of clusters in the arm of a group that has the fewest."""
    by_cluster = rows.group_by(["g", "a", "c"]).aggregate(n=rows.count())
    arms = by_cluster.group_by(["g", "a"]).aggregate(clusters=by_cluster.count())
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
    sums = {f"s{i}": score.sum() for i, score in enumerate(scores)}
    again = counted_again(rows)
    by_cluster = rows.group_by(["k", "c"]).aggregate(**sums, **again)
    counted = {name: by_cluster[name].sum() for name in again}
    products = _own_products(source, by_cluster, d, counted, fits)
    # A join of clusters with themselves is the slow part; without crossing it would find nothing.
    if not crossing:
        return products
    spread = by_cluster.group_by("c").aggregate(many=by_cluster.count())
    spanning = spread.filter(spread.many > 1)
    # Only clusters in several regressions, which are few as a rule.
    left = by_cluster.semi_join(spanning, "c")
    right = left.view()
    right = right.select(l=right["k"], c=right["c"], **{f"r{i}": right[f"s{i}"] for i in range(d)})
    joined = left.join(right, "c")
    # Each pair once; its transpose is filled in below.
    joined = joined.filter(joined["k"] < joined["l"])
    cross = {
        f"p{i}_{j}": (joined[f"s{i}"] * joined[f"r{j}"]).sum() for i in range(d) for j in range(d)
    }
    for row in fetch_by(source, joined, ["k", "l"], cross).to_dict(orient="records"):
        k, other = int(row["k"]), int(row["l"])
        block = np.array([[row[f"p{i}_{j}"] for j in range(d)] for i in range(d)])
        products[k, other], products[other, k] = block, block.T
    return products


def row_products(source: Source, rows: Any, scores: Sequence[Any], fits: Fits) -> Array:
    """The same where every row is a cluster of its own: the sum over rows of s s'."""
    table = rows.mutate(**{f"s{i}": score for i, score in enumerate(scores)})
    return _own_products(source, table, len(scores), counted_again(table), fits)


def _own_products(source: Source, table: Any, d: int, counted: dict[str, Any], fits: Fits) -> Array:
    """The products of each regression's own scores; those of two regressions are 0."""
    products = np.zeros((len(fits.labels), len(fits.labels), d, d))
    pairs = [(i, j) for i in range(d) for j in range(i, d)]
    own = {f"p{i}_{j}": (table[f"s{i}"] * table[f"s{j}"]).sum() for i, j in pairs}
    frame = fetch_by(source, table, ["k"], own | counted)
    check_same_rows(source, frame, fits)
    for row in frame.to_dict(orient="records"):
        k = int(row["k"])
        for i, j in pairs:
            products[k, k, i, j] = products[k, k, j, i] = row[f"p{i}_{j}"]
    return products
