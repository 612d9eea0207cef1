"""Intervals of off-policy estimates: normal, bootstrap and empirical Bernstein."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from evenhand._checks import Array, Whole
from evenhand.offpolicy._estimators import (
    CONTRIBUTION,
    VALUE,
    WITHIN,
    RatioTerms,
    effective,
    estimate,
    influence,
)

INTERVALS = ("normal", "bootstrap", "bernstein")
BLOCK = 4_000_000  # random numbers at a time


class Reach(NamedTuple):
    """An estimate, its standard error and the ends of its interval."""

    estimate: float
    error: float
    low: float
    high: float


def normal(terms: RatioTerms, level: float, less: RatioTerms | None = None) -> Reach:
    """From the influence of every row, with Student's quantile for the effective number of rows.

    With influences p of n rows, the standard error is sqrt(sum p^2 / (n (n - 1))).

    Args:
        terms: of the estimate.
        level: of the interval.
        less: terms of another estimate on the same rows. Then the interval is of the difference,
            and the error that both have in common cancels.
    """
    value, parts = estimate_and_influence(terms, less)
    n = len(terms.a)
    error = float(np.sqrt(np.sum(parts**2) / (max(n - 1, 1) * n)))
    # A few heavy rows decide; Student's quantile for their effective number says so.
    worth = min(effective(part.weights) for part in (terms, less) if part is not None)
    half_width = float(stdtrit(max(worth - 1.0, 1.0), 0.5 + level / 2.0)) * error
    return Reach(value, error, value - half_width, value + half_width)


def estimate_and_influence(
    terms: RatioTerms, less: RatioTerms | None = None
) -> tuple[float, Array]:
    """An estimate, or the difference of two, and the influence of every row on it."""
    value = estimate(terms)
    parts = influence(terms, value)
    if less is not None:
        other = estimate(less)
        return value - other, parts - influence(less, other)
    return value, parts


def bootstrap(
    terms: RatioTerms, level: float, resamples: int, seed: int, less: RatioTerms | None = None
) -> Reach:
    """The bootstrap-t: rows are resampled, and Student's ratio is taken in each draw.

    Its interval extends further on the side of the long tail, as heavy weights need. It cannot know
    about rows that are not in the log either. A difference uses the same draws for both.
    """
    plain = normal(terms, level, less)
    n, generator = len(terms.a), np.random.default_rng(seed)
    ratios: list[Array] = []
    at_a_time = max(BLOCK // n, 1)
    for first in range(0, resamples, at_a_time):
        drawn = generator.integers(n, size=(min(at_a_time, resamples - first), n))
        with np.errstate(divide="ignore", invalid="ignore"):
            values, parts = _drawn(terms, drawn)
            if less is not None:
                others, theirs = _drawn(less, drawn)
                values, parts = values - others, parts - theirs
            errors = np.sqrt(np.sum(parts**2, axis=1))
            ratios.append(((values - plain.estimate) / errors)[np.isfinite(values)])
    all_ratios = np.concatenate(ratios)
    # 0 / 0: a draw of the same rows has neither a distance nor an error.
    all_ratios = np.where(np.isnan(all_ratios), 0.0, all_ratios)
    alpha = 1.0 - level
    # The upper quantile of the ratio gives the lower end: estimate - t * error. Whole draws, not
    # interpolated: some ratios are infinite.
    ends = np.quantile(all_ratios, [1.0 - alpha / 2.0, alpha / 2.0], method="inverted_cdf")
    low, high = (
        plain.estimate - end * plain.error if plain.error else plain.estimate for end in ends
    )
    return Reach(plain.estimate, plain.error, float(low), float(high))


def _drawn(terms: RatioTerms, drawn: Whole) -> tuple[Array, Array]:
    """The estimate of each draw, not finite if it has none, and the influence of its rows."""
    a, b = terms.a[drawn], terms.b[drawn]
    below = b.sum(axis=1)
    values = a.sum(axis=1) / below
    return values, (a - values[:, None] * b) / below[:, None]


def bernstein(
    terms: RatioTerms, level: float, width: float, lowest: float, highest: float
) -> Reach:
    """Maurer and Pontil's (2009) empirical Bernstein bound, for any number of rows.

    The interval is all v between `lowest` and `highest` for which mean(a - v b) = 0 is not
    rejected. With the variance V and the range W of a - v b, that is if the mean is no further from
    0 than sqrt(2 V L / n) + 7 W L / (3 (n - 1)), where L = ln(2 / delta).

    Args:
        terms: of the estimate.
        level: of the interval; each end has half of 1 - level.
        width: an upper bound of the range of a - v b over all possible rows.
        lowest: the smallest possible value.
        highest: the largest possible value.
    """
    plain = normal(terms, level)
    n = len(terms.a)
    log = np.log(4.0 / (1.0 - level))  # ln(2 / delta) at half of 1 - level on each side
    mean_a, mean_b = float(terms.a.mean()), float(terms.b.mean())
    cov = np.cov(terms.a, terms.b) if n > 1 else np.full((2, 2), np.inf)
    constant = 7.0 * width * log / (3.0 * max(n - 1, 1))

    def rejected(v: float) -> bool:
        variance = max(cov[0, 0] - 2.0 * v * cov[0, 1] + v**2 * cov[1, 1], 0.0)
        return bool(abs(mean_a - v * mean_b) > np.sqrt(2.0 * variance * log / n) + constant)

    middle = min(max(plain.estimate, lowest), highest)
    ends = [_edge(rejected, middle, end) for end in (lowest, highest)]
    return Reach(plain.estimate, plain.error, ends[0], ends[1])


def _edge(rejected: Callable[[float], bool], inside: float, outside: float) -> float:
    """Where rejection begins, from inside to outside, by bisection."""
    if not rejected(outside):
        return outside
    # Enough halvings to reach the last bit.
    for _ in range(100):
        middle = (inside + outside) / 2.0
        if rejected(middle):
            outside = middle
        else:
            inside = middle
    return outside


def widths(
    name: str, quantity: str, rewards: tuple[float, float], most: float
) -> tuple[float, float, float]:
    """The width of the range of a - v b for rewards in a range and weights up to `most`; ends of v.

    A row outside the group counts as 0, so the ranges of contributions are made to include 0.
    """
    low, high = rewards
    wide = high - low
    zero_low, zero_high = min(low, 0.0), max(high, 0.0)
    with_zero, largest = zero_high - zero_low, max(abs(low), abs(high))
    ends = (low, high) if quantity in (VALUE, WITHIN) else (zero_low, zero_high)
    if name == "snips":
        # SNIPS subtracts v times the weight, so w (r - v), and r - v is within the range of
        # rewards.
        width = most * (with_zero if quantity == CONTRIBUTION else wide)
    elif name == "ips":
        width = most * with_zero + (largest if quantity == WITHIN else 0.0)
    else:
        # DR: the direct part, and a weighted error of the model, which may be off by the whole
        # range either way.
        width = with_zero + 2.0 * most * wide + (largest if quantity == WITHIN else 0.0)
    return width, *ends
