"""Policies that would not do what they say are refused, and say why."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import evenhand as eh
from evenhand.leastsquares import Prior
from evenhand.policies.compiled import (
    CORRECTION,
    GROUP_ESTIMATE,
    UPPER,
    absorb_reward,
    add_up,
    group_count,
    kernel,
    learn,
    score,
    score_arms,
    score_group,
)
from evenhand.policies.saving import from_dict, to_dict

ONES = np.ones((2, 1))


def of_two(kind):
    return kind(["F", "M"], n_features=1, horizon=9, seed=1)


# Groups ---------------------------------------------------------------------------------------


class CountRule(NamedTuple):
    further: int  # how far from its own group an arm looks


@kernel(score, CountRule)
def _score_by_count(rule, memory, t):
    score_arms(memory, t)
    for i in range(memory.settings.n_arms):
        group = memory.members.group_of[i] + rule.further
        memory.work[UPPER, i] = group_count(memory, group)


class FitRule(NamedTuple):
    pass


@kernel(score, FitRule)
def _score_by_fit(rule, memory, t):
    score_arms(memory, t)
    score_group(memory, 0, memory.members.everyone, t)
    for i in range(memory.settings.n_arms):
        memory.work[CORRECTION, i] = memory.work[GROUP_ESTIMATE, i]
    add_up(memory)


class ByGroupCount(eh.Policy):
    learns_groups = True
    further = 0

    def rule(self):
        return CountRule(self.further)


class WithoutGroups(ByGroupCount):
    learns_groups = False


class ByGroupFit(eh.Policy):
    def rule(self):
        return FitRule()


def test_group_count_needs_group_regressions():
    policy = of_two(ByGroupCount)
    policy.absorb([0, 0, 1], np.ones((3, 1)), [1.0, 2.0, 3.0])
    assert policy.select(ONES).scores.upper.tolist() == [2.0, 1.0]
    policy = of_two(WithoutGroups)
    for call in (lambda: policy.select(ONES), lambda: policy.propensities(ONES)):
        with pytest.raises(eh.InputError, match=r"WithoutGroups: .* set learns_groups to True"):
            call()
    assert policy.round == 0


@pytest.mark.parametrize("further", [-2, 1])
def test_a_group_that_does_not_exist_is_an_error(further, monkeypatch):
    monkeypatch.setattr(ByGroupCount, "further", further)
    with pytest.raises(eh.InputError, match="group without a regression"):
        of_two(ByGroupCount).select(ONES)


@pytest.mark.slow
def test_score_group_needs_group_regressions():
    with pytest.raises(eh.InputError, match=r"ByGroupFit: .* set learns_groups to True"):
        of_two(ByGroupFit).select(ONES)
    world = eh.SyntheticWorld(n_arms=4, n_sensitive=2)
    with pytest.raises(eh.InputError, match=r"ByGroupFit in SyntheticWorld: .* learns_groups"):
        eh.simulate([ByGroupFit], world, 50, replications=1, workers=1, exploration="none")


# Priors ---------------------------------------------------------------------------------------


class BelievingPooled(eh.PooledGroupFair):
    def prior(self):
        return Prior(np.zeros(self.n_features), np.eye(self.n_features))


@pytest.mark.parametrize("settings", [{}, {"arms": "once"}])
def test_pooled_group_fair_takes_no_prior(settings):
    with pytest.raises(
        eh.InputError, match=r"BelievingPooled has a prior, which .* leave the method"
    ):
        BelievingPooled(["F", "M"], n_features=1, **settings)


# Methods that nobody calls --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["draw", "chance", "explore", "explore_chance", "settle"])
@pytest.mark.parametrize("base", [eh.Policy, eh.TopInterval])
def test_methods_that_only_kernels_can_be_are_refused(name, base):
    with pytest.raises(eh.InputError, match=rf"has a method {name}, .* @kernel\({name}, \.\.\.\)"):
        type("Mine", (base,), {name: lambda *_: None, "__module__": "nowhere"})


def test_a_setting_may_be_called_like_a_kernel():
    kind = type("Exploring", (eh.TopInterval,), {"explore": 0.5})
    assert of_two(kind).explore == 0.5


# True rewards ---------------------------------------------------------------------------------


def test_plain_python_says_how_it_learns_true_rewards():
    methods = {"score": lambda self, contexts: contexts[:, 0]}
    with pytest.raises(eh.InputError, match="has no method learn_true that learns them"):
        type("Deaf", (eh.Policy,), {**methods, "learns_truth": True})
    with pytest.raises(eh.InputError, match=r"learn_true, which would not .* learns_truth to True"):
        type("Mute", (eh.Policy,), {**methods, "learn_true": lambda *_: None})
    with pytest.raises(eh.InputError, match="Both has a rule, and a method learn_true in plain"):
        type("Both", (eh.TopInterval,), {"learn_true": lambda *_: None})
    base = type("Base", (eh.Policy,), {"learns_truth": True})  # for classes that score
    with pytest.raises(eh.InputError, match="has no method learn_true"):
        type("Derived", (base,), methods)


def test_a_rule_says_how_it_learns_true_rewards():
    policy = of_two(type("Ignoring", (eh.TopInterval,), {"learns_truth": True}))
    with pytest.raises(eh.InputError, match=r"mark a function with @kernel\(learn_true, "):
        policy.select(ONES)


# What a rule remembers ------------------------------------------------------------------------


class TableRule(NamedTuple):
    parts: tuple[NDArray[np.float64], NDArray[np.int64]]
    weight: float


@kernel(learn, TableRule)
def _learn_in_the_rule(rule, state, arm, group, x, reward):
    absorb_reward(state, arm, group, x, reward)
    rule.parts[0][arm] += reward


@kernel(score, TableRule)
def _score_by_the_rule(rule, memory, t):
    score_arms(memory, t)
    for i in range(memory.settings.n_arms):
        memory.work[UPPER, i] = rule.weight * rule.parts[0][i] + rule.parts[1][i]


class RuleTable(eh.Policy):
    """Remembers in its rule, which `rule` makes anew or has kept itself."""

    kept = TableRule((np.zeros(2), np.arange(2)), 1.0)

    def rule(self):
        return self.kept


class FreshRuleTable(RuleTable):
    def rule(self):
        return TableRule((np.zeros(2), np.arange(2)), 1.0)


@pytest.mark.parametrize("kind", [RuleTable, FreshRuleTable])
def test_a_rule_remembers_nothing(kind, tmp_path):
    policy, other = of_two(kind), of_two(kind)
    policy.select(ONES)
    assert to_dict(from_dict(to_dict(policy))) == to_dict(policy)
    policy.absorb([0], [[1.0]], [0.0])
    assert len(to_dict(policy)) > 1  # what did not change is not lost
    policy.absorb([0], [[1.0]], [5.0])
    for call in (
        lambda: policy.save(tmp_path / "policy.json"),
        lambda: other.merge(policy),
        lambda: policy.merge(other),
        lambda: eh.log_to(tmp_path / "log.csv", policy),
    ):
        with pytest.raises(eh.InputError, match=r"changed parts of its rule.* state\.own"):
            call()
    assert not list(tmp_path.iterdir()) and RuleTable.kept.parts[0].tolist() == [0.0, 0.0]
