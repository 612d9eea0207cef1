"""The compiled quantiles against SciPy's and against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evenhand import compiled
from evenhand.policies._quantiles import normal_quantile, student_quantile

# Just below 0.5 the quantile is nearly 0 and no method has its last digits: P(X > x) = 0.5 - x / c,
# so a relative error of 1e-16 in P is one of 1e-16 / x in x. Hence 0.499 and not closer.
LEVELS = np.concatenate([[0.499, 0.49], np.geomspace(0.45, 1e-12, 120)])
FREEDOM = [1.0, 1.5, 2.0, 3.0, 4.0, 10.0, 33.3, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8]


@compiled
def student_quantiles(levels, freedom):
    out = np.empty(levels.size)
    for k in range(levels.size):
        out[k] = student_quantile(levels[k], freedom)
    return out


@compiled
def normal_quantiles(levels):
    out = np.empty(levels.size)
    for k in range(levels.size):
        out[k] = normal_quantile(levels[k])
    return out


def test_normal_agrees_with_scipy():
    np.testing.assert_allclose(normal_quantiles(LEVELS), stats.norm.isf(LEVELS), rtol=1e-13)


def test_normal_agrees_with_scipy_far_out():
    levels = np.geomspace(1e-12, 1e-300, 50)
    np.testing.assert_allclose(normal_quantiles(levels), stats.norm.isf(levels), rtol=1e-13)


@pytest.mark.parametrize("freedom", FREEDOM)
def test_student_agrees_with_scipy(freedom):
    expected = stats.t.isf(LEVELS, freedom)
    np.testing.assert_allclose(student_quantiles(LEVELS, freedom), expected, rtol=1e-10)


def test_student_with_one_degree_is_cauchy():
    expected = 1.0 / np.tan(math.pi * LEVELS)
    np.testing.assert_allclose(student_quantiles(LEVELS, 1.0), expected, rtol=1e-12)


def test_student_with_two_degrees_has_a_closed_form():
    expected = (1.0 - 2.0 * LEVELS) / np.sqrt(2.0 * LEVELS * (1.0 - LEVELS))
    np.testing.assert_allclose(student_quantiles(LEVELS, 2.0), expected, rtol=1e-12)


def test_half_is_at_zero():
    """Close to 0.5 the quantile is that part of the density at 0, from the right side."""
    assert normal_quantile(0.5) == pytest.approx(0.0, abs=1e-15)
    assert [student_quantile(0.5, freedom) for freedom in FREEDOM] == [0.0] * len(FREEDOM)
    assert normal_quantile(0.5 - 1e-6) == pytest.approx(1e-6 * math.sqrt(2 * math.pi), rel=1e-8)
    assert student_quantile(0.5 - 1e-6, 1.0) == pytest.approx(1e-6 * math.pi, rel=1e-8)


def test_smaller_levels_lie_further_out():
    for freedom in FREEDOM:
        assert (np.diff(student_quantiles(LEVELS, freedom)) > 0.0).all()
    assert (np.diff(normal_quantiles(LEVELS)) > 0.0).all()


def test_student_comes_in_to_the_normal():
    """With more freedom the quantile falls, and never below the normal's.

    There is no step where one formula takes over from another: all neighbours are in order.
    """
    freedom = np.geomspace(1.0, 1e9, 400)
    for level in (0.25, 0.05, 1e-4, 1e-8, 1e-12):
        quantiles = [student_quantile(level, degrees) for degrees in freedom]
        slack = 1e-11 * quantiles[-1]
        assert (np.diff(quantiles) < slack).all()
        assert min(quantiles) > normal_quantile(level) - slack
        # The first term of the expansion in 1 / freedom (Fisher).
        z = normal_quantile(level)
        assert quantiles[-1] - z == pytest.approx((z**3 + z) / 4e9, abs=slack)


def test_every_level_and_freedom_gives_a_number():
    """What a width is made of: any level below 0.5, any freedom from 1 on, never NaN."""
    rng = np.random.default_rng(3)
    for freedom in 10.0 ** rng.uniform(0.0, 9.0, 300):
        quantiles = student_quantiles(10.0 ** -rng.uniform(0.302, 12.0, 20), freedom)
        assert (quantiles > 0.0).all()
        assert np.isfinite(quantiles).all()
