"""shares="proportional": a price per group that holds its share of the choices."""

import numpy as np
import pytest
from scipy.stats import norm

import evenhand as eh

SIX = eh.Groups(["F", "F", "M", "M", "M", "M"], sensitive="F")  # a third of the arms


def played(rounds, shares, gap=1.0, seed=1, late=0, probe=True):
    """A policy after rounds in which the candidates of F have lower features by `gap`."""
    generator = np.random.default_rng(seed)
    policy = eh.PooledGroupFair(SIX, 2, shares=shares, probe=probe, seed=seed)
    worth, waiting, chosen = generator.uniform(2, 3, (6, 2)), [], np.zeros(6)
    for _ in range(rounds):
        contexts = np.column_stack([np.ones(6), generator.normal(size=6) - gap * (SIX.of == 0)])
        decision = policy.select(contexts)
        reward = worth[decision.arm] @ contexts[decision.arm] + 0.5 * generator.normal()
        chosen[decision.arm] += 1
        waiting.append((decision, reward))
        if len(waiting) > late:
            policy.update(*waiting.pop(0))
    return policy, chosen[SIX.of == 0].sum() / rounds


def test_shares_are_held_where_candidates_differ():
    """Without a price F, one standard deviation behind, has far less than its third."""
    assert played(1500, None)[1] < 0.15
    for gap in (1.0, -1.0, 3.0):
        assert played(1500, "proportional", gap)[1] == pytest.approx(1 / 3, abs=0.03)


def test_shares_are_held_when_rewards_come_late():
    assert played(1500, "proportional", late=40)[1] == pytest.approx(1 / 3, abs=0.04)


def test_the_price_is_that_of_the_choices_behind():
    """By hand: PRICE s D / sqrt(N), s the mean distance of corrected estimates from their mean."""
    policy, share = played(100, "proportional")
    behind = np.array([100 / 3 - 100 * share, 100 * share - 100 / 3])
    decision = policy.select(np.random.default_rng(2).normal(size=(6, 2)))
    table = policy.explain(decision)
    values = table.estimate + table.correction
    expected = 4 * np.abs(values - values.mean()).mean() * behind / 10
    np.testing.assert_allclose(table.price, expected[SIX.of], rtol=1e-9, atol=1e-12)
    parts = table.estimate + table.correction + table.bonus + table.price
    np.testing.assert_allclose(parts, table.score)


def test_chances_are_those_of_the_lines_with_their_prices():
    """By integration over a fine grid of z."""
    policy, _ = played(15, "proportional", gap=0.2, probe=False)
    generator = np.random.default_rng(5)
    edges = np.linspace(0.0, 9.0, 200_001)
    weight, z = 2.0 * np.diff(norm.cdf(edges)), 0.5 * (edges[1:] + edges[:-1])
    for _ in range(3):
        contexts = 1.0 + 0.2 * generator.random((6, 2))
        scores = policy.select(contexts).scores
        lines = scores.upper[:, None] + scores.width[:, None] * (z - 1.0)
        expected = np.bincount(lines.argmax(0), weights=weight, minlength=6)
        np.testing.assert_allclose(policy.propensities(contexts), expected, atol=1e-4)


def test_before_the_first_reward_there_is_no_price():
    policy = eh.PooledGroupFair(SIX, 2, shares="proportional", seed=1)
    table = policy.explain(policy.select(np.ones((6, 2))))
    assert table.price.tolist() == [0.0] * 6


def test_the_setting_is_kept_and_shuffled_rewards_give_the_same(tmp_path):
    policy, _ = played(60, "proportional")
    policy.save(tmp_path / "policy.json")
    again = eh.load(tmp_path / "policy.json")
    contexts = np.random.default_rng(3).normal(size=(6, 2))
    assert again.shares == policy.clone().shares == "proportional"
    np.testing.assert_array_equal(
        again.select(contexts).scores.upper, policy.select(contexts).scores.upper
    )


@pytest.mark.parametrize("shares", ["equal", 0.5, True])
def test_other_values_are_refused(shares):
    with pytest.raises(eh.InputError, match="; allowed is 'proportional': leave it out"):
        eh.PooledGroupFair(SIX, 2, shares=shares)


@pytest.mark.parametrize(
    ("groups", "more"),
    [
        (eh.Groups.of_attributes({"sex": list("FFMM"), "age": list("oyoy")}), {}),
        (SIX, {"arms": "once"}),
    ],
)
def test_it_needs_one_fixed_group_an_arm(groups, more):
    with pytest.raises(eh.InputError, match="needs recurring arms with one fixed group each"):
        eh.PooledGroupFair(groups, 2, shares="proportional", **more)
