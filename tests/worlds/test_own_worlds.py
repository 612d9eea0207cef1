"""Worlds of the user's: their own noise, drift, and mistakes told in a sentence."""

from typing import NamedTuple

import numpy as np
import pytest
from numba.core.errors import NumbaError

import evenhand as eh
from evenhand.policies._kernels import kernel, score
from evenhand.policies._scores import add_up, score_arms
from evenhand.worlds.base import draw_noise, draw_round, receive, world_kernel
from evenhand.worlds.synthetic import LinearInstance

GROUPS = eh.Groups(["F", "F", "M", "M"], sensitive="F")


class SkewedInstance(LinearInstance):
    """A linear world whose noise is mostly small and below 0, and large now and then."""


@world_kernel(SkewedInstance, draw_noise)
def _skewed(instance, t, generator):
    return instance.noise * (generator.standard_exponential() - 1.0)


class Skewed(eh.LinearWorld):
    def begin(self, generator):
        return SkewedInstance(*super().begin(generator))


class TossInstance(NamedTuple):
    """A prize or nothing. Halfway through, chances turn round and the prize is another."""

    chances: np.ndarray  # (arms,)
    half: int
    late_prize: float


@world_kernel(TossInstance)
def _toss_round(instance, t, generator, contexts, observed, true):
    for i in range(instance.chances.size):
        contexts[i, 0] = 1.0
        chance = instance.chances[i]
        observed[i] = true[i] = chance if t <= instance.half else 1.0 - chance


@world_kernel(TossInstance, draw_noise)
def _toss(instance, t, generator):
    return generator.random()


@world_kernel(TossInstance, receive)
def _win(instance, t, arm, mean, noise):
    prize = 1.0 if t <= instance.half else instance.late_prize
    return prize if noise < mean else 0.0


class Toss(eh.World):
    def __init__(self, half, late_prize=1.0):
        self.groups, self.n_features, self.half, self.late_prize = GROUPS, 1, half, late_prize

    def begin(self, generator):
        return TossInstance(np.array([0.1, 0.3, 0.5, 0.7]), self.half, self.late_prize)


class Plain(eh.Policy):
    """UniformRandom in plain Python: the other loop."""

    def score(self, contexts):
        return np.zeros(self.n_arms)


def test_noise_of_any_kind_is_not_counted_as_worth():
    """All arms are worth 0, whatever the contexts: nothing can be lost, and noise is no gain."""
    world = Skewed(GROUPS, np.zeros((4, 1)), bias=np.zeros((2, 1)), noise=2.0)
    trace = eh.simulate([Plain], world, 500, replications=4, seed=1, trace=True, workers=1).trace
    assert (trace["true_regret"] == 0.0).all()
    np.testing.assert_array_equal(trace["perceived_regret"], -trace["reward"])
    # Exponential less one: above -1, mean 0, deviation 1; 2000 draws, six standard errors.
    noise = trace["reward"] / 2.0
    assert noise.min() > -1.0 and noise.max() > 2.0
    assert abs(noise.mean()) < 6 / np.sqrt(2000)
    assert abs(np.mean(noise**2) - 1.0) < 6 * np.sqrt(8 / 2000)  # kurtosis 9


@pytest.mark.parametrize("policy", [eh.UniformRandom, Plain])
def test_a_world_knows_the_round(policy):
    """Regret of round t by hand: the best chance is 0.7 in the first half, 0.9 in the second."""
    world = Toss(half=100)
    trace = eh.simulate([policy], world, 200, replications=3, seed=2, trace=True, workers=1).trace
    chances = np.array([0.1, 0.3, 0.5, 0.7])[trace["arm"]]
    late = (np.arange(len(trace)) % 200) >= 100
    expected = np.where(late, 0.9 - (1.0 - chances), 0.7 - chances)
    np.testing.assert_allclose(trace["true_regret"], expected, atol=1e-12)
    assert set(trace["reward"]) == {0.0, 1.0}
    best = np.where(late, 0.9, 0.7)
    np.testing.assert_allclose(trace["perceived_regret"], best - trace["reward"], atol=1e-12)
    # A reward is its mean on average: 600 draws of deviation at most 1/2, six standard errors.
    means = np.where(late, 1.0 - chances, chances)
    assert abs((trace["reward"] - means).mean()) < 6 * 0.5 / np.sqrt(600)


@pytest.mark.parametrize("policy", [eh.UniformRandom, Plain])
def test_a_reward_that_is_no_number_is_told_in_any_round(policy):
    with pytest.raises(ValueError, match=r"reward .* finite"):
        eh.simulate([policy], Toss(half=5, late_prize=np.nan), 50, replications=1, workers=1)


