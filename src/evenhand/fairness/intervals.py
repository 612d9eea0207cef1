"""Intervals of rates, means, differences and ratios, from counts and sums.

| what | method | why |
|---|---|---|
| a rate | Wilson (1927), or Clopper and Pearson (1934) | no collapse at 0 and 1; the second never covers less than it says |
| a mean | Student | the variance is estimated |
| difference of two independent rates | Newcombe (1998), method 10 | built from the two intervals, so good near 0 and 1 as well |
| difference of two shares of the same decisions | the same with the correlation of a multinomial (Zou and Donner 2008) | what one group gets another does not |
| difference of two means | Welch (1947) | unequal variances |
| ratio of two independent rates or means | MOVER-R (Donner and Zou 2012, Newcombe 2016) | finite where the numerator is 0, open where the denominator may be 0; Fieller's where intervals are symmetric |
| ratio of two shares of the same decisions | conditional on their sum: a binomial | exact conditioning, so no covariance is needed |

Wilson's intervals cover their level on average over rates. At single rates they may cover less,
because counts are whole numbers: of 95 % intervals with n of 30 or more, 92 % at worst for rates from
0.1 to 0.9, and 83 % at worst at rates so small that 0.2 successes are expected. Where that matters
take "exact".
"""  # noqa: E501

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri, stdtrit

from evenhand._checks import Array

PROPORTIONS = ("wilson", "exact")


class Ends(NamedTuple):
    """Estimates with the ends of their intervals."""

    estimate: Array
    low: Array
    high: Array


def proportion(
    successes: ArrayLike, n: ArrayLike, level: float = 0.95, method: str = "wilson"
) -> Ends:
    """A rate and its interval; NaN where n is 0.

    Args:
        successes: how many of them did.
        n: how many there are; need not be whole, such as an effective number.
        level: of the interval.
        method: "wilson", or "exact" for Clopper and Pearson's.

    Example:
        >>> from evenhand.fairness.intervals import proportion
        >>> [round(float(end), 4) for end in proportion(0, 10)]
        [0.0, 0.0, 0.2775]
        >>> [round(float(end), 4) for end in proportion(0, 10, method="exact")]
        [0.0, 0.0, 0.3085]
    """
    k, total = np.asarray(successes, dtype=np.float64), np.asarray(n, dtype=np.float64)
    total = np.where(total > 0.0, total, np.nan)
    rate, alpha = k / total, 1.0 - level
    if method == "exact":
        low = np.where(k > 0.0, betaincinv(np.maximum(k, 1e-300), total - k + 1.0, alpha / 2), 0.0)
        left = np.maximum(total - k, 1e-300)
        high = np.where(k < total, betaincinv(k + 1.0, left, 1.0 - alpha / 2), 1.0)
    else:
        z2 = float(ndtri(1.0 - alpha / 2.0)) ** 2
        middle = (k + z2 / 2.0) / (total + z2)
        inside = np.maximum(rate * (1.0 - rate), 0.0) * total + z2 / 4.0
        reach = np.sqrt(z2 * inside) / (total + z2)
        low = np.where(k > 0.0, np.maximum(middle - reach, 0.0), 0.0)  # without rounding errors
        high = np.where(k < total, np.minimum(middle + reach, 1.0), 1.0)
    unknown = np.isnan(total)
    return Ends(rate, np.where(unknown, np.nan, low), np.where(unknown, np.nan, high))


def spread(n: Array, total: Array, square: Array) -> Array:
    """The variance from sums; NaN for fewer than two values, 0 where it is only rounding."""
    with np.errstate(divide="ignore", invalid="ignore"):
        left = square - total**2 / n
        left = np.where(left > 1e-12 * square, left, 0.0)
        return np.where(n >= 2.0, left / (n - 1.0), np.nan)


