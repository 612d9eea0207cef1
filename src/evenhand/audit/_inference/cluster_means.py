"""Sums over clusters of their rows and rewards: what the errors of mean rewards are made from."""

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
    each = _each(rows, ["g"])
    pieces = each.group_by("c").aggregate(groups=each.count())
    total = source.fetch(pieces.aggregate(all=pieces.count(), most=pieces.groups.max())).iloc[0]
    shared = bool(total["most"] > 1)
    at = {name: g for g, name in enumerate(groups)}
    own, products = np.zeros((3, len(groups))), np.zeros((3, len(groups), len(groups)))
    for row in fetch_by(source, each, ["g"], _squares(each)).to_dict(orient="records"):
        g = at[str(row["g"])]
        own[:, g] = row["clusters"], row["n"], row["y"]
        products[:, g, g] = row["nn"], row["ny"], row["yy"]
    if shared:
        other = each.view()
        other = other.select(h=other["g"], c=other["c"], m=other["n"], x=other["y"])
        both = each.join(other, "c")
        both = both.filter(both["g"] != both["h"])
        asked = {
            "nn": (both["n"] * both["m"]).sum(),
            "ny": (both["n"] * both["x"]).sum(),
            "yy": (both["y"] * both["x"]).sum(),
        }
        for row in fetch_by(source, both, ["g", "h"], asked).to_dict(orient="records"):
            pair = at[str(row["g"])], at[str(row["h"])]
            products[(slice(None), *pair)] = row["nn"], row["ny"], row["yy"]
    clusters, n, y = own
    nn, ny, yy = products
    return ClusterSums(clusters, n, y, nn, ny, yy, int(total["all"]), shared)


@dataclass(frozen=True, eq=False)
class WindowErrors:
    """Of the mean rewards of groups in time windows: variances and clusters, (windows, groups)."""

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
    each = _each(timed, ["g", "t"])
    variance, clusters = np.full((2, windows, len(groups)), np.nan)
    for row in fetch_by(source, each, ["g", "t"], _squares(each)).to_dict(orient="records"):
        here = int(row["t"]), groups.index(str(row["g"]))
        names = ("clusters", "n", "y", "nn", "ny", "yy")
        many, n, y, nn, ny, yy = (np.array([float(row[name])]) for name in names)
        alone = ClusterSums(many, n, y, nn[None], ny[None], yy[None], int(many[0]), False)
        variance[here], clusters[here] = alone.covariance()[0, 0], many[0]
    return WindowErrors(variance, clusters)


def _each(rows: Any, keys: list[str]) -> Any:
    """A row per cluster and cell: how many rows it has there, as a number, and their rewards."""
    return rows.group_by([*keys, "c"]).aggregate(
        n=rows.count().cast("float64"), y=rows["y"].sum().cast("float64")
    )


def _squares(each: Any) -> dict[str, Any]:
    n, y = each["n"], each["y"]
    return {
        "clusters": each.count(),
        "n": n.sum(),
        "y": y.sum(),
        "nn": (n * n).sum(),
        "ny": (n * y).sum(),
        "yy": (y * y).sum(),
    }
