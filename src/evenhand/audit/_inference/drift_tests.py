"""Whether a number is the same in all time windows: tests that hold their level with few rows.

Windows that share no cluster are independent, and the test is Welch's (1951). Its F is an
approximation that fails with few degrees of freedom in many windows: with 4 in each of 20 windows
it raises 13 false alarms in 100 where it promises 5. There the statistic is compared with what it
is by chance, in draws with the same variances and degrees of freedom (the parametric bootstrap of
Krishnamoorthy, Lu and Mathew 2007), which are the same in every run.

Where the same clusters are in several windows, the covariance of the windows is a sum of one matrix
per group, each with the degrees of freedom of its clusters. The test is Hotelling's with the
degrees of freedom that such a sum has (Nel and van der Merwe 1986, Zhang 2012, Pustejovsky and
Tipton 2018). Where clusters are in few of the windows it is cautious: fewer alarms than promised.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import chdtrc, fdtrc

from evenhand.bias.statistics import Array

# With fewer degrees of freedom a window's variance is no guide, and no test holds its level.
LEAST_FREEDOM = 4.0
# With as many degrees of freedom in every window, times the windows, Welch's F is good.
MUCH = 5.0
DRAWS, MOST_DRAWN = 20_000, 4_000_000
SEED = 20_261_117


def independent(estimate: Array, variance: Array, freedom: Array) -> tuple[float, float]:
    """Windows that share nothing: Welch's statistic, and its p-value."""
    statistic, p_value = _welch(estimate, variance, freedom)
    if freedom.min() >= MUCH * len(estimate):
        return statistic, p_value
    return statistic, _drawn(estimate, variance, freedom)


def _welch(estimate: Array, variance: Array, freedom: Array) -> tuple[float, float]:
    """Welch's test of equal means with unequal variances: its statistic and p-value.

    With the weights w_t = 1 / v_t, their sum W and the weighted mean m of k estimates y_t,

        F = [sum w_t (y_t - m)^2 / (k - 1)] / [1 + 2 (k - 2) / (k^2 - 1) L],
        L = sum (1 - w_t / W)^2 / f_t

    has about an F distribution with k - 1 and (k^2 - 1) / (3 L) degrees of freedom. The denominator
    makes up for weights that are estimates: a variance that is too small by chance draws the mean
    to its window, and makes the others seem far away. With known variances L is 0, and F is
    chi-squared over k - 1.
    """
    many, weight = len(estimate), 1.0 / variance
    around = float(_around(estimate, variance)) / (many - 1.0)
    spare = float(np.sum((1.0 - weight / weight.sum()) ** 2 / freedom))
    statistic = around / (1.0 + 2.0 * (many - 2.0) / (many**2 - 1.0) * spare)
    below = (many**2 - 1.0) / (3.0 * spare) if spare > 0.0 else np.inf
    return statistic, _f_tail(many - 1.0, below, statistic)


def _around(estimate: Array, variance: Array) -> Array:
    """The squared distance from the best common value, over the last axis."""
    weight = 1.0 / variance
    common = np.sum(weight * estimate, axis=-1) / weight.sum(axis=-1)
    statistic: Array = np.sum(weight * (estimate - common[..., None]) ** 2, axis=-1)
    return statistic


def _drawn(estimate: Array, variance: Array, freedom: Array) -> float:
    """How often chance alone puts windows this far apart."""
    rng = np.random.default_rng(SEED)
    # Memory: all draws of all windows are held at once.
    draws = min(DRAWS, MOST_DRAWN // len(estimate))
    drawn = rng.normal(size=(draws, len(estimate))) * np.sqrt(variance)
    finite = np.minimum(freedom, 1e9)
    # An estimate of a variance with f degrees of freedom is the variance times chi-squared over f.
    estimated = variance * rng.chisquare(finite, size=drawn.shape) / finite
    further = np.count_nonzero(_around(drawn, estimated) >= float(_around(estimate, variance)))
    # The data count as one of the draws, so the p-value is never 0 and the test keeps its level.
    return (further + 1.0) / (draws + 1.0)


def dependent(
    estimate: Array, covariance: Array, parts: Sequence[Array], freedom: Sequence[float]
) -> tuple[float, float]:
    """Windows that share clusters: Hotelling's statistic, and its p-value.

    Args:
        estimate: one of each window.
        covariance: of all of them.
        parts: the covariance that the clusters of each group add.
        freedom: the degrees of freedom of each part.
    """
    steps = np.diff(np.eye(len(estimate)), axis=0)  # their estimates are 0 if nothing changes
    many = float(len(steps))
    whole, gap = steps @ covariance @ steps.T, steps @ estimate
    added = [steps @ part @ steps.T for part in parts]
    if min(np.linalg.matrix_rank(matrix, hermitian=True) for matrix in (whole, sum(added))) < many:
        return np.nan, 1.0  # fewer clusters than windows: nothing can be said
    inverse = np.linalg.inv(sum(added))
    spare = 0.0
    for part, own in zip(added, freedom, strict=True):
        share = inverse @ part
        # The degrees of freedom of a Wishart matrix with the same total variance as the sum of
        # parts (Nel and van der Merwe).
        spare += float(np.trace(share @ share) + np.trace(share) ** 2) / own
    degrees = many * (many + 1.0) / spare
    # Hotelling's T^2 with f degrees of freedom is F with q and f - q + 1, times f q / (f - q + 1).
    below = degrees - many + 1.0
    if below <= 0.0:
        return np.nan, 1.0
    statistic = float(gap @ np.linalg.solve(whole, gap)) * below / (degrees * many)
    return statistic, _f_tail(many, below, statistic)


def _f_tail(above: float, below: float, statistic: float) -> float:
    if np.isinf(below):
        return float(chdtrc(above, above * statistic))
    return float(fdtrc(above, below, statistic))
