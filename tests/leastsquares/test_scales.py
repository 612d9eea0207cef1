"""Features in any units: an intercept beside times in nanoseconds, and the order of the rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.leastsquares import absorb, coefficients, rank_of, regressions
from evenhand.leastsquares._saved import from_saved, to_saved
from evenhand.leastsquares._sums import sums
from evenhand.policies.saving import from_dict, to_dict

RATIOS = [1e6, 1e10, 1e13, 1e16]


def asked(rows, rewards, contexts, **settings):
    """Estimates and widths of an arm that has learned from the rows, one per context."""
    settings = {"horizon": 1, "delta": 0.1, "singular": "infinite", **settings}
    policy = eh.TopInterval(["F", "M"], n_features=rows.shape[1], **settings)
    policy.absorb(np.zeros(len(rows), dtype=int), rows, rewards)
    pairs = [policy.intervals(np.tile(x, (2, 1))) for x in np.atleast_2d(contexts)]
    return np.array([[estimate[0], width[0]] for estimate, width in pairs]).T


def a_time_and_an_intercept(ratio, seed, number=30):
    """Rows, coefficients that matter alike, and rewards with a noise of 1."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([ratio * (1.0 + 0.5 * rng.random(number)), np.ones(number)])
    coefficients = np.array([20.0 / ratio, -25.0])
    return rows, coefficients, rows @ coefficients + rng.standard_normal(number)


@pytest.mark.parametrize("ratio", [1.0, *RATIOS])
def test_intervals_cover_whatever_the_ratio_of_the_features(ratio):
    """5 % may miss: delta / (2 n T) on either side. More than 15 of 100 has a chance of 4e-5."""
    missed = 0
    for seed in range(100):
        rows, truth, rewards = a_time_and_an_intercept(ratio, seed)
        (estimate,), (width,) = asked(rows[1:], rewards[1:], rows[0])
        assert width < np.inf
        missed += abs(estimate - rows[0] @ truth) > width
    assert missed <= 15


@pytest.mark.parametrize("noise", [1.0, "estimate"])
@pytest.mark.parametrize("ratio", RATIOS)
def test_the_order_of_rows_does_not_matter_whatever_the_ratio(ratio, noise):
    for seed in range(20):
        rows, _, rewards = a_time_and_an_intercept(ratio, seed)
        order = np.random.default_rng(seed).permutation(len(rows))
        here = asked(rows, rewards, rows[:2], noise=noise)
        there = asked(rows[order], rewards[order], rows[:2], noise=noise)
        np.testing.assert_allclose(here, there, rtol=1e-10)


def test_times_in_nanoseconds_within_a_day():
    """1.7e18 beside 1, and times that differ in their fifth digit: still two features."""
    rng = np.random.default_rng(1)
    hours = 24.0 * rng.random(200)
    rewards = 3.0 + 2.0 * hours + 0.01 * rng.standard_normal(200)
    rows = np.column_stack([1.7e18 + 3.6e12 * hours, np.ones(200)])
    estimates, widths = asked(rows, rewards, rows[:20], noise=0.01)
    assert (widths < 0.01).all()
    np.testing.assert_allclose(estimates, 3.0 + 2.0 * hours[:20], atol=0.02)


scaled_rows = st.tuples(
    st.integers(0, 2**32 - 1),
    st.integers(1, 5),
    st.integers(1, 9),
    st.lists(st.integers(-300, 300), min_size=5, max_size=5),
)


@pytest.mark.slow
@settings(max_examples=200)
@given(case=scaled_rows, shared=st.booleans())
def test_the_units_of_features_do_not_matter(case, shared):
    """Times any powers of two: the same rank, the coefficients in those units, the same sums.

    With few whole numbers, so that many designs stay singular, and zeros among them.
    """
    seed, d, number, powers = case
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (number, d)).astype(float)
    rewards, units = rng.standard_normal(number), 2.0 ** np.array(powers[:d])
    plain, other = (regressions(2, d, "infinite", shared=shared) for _ in range(2))
    for row, reward in zip(rows, rewards, strict=True):
        absorb(plain, 1, row, reward)
        absorb(other, 1, row * units, reward)
    assert rank_of(other, 1) == rank_of(plain, 1) == np.linalg.matrix_rank(rows)
    if rank_of(plain, 1) == d:
        ours = coefficients(other, 1) * units
        np.testing.assert_allclose(ours, coefficients(plain, 1), rtol=1e-9, atol=1e-12)
    for name in ("moment", "square", "gram"):
        scale = {"moment": units, "square": 1.0, "gram": np.outer(units, units)}[name]
        ours, theirs = getattr(sums(other), name)[1] / scale, getattr(sums(plain), name)[1]
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    # Saved and read again, to the last bit, also while singular.
    again = regressions(2, d, "infinite", shared=shared)
    from_saved(again, to_saved(other))
    assert (again.table == other.table).all()


