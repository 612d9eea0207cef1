"""Synthetic worlds: the paper's own, number for number, and every way of departing from it."""

import numpy as np
import pytest
from scipy import stats

import evenhand as eh
from evenhand.worlds._instances import begin, compiled_draw, compiled_receive
from evenhand.worlds.synthetic import LinearInstance


def instance_of(seed=1, **settings):
    world = eh.SyntheticWorld(**settings)
    return world, begin(world, np.random.default_rng(seed))


def rounds_of(number, seed=1, **settings):
    """Contexts, observed and true means and noise of rounds of a world."""
    world, generator = eh.SyntheticWorld(**settings), np.random.default_rng(seed)
    instance = begin(world, generator)
    contexts = np.empty((number, world.n_arms, world.n_features))
    observed, true = np.empty((number, world.n_arms)), np.empty((number, world.n_arms))
    noise = np.array(
        [
            compiled_draw(instance, t + 1, generator, contexts[t], observed[t], true[t])
            for t in range(number)
        ]
    )
    return instance, contexts, observed, true, noise


def test_the_default_is_the_papers_world_number_for_number():
    generator = np.random.default_rng(3)
    _, instance = instance_of(3)
    bias = -(9.5 + generator.random(2))
    coefficients = generator.random((10, 2)) * 10.0 + 30.0
    assert type(instance) is LinearInstance
    assert (instance.bias[:5] == bias).all() and (instance.bias[5:] == 0.0).all()
    assert (instance.coefficients == coefficients).all()


def test_settings_of_coefficients_need_no_other_rounds():
    _, instance = instance_of(
        spread=[6, 1, 1], averages="equal", advantage=3, group_sizes=[2, 3, 5]
    )
    assert type(instance) is LinearInstance  # the function of the paper's world draws them


def test_groups_of_any_sizes_have_their_own_bias_and_the_last_none():
    world, instance = instance_of(group_sizes=[2, 3, 5])
    assert world.groups.sizes.tolist() == [2, 3, 5] and world.groups.sensitive == "group 1"
    first, second, last = instance.bias[0], instance.bias[2], instance.bias[5]
    assert (first != second).all() and (last == 0.0).all()
    for bias in (first, second):
        assert ((bias >= -10.5) & (bias <= -9.5)).all()
    assert eh.SyntheticWorld(group_sizes=[4, 6]).groups.names == ("sensitive", "other")


def test_bias_by_feature_and_its_range():
    _, instance = instance_of(bias_mean=[4, -2], bias_range=0)
    assert instance.bias[0].tolist() == [-4.0, 2.0]
    _, instance = instance_of(bias_mean=[4, -2], bias_range=0, conventions=eh.AUTHORS_CODE)
    assert instance.bias[0].tolist() == [-4.0, 2.0]


def test_spread_is_the_standard_deviation_of_each_group():
    drawn = [instance_of(seed, spread=[6, 1])[1].coefficients for seed in range(2000)]
    table = np.array(drawn)
    assert abs(table[:, :5].std() - 6.0) < 0.06 and abs(table[:, 5:].std() - 1.0) < 0.01
    assert abs(table.mean() - 35.0) < 0.1


def test_equal_averages_are_exactly_equal_whatever_else_is_set():
    for settings in ({}, {"spread": [6, 1]}, {"outstanding": 10}, {"coefficient_range": 4}):
        world, instance = instance_of(averages="equal", **settings)
        means = [instance.coefficients[world.groups.of == g].mean(axis=0) for g in (0, 1)]
        np.testing.assert_allclose(means, world.middle, rtol=1e-13)


def test_an_advantage_is_added_to_the_sensitive_arms_alone():
    plain, better = instance_of(7)[1].coefficients, instance_of(7, advantage=3)[1].coefficients
    assert (better[:5] == plain[:5] + 3.0).all() and (better[5:] == plain[5:]).all()
    equal = instance_of(7, advantage=3, averages="equal")[1].coefficients
    np.testing.assert_allclose(equal[:5].mean(axis=0) - equal[5:].mean(axis=0), 3.0)


def test_the_first_arm_is_outstanding():
    plain, raised = instance_of(7)[1].coefficients, instance_of(7, outstanding=4)[1].coefficients
    assert (raised[0] == plain[0] + 4.0).all() and (raised[1:] == plain[1:]).all()


def test_scales_change_units_and_nothing_else():
    _, plain_x, *plain = rounds_of(20)
    instance, scaled_x, *scaled = rounds_of(20, scales=[1, 1000])
    np.testing.assert_allclose(scaled_x, plain_x * [1.0, 1000.0], rtol=1e-15)
    for before, other in zip(plain, scaled, strict=True):
        np.testing.assert_allclose(before, other, rtol=1e-13)
    assert instance.coefficients[:, 0].min() > 29.0 > instance.coefficients[:, 1].max()


def test_shared_contexts_are_the_same_for_all_arms_and_new_in_every_round():
    instance, x, observed, true, _ = rounds_of(50, contexts="shared")
    assert (x == x[:, :1]).all() and len(np.unique(x[:, 0])) == 100
    np.testing.assert_allclose(true, x[:, 0] @ instance.coefficients.T, rtol=1e-13)
    expected = x[:, 0] @ (instance.coefficients + instance.bias).T
    np.testing.assert_allclose(observed, expected, rtol=1e-13)


