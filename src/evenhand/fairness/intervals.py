"""Intervals of rates, means, differences and ratios, from counts and sums.

| what | method | why |
|---|---|---|
| a rate | Wilson (1927), or Clopper and Pearson (1934) | no collapse at 0 and 1; the second never covers less than its level |
| a mean | Student | the variance is estimated |
| difference of two independent rates | Newcombe (1998), method 10 | built from the two intervals, so good near 0 and 1 as well |
| difference of two shares of the same decisions | the same with the correlation of a multinomial (Zou and Donner 2008) | what one group gets, another does not |
| difference of two means | Welch (1947) | unequal variances |
| ratio of two independent rates or means | MOVER-R (Donner and Zou 2012, Newcombe 2016) | finite where the numerator is 0, open where the denominator may be 0; Fieller's where intervals are symmetric |
| ratio of two shares of the same decisions | conditional on their sum: a binomial | exact conditioning, so no covariance is needed |

Wilson's intervals have their nominal coverage on average over rates. At single rates they may cover
less, because counts are whole numbers: with n of 30 or more, 95 % intervals cover at least 92 % for
rates from 0.1 to 0.9, and 83 % at worst, at rates so small that 0.2 successes are expected. If that
matters, use "exact".
"""  # noqa: E501

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri, stdtrit

from evenhand._checks import Array

PROPORTIONS = ("wilson", "exact")


class Ends(NamedTuple):
    """Estimates with the ends of their intervals.

    Example:
        >>> from evenhand.fairness.intervals import proportion
        >>> ends = proportion(30, 100)
        >>> round(float(ends.low), 3), round(float(ends.high), 3)
        (0.219, 0.396)
    """

    estimate: Array
    low: Array
    high: Array


def proportion(
    successes: ArrayLike, n: ArrayLike, level: float = 0.95, method: str = "wilson"
) -> Ends:
    """A rate and its interval; NaN where n is 0.

    Args:
        successes: the number of successes.
        n: the number of trials; need not be whole, such as an effective number.
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
        # The ends of Clopper and Pearson's interval are quantiles of beta distributions; at 0 and n
        # there is no such distribution, and the end is 0 or 1.
        low = np.where(k > 0.0, betaincinv(np.maximum(k, 1e-300), total - k + 1.0, alpha / 2), 0.0)
        left = np.maximum(total - k, 1e-300)
        high = np.where(k < total, betaincinv(k + 1.0, left, 1.0 - alpha / 2), 1.0)
    else:
        z2 = float(ndtri(1.0 - alpha / 2.0)) ** 2
        # Wilson: all p with (rate - p)^2 <= z^2 p (1 - p) / n, solved for p.
        middle = (k + z2 / 2.0) / (total + z2)
        inside = np.maximum(rate * (1.0 - rate), 0.0) * total + z2 / 4.0
        half_width = np.sqrt(z2 * inside) / (total + z2)
        low = np.where(
            k > 0.0, np.maximum(middle - half_width, 0.0), 0.0
        )  # without rounding errors
        high = np.where(k < total, np.minimum(middle + half_width, 1.0), 1.0)
    unknown = np.isnan(total)
    return Ends(rate, np.where(unknown, np.nan, low), np.where(unknown, np.nan, high))


def spread(n: Array, total: Array, square: Array) -> Array:
    """The variance from sums; NaN for fewer than two values, 0 where it is only rounding error.

    Args:
        n: how many values there are.
        total: their sum.
        square: the sum of their squares.

    Example:
        >>> import numpy as np
        >>> from evenhand.fairness.intervals import spread
        >>> float(spread(np.array(3.0), np.array(6.0), np.array(14.0)))  # of 1, 2 and 3
        1.0
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        left = square - total**2 / n
        # Equal values leave rounding of either sign.
        left = np.where(left > 1e-12 * square, left, 0.0)
        return np.where(n >= 2.0, left / (n - 1.0), np.nan)


def student(estimate: Array, error: Array, freedom: Array, level: float) -> Ends:
    """Student's interval of an estimate, from its standard error and degrees of freedom.

    Example:
        >>> import numpy as np
        >>> from evenhand.fairness.intervals import student
        >>> ends = student(np.array(2.0), np.array(0.5), np.array(10.0), level=0.95)
        >>> [round(float(end), 3) for end in ends]
        [2.0, 0.886, 3.114]
    """
    safe = np.where(freedom > 0.0, freedom, np.nan)
    half_width = stdtrit(safe, 0.5 + level / 2.0) * error
    # An error of 0 is exact, also where no quantile is known: NaN times 0 is NaN.
    half_width = np.where(error == 0.0, 0.0, half_width)
    return Ends(estimate, estimate - half_width, estimate + half_width)