@pytest.mark.parametrize("ratio", [1e-13, 1e-30, 1e13, 1e30])
def test_what_was_never_seen_is_infinite_however_small(ratio):
    """Both features at 1, and asked about the third, which is tiny or huge beside them."""
    rows = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    contexts = np.array([[1.0, 1.0, ratio], [1.0, 1.0, 0.0]])
    _, widths = asked(rows, [1.0, 2.0, 1.0], contexts)
    assert widths[0] == np.inf
    assert widths[1] < np.inf


@pytest.mark.parametrize("singular", ["infinite", "ridge"])
def test_a_feature_that_starts_small_may_become_large(singular):
    """Amounts that grow by powers of ten: as a fit of all rows at once, in any order."""
    rng = np.random.default_rng(3)
    rows = np.column_stack([10.0 ** np.arange(-6, 14), rng.random(20), np.ones(20)])
    rewards = rows @ [1e-13, 2.0, 3.0] + 0.1 * rng.standard_normal(20)
    setting = {"singular": singular, "ridge": 1e-30 if singular == "ridge" else None}
    largest = np.abs(rows).max(axis=0)
    beta = np.linalg.lstsq(rows / largest, rewards, rcond=None)[0] / largest
    for order in (np.arange(20), np.arange(20)[::-1], rng.permutation(20)):
        estimates, widths = asked(rows[order], rewards[order], rows, **setting)
        np.testing.assert_allclose(estimates, rows @ beta, rtol=1e-9)
        assert (widths < np.inf).all()


def test_a_singular_design_of_unlike_features_comes_back_from_a_file():
    """The factors are in the file: it goes on learning alike, and says so of what it has seen."""
    rows = np.array([[1.7e18, 1.0, 0.0], [1.8e18, 1.0, 0.0], [1.7e18, 1.0, 1e-9]])
    policy = eh.TopInterval(["F", "M"], n_features=3, seed=1, singular="infinite")
    policy.absorb([0, 0], rows[:2], [1.0, 2.0])
    again = from_dict(json.loads(json.dumps(to_dict(policy))))
    for learner in (policy, again):
        assert learner.intervals(rows[[0, 2]])[1][0] < np.inf
        assert learner.intervals(rows[[2, 2]])[1][0] == np.inf
        learner.absorb([0, 0], rows[[2, 0]], [3.0, 1.5])
    assert to_dict(again) == to_dict(policy)
    assert policy.intervals(rows[[2, 2]])[1][0] < np.inf


def test_a_file_without_factors_means_features_as_they_are():
    """Files of before: their directions are in the features' own units, however unlike."""
    policy = eh.TopInterval(["F", "M"], n_features=3, seed=1, singular="infinite")
    policy.absorb([0], [[3.0, 4.0, 0.0]], [1.0])
    saved = to_dict(policy)
    assert not np.array(saved["arms"])[0, -3:].any()  # no factors: ordinary sizes need none
    assert from_dict(saved).intervals([[6.0, 8.0, 0.0]] * 2)[1][0] < np.inf
    assert from_dict(saved).intervals([[6.0, 8.0, 1e-9]] * 2)[1][0] == np.inf


def test_the_pseudo_inverse_warns_of_unlike_features():
    """It is defined by features as they are, as in the authors' code, and drops the smaller one."""
    rows, _, rewards = a_time_and_an_intercept(1e8, 1)
    with pytest.warns(UserWarning, match="feature 1 is up to 1 in size and feature 0 up to 1.4"):
        asked(rows, rewards, rows[:1], singular="pseudo-inverse")
    rows, _, rewards = a_time_and_an_intercept(1e6, 1)
    asked(rows, rewards, rows[:1], singular="pseudo-inverse")