def test_constant_contexts_are_one():
    _, x, *_ = rounds_of(5, contexts="constant", n_features=1)
    assert (x == 1.0).all()


@pytest.mark.parametrize("correlation", [0.3, 0.9])
@pytest.mark.parametrize("contexts", ["own", "shared"])
def test_features_have_the_correlation_that_is_asked_for(correlation, contexts):
    _, x, *_ = rounds_of(4000, n_arms=4, n_features=3, correlation=correlation, contexts=contexts)
    assert ((x >= 0.0) & (x <= 1.0)).all()
    measured = np.corrcoef(x[:, 1].T)[np.triu_indices(3, 1)]
    assert np.abs(measured - correlation).max() < 5.0 * (1.0 - correlation**2) / 4000**0.5
    arms = np.corrcoef(x[:, 0, 0], x[:, 1, 0])[0, 1]
    assert arms > 0.99 if contexts == "shared" else abs(arms) < 5.0 / 4000**0.5


def test_heavy_tails_have_the_same_standard_deviation():
    *_, noise = rounds_of(20_000, n_arms=2, noise=2.0, noise_shape="t3")
    scaled = noise / 2.0 * 3.0**0.5  # Student's t with 3 degrees of freedom
    assert stats.kstest(scaled, stats.t(3).cdf).pvalue > 1e-4
    assert (np.abs(noise) > 10.0).any()  # normal noise is that far out once in two million


CHANCES = {"lowest_coefficient": 0.25, "coefficient_range": 0.25,
           "bias_mean": 0.1, "bias_range": 0.1}  # fmt: skip


def test_binary_rewards_have_their_means_as_probabilities():
    instance, _, observed, _, noise = rounds_of(5000, rewards="binary", **CHANCES)
    assert ((observed >= 0.0) & (observed <= 1.0)).all()
    received = np.array(
        [
            compiled_receive(instance, 1, 0, mean, u)
            for mean, u in zip(observed[:, 0], noise, strict=True)
        ]
    )
    assert set(received) == {0.0, 1.0}
    chances = observed[:, 0]
    expected, variance = chances.sum(), (chances * (1.0 - chances)).sum()
    assert abs(received.sum() - expected) < 4.0 * variance**0.5  # fails once in 16,000 seeds


def test_a_drifting_bias_grows_linearly_and_then_stays():
    instance, x, observed, true, _ = rounds_of(8, drift=4)
    full = np.einsum("tik,ik->ti", x, instance.bias)[:, :5]
    grown = ((observed - true)[:, :5] / full).round(9)
    assert (grown == np.array([0.25, 0.5, 0.75, 1, 1, 1, 1, 1])[:, None]).all()


@pytest.mark.slow
def test_all_policies_meet_the_same_rounds_also_live():
    world = eh.SyntheticWorld(
        n_arms=4, contexts="shared", correlation=0.5, noise_shape="t3", drift=20, scales=[1, 10]
    )
    kinds = [eh.UniformRandom]
    simulated = eh.simulate(kinds, world, horizon=30, replications=2, seed=4, trace=True)
    log = eh.simulate_log(eh.UniformRandom, world, horizon=30, seed=4)
    first = simulated.trace[simulated.trace["replication"] == 0]
    assert log["reward"].tolist() == first["reward"].tolist()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_arms": 10, "n_sensitive": 10}, "n_sensitive is 10"),
        ({"group_sizes": [5]}, "two or more"),
        ({"group_sizes": 5}, "a list of numbers of arms"),
        ({"group_sizes": [5, 0]}, "group_sizes is 0"),
        ({"group_sizes": [2, 3], "n_arms": 6}, "by group_sizes it is 5"),
        ({"group_sizes": [2, 3], "n_sensitive": 3}, "by group_sizes it is 2"),
        ({"bias_mean": [1, 2, 3]}, "bias_mean is [1, 2, 3]; allowed is a number, or a list of 2"),
        ({"bias_mean": "10"}, "bias_mean is '10'"),
        ({"spread": [6, -1]}, "spread is -1"),
        ({"averages": "same"}, "averages is 'same'; allowed is one of drawn, equal"),
        ({"contexts": "none"}, "contexts is 'none'"),
        ({"correlation": 1.5}, "correlation is 1.5"),
        ({"scales": [1, 0]}, "scales is 0"),
        ({"scales": [1]}, "one for each of 2 features"),
        ({"noise_shape": "cauchy"}, "noise_shape is 'cauchy'"),
        ({"rewards": "binary"}, "probabilities would be between 0 and 80"),
        ({"rewards": "binary", **CHANCES, "bias_mean": 0.4}, "rewards is 'binary'"),
        ({"drift": -1}, "drift is -1"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_a_line(settings, words):
    with pytest.raises(eh.InputError) as error:
        eh.SyntheticWorld(**settings)
    assert words in str(error.value)