def test_all_policies_meet_the_same_rounds_whatever_the_noise():
    """Contexts and noise are the world's, whatever arms are chosen."""
    world = Skewed(GROUPS, [[1.0, 2.0], [3.0, 1.0], [0.0, 5.0], [2.0, 2.0]], [[-1.0, 0], [0, 0]])
    kinds = [eh.UniformRandom, eh.TopInterval, eh.GroupFairTopInterval]
    logs = [eh.simulate_log(kind, world, 60, seed=3, candidates=True) for kind in kinds]
    generator = np.random.default_rng(
        np.random.SeedSequence(3, spawn_key=(0,)).spawn(2)[0]
    )  # `simulate`'s stream of the world
    world.begin(generator)
    contexts, noise = [], []
    for _ in range(60):
        contexts.append(generator.random((4, 2)))
        noise.append(generator.standard_exponential() - 1.0)
    for log in logs:
        arms = log["item_id"].to_numpy()
        met = np.array(contexts)[np.arange(60), arms]
        np.testing.assert_array_equal(log[["x1", "x2"]], met)
        total = world.coefficients + world.bias[GROUPS.of]
        np.testing.assert_allclose(log["reward"], (total[arms] * met).sum(axis=1) + noise)
    assert len({tuple(log["item_id"]) for log in logs}) == 3  # they did choose otherwise


def test_the_simulator_and_the_log_give_the_same_rewards():
    world = Toss(half=20)
    log = eh.simulate_log(eh.UniformRandom, world, 50, seed=4)
    trace = eh.simulate([eh.UniformRandom], world, 50, replications=1, seed=4, trace=True).trace
    np.testing.assert_array_equal(log["reward"], trace["reward"])
    np.testing.assert_array_equal(log["item_id"], trace["arm"])


# Mistakes ----------------------------------------------------------------------------------------


def double(x):  # not compiled
    return 2.0 * x


FACTORS = {"a": 2.0}


class Bare(NamedTuple):
    noise: float


class Silent(NamedTuple):
    level: float


class Listed(NamedTuple):
    names: list
    noise: float


class Calls(NamedTuple):
    noise: float


class Uses(NamedTuple):
    noise: float


class Adds(NamedTuple):
    noise: float


class Beyond(NamedTuple):
    noise: float


class Shaped(NamedTuple):
    noise: float


class Lazy(NamedTuple):
    noise: float


@world_kernel(Silent)
@world_kernel(Listed)
def _fine(instance, t, generator, contexts, observed, true):
    contexts[:, :] = 1.0
    observed[:] = 1.0
    true[:] = 1.0


@world_kernel(Calls)
def _calls(instance, t, generator, contexts, observed, true):
    contexts[:, :] = 1.0
    observed[:] = double(instance.noise)


@world_kernel(Uses)
def _uses(instance, t, generator, contexts, observed, true):
    contexts[:, :] = 1.0
    observed[:] = FACTORS["a"]


@world_kernel(Adds)
def _adds(instance, t, generator, contexts, observed, true):
    contexts[:, :] = 1.0
    observed[:] = instance.noise + "much"


@world_kernel(Beyond)
def _beyond(instance, t, generator, contexts, observed, true):
    for i in range(4):
        for k in range(3):
            contexts[i, k] = 1.0
        observed[i] = true[i] = 1.0


@world_kernel(Shaped)
def _shaped(instance, t, generator, contexts, observed, true):
    contexts[:, :] = np.ones((4, 3))


@world_kernel(Lazy)
def _lazy(instance, t, generator, contexts, observed, true):
    contexts[:, :] = 1.0


class Thing:
    noise = 1.0


class Mistaken(eh.World):
    def __init__(self, instance):
        self.groups, self.n_features, self.instance = GROUPS, 2, instance

    def begin(self, generator):
        return self.instance


