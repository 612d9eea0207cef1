"""What a policy in plain Python learns: all or nothing, merged, and true rewards."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import evenhand as eh
from evenhand.policies._learned import with_more_arms
from evenhand.policies.saving import from_dict, to_dict
from log_scripts import bits
from memory_ledger import MemoryLedger

ONES = np.ones((2, 1))


class Sums(NamedTuple):
    reward: NDArray[np.float64]
    truth: NDArray[np.float64]


class SummingBoth(eh.Policy):
    """Adds up both rewards, and fails at 13 after it has changed its arrays."""

    learns_truth = True

    def learns(self):
        return Sums(np.zeros(self.n_arms), np.zeros(self.n_arms))

    def learn(self, arm, context, reward):
        self.own.reward[arm] += reward
        if reward == 13.0:
            raise ZeroDivisionError("a mistake of its author")

    def learn_true(self, arm, context, value, observed):
        self.own.truth[arm] += value - (0.0 if np.isnan(observed) else observed)
        if value == 13.0:
            raise ZeroDivisionError("a mistake of its author")

    def score(self, contexts):
        return self.own.reward + self.own.truth


def summing(**settings):
    return SummingBoth(["F", "M"], n_features=1, exploration="none", seed=1, **settings)


# All or nothing -------------------------------------------------------------------------------


class SummingGroups(SummingBoth):
    learns_groups = True


@pytest.mark.parametrize("kind", [SummingBoth, SummingGroups])
@pytest.mark.parametrize("noise", [1.0, "estimate"])
def test_nothing_is_learned_if_learn_fails(noise, kind):
    policy = kind([*"FM", *"GHIJKL"], n_features=1, noise=noise, exploration="none", seed=1)
    contexts = np.ones((8, 1))
    made = [policy.select(contexts, available=[arm]) for arm in (7, 0, 5)]
    policy.absorb([0, 1, 1], [[1.0], [2.0], [3.0]], [1.0, 2.0, 5.0])
    before, levels = bits(policy), policy._state.levels.tobytes()
    for call in (
        lambda: policy.update(made[0], 13.0),
        lambda: policy.update(made[1], 13.0),
        lambda: policy.update(made, [1.0, 2.0, 13.0]),
        lambda: policy.absorb([0, 1], ONES, [1.0, 13.0]),
        lambda: policy.update(made[0], true_reward=13.0),
        lambda: policy.update(made, true_reward=[1.0, 2.0, 13.0]),
        lambda: policy.update(made, [1.0, 2.0, 3.0], true_reward=[1.0, 2.0, 13.0]),
    ):
        with pytest.raises(ZeroDivisionError):
            call()
        assert bits(policy) == before and policy._state.levels.tobytes() == levels
        assert [item.reward for item in made] == [None] * 3
    policy.update(made, [1.0, 2.0, 3.0])
    assert policy.counts.sum() == 6


# True rewards ---------------------------------------------------------------------------------


def test_true_rewards_are_learned_logged_and_replayed(tmp_path):
    path, policy = tmp_path / "log.csv", summing()
    with eh.log_to(path, policy, snapshot_every=3) as logged:
        made = [logged.select(ONES, available=[t % 2]) for t in range(5)]
        logged.update(made[0], 2.0)
        logged.update(made[0], true_reward=5.0)  # 3 more
        logged.update(made[1], 1.0, true_reward=4.0)  # 3 more
        logged.true_reward(3, 7.0)  # nothing is known of its observed reward
        logged.update(made[3:], [1.0, 1.0], true_reward=[2.0, 0.5])
        assert policy.own.reward.tolist() == [3.0, 2.0]
        assert policy.own.truth.tolist() == [3.0 + 7.0 - 0.5, 3.0 + 1.0]
    assert bits(eh.replay(path)) == bits(policy)
    with eh.log_to(path) as again:
        assert bits(again.policy) == bits(policy)
    assert bits(from_dict(to_dict(policy))) == bits(policy)


def test_true_rewards_of_a_world_are_learned():
    world = eh.SyntheticWorld(n_arms=4, n_sensitive=2).with_true_rewards(1.0, delay=2)
    policy = SummingBoth(world.groups, world.n_features, horizon=30, seed=1)
    for now in eh.simulation.each_round(policy, world, 30, np.random.SeedSequence(1)):
        assert now.arrived is None or now.round > 2
    assert np.count_nonzero(policy.own.truth) > 0


# Merging --------------------------------------------------------------------------------------


class DrawnStart(eh.Policy):
    """Its sums begin at random numbers, which depend on the seed."""

    def learns(self):
        first = np.random.default_rng(self.seed).random(self.n_arms)
        return Sums(first, np.zeros(self.n_arms))

    def learn(self, arm, context, reward):
        self.own.reward[arm] += reward

    def score(self, contexts):
        return self.own.reward


def test_what_was_added_to_the_others_initial_values_is_added():
    one, two = (DrawnStart(["F", "M"], n_features=1, seed=seed) for seed in (1, 2))
    start = one.own.reward.copy()
    assert (start != two.own.reward).all()
    one.merge(two)
    assert one.own.reward.tolist() == start.tolist()
    two.absorb([0], [[1.0]], [4.0])
    one.merge(two)
    np.testing.assert_allclose(one.own.reward, start + np.array([4.0, 0.0]), rtol=1e-15)
    grown = with_more_arms(one, eh.Groups(["F", "M", "M"]))
    np.testing.assert_allclose(grown.own.reward[:2], one.own.reward, rtol=1e-15)


class OfHorizon(DrawnStart):
    """As long as its horizon, which may differ where policies are merged."""

    def learns(self):
        return Sums(np.zeros(self.horizon), np.zeros(1))


def test_what_has_another_shape_is_not_merged():
    one, two = (OfHorizon(["F", "M"], n_features=1, horizon=horizon) for horizon in (2, 3))
    one.absorb([0], [[1.0]], [1.0])
    before = bits(one)
    with pytest.raises(eh.InputError, match=r"reward of shape \(3,\), this policy of shape \(2,\)"):
        one.merge(two)
    assert bits(one) == before


class PickyMerger(SummingBoth):
    """Refuses to be merged, once it has begun."""

    def merge_own(self, mine, its):
        super().merge_own(mine, its)
        raise ZeroDivisionError("a mistake of its author")


def test_a_merge_that_fails_changes_nothing():
    one, two = (PickyMerger(["F", "M"], n_features=1, noise="estimate", seed=1) for _ in range(2))
    one.absorb([0, 0], ONES, [1.0, 3.0])
    two.absorb([1, 1], ONES, [2.0, 5.0])
    before, levels = bits(one), one._state.levels.tobytes()
    with pytest.raises(ZeroDivisionError):
        one.merge(two)
    assert bits(one) == before and one._state.levels.tobytes() == levels
    assert one._changes[0] == 1  # a log would be told that it was changed


# What `learn` reads ---------------------------------------------------------------------------


class ReadingRounds(eh.Policy):
    """Learns all that a method `learn` may read, in the order in which it comes."""

    def learns(self):
        return Sums(np.zeros(1), np.zeros(1))

    def learn(self, arm, context, reward):
        estimate, width = self.intervals(np.ones((2, 1)))  # without a horizon, by the round
        read = self.round + reward + estimate.sum() + width[np.isfinite(width)].sum()
        self.own.reward[0] = 0.9 * self.own.reward[0] + read
        self.own.truth[0] = 3.0 * self.own.truth[0] % 1009.0 + self.round + self.counts.sum()

    def score(self, contexts):
        return self.intervals(contexts)[1]


def played(logged, first, number):
    """Rewards that come late, in batches, with history in between, and overrides."""
    generator = np.random.default_rng(first)
    for _ in range(number):
        what = generator.integers(5)
        waiting = logged.waiting
        if what < 2 or not waiting:
            logged.select(generator.random((2, 1)))
        elif what == 2:
            logged.update(waiting[0], generator.random())
        elif what == 3:
            some = generator.permutation(waiting)[:3].tolist()
            logged.update(some, generator.random(len(some)).tolist())
        else:
            logged.absorb([0, 1], generator.random((2, 1)), generator.random(2))


@pytest.mark.parametrize("snapshots", [1, 7, 10_000])
def test_learn_reads_the_same_in_a_replay(snapshots):
    """Whatever snapshot a log is opened from, if any."""
    ledger = MemoryLedger()
    logged = eh.log_to(
        ledger, ReadingRounds(["F", "M"], n_features=1, seed=1), snapshot_every=snapshots
    )
    for part in range(4):
        played(logged, part, 15)
        assert bits(eh.replay(ledger)) == bits(logged.policy)
        again = eh.log_to(ledger.again())
        assert bits(again.policy) == bits(logged.policy)
        assert again.policy.own.truth.tolist() == logged.policy.own.truth.tolist()
    assert logged.policy.own.truth[0] > 0.0


class ReadingTruth(ReadingRounds):
    """The same with true rewards."""

    learns_truth = True

    def learn_true(self, arm, context, value, observed):
        self.learn(arm, context, value + (0.0 if np.isnan(observed) else observed))


def test_learn_true_reads_the_same_in_a_replay():
    ledger = MemoryLedger()
    logged = eh.log_to(ledger, ReadingTruth(["F", "M"], n_features=1, seed=1))
    for part in range(3):
        played(logged, part, 12)
        logged.true_reward(part + 1, 0.5)
        logged.update(logged.select(ONES), 0.25, true_reward=0.75)
        assert bits(eh.replay(ledger)) == bits(logged.policy)


class AbsorbingRounds(eh.TopInterval):
    """Learns in an `absorb` of its own, at the present round."""

    def learns(self):
        return Sums(np.zeros(1), np.zeros(1))

    def absorb(self, arms, contexts, rewards, **more):
        super().absorb(arms, contexts, rewards, **more)
        self.own.reward[0] += self.round * np.sum(rewards)


def test_an_absorb_of_its_own_reads_the_same_in_a_replay():
    ledger = MemoryLedger()
    logged = eh.log_to(ledger, AbsorbingRounds(["F", "M"], n_features=1, seed=1))
    for _ in range(3):
        logged.select(ONES)
        logged.update([logged.waiting[0]], [2.0])
    assert eh.replay(ledger).own.reward.tolist() == logged.own.reward.tolist() == [12.0]
