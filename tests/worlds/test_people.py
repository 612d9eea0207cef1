"""Worlds with attributes, and worlds whose candidates bring their groups along."""

import numpy as np
import pytest

import evenhand as eh
from evenhand.simulation._compiled_rounds import run
from evenhand.simulation._plain_rounds import each_round
from evenhand.worlds._instances import begin, compiled_draw

SHARES = {"sex": {"F": 0.3, "M": 0.7}}


def rounds_of(world, number, seed=1):
    generator = np.random.default_rng(seed)
    instance = begin(world, generator)
    contexts = np.empty((world.n_arms, world.row_length))
    observed, true = np.empty(world.n_arms), np.empty(world.n_arms)
    rows, gaps = [], []
    for t in range(1, number + 1):
        compiled_draw(instance, t, generator, contexts, observed, true)
        rows.append(contexts.copy())
        gaps.append(observed - true)
    return instance, np.concatenate(rows), np.concatenate(gaps)


def test_levels_have_their_shares_and_their_bias():
    instance, rows, gaps = rounds_of(eh.PeopleWorld(5, SHARES), 2000)
    assert set(np.unique(rows[:, 2:])) == {0.0, 1.0} and not rows[:, 4].any()
    assert rows[:, 2].mean() == pytest.approx(0.3, abs=0.02)
    expected = rows[:, 2] * (rows[:, :2] @ instance.effects[0])
    np.testing.assert_allclose(gaps, expected, atol=1e-9)


def test_who_does_not_say_has_a_bias_all_the_same():
    instance, rows, gaps = rounds_of(eh.PeopleWorld(5, SHARES, missing=0.4), 2000)
    silent = rows[:, 4] == 1.0
    assert silent.mean() == pytest.approx(0.4, abs=0.02)
    assert not rows[silent, 2:4].any()
    assert (gaps[silent] != 0.0).mean() == pytest.approx(0.3, abs=0.03)
    assert instance.effects[1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("concentration", [0.5, 4.0])
def test_probabilities_are_calibrated(concentration):
    _, rows, gaps = rounds_of(eh.PeopleWorld(5, SHARES, concentration=concentration), 4000)
    chances, is_woman = rows[:, 2], gaps != 0.0
    np.testing.assert_allclose(rows[:, 2:4].sum(axis=1), 1.0)
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        here = (chances >= low) & (chances < low + 0.2)
        error = np.sqrt(0.25 / here.sum())
        assert abs(is_woman[here].mean() - chances[here].mean()) < 4.5 * error


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(
            eh.PeopleWorld(4, {**SHARES, "age": {"old": 0.5, "young": 0.5}}, concentration=1.0),
            id="people",
        ),
        pytest.param(
            eh.CrossedWorld({"sex": ["F", "M"], "age": ["o", "y"]}, [2, 1, 1, 2], interaction=3.0),
            id="crossed",
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.parametrize("arms", ["recurring", "once"])
def test_the_simulator_makes_the_decisions_of_the_live_policy(world, arms):
    def policy():
        return eh.PooledGroupFair(world.groups, 2, seed=3, arms=arms)

    stream = np.random.SeedSequence(5)
    played = run(policy(), world, 60, stream, trace=True).trace
    live = [now.decision.arm for now in each_round(policy(), world, 60, np.random.SeedSequence(5))]
    assert live == played[:, 0].astype(int).tolist()


def test_the_floor_is_refused_where_arms_have_no_bias_of_their_own():
    with pytest.raises(eh.InputError, match="true coefficients are not known"):
        eh.simulate_floor(eh.PeopleWorld(4, SHARES), 10, 2)


def test_attributes_add_up_and_intersections_add_to_them():
    attributes = {"sex": ["F", "M"], "age": ["o", "y"]}
    world = eh.CrossedWorld(attributes, [2, 1, 1, 1], bias_mean=[10.0, 4.0])
    bias = world.begin(np.random.default_rng(1)).bias
    np.testing.assert_allclose(bias[0], bias[2] + bias[3])  # F & o, F & y, M & o
    assert bias[0].tolist() == bias[1].tolist() and not bias[4].any()
    assert (np.abs(bias[2] + 10.0) <= 0.5).all() and (np.abs(bias[3] + 4.0) <= 0.5).all()
    more = eh.CrossedWorld(attributes, [2, 1, 1, 1], interaction=5.0)
    bias = more.begin(np.random.default_rng(1)).bias
    assert not bias[4].any() and np.abs(bias[0] - bias[2] - bias[3]).max() > 0.1


def test_candidates_who_come_once_share_their_coefficients():
    world = eh.CrossedWorld({"sex": ["F", "M"]}, [2, 2], arms="once")
    coefficients = world.begin(np.random.default_rng(1)).coefficients
    assert (coefficients == coefficients[0]).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: eh.CrossedWorld({"sex": ["F", "M"]}, [1]), "sizes has 1 number"),
        (lambda: eh.CrossedWorld({"sex": ["F", "M"]}, [1, 0]), "two arms or more"),
        (lambda: eh.CrossedWorld({"sex": ["F", "M"]}, [1, 1], bias_mean=[1, 2]), "bias_mean"),
        (lambda: eh.CrossedWorld({"sex": ["F", "M"]}, [1, 1], arms="twice"), "arms"),
        (lambda: eh.PeopleWorld(2, {"sex": {"F": 0.5, "M": 0.6}}), "sum to 1"),
        (lambda: eh.PeopleWorld(2, {"sex": {"F": 1.0}}), "two or more"),
        (lambda: eh.PeopleWorld(2, SHARES, missing=2.0), "missing"),
    ],
)
def test_bad_settings_are_refused(make, words):
    with pytest.raises(eh.InputError, match=words):
        make()
