"""Numbers at the ends of what doubles hold, masked and missing ones, and sizes beyond memory."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand import _checks
from evenhand.bias import Statistics
from evenhand.policies import POLICIES
from evenhand.policies._quantiles import student_quantile
from evenhand.policies.decision import Decision
from evenhand.policies.saving import from_dict, to_dict

OURS = [kind for kind in POLICIES.values() if kind.__module__.startswith("evenhand.")]
GROUPS = eh.Groups(["F", "M", "F", "M", "M"], sensitive="F")


def one_line(call, *words, **named):
    """The call is refused in one short line that has the words."""
    with pytest.raises(ValueError) as caught:
        call(**named)
    text = str(caught.value)
    assert "\n" not in text and len(text) < 250, text
    for word in words:
        assert word in text, text


# Widths are never NaN ---------------------------------------------------------------------------


def sized(sign, digits, exponent):
    return sign * digits * 10.0**exponent


anything = st.builds(
    sized, st.sampled_from([-1.0, 0.0, 1.0]), st.floats(1.0, 9.9), st.integers(-320, 99)
)
modes = st.sampled_from(
    [
        {"singular": "infinite"},
        {"singular": "pseudo-inverse"},
        {"ridge": 1e-100},
        {"ridge": 1e-8},
        {"ridge": 1e100},
        {"conventions": eh.AUTHORS_CODE},
    ]
)


@pytest.mark.slow
@settings(max_examples=250)
@given(
    kind=st.sampled_from(OURS),
    mode=modes,
    noise=st.sampled_from(["estimate", 1e-100, 1.0, 1e100]),
    more=st.sampled_from([{}, {"delta": 1e-300}, {"delta": 1.0 - 1e-16}]),
    rounds=st.lists(
        st.tuples(st.lists(anything, min_size=4, max_size=4), anything), min_size=1, max_size=12
    ),
)
def test_widths_are_numbers_or_infinite_whatever_the_sizes(kind, mode, noise, more, rounds):
    """And estimates are finite, propensities sum to 1, and all that was learned can be saved."""
    policy = kind(GROUPS, 2, seed=1, noise=noise, **mode, **more)
    for values, reward in rounds:
        contexts = np.array(values).reshape(2, 2)[[0, 1, 1, 0, 1]]
        decision = policy.select(contexts)
        scores = decision.scores
        assert not np.isnan(scores.table).any()
        assert np.isfinite([scores.estimate, scores.correction]).all()
        assert (scores.width >= 0.0).all()
        assert (scores.correction_width >= 0.0).all()
        assert policy.propensities(contexts).sum() == pytest.approx(1.0)
        policy.update(decision, reward)
    saved = json.dumps(to_dict(policy), allow_nan=False)
    assert to_dict(from_dict(json.loads(saved))) == json.loads(saved)


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e-156, 1e-120, 1e-60, 1.0, 1e60, 1e99])
@pytest.mark.parametrize("ridge", [None, 1e-3])
def test_estimated_noise_at_any_level_of_rewards(size, ridge):
    """Widths that hold the truth, where squares of the residuals are too small for doubles too."""
    rng = np.random.default_rng(2)
    rewards = size * (1.0 + 0.1 * rng.standard_normal(40))
    policy = eh.TopInterval(["F", "M"], 1, horizon=10, noise="estimate", ridge=ridge)
    policy.absorb([0] * 40, np.ones((40, 1)), rewards)
    estimates, widths = policy.intervals(np.ones((2, 1)))
    assert estimates[0] == pytest.approx(size, rel=0.1)
    assert abs(estimates[0] - size) <= widths[0] < np.inf
    if size > 1e-90:
        assert widths[0] < size


@pytest.mark.parametrize("ridge", [1e-60, 1e-100])
def test_a_tiny_ridge_learns_from_huge_numbers(ridge):
    """As with numbers near 1, in other units: residuals, freedom and all. And it can be saved."""
    rng = np.random.default_rng(4)
    rows, rewards = rng.standard_normal((30, 2)), rng.standard_normal(30)
    plain = eh.TopInterval(["F", "M"], 2, horizon=10, noise="estimate", ridge=ridge, seed=1)
    large = plain.clone()  # beside either the ridge is as good as none
    plain.absorb([0] * 30, rows, rewards)
    large.absorb([0] * 30, 1e99 * rows, 1e99 * rewards)
    ours, theirs = large.intervals(1e99 * rows[:2]), plain.intervals(rows[:2])
    for mine, other in zip(ours, theirs, strict=True):
        assert mine[0] / 1e99 == pytest.approx(other[0], rel=1e-10)
    json.dumps(to_dict(large), allow_nan=False)


@pytest.mark.parametrize("size", [1.1e100, 1e154, 1e200, 1e300, np.inf, np.nan])
def test_what_is_too_large_to_square_is_refused_with_the_limit(size):
    policy = eh.TopInterval(["F", "M"], 30, seed=1)
    rows, limit = np.ones((2, 30)), "finite numbers up to 1e+100"
    decision = policy.select(rows)
    bad = rows.copy()
    bad[1, 7] = size
    wild = Decision(1, 0.5, False, 1, bad[1], decision.scores)
    one_line(lambda: policy.select(bad), "contexts of arm 1", "in place 7", limit)
    one_line(lambda: policy.absorb([0, 1], bad, [1.0, 1.0]), "contexts in row 1", limit)
    one_line(lambda: policy.absorb([0], rows[:1], [size]), "rewards in row 0", limit)
    one_line(lambda: policy.update(decision, size), "reward is", "up to 1e+100")
    one_line(lambda: policy.update(wild, 1.0), "decision has a context", limit)
    assert policy.counts.sum() == 0
    for name in ("noise", "ridge"):
        one_line(lambda name=name: eh.TopInterval(["F"], 1, **{name: size}), name, "1e-100")


def test_student_quantiles_at_the_smallest_levels():
    """Cauchy's have the closed form 1 / tan(pi p); with more freedom they are smaller."""
    for level in (1e-100, 1e-155, 1e-200, 1e-300):
        quantiles = [
            student_quantile(level, freedom) for freedom in (1.0, 1.5, 2.0, 3.0, 50.0, 1999.0)
        ]
        assert np.isfinite(quantiles).all()
        assert (np.diff(quantiles) < 0.0).all()
        assert quantiles[0] == pytest.approx(1.0 / (np.pi * level), rel=1e-10)
        assert quantiles[2] == pytest.approx(1.0 / np.sqrt(2.0 * level), rel=1e-10)


