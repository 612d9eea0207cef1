"""The average context and mean reward of every group, and how far they are from exact.

They are estimates: another sample of people would have others. With weights w, rows v = (x, y) and
the average m of a group, the error of the average is to first order the sum of w (v - m), divided
by sum w.
So its covariance is the sum of the products of these over rows, if rows are independent; otherwise
it is the sum over clusters of the products of what their rows add up to. A cluster with rows in two
groups makes their averages dependent.

Where rows are independent and weigh the same, these sums are already in the first pass. Otherwise
one more query sums up the products of w v, uncentred: with L = (-m, I), the products of w (v - m)
are L P L'.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenhand.audit._inference.cluster_errors import cluster_counts, cluster_products, row_products
from evenhand.audit._inference.regression_scores import fits_of, numbered
from evenhand.audit._input.sources import Source
from evenhand.bias._fit import PULLS
from evenhand.bias.statistics import Array, Statistics, totals


class Averages(NamedTuple):
    """Of each group: the average context, the mean reward, and their sampling covariance."""

    context: Array  # (groups, d)
    reward: Array  # (groups,)
    covariance: Array  # (groups, groups, d + 1, d + 1): the rewards come last
    freedom: Array  # (groups,)
    shared: bool = False  # whether a cluster may be in several groups

    def of_contexts(self, g: int, h: int) -> Array:
        """The covariance of the average contexts of two groups, (d, d)."""
        block: Array = self.covariance[g, h, :-1, :-1]
        return block

    @property
    def of_rewards(self) -> Array:
        """The covariance of the mean rewards, (groups, groups)."""
        return self.covariance[:, :, -1, -1]


def averages(stats: Statistics) -> Averages:
    """The averages from sums of rows that are independent and weigh the same.

    Args:
        stats: with the intercept as the first feature.
    """
    groups, (gram, moment, square) = len(stats.groups), _by_group(stats)
    n = np.bincount(stats.of, stats.n, groups).astype(np.float64)
    weight = np.maximum(gram[:, 0, 0], 1e-300)
    context, reward = gram[:, 0] / weight[:, None], moment[:, 0] / weight
    whole = np.concatenate([gram, moment[:, None]], axis=1)
    last = np.concatenate([moment, square[:, None]], axis=1)
    whole = np.concatenate([whole, last[:, :, None]], axis=2)
    means = np.concatenate([context, reward[:, None]], axis=1)
    # With the divisor n; divided by n - 1 it is the covariance of the average.
    inside = whole / weight[:, None, None] - means[:, :, None] * means[:, None]
    own = np.arange(inside.shape[1])
    inside[:, own, own] = np.maximum(inside[:, own, own], 0.0)
    covariance = np.zeros((groups, *inside.shape))
    each = np.arange(groups)
    covariance[each, each] = inside / np.where(n > 1.0, n - 1.0, np.nan)[:, None, None]
    return Averages(context, reward, covariance, np.maximum(n - 1.0, 1.0))


def dependent_averages(source: Source, rows: Any, stats: Statistics) -> Averages:
    """The averages of rows that have weights, belong together in clusters, or both.

    Args:
        source: where the rows are.
        rows: as `prepared` made them, with w, c or both.
        stats: their sums.
    """
    import ibis

    plain, fits = averages(stats), fits_of(stats, PULLS, {})
    d = plain.context.shape[1]
    # A cast from a whole number: PostgreSQL takes the literal 1.0 for a decimal number.
    w = rows["w"] if "w" in rows.columns else ibis.literal(1, "int32").cast("float64")
    added = [w, *(w * rows[f"z{i}"] for i in range(d - 1)), w * rows["y"]]
    rows = numbered(rows.mutate(**{f"v{i}": value for i, value in enumerate(added)}), fits)
    columns = [rows[f"v{i}"] for i in range(d + 1)]
    shared = False
    if "c" in rows.columns:
        counts = cluster_counts(source, rows)
        shared = counts.crossing > 0
        products = cluster_products(source, rows, columns, fits, shared)
        many = np.array([float(counts.by_group[name]) for name in stats.groups])
    else:
        products = row_products(source, rows, columns, fits)
        # Kish's effective number of rows: a few heavy rows leave few degrees of freedom.
        own = np.einsum("ggij->gij", products)[:, 0, 0]
        many = fits.weight**2 / np.maximum(own, 1e-300)
    means = np.concatenate([plain.context, plain.reward[:, None]], axis=1)
    # The first column is the weight itself, from which the average of the intercept is exactly 1.
    lift = np.tile(np.eye(d + 1), (len(means), 1, 1))
    lift[:, :, 0] -= means
    lift /= np.maximum(fits.weight, 1e-300)[:, None, None]
    covariance = np.einsum("gij,ghjk,hlk->ghil", lift, products, lift)
    # A single row or cluster says nothing about the error: its products are 0 up to rounding.
    many = np.where(many > 1.0 + 1e-9, many, np.nan)
    factor = np.sqrt(many / (many - 1.0))
    covariance *= (factor[:, None] * factor)[:, :, None, None]
    return Averages(plain.context, plain.reward, covariance, np.fmax(many - 1.0, 1.0), shared)


def _by_group(stats: Statistics) -> tuple[Array, Array, Array]:
    gram, moment, square = (
        totals(part, stats.of, len(stats.groups))
        for part in (stats.gram, stats.moment, stats.square)
    )
    return gram, moment, square
