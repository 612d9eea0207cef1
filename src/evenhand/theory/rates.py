"""How regret grows: the rate of the theorems, and the exponent of a measured curve."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand import _checks
from evenhand._checks import unmasked
from evenhand.errors import InputError, setting


def rate(horizon: float) -> float:
    """T^(2/3), the rate of both theorems without constants and logarithms.

    Example:
        >>> from evenhand.theory import rate
        >>> round(rate(8000) / rate(1000), 9)
        4.0
    """
    return float(_checks.number("horizon", horizon, 1.0, math.inf) ** (2 / 3))


def rate_through(rounds: ArrayLike, at: float, regret: float) -> NDArray[np.float64]:
    """The curve c t^(2/3) through a measured cumulative `regret` in round `at`.

    Next to a measured curve it shows what `growth_exponent` says in a number.

    Example:
        >>> from evenhand.theory import rate_through
        >>> rate_through([1000, 8000, 27000], at=1000, regret=50.0).round(6).tolist()
        [50.0, 200.0, 450.0]
    """
    _checks.number("at", at, 0.0, math.inf, open_ends=True)
    _checks.number("regret", regret, 0.0, math.inf)
    times = _positive("rounds", rounds, least=0)
    curve: NDArray[np.float64] = regret * (times / at) ** (2 / 3)
    return curve


def growth_exponent(rounds: ArrayLike, cumulative_regret: ArrayLike) -> float:
    """The g for which regret grows as t^g: the least squares slope of log regret on log rounds.

    Give rounds that are evenly spread on a log scale (1000, 2000, 4000, ...). Otherwise the last
    rounds, which lie close together there, dominate the fit. The exploring rounds alone give
    slightly more than 2/3 at finite T (0.669 between 1000 and 16000), because S is about
    1.5 T^(2/3) - 1.

    Example:
        >>> from evenhand.theory import growth_exponent
        >>> round(growth_exponent([1, 8, 64], [5.0, 20.0, 80.0]), 6)
        0.666667
    """
    x = np.log(_positive("rounds", rounds, least=2))
    y = np.log(_positive("cumulative_regret", cumulative_regret, least=2))
    if x.size != y.size or np.ptp(x) == 0.0:
        raise InputError(
            f"{setting('rounds')} and cumulative_regret have {x.size} and {y.size} values; allowed "
            "are equally many of both, at rounds that are not all equal"
        )
    # The slope is cov(x, y) / var(x); with x about its mean, y need not be.
    centred = x - x.mean()
    return float(centred @ y / (centred @ centred))


def _positive(name: str, values: ArrayLike, least: int) -> NDArray[np.float64]:
    unmasked(name, values)
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size < least or not (np.isfinite(array) & (array > 0.0)).all():
        number = f"at least {least}" if least else "a list of"
        raise InputError(
            f"{setting(name)} is {values!r}; allowed are {number} finite numbers above 0",
            value=values,
        )
    return array