# Masked and missing values ----------------------------------------------------------------------


def masked(values, *places):
    array = np.ma.array(values, mask=np.zeros(np.shape(values), dtype=bool))
    for place in places:
        array[place] = np.ma.masked
    return array


def test_masked_values_are_refused_wherever_arrays_come_in():
    """What is below a mask, here 99, is nobody's data."""
    rows, two = np.ones((2, 1)), [1.0, 99.0]
    policy = eh.TopInterval(["F", "M"], 1, seed=1)
    decision = policy.select(rows)
    hidden = Decision(0, 0.5, False, 1, masked([99.0], 0), decision.scores)
    where = {
        "contexts": [
            lambda: policy.select(masked([[1.0], [99.0]], 1)),
            lambda: policy.select([masked([1.0]), masked([99.0], 0)]),
            lambda: policy.intervals(masked([[1.0], [99.0]], 1)),
            lambda: policy.absorb([0, 1], masked([[1.0], [99.0]], 1), two),
            lambda: Statistics.from_rows(masked([[1.0], [99.0]], 1), two, ["F", "M"]),
        ],
        "reward": [
            lambda: policy.update(decision, masked(two, 1)[1]),
            lambda: policy.update(decision, masked(99.0, ())),
            lambda: policy.update([decision] * 2, masked(two, 1)),
            lambda: policy.update([decision] * 2, [1.0, np.ma.masked]),
            lambda: policy.absorb([0, 1], rows, masked(two, 1)),
            lambda: Statistics.from_rows(rows, masked(two, 1), ["F", "M"]),
        ],
        "context of": [
            lambda: policy.update(hidden, 1.0),
            lambda: policy.update([hidden], [1.0]),
        ],
        "arms": [
            lambda: policy.absorb(masked([0, 1], 1), rows, two),
            lambda: eh.metrics.shares(masked([0, 1], 1), policy.groups),
        ],
        "available": [lambda: policy.select(rows, available=masked([True, True], 1))],
        "groups": [lambda: Statistics.from_rows(rows, two, masked(["F", "M"], 1))],
        "labels": [lambda: eh.Groups(masked(["F", "M"], 1))],
    }
    for name, calls in where.items():
        for call in calls:
            one_line(call, name, "masked values")
    assert policy.counts.sum() == 0