def satterthwaite(variances: Array, freedom: Array) -> Array:
    """Degrees of freedom of a sum of independent variances, over the first axis.

    Example:
        >>> import numpy as np
        >>> from evenhand.fairness.intervals import satterthwaite
        >>> float(satterthwaite(np.array([1.0, 1.0]), np.array([10.0, 10.0])))
        20.0
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        total = variances.sum(axis=0) ** 2
        pooled: Array = total / np.sum(variances**2 / freedom, axis=0)
    # 0 / 0 where no part varies.
    return np.where(np.isnan(pooled), np.min(freedom, axis=0), pooled)


def difference(first: Ends, second: Ends, correlation: ArrayLike = 0.0) -> Ends:
    """The first minus the second, from their intervals: Newcombe's method, or Zou and Donner's.

    Args:
        first: an estimate with its interval.
        second: another.
        correlation: of the two estimates; if it is not 0, the method is Zou and Donner's.

    Example:
        >>> from evenhand.fairness.intervals import difference, proportion
        >>> ends = difference(proportion(56, 70), proportion(48, 80))
        >>> [round(float(end), 4) for end in ends]  # Newcombe (1998), table II, example (a)
        [0.2, 0.0524, 0.3339]
    """
    r = np.asarray(correlation, dtype=np.float64)
    gap = first.estimate - second.estimate
    down, up = first.estimate - first.low, first.high - first.estimate
    down_2, up_2 = second.estimate - second.low, second.high - second.estimate
    # MOVER: the distance from an estimate to its end stands in for its standard error at that end.
    # Towards a smaller difference the first falls and the second rises.
    low = gap - np.sqrt(np.maximum(down**2 + up_2**2 - 2.0 * r * down * up_2, 0.0))
    high = gap + np.sqrt(np.maximum(up**2 + down_2**2 - 2.0 * r * up * down_2, 0.0))
    return Ends(gap, low, high)


def ratio(first: Ends, second: Ends, correlation: ArrayLike = 0.0) -> Ends:
    """The first over the second, both at least 0, from their intervals: MOVER-R.

    They are independent unless a correlation is given.

    The upper end is infinite where the second may be 0. Everything is NaN where both are 0.

    Example:
        >>> from evenhand.fairness.intervals import proportion, ratio
        >>> [round(float(end), 3) for end in ratio(proportion(30, 100), proportion(60, 100))]
        [0.5, 0.355, 0.696]
        >>> [round(float(end), 3) for end in ratio(proportion(0, 100), proportion(60, 100))]
        [0.0, 0.0, 0.062]
    """
    a, b = first.estimate, second.estimate
    r = np.asarray(correlation, dtype=np.float64)
    product = a * b - r * (a - first.low) * (second.high - b)
    # Fieller's quadratic with these distances: a^2 - (a - l)^2 = l (2 a - l) for each end l.
    least = first.low * (2.0 * a - first.low), second.high * (2.0 * b - second.high)
    most = first.high * (2.0 * a - first.high), second.low * (2.0 * b - second.low)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(product**2 - least[0] * least[1], 0.0))
        # The smaller root as c / (b + root), not (b - root) / a: no difference of numbers that are
        # almost equal, and no division by an a of 0.
        low = np.where(least[0] > 0.0, least[0] / (product + root), 0.0)
        product = a * b - r * (first.high - a) * (b - second.low)
        root = np.sqrt(np.maximum(product**2 - most[0] * most[1], 0.0))
        high = np.where(most[1] > 0.0, (product + root) / most[1], np.inf)
        quotient = np.where(b > 0.0, a / b, np.where(a > 0.0, np.inf, np.nan))
    unknown = np.isnan(quotient)
    return Ends(quotient, np.where(unknown, np.nan, low), np.where(unknown, np.nan, high))


def ratio_of_shares(
    first: ArrayLike, second: ArrayLike, level: float = 0.95, method: str = "wilson"
) -> Ends:
    """The ratio of two counts among the same decisions.

    Given their sum, the first is binomial with probability p1 / (p1 + p2), whatever the others got.

    Example:
        >>> from evenhand.fairness.intervals import ratio_of_shares
        >>> [round(float(end), 3) for end in ratio_of_shares(30, 60)]
        [0.5, 0.324, 0.772]
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    part = proportion(a, a + b, level, method)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Ends(*(np.where(end < 1.0, end / (1.0 - end), end * np.inf) for end in part))
