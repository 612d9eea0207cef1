"""Sums of scores over clusters, and the products of these: what rows of one person have in common.

There may be as many clusters as rows, so products are summed up in the engine too. Clusters that
lie within one regression need no more than a GROUP BY. Only those that do not are joined with
themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.audit.scores import Fits, check_same_rows, counted_again
from evenhand.audit.sources import Source
from evenhand.audit.summing import fetch_by
from evenhand.bias.statistics import Array


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
