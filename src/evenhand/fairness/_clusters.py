"""Means of rewards whose rows belong together: the same person, the same judge.

What a cluster adds to a mean is its sum of rewards less the mean times its rows. The variance of
the mean is the sum of the squares of these over N^2, times C / (C - 1) for C clusters, with C - 1
degrees of freedom; the covariance of two groups' means is the same with the products of what the
clusters that are in both add to each (Cameron and Miller 2015). So sums over clusters of products
of rows and rewards are enough, and groups can be merged after that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, stdtrit

from evenhand._checks import Array
from evenhand.fairness._measures import take
from evenhand.fairness.intervals import (
    Ends,
    difference,
    proportion,
    ratio,
    satterthwaite,
    student,
)

IGNORED = "this interval ignores clusters"


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sums over clusters, by pair of groups: [a, b] sums what each has in a times what in b.

    Rewards may have the same number subtracted from all of them: variances do not change.
    """

    clusters: Array  # (groups,): how many each has
    n: Array  # (groups,): rows
    y: Array  # (groups,): sums of rewards
    nn: Array  # (groups, groups): rows times rows
    ny: Array  # (groups, groups): rows in the first times rewards in the second
    yy: Array  # (groups, groups): rewards times rewards
    total: int  # clusters in all
    shared: bool  # whether a cluster may be in several groups

    def put_together(self, parts: Array) -> ClusterSums:
        """Groups merged into the parts of a coarser division: (parts, groups), of 0 and 1."""
        return ClusterSums(
            # A cluster in several of the merged groups is counted several times; there are no more
            # than all.
            np.minimum(parts @ self.clusters, self.total),
            parts @ self.n,
            parts @ self.y,
            parts @ self.nn @ parts.T,
            parts @ self.ny @ parts.T,
            parts @ self.yy @ parts.T,
            self.total,
            self.shared,
        )

    def covariance(self) -> Array:
        """Of the groups' means, (groups, groups); NaN where there is a single cluster.

        For groups a and b it is the sum over clusters of (y_a - m_a n_a)(y_b - m_b n_b), over
        N_a N_b, times the roots of C / (C - 1) of both.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = self.y / self.n
            cross = mean[:, None] * self.ny
            around = self.yy - cross - cross.T + mean[:, None] * mean * self.nn
            many = np.where(self.clusters > 1.0, self.clusters, np.nan)
            factor = np.sqrt(many / (many - 1.0))
            covariance: Array = around * factor[:, None] * factor / (self.n[:, None] * self.n)
        # A variance below the rounding of the sums is rounding.
        least = 1e-14 * np.diag(self.yy) / np.maximum(self.n, 1.0) ** 2
        own = np.diag(covariance)
        np.fill_diagonal(covariance, np.where(own < least, 0.0, own))
        return covariance


@dataclass(frozen=True, eq=False)
class ClusterMeans:
    """Mean rewards with the errors of clusters; of rewards of 0 and 1 they are rates.

    The interval of a rate is Wilson's with as many rows as would have this variance if they were
    independent, and Student's quantile in place of the normal one (Korn and Graubard 1998).
    """

    n: Array
    estimate: Array
    sums: ClusterSums
    rates: bool

    @property
    def error(self) -> Array:
        """The standard errors."""
        return np.sqrt(np.diag(self.sums.covariance()))

    @property
    def freedom(self) -> Array:
        """The clusters of each group, less one; NaN where that is nothing."""
        return np.where(self.sums.clusters > 1.0, self.sums.clusters - 1.0, np.nan)

    def ends(self, level: float) -> Ends:
        """Student's intervals of means, Wilson's of rates."""
        if not self.rates:
            return student(self.estimate, self.error, self.freedom, level)
        variance, p = self.error**2, self.estimate
        with np.errstate(divide="ignore", invalid="ignore"):
            # A rate without any variance, of 0 or 1, would have infinitely many; then clusters
            # count as rows.
            effective = np.where(variance > 0.0, p * (1.0 - p) / variance, self.sums.clusters)
            effective = np.where(np.isnan(variance), np.nan, effective)
            ends = [
                proportion(p[g] * effective[g], effective[g], as_normal(level, self.freedom[g]))
                for g in range(len(p))
            ]
        low, high = (
            np.array([float(getattr(interval, end)) for interval in ends])
            for end in ("low", "high")
        )
        return Ends(p, low, high)

    def difference(self, a: int, b: int, level: float) -> Ends:
        """Welch's of means, Newcombe's of rates; both allow for clusters in both groups."""
        if self.rates:
            ends = self.ends(level)
            return difference(take(ends, a), take(ends, b), self._correlation(a, b))
        matrix = self.sums.covariance()
        own = np.diag(matrix)[[a, b]]
        freedom = self.freedom[[a, b]]
        # Satterthwaite's sum is for independent variances.
        fewest = freedom.min() if self.sums.shared else satterthwaite(own, freedom)
        return student(
            np.asarray(self.estimate[a] - self.estimate[b]),
            np.asarray(np.sqrt(np.maximum(own.sum() - 2.0 * matrix[a, b], 0.0))),
            np.asarray(fewest),
            level,
        )

    def ratio(self, a: int, b: int, level: float) -> Ends:
        """MOVER-R; of means only where both are above 0 beyond doubt, NaN otherwise."""
        ends = self.ends(level)
        first, second = take(ends, a), take(ends, b)
        if not self.rates and not (first.low > 0.0 and second.low > 0.0):
            nothing = np.asarray(np.nan)
            return Ends(nothing, nothing, nothing)
        return ratio(first, second, self._correlation(a, b))

    def _correlation(self, a: int, b: int) -> float:
        matrix = self.sums.covariance()
        size = matrix[a, a] * matrix[b, b]
        if not (self.sums.shared and size > 0.0):
            return 0.0
        return float(np.clip(matrix[a, b] / np.sqrt(size), -1.0, 1.0))


def as_normal(level: float, freedom: float) -> float:
    """The level at which the normal quantile equals Student's at this level."""
    return float(2.0 * ndtr(stdtrit(freedom, 0.5 + level / 2.0)) - 1.0)
