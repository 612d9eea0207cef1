"""Kinds of numbers per group: rates, means, shares of the same decisions.

Each gives its estimates with intervals, and the difference and ratio of two groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from evenhand._checks import Array
from evenhand.fairness.intervals import (
    Ends,
    difference,
    proportion,
    ratio,
    ratio_of_shares,
    satterthwaite,
    spread,
    student,
)


class Measure(Protocol):
    """An estimate per group. Groups are given by their index."""

    @property
    def n(self) -> Array:
        """How many decisions the estimate of each group rests on."""

    def ends(self, level: float) -> Ends:
        """Estimates and intervals of all groups."""

    def difference(self, a: int, b: int, level: float) -> Ends:
        """Group a minus group b."""

    def ratio(self, a: int, b: int, level: float) -> Ends:
        """Group a over group b."""


@dataclass(frozen=True, eq=False)
class Rates:
    """A rate among each group's own decisions, such as those without a reward; independent."""

    successes: Array
    n: Array
    method: str

    def ends(self, level: float) -> Ends:
        """Wilson's intervals, or exact ones."""
        return proportion(self.successes, self.n, level, self.method)

    def difference(self, a: int, b: int, level: float) -> Ends:
        """Newcombe's interval."""
        ends = self.ends(level)
        return difference(take(ends, a), take(ends, b))

    def ratio(self, a: int, b: int, level: float) -> Ends:
        """MOVER-R."""
        ends = self.ends(level)
        return ratio(take(ends, a), take(ends, b))


@dataclass(frozen=True, eq=False)
class Shares:
    """Each group's share of the same decisions, times a scale.

    The counts are multinomial, so groups are correlated. A scale of 1 gives shares; a scale of
    decisions over chances gives pulls per chance. If chances change from round to round, the counts
    vary less than multinomial ones, and intervals are too wide rather than too narrow.
    """

    counts: Array
    scale: Array
    method: str

    @property
    def n(self) -> Array:
        """All decisions, for every group: a group without any is known to have a small share."""
        return np.full(len(self.counts), self.counts.sum())

    def ends(self, level: float) -> Ends:
        """Wilson's intervals of the shares, or exact ones, scaled."""
        shares = proportion(self.counts, self.n, level, self.method)
        return Ends(*(self.scale * end for end in shares))

    def difference(self, a: int, b: int, level: float) -> Ends:
        """From both intervals, with the correlation of a multinomial."""
        ends = self.ends(level)
        return difference(take(ends, a), take(ends, b), self._correlation(a, b))

    def ratio(self, a: int, b: int, level: float) -> Ends:
        """A binomial, given the sum of the two counts."""
        shares = ratio_of_shares(self.counts[a], self.counts[b], level, self.method)
        return Ends(*(end * (self.scale[a] / self.scale[b]) for end in shares))

    def _correlation(self, a: int, b: int) -> float:
        first, second = self.counts[[a, b]] / max(self.counts.sum(), 1.0)
        if min(first, second) <= 0.0 or max(first, second) >= 1.0:
            return 0.0
        return float(max(-np.sqrt(first * second / ((1.0 - first) * (1.0 - second))), -1.0))


@dataclass(frozen=True, eq=False)
class WeightedShares:
    """Each group's share of weights that are spread over decisions, such as exposure.

    A ratio of two sums over the same decisions: variances by the delta method, Wilson's intervals
    with the number of decisions of equal weight that would have this variance.
    """

    total: Array
    square: Array
    decisions: float
    method: str

    @property
    def n(self) -> Array:
        """All decisions, for every group."""
        return np.full(len(self.total), self.decisions)

    @property
    def _shares(self) -> Array:
        everything = self.total.sum()
        return self.total / (everything if everything > 0.0 else np.nan)

    def _covariance(self, a: int, b: int) -> float:
        """Of two shares: the sum over decisions of the product of their terms.

        The term of a decision of group g for share a is weight * ([g is a] - share of a).
        """
        share, squares = self._shares, self.square
        own = np.arange(len(share))
        first, second = (own == a) - share[a], (own == b) - share[b]
        return float(np.sum(first * second * squares) / self.total.sum() ** 2)

    def ends(self, level: float) -> Ends:
        """Wilson's intervals with an effective number of decisions."""
        share = self._shares
        if np.isnan(share).any():
            return Ends(share, share, share)
        variance = np.array([self._covariance(g, g) for g in range(len(share))])
        even = self.total.sum() ** 2 / self.square.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = np.where(variance > 0.0, share * (1.0 - share) / variance, even)
        return proportion(share * effective, effective, level, self.method)

    def difference(self, a: int, b: int, level: float) -> Ends:
        """From both intervals, with the correlation of the two shares."""
        ends = self.ends(level)
        size = self._covariance(a, a) * self._covariance(b, b)
        r = self._covariance(a, b) / np.sqrt(size) if size > 0.0 else 0.0
        return difference(take(ends, a), take(ends, b), max(min(r, 1.0), -1.0))

    def ratio(self, a: int, b: int, level: float) -> Ends:
        """From the share of what the two got together, with an effective number of decisions."""
        pair = WeightedShares(self.total[[a, b]], self.square[[a, b]], self.decisions, self.method)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = take(pair.ends(level), 0)
            return Ends(*(np.where(end < 1.0, end / (1.0 - end), end * np.inf) for end in shares))


@dataclass(frozen=True, eq=False)
class Means:
    """Estimates with standard errors and degrees of freedom; groups are independent."""

    n: Array
    estimate: Array
    error: Array
    freedom: Array

    def ends(self, level: float) -> Ends:
        """Student's intervals."""
        return student(self.estimate, self.error, self.freedom, level)

    def difference(self, a: int, b: int, level: float) -> Ends:
        """Welch's interval."""
        variances, freedom = self.error[[a, b]] ** 2, self.freedom[[a, b]]
        return student(
            np.asarray(self.estimate[a] - self.estimate[b]),
            np.asarray(np.sqrt(variances.sum())),
            np.asarray(satterthwaite(variances, freedom)),
            level,
        )

    def ratio(self, a: int, b: int, level: float) -> Ends:
        """MOVER-R if both intervals are above 0; NaN otherwise."""
        ends = self.ends(level)
        first, second = take(ends, a), take(ends, b)
        if not (first.low > 0.0 and second.low > 0.0):
            nothing = np.asarray(np.nan)
            return Ends(nothing, nothing, nothing)
        return ratio(first, second)


def means(n: Array, total: Array, square: Array) -> Means:
    """Means from sums."""
    variance = spread(n, total, square)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Means(n, total / np.where(n > 0.0, n, np.nan), np.sqrt(variance / n), n - 1.0)


def less(first: Means, second: Means) -> Means:
    """The difference of two means within each group, with Welch's degrees of freedom."""
    variances = np.stack([first.error**2, second.error**2])
    freedom = np.stack([first.freedom, second.freedom])
    return Means(
        np.minimum(first.n, second.n),
        first.estimate - second.estimate,
        np.sqrt(variances.sum(axis=0)),
        satterthwaite(variances, freedom),
    )


def take(ends: Ends, row: int) -> Ends:
    """The estimate and interval of one group."""
    return Ends(*(np.asarray(end[row]) for end in ends))
