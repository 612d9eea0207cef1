"""Cells that borrow from their margins: closed forms, limits and coverage."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from evenhand.bias._margins import margins, paule_mandel, shrink

SQUARE = pd.DataFrame({"sex": ["F", "F", "M", "M"], "race": ["a", "b", "a", "b"]})
INTERACTION = np.array([1.0, -1.0, -1.0, 1.0])


def square(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=4), np.diag(rng.uniform(0.1, 2.0, size=4)), margins(SQUARE)


@pytest.mark.parametrize("seed", range(10))
def test_two_by_two_in_closed_form(seed):
    y, spread, x = square(seed)
    y = y + 2.0 * INTERACTION
    contrast, noise = INTERACTION @ y, np.trace(spread)
    tau2 = max((contrast**2 - noise) / 4.0, 0.0)
    shrunk = shrink(y, spread, x)
    assert shrunk.tau**2 == pytest.approx(tau2)
    assert shrunk.freedom == 1
    # With tau given, a cell gives up the part of the contrast that is noise, by its own variance.
    given = shrink(y, spread, x, tau=shrunk.tau)
    part = np.diag(spread) / (noise + 4.0 * tau2)
    np.testing.assert_allclose(given.level, y - INTERACTION * part * contrast)


@pytest.mark.parametrize("seed", range(5))
def test_tau_of_zero_is_the_additive_fit(seed):
    y, spread, x = square(seed)
    shrunk = shrink(y, spread, x, tau=0.0)
    weights = np.linalg.inv(spread)
    b = np.linalg.pinv(x.T @ weights @ x) @ x.T @ weights @ y
    np.testing.assert_allclose(shrunk.level, x @ b, atol=1e-9)
    np.testing.assert_allclose(
        shrunk.covariance, x @ np.linalg.pinv(x.T @ weights @ x) @ x.T, atol=1e-9
    )
    np.testing.assert_allclose(INTERACTION @ shrunk.level, 0.0, atol=1e-9)
    np.testing.assert_allclose(shrunk.own, 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_large_tau_leaves_cells_as_they_are(seed):
    y, spread, x = square(seed)
    shrunk = shrink(y, spread, x, tau=1e5)
    np.testing.assert_allclose(shrunk.level, y, atol=1e-6)
    np.testing.assert_allclose(shrunk.covariance, spread, atol=1e-6)
    np.testing.assert_allclose(shrunk.own, 1.0, atol=1e-6)


def test_noise_that_is_shared_by_all_cells_is_not_shrunk():
    y, spread, x = square(1)
    whole = spread + 4.0 * np.ones((4, 4))
    np.testing.assert_allclose(
        shrink(y, spread, x, tau=0.5).level, shrink(y, whole, x, tau=0.5).level, atol=1e-9
    )


def test_a_cell_that_is_not_known_has_its_margins_and_tau():
    y, spread, x = square(2)
    y[3] = np.nan
    shrunk = shrink(y, spread, x)
    assert shrunk.freedom == 0
    np.testing.assert_allclose(shrunk.level[:3], y[:3])
    assert shrunk.level[3] == pytest.approx(y[1] + y[2] - y[0])
    assert shrunk.covariance[3, 3] == pytest.approx(np.trace(spread[:3, :3]))
    assert shrunk.own[3] == 0.0
    with_tau = shrink(y, spread, x, tau=1.0)
    # Each of the three cells has a deviation of its own, and so has the one that is not known.
    assert with_tau.covariance[3, 3] == pytest.approx(np.trace(spread[:3, :3]) + 4.0)


def test_a_category_that_nobody_knows_stays_unknown():
    cells = pd.DataFrame({"sex": ["F", "F", "M", "M", "M"], "race": ["a", "b", "a", "b", "c"]})
    shrunk = shrink(np.array([1.0, 2.0, 3.0, 4.0, np.nan]), np.eye(5), margins(cells))
    assert np.isnan(shrunk.level[4])
    assert not np.isnan(shrunk.level[:4]).any()
    nothing = shrink(np.full(5, np.nan), np.eye(5), margins(cells))
    assert np.isnan(nothing.level).all()


def test_exact_levels_and_wide_scales():
    y, _, x = square(3)
    shrunk = shrink(y, np.zeros((4, 4)), x)
    np.testing.assert_allclose(shrunk.level, y, atol=1e-3)
    scaled = shrink(1e6 * y, 1e12 * np.eye(4), x)
    np.testing.assert_allclose(scaled.level, 1e6 * shrink(y, np.eye(4), x).level, rtol=1e-6)


def test_paule_mandel_without_deviations_is_zero():
    x = margins(SQUARE)
    assert paule_mandel(x @ np.arange(5.0), np.eye(4), x) == 0.0


def simulated(shape, tau, runs, seed):
    """How many 95 % intervals of gaps to the best known cell hold it, and squared errors."""
    rng = np.random.default_rng(seed)
    x = margins(pd.DataFrame(list(product(*map(range, shape)))).astype(str))
    m, inside, off = len(x), [], []
    for _ in range(runs):
        variances = rng.permutation(np.resize([0.05, 0.2, 1.0, 3.0], m))
        truth = x @ rng.normal(size=x.shape[1]) + tau * rng.normal(size=m)
        y = truth + np.sqrt(variances) * rng.normal(size=m)
        shrunk = shrink(y, np.diag(variances), x)
        first = int(np.argmin(variances))
        against = np.delete(np.eye(m) - np.eye(m)[first], first, axis=0)
        error = np.sqrt(np.diag(against @ shrunk.covariance @ against.T))
        gap = against @ shrunk.level
        inside.append(np.abs(gap - against @ truth) <= 1.96 * error)
        off.append([(gap - against @ truth) ** 2, (against @ (y - truth)) ** 2])
    return float(np.mean(inside)), np.mean(off, axis=(0, 2))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2, 2), (3, 4)])
@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0, 3.0])
def test_coverage(shape, tau):
    """91 to 99 % of 95 % intervals hold the gap, whatever tau is; and shrinking hardly ever costs.

    With 300 runs the measured rate has a standard error of 1.3 points at most.
    """
    rate, (shrunk, raw) = simulated(shape, tau, 300, seed=int(10 * tau) + len(shape))
    assert 0.91 <= rate <= 0.99
    assert shrunk <= (1.3 if shape == (2, 2) else 1.1) * raw
    if tau <= 0.3:
        assert shrunk <= 0.75 * raw