def test_masked_arrays_without_masked_values_are_arrays():
    policy = eh.TopInterval(["F", "M"], 1, seed=1)
    policy.absorb(masked([0, 1]), masked([[1.0], [2.0]]), masked([3.0, 4.0]))
    policy.update(policy.select(masked([[1.0], [1.0]])), masked([5.0])[0])
    assert policy.counts.sum() == 3


@pytest.mark.parametrize("kind", ["Float64", "Int64", "boolean", "float64[pyarrow]"])
def test_nullable_columns_are_read_right_or_refused(kind):
    if "pyarrow" in kind:
        pytest.importorskip("pyarrow")
    policy = eh.TopInterval(["F", "M"], 1, seed=1)
    whole = pd.DataFrame({"x": pd.Series([1, 0], dtype=kind)})
    holes = pd.DataFrame({"x": pd.Series([1, None], dtype=kind)})
    policy.absorb([0, 1], whole, whole["x"])
    assert policy.intervals([[1.0], [1.0]])[0].tolist() == [1.0, 0.0]
    for call in (
        lambda: policy.absorb([0, 1], holes, whole["x"]),
        lambda: policy.absorb([0, 1], whole, holes["x"]),
        lambda: policy.select(holes),
        lambda: policy.update(policy.select(whole), holes["x"][1]),
        lambda: Statistics.from_rows(holes, [1.0, 2.0], ["F", "M"]),
        lambda: Statistics.from_rows(whole, [1.0, 2.0], pd.Series(["F", None], dtype="string")),
        lambda: eh.Groups(pd.Series(["F", None], dtype="string")),
    ):
        one_line(call)
    assert policy.counts.sum() == 2


# Sizes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [10**400, -(10**400), 10**5000, 2**53 + 1, 1e300], ids=range(5))
def test_whole_numbers_beyond_any_use_are_refused_in_one_line(value):
    for name, call in {
        "horizon": lambda: eh.TopInterval(["F"], 1, horizon=value),
        "n_features": lambda: eh.TopInterval(["F"], value),
        "n_arms": lambda: eh.SyntheticWorld(n_arms=value),
        "replications": lambda: eh.simulate(
            [eh.TopInterval], eh.SyntheticWorld(), 10, replications=value
        ),
    }.items():
        one_line(call, f"{name} is", "allowed is a whole number")
    if abs(value) > 2**128:
        one_line(lambda: eh.TopInterval(["F"], 1, seed=value), "seed is", "allowed is a whole")
        world = eh.SyntheticWorld()
        one_line(lambda: eh.simulate([eh.TopInterval], world, 10, seed=value), "seed is", "allowed")


def test_numbers_too_large_for_a_float_are_refused():
    one_line(lambda: eh.TopInterval(["F"], 1, noise=10**400), "noise is a whole number of about")
    policy = eh.TopInterval(["F"], 1, seed=1)
    one_line(lambda: policy.update(policy.select([[1.0]]), 10**400), "reward is a whole number of")
    one_line(lambda: policy.absorb([0], [[1.0]], [10**400]), "rewards")
    one_line(lambda: Statistics.from_rows([[10**400]], [1.0], ["F"]), "contexts")
    assert _checks.whole("seed", 2**128 - 1, 0, _checks.LARGEST_SEED) == 2**128 - 1


@pytest.mark.parametrize("kind", [eh.TopInterval, eh.MultiGroupFairTopInterval])
def test_regressions_too_large_for_memory_are_refused_before_they_are_made(kind):
    """A million features take 12 TB per arm. The limit that the error names is allowed."""
    with pytest.raises(ValueError) as caught:
        kind(GROUPS, 1_000_000)
    text = str(caught.value)
    assert text.startswith("n_features is 1000000 with 5 arms; allowed is a whole number up to")
    limit = int(text.split("up to ")[1].split(",")[0])
    assert 1_000 < limit < 100_000
    assert kind(GROUPS, limit).n_features == limit
    one_line(lambda: kind(GROUPS, limit + 1), f"n_features is {limit + 1}")


def test_worlds_too_large_for_memory_are_refused_before_they_are_made():
    one_line(lambda: eh.SyntheticWorld(n_arms=10**9), "n_arms is 1000000000", "up to 10000000")
    one_line(lambda: eh.SyntheticWorld(n_features=10**9), "n_features is", "up to 26843545")


def test_no_warnings_where_numbers_are_refused():
    policy = eh.TopInterval(["F", "M"], 1, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one_line(lambda: policy.update(policy.select(np.ones((2, 1))), np.ma.masked), "reward")