def student(estimate: Array, error: Array, freedom: Array, level: float) -> Ends:
    """An estimate with a standard error and degrees of freedom, and Student's interval."""
    safe = np.where(freedom > 0.0, freedom, np.nan)
    reach = stdtrit(safe, 0.5 + level / 2.0) * error
    reach = np.where(error == 0.0, 0.0, reach)
    return Ends(estimate, estimate - reach, estimate + reach)


def satterthwaite(variances: Array, freedom: Array) -> Array:
    """Degrees of freedom of a sum of independent variances, over the first axis."""
    with np.errstate(divide="ignore", invalid="ignore"):
        total = variances.sum(axis=0) ** 2
        found: Array = total / np.sum(variances**2 / freedom, axis=0)
    return np.where(np.isnan(found), np.min(freedom, axis=0), found)


def difference(one: Ends, two: Ends, correlation: ArrayLike = 0.0) -> Ends:
    """One less two, from their intervals: Newcombe's method, with a correlation Zou and Donner's.

    Example:
        >>> from evenhand.fairness.intervals import difference, proportion
        >>> ends = difference(proportion(56, 70), proportion(48, 80))
        >>> [round(float(end), 4) for end in ends]  # Newcombe (1998), table II, example (a)
        [0.2, 0.0524, 0.3339]
    """
    r = np.asarray(correlation, dtype=np.float64)
    gap = one.estimate - two.estimate
    down, up = one.estimate - one.low, one.high - one.estimate
    down_two, up_two = two.estimate - two.low, two.high - two.estimate
    low = gap - np.sqrt(np.maximum(down**2 + up_two**2 - 2.0 * r * down * up_two, 0.0))
    high = gap + np.sqrt(np.maximum(up**2 + down_two**2 - 2.0 * r * up * down_two, 0.0))
    return Ends(gap, low, high)


def ratio(one: Ends, two: Ends, correlation: ArrayLike = 0.0) -> Ends:
    """One over two, both at least 0, from their intervals: MOVER-R; independent unless said.

    The upper end is infinite where two may be 0, and everything is NaN where both are 0.

    Example:
        >>> from evenhand.fairness.intervals import proportion, ratio
        >>> [round(float(end), 3) for end in ratio(proportion(30, 100), proportion(60, 100))]
        [0.5, 0.355, 0.696]
        >>> [round(float(end), 3) for end in ratio(proportion(0, 100), proportion(60, 100))]
        [0.0, 0.0, 0.062]
    """
    a, b = one.estimate, two.estimate
    r = np.asarray(correlation, dtype=np.float64)
    product = a * b - r * (a - one.low) * (two.high - b)
    least = one.low * (2.0 * a - one.low), two.high * (2.0 * b - two.high)
    most = one.high * (2.0 * a - one.high), two.low * (2.0 * b - two.low)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(product**2 - least[0] * least[1], 0.0))
        low = np.where(least[0] > 0.0, least[0] / (product + root), 0.0)
        product = a * b - r * (one.high - a) * (b - two.low)
        root = np.sqrt(np.maximum(product**2 - most[0] * most[1], 0.0))
        high = np.where(most[1] > 0.0, (product + root) / most[1], np.inf)
        found = np.where(b > 0.0, a / b, np.where(a > 0.0, np.inf, np.nan))
    unknown = np.isnan(found)
    return Ends(found, np.where(unknown, np.nan, low), np.where(unknown, np.nan, high))


def ratio_of_shares(
    one: ArrayLike, two: ArrayLike, level: float = 0.95, method: str = "wilson"
) -> Ends:
    """The ratio of two counts among the same decisions.

    Given their sum, the first is binomial with a chance of p1 / (p1 + p2), whatever the others got.

    Example:
        >>> from evenhand.fairness.intervals import ratio_of_shares
        >>> [round(float(end), 3) for end in ratio_of_shares(30, 60)]
        [0.5, 0.324, 0.772]
    """
    a, b = np.asarray(one, dtype=np.float64), np.asarray(two, dtype=np.float64)
    part = proportion(a, a + b, level, method)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Ends(*(np.where(end < 1.0, end / (1.0 - end), end * np.inf) for end in part))
