"""Upper quantiles of the normal and of Student's distribution, compiled.

SciPy has both, but not where the compiled loop can call them. Each starts from a classical
approximation and is polished to the last digits; the tests compare with SciPy.
"""

from __future__ import annotations

import math

from evenhand._compile import compiled, subroutine
from evenhand._compile.intrinsics import stays_a_function


@compiled
def normal_quantile(p):  # type: ignore[no-untyped-def]
    """The z with P(Z > z) = p, for 0 < p <= 0.5.

    Starts from Abramowitz and Stegun 26.2.22 (error below 3e-3), then two steps of Halley.

    Example:
        >>> from evenhand.policies._quantiles import normal_quantile
        >>> round(normal_quantile(0.025), 6)
        1.959964
    """
    stays_a_function()
    s = math.sqrt(-2.0 * math.log(p))
    z = s - (2.30753 + 0.27061 * s) / (1.0 + s * (0.99229 + 0.04481 * s))
    for _ in range(2):
        error = 0.5 * math.erfc(z / math.sqrt(2.0)) - p
        # Newton's step is the error over the density; Halley's takes the curvature in, and the
        # second derivative of the normal tail is z times its density.
        step = error * math.sqrt(2.0 * math.pi) * math.exp(0.5 * z * z)
        z += step / (1.0 - 0.5 * z * step)
    return max(z, 0.0)


@compiled
def student_quantile(p, freedom):  # type: ignore[no-untyped-def]
    """The t with P(T > t) = p for Student's T with `freedom` degrees, which need not be whole.

    Newton on log P against log t, which is nearly straight in the tail.

    Example:
        >>> from evenhand.policies._quantiles import student_quantile
        >>> round(student_quantile(0.025, 3.0), 6)
        3.182446
    """
    stays_a_function()
    if p >= 0.5:
        return 0.0
    z = normal_quantile(p)
    # From here on four terms of the series reach the last digits, and Newton would work with
    # differences of large logarithms.
    if freedom > 2000.0:
        return _student_by_series(z, freedom)
    shrink = (freedom - 5.0 / 6.0) / (freedom - 2.0 / 3.0 + 0.1 / freedom) ** 2
    start = z * z * shrink
    # The start: t^2 is about freedom (exp(z^2 shrink) - 1). Where that overflows, its logarithm is
    # z^2 shrink.
    u = 0.5 * (math.log(freedom * math.expm1(min(start, 600.0))) + max(start - 600.0, 0.0))
    density = math.lgamma(0.5 * freedom + 0.5) - math.lgamma(0.5 * freedom)
    density -= 0.5 * math.log(freedom * math.pi)
    for _ in range(50):
        # In logarithms, because a density times t leaves the range long before a level does.
        spread = _log_spread(u, freedom)
        tail = _student_log_tail(u, spread, freedom)
        log_density = density - 0.5 * (freedom + 1.0) * spread
        step = (tail - math.log(p)) * math.exp(min(tail - u - log_density, 700.0))
        # A factor of e^2 in t at most: far from the solution the tail is not straight.
        step = min(max(step, -2.0), 2.0)
        u += step
        if abs(step) < 1e-14:
            break
    return math.exp(u)


@subroutine
def _student_by_series(z, freedom):  # type: ignore[no-untyped-def]
    """From the normal quantile z, four terms in 1 / freedom (Abramowitz and Stegun 26.7.5)."""
    s = z * z
    first = z * (s + 1.0) / 4.0
    second = z * ((5.0 * s + 16.0) * s + 3.0) / 96.0
    third = z * (((3.0 * s + 19.0) * s + 17.0) * s - 15.0) / 384.0
    fourth = z * ((((79.0 * s + 776.0) * s + 1482.0) * s - 1920.0) * s - 945.0) / 92160.0
    return z + (first + (second + (third + fourth / freedom) / freedom) / freedom) / freedom


@subroutine
def _log_spread(u, freedom):  # type: ignore[no-untyped-def]
    """log(1 + t^2 / freedom) at t = exp(u), where t^2 may be too large to hold."""
    return math.log1p(math.exp(2.0 * u) / freedom) if u < 300.0 else 2.0 * u - math.log(freedom)


@subroutine
def _student_log_tail(u, spread, freedom):  # type: ignore[no-untyped-def]
    """log P(T > t): P = I_x(freedom / 2, 1 / 2) / 2 with x = 1 / (1 + t^2 / freedom)."""
    a, b, x = 0.5 * freedom, 0.5, math.exp(-spread)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) - a * spread
    front += b * (2.0 * u - math.log(freedom) - spread)
    # The continued fraction converges quickly only on this side of the mean; on the other the
    # complement is used.
    if x < (a + 1.0) / (a + b + 2.0):
        return front + math.log(0.5 * _beta_fraction(a, b, x) / a)
    rest = math.exp(front) * _beta_fraction(b, a, -math.expm1(-spread)) / b
    return math.log(0.5 - 0.5 * rest)


@subroutine
def _beta_fraction(a, b, x):  # type: ignore[no-untyped-def]
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    tiny = 1e-300
    c, down = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    down = 1.0 / (down if abs(down) > tiny else tiny)
    value = down
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for term in (even, odd):
            down = 1.0 + term * down
            c = 1.0 + term / c
            down = 1.0 / (down if abs(down) > tiny else tiny)
            c = c if abs(c) > tiny else tiny
            change = c * down
            value *= change
        if abs(change - 1.0) < 1e-16:
            break
    return value