ONE_LINE = [
    ({"noise": 1.0}, r"Mistaken.begin gave an object of class dict; allowed is a NamedTuple"),
    (Thing(), r"Mistaken.begin gave an object of class Thing; allowed is a NamedTuple"),
    ((1.0, 2.0), r"an object of class tuple; allowed is a NamedTuple"),
    (None, r"an object of class NoneType"),
    (Bare(1.0), r"Bare, for which there is no draw_round; write a function \(instance, t, .*Bare"),
    (Silent(1.0), r"Silent has no number in a field noise.*or write draw_noise"),
    (Listed(["a", "b"], 1.0), r"Listed with names = \['a', 'b'\], which compiled code cannot take"),
    (Listed(Thing(), 1.0), r"Listed with names = .*; allowed are numbers, NumPy arrays"),
    (Listed(np.array([None]), 1.0), r"Listed with names = array\(\[None\]"),
    (Calls(1.0), r"calls double, which is not compiled \(test_own_worlds.py, line \d+\)"),
    (Uses(1.0), r"uses FACTORS, which it cannot take \(test_own_worlds.py, line \d+\)"),
    (Adds(1.0), r"cannot be compiled \(test_own_worlds.py, line \d+\): .*function add.*; use only"),
    (Beyond(1.0), r"Beyond fail in a round with contexts of shape \(4, 2\).* out of bounds"),
    (Shaped(1.0), r"Shaped fail in a round with contexts of shape \(4, 2\).* broadcast"),
    (Lazy(1.0), r"Lazy leave observed at nan in round 1"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("instance", "words"), ONE_LINE)
def test_a_mistake_in_a_world_is_told_in_a_line(instance, words):
    with pytest.raises(ValueError, match=words) as caught:
        eh.simulate([eh.UniformRandom], Mistaken(instance), 10, replications=1)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600
    if type(instance) in (Calls, Uses, Adds):
        assert isinstance(caught.value.__cause__, NumbaError)


def test_a_log_tells_mistakes_in_worlds_too():
    with pytest.raises(ValueError, match="calls double, which is not compiled"):
        eh.simulate_log(eh.UniformRandom, Mistaken(Calls(1.0)), 10)
    with pytest.raises(ValueError, match="an object of class dict"):
        eh.simulate_log(eh.UniformRandom, Mistaken({}), 10)


def test_old_and_wrong_signatures_are_told_where_they_are_written():
    def old(instance, generator, contexts, observed, true):
        pass

    with pytest.raises(
        ValueError,
        match=r"old takes \(instance, generator, contexts, observed, true\); a kernel for "
        r"draw_round takes \(instance, t, generator, contexts, observed, true\)$",
    ):
        world_kernel(Bare)(old)
    with pytest.raises(ValueError, match=r"kernel for .*; allowed are draw_round, draw_noise"):
        world_kernel(Bare, print)
    with pytest.raises(ValueError, match=r"a class of NamedTuples: mark .*@world_kernel\("):
        world_kernel(old)


class CallsRule(NamedTuple):
    part: float


class NoScore(NamedTuple):
    part: float


@kernel(score, CallsRule)
def _score_calls(rule, memory, t):
    score_arms(memory, t)
    add_up(memory)
    double(rule.part)


class Ruled(eh.Policy):
    def __init__(self, groups, n_features, horizon=None, delta=0.1, *, given=None, **common):
        super().__init__(groups, n_features, horizon, delta, **common)
        self.given = given

    def rule(self):
        return self.given


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"part": 1.0}, r"Ruled.rule gave an object of class dict; allowed is a NamedTuple"),
        (0.5, r"Ruled.rule gave an object of class float"),
        (NoScore(1.0), r"NoScore, for which there is no score; .* @kernel\(score, NoScore\)"),
        (NoScore(["a"]), r"NoScore with part = \['a'\], which compiled code cannot take"),
        (CallsRule(1.0), r"Ruled.*: a compiled function calls double, which is not compiled"),
    ],
)
def test_a_mistake_in_a_rule_is_told_in_a_line(rule, words):
    policy = Ruled(GROUPS, 2, horizon=10, seed=1, given=rule)
    live = [policy.select, policy.propensities]
    for ask in live:
        with pytest.raises(ValueError, match=words) as caught:
            ask(np.ones((4, 2)))
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=words):
        eh.simulate([Ruled], eh.SyntheticWorld(4), 10, replications=1, given=rule)


def test_generic_functions_work_in_plain_python():
    """For a look at a round, and for worlds that are made of others."""
    world = eh.LinearWorld(GROUPS, np.ones((4, 2)), np.zeros((2, 2)), noise=0.0)
    generator = np.random.default_rng(1)
    contexts, observed, true = np.empty((4, 2)), np.empty(4), np.empty(4)
    instance = world.begin(generator)
    draw_round(instance, 1, generator, contexts, observed, true)
    np.testing.assert_allclose(observed, contexts.sum(axis=1))
    assert receive(instance, 1, 0, 2.0, draw_noise(instance, 1, generator)) == 2.0
