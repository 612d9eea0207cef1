"""Sums over clusters of their rows and rewards, from which mean rewards get their errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.audit._input.sources import Source
from evenhand.audit._sums.aggregate import fetch_by
from evenhand.bias.statistics import Array
from evenhand.fairness._clusters import ClusterSums


def of_groups(source: Source, rows: Any, groups: tuple[str, ...]) -> ClusterSums:
    """The sums of groups and, where a cluster is in several, of all pairs of them.

    Args:
        source: where the rows are.
        rows: as `prepared` made them.
        groups: their names.
    """
    by_cluster = _by_cluster(rows, ["g"])
    pieces = by_cluster.group_by("c").aggregate(groups=by_cluster.count())
    total = source.fetch(pieces.aggregate(all=pieces.count(), most=pieces.groups.max())).iloc[0]
    shared = bool(total["most"] > 1)
    at = {name: g for g, name in enumerate(groups)}
    own, products = np.zeros((3, len(groups))), np.zeros((3, len(groups), len(groups)))
    for row in fetch_by(source, by_cluster, ["g"], _squares(by_cluster)).to_dict(orient="records"):
        g = at[str(row["g"])]
        own[:, g] = row["clusters"], row["n"], row["y"]
        products[:, g, g] = row["nn"], row["ny"], row["yy"]
    if shared:
        other = by_cluster.view()
        other = other.select(h=other["g"], c=other["c"], m=other["n"], x=other["y"])
        joined = by_cluster.join(other, "c")
        joined = joined.filter(joined["g"] != joined["h"])
        aggregates = {
            "nn": (joined["n"] * joined["m"]).sum(),
            "ny": (joined["n"] * joined["x"]).sum(),
            "yy": (joined["y"] * joined["x"]).sum(),
        }
        for row in fetch_by(source, joined, ["g", "h"], aggregates).to_dict(orient="records"):
            pair = at[str(row["g"])], at[str(row["h"])]
            products[(slice(None), *pair)] = row["nn"], row["ny"], row["yy"]
    clusters, n, y = own
    nn, ny, yy = products
    return ClusterSums(clusters, n, y, nn, ny, yy, int(total["all"]), shared)


@dataclass(frozen=True, eq=False)
class WindowErrors:
    """Variances of the groups' mean rewards in time windows, and clusters, (windows, groups)."""

    variance: Array
    clusters: Array


def of_windows(source: Source, rows: Any, groups: tuple[str, ...], windows: int) -> WindowErrors:
    """The errors of mean rewards in every window.

    Args:
        source: where the rows are.
        rows: as `prepared` made them.
        groups: their names.
        windows: how many there are.
    """
    timed = rows.filter(rows["t"].notnull())
    by_cluster = _by_cluster(timed, ["g", "t"])
    variance, clusters = np.full((2, windows, len(groups)), np.nan)
    for row in fetch_by(source, by_cluster, ["g", "t"], _squares(by_cluster)).to_dict(
        orient="records"
    ):
        window_and_group = int(row["t"]), groups.index(str(row["g"]))
        names = ("clusters", "n", "y", "nn", "ny", "yy")
        many, n, y, nn, ny, yy = (np.array([float(row[name])]) for name in names)
        alone = ClusterSums(many, n, y, nn[None], ny[None], yy[None], int(many[0]), False)
        variance[window_and_group], clusters[window_and_group] = alone.covariance()[0, 0], many[0]
    return WindowErrors(variance, clusters)


def _by_cluster(rows: Any, keys: list[str]) -> Any:
    """A row per cluster and cell: how many rows it has there, as a number, and their rewards."""
    return rows.group_by([*keys, "c"]).aggregate(
        n=rows.count().cast("float64"), y=rows["y"].sum().cast("float64")
    )


def _squares(by_cluster: Any) -> dict[str, Any]:
    n, y = by_cluster["n"], by_cluster["y"]
    return {
        "clusters": by_cluster.count(),
        "n": n.sum(),
        "y": y.sum(),
        "nn": (n * n).sum(),
        "ny": (n * y).sum(),
        "yy": (y * y).sum(),
    }
