"""A policy's bias report is what its rows say, whatever it keeps of them."""

from __future__ import annotations

import numpy as np
import pytest

import evenhand as eh
from bias_rows import rows_of, statistics
from evenhand.bias import bias_report, statistics_of
from evenhand.leastsquares import absorb, regressions
from evenhand.leastsquares._sums import sums


@pytest.mark.parametrize(
    "made", [{}, {"singular": "pseudo-inverse"}, {"ridge": 0.001}, {"ridge": 50.0}], ids=str
)
@pytest.mark.parametrize("policy", [eh.TopInterval, eh.GroupFairTopInterval, eh.NaiveFair])
def test_a_policy_reports_what_its_rows_say(policy, made):
    """Whatever it keeps, and with a ridge taken out again."""
    x, y, groups, arms = rows_of(13, labels=("F", "F", "F", "M", "M"))
    learner = policy(eh.Groups(list("FFFMM"), sensitive="F"), 3, horizon=300, seed=1, **made)
    learner.absorb(arms, x, y)
    order = np.argsort(arms, kind="stable")  # so that groups and arms come in the same order
    rows = statistics(x[order], y[order], groups[order], arms[order])
    for weighting in ("pulls", "arms"):
        expected = bias_report(rows, "M", weighting=weighting).to_frame()  # it is not sensitive
        table = learner.bias(weighting=weighting).to_frame()
        columns = expected.select_dtypes("number").columns
        np.testing.assert_allclose(table[columns], expected[columns], rtol=1e-6, atol=1e-9)
        assert table["why"].tolist() == expected["why"].tolist()


@pytest.mark.parametrize("made", [("infinite", 0.0), ("pseudo-inverse", 0.0), ("ridge", 0.3)])
def test_sums_are_those_of_the_rows(made):
    """Full and missing rank, scaled features, several blocks, and a regression without data."""
    rng = np.random.default_rng(14)
    fits = regressions(6, 4, *made)
    counts = [0, 1, 3, 4, 30, 7]
    for i, count in enumerate(counts):
        x = rng.normal(size=(count, 4)) * [1.0, 10.0, 0.1, 1.0]
        x[:, 3] = x[:, 0] if i == 5 else x[:, 3]
        y = rng.normal(size=count)
        for row, value in zip(x, y, strict=True):
            absorb(fits, i, row, value)
        added = sums(fits)
        assert added.n[i] == count
        np.testing.assert_allclose(added.gram[i], x.T @ x, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(added.moment[i], x.T @ y, rtol=1e-9, atol=1e-9)
        assert added.square[i] == pytest.approx(y @ y, rel=1e-9, abs=1e-12)


def test_sums_of_shared_regressions():
    fits = regressions(2, 1, shared=True)
    absorb(fits, 1, np.array([3.0]), 2.0)
    assert sums(fits).gram[:, 0, 0].tolist() == pytest.approx([0.0, 9.0])


def test_a_policy_without_an_intercept_does_not_know_its_averages():
    rng = np.random.default_rng(15)
    policy = eh.UniformRandom(["F", "F", "M", "M"], n_features=2, seed=1)
    policy.absorb(rng.integers(4, size=200), rng.random((200, 2)), rng.normal(size=200))
    report = policy.bias()
    assert report.average is None and report.to_frame()["contribution"].isna().all()
    assert report.to_frame()["estimate"].notna().all()
    assert "average context is not known" in report.totals()["why"][0]
    assert any("give average=" in warning for warning in report.warnings)
    told = policy.bias(average=[0.5, 0.5])
    assert told.totals()["estimate"].notna().all()
    assert any("no checks of overlap" in warning for warning in told.warnings)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_an_intercept_is_found_and_nothing_else_is_taken_for_one(d):
    rng = np.random.default_rng(d)
    arms, x = rng.integers(4, size=50), rng.uniform(0.5, 1.4, size=(50, d))
    policy = eh.UniformRandom(["F", "F", "M", "M"], n_features=d, seed=1)
    policy.absorb(arms, x, rng.normal(size=50))
    assert policy.bias().average is None
    x[:, -1] = 1.0
    policy = policy.clone()
    policy.absorb(arms, x, rng.normal(size=50))
    own = [x[arms < 2].mean(axis=0), x[arms >= 2].mean(axis=0)]
    np.testing.assert_allclose(policy.bias().average, own, rtol=1e-9)
    np.testing.assert_allclose(policy.bias().overall, x.mean(axis=0), rtol=1e-9)


def test_two_features_that_may_both_be_the_intercept_are_none():
    """One is 1, the other -1 or 1: their squares are the same, so the sums cannot tell."""
    rng = np.random.default_rng(16)
    x = np.column_stack([np.ones(100), rng.choice([-1.0, 1.0], 100), rng.random(100)])
    policy = eh.UniformRandom(["F", "F", "M", "M"], n_features=3, seed=1)
    policy.absorb(rng.integers(4, size=100), x, rng.normal(size=100))
    assert statistics_of(policy.groups, policy._state.arms).means is None


def test_saved_policies_report_the_same(tmp_path):
    x, y, _, arms = rows_of(17, labels=("F", "F", "M", "M"))
    policy = eh.TopInterval(["F", "F", "M", "M"], 3, seed=1)
    policy.absorb(arms, x, y)
    policy.save(tmp_path / "policy.json")
    assert eh.load(tmp_path / "policy.json").bias().to_json() == policy.bias().to_json()
