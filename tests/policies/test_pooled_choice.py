"""Which arm PooledGroupFair chooses, and how likely: against numerical integration and counts."""

import numpy as np
import pytest
from scipy.stats import chi2, norm

import evenhand as eh


def learned(seed=0, d=2, number=40, probe=True, labels=("F", "F", "F", "M", "M", "M")):
    generator = np.random.default_rng(seed)
    policy = eh.PooledGroupFair(labels, d, reference="M", probe=probe, seed=seed)
    arms = generator.integers(len(labels), size=number)
    contexts = generator.random((number, d))
    worth = 3.0 + generator.standard_normal((len(labels), d))
    policy.absorb(arms, contexts, (worth[arms] * contexts).sum(1) + generator.normal(size=number))
    return policy


def by_integration(decision, mask):
    """P(arm) by a fine grid of z: which line is the highest at its midpoints."""
    scores = decision.scores
    edges = np.linspace(0.0, 9.0, 400_001)
    weight = 2.0 * np.diff(norm.cdf(edges))
    z = 0.5 * (edges[1:] + edges[:-1])
    lines = (scores.estimate + scores.correction)[:, None] + scores.width[:, None] * z
    lines[~mask] = -np.inf
    return np.bincount(lines.argmax(0), weights=weight, minlength=len(mask))


@pytest.mark.parametrize("seed", range(5))
def test_propensities_are_the_envelope_of_lines(seed):
    policy = learned(seed, probe=False, number=15)
    generator = np.random.default_rng(seed + 100)
    contexts = 0.3 + 0.1 * generator.random((6, 2))
    mask = generator.random(6) < 0.8
    mask[0] = mask[5] = True
    chances = policy.propensities(contexts, available=mask)
    decision = policy.select(contexts, available=mask)
    np.testing.assert_allclose(chances, by_integration(decision, mask), atol=1e-4)
    assert decision.propensity == chances[decision.arm] > 0.0


def test_arms_with_the_same_line_share_their_probability():
    policy = learned(number=0)
    np.testing.assert_allclose(policy.propensities(np.ones((6, 2))), 1.0 / 6.0)
    policy.absorb(
        [0, 3], np.ones((2, 2)), [1.0, 2.0]
    )  # arms 1, 2 and 4, 5 know nothing of their own
    chances = policy.propensities(np.ones((6, 2)))
    assert chances[1] == chances[2] and chances[4] == chances[5]
    assert chances.sum() == pytest.approx(1.0)


def test_the_probe_is_part_of_the_propensities():
    """Where contexts do not vary, the probe fires; counts against propensities, alarm 1e-6."""
    labels = ("F",) * 4 + ("M",) * 4
    policy = eh.PooledGroupFair(labels, 1, reference="M", seed=1)
    without = policy.clone(probe=False)
    generator = np.random.default_rng(3)
    arms = np.array([0] * 8 + [4] * 8 + [1, 2, 3, 5, 6, 7])
    rewards = np.array([3.0] * 8 + [3.1] * 8 + [1.0, 1.5, 2.0, 1.2, 1.6, 2.1])
    rewards = rewards + 0.3 * generator.standard_normal(arms.size)
    for each in (policy, without):
        each.absorb(arms, np.ones((arms.size, 1)), rewards)
        each.round = 40
    chances, plain = policy.propensities(np.ones((8, 1))), without.propensities(np.ones((8, 1)))
    assert chances.sum() == pytest.approx(1.0)
    probed = np.flatnonzero(chances - (1.0 - 41**-0.5) * plain > 1e-12)
    assert probed.size == 1, "the probe does not fire here, so nothing would be tested"
    np.testing.assert_allclose(chances[probed] - (1 - 41**-0.5) * plain[probed], 41**-0.5)
    counted = np.zeros(8)
    for key in range(4000):
        policy.round, policy._key = 40, key
        decision = policy.select(np.ones((8, 1)))
        counted[decision.arm] += 1
        assert decision.propensity == chances[decision.arm]
    possible = chances > 0.0
    assert counted[~possible].sum() == 0
    expected = 4000 * chances[possible]
    statistic = ((counted[possible] - expected) ** 2 / expected).sum()
    assert statistic < chi2.isf(1e-6, possible.sum() - 1)


def test_no_probe_where_it_is_switched_off_or_early_or_alone():
    policy, without = learned(), learned(probe=False)
    contexts = np.full((6, 2), 0.5)
    policy.round = without.round = 5  # fewer than arms times features
    np.testing.assert_array_equal(policy.propensities(contexts), without.propensities(contexts))
    policy.round = 1000
    only_f = policy.propensities(contexts, available=[0, 1, 2])
    assert only_f[3:].sum() == 0.0 and only_f.sum() == pytest.approx(1.0)


def test_groups_without_rewards_come_first():
    policy = eh.PooledGroupFair(["a", "a", "b", "b", "c"], 1, seed=1)
    contexts = np.ones((5, 1))
    order = []
    for reward in (1.0, 5.0, 2.0):
        decision = policy.select(contexts)
        order.append(policy.groups.labels[decision.arm])
        policy.update(decision, reward)
    assert sorted(order) == ["a", "b", "c"]


def test_shares_are_proportional_where_arms_are_exchangeable():
    """Within 2 points of one half at 40 replications; the standard error is about 0.3 points."""
    world = eh.SyntheticWorld(n_arms=10, n_features=2, n_sensitive=5, bias_mean=10)
    runs = eh.simulate([eh.PooledGroupFair], world, 1000, replications=40, seed=4).runs
    assert abs(runs.share.mean() - 0.5) < 0.02
    assert runs.true_regret.mean() < 0.2  # GroupFairTopInterval has 3.7, the floor is 0.06
