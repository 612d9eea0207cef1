"""The promises that every policy keeps, as checks that run on any class of policies.

`check(MyPolicy)` runs them all; the tests of this package run them on every policy there is. A
policy of your own gets them for free:

    from evenhand.contracts import CONTRACTS, check

Statistical checks use fixed seeds and a level of 1e-6: a policy that keeps its promise fails such a
check once in a million times, and then always.
"""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.groups import Groups
from evenhand.policies.base import Policy
from evenhand.policies.decision import Decision
from evenhand.policies.saving import from_dict, to_dict
from evenhand.simulation import simulate
from evenhand.simulation._loop import run
from evenhand.worlds import SyntheticWorld

Contract = Callable[[type[Policy]], None]
CONTRACTS: list[Contract] = []

FEATURES, HORIZON, LEVEL = 3, 500, 1e-6
LABELS = ("F", "M", "F", "M", "F", "M")


def check(policy: type[Policy]) -> None:
    """Run every contract on a class of policies; the first that fails raises AssertionError.

    Example:
        >>> import evenhand as eh
        >>> eh.contracts.check(eh.TopInterval)
    """
    for contract in CONTRACTS:
        try:
            contract(policy)
        except AssertionError as error:
            raise AssertionError(
                f"{policy.__name__} breaks the contract {contract.__name__}: {contract.__doc__} "
                f"{error}"
            ) from error


def contract(function: Contract) -> Contract:
    """Add a check to the list."""
    CONTRACTS.append(function)
    return function


def make(kind: type[Policy], labels: tuple[str, ...] = LABELS, **settings: Any) -> Policy:
    """A policy over a few arms of two groups."""
    return kind(
        Groups(labels, sensitive="F"),
        **{"n_features": FEATURES, "horizon": HORIZON, "seed": 7, **settings},
    )


def rows(number: int, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Observations to learn from: arms, standardised contexts, rewards that depend on both."""
    generator = np.random.default_rng(seed)
    arms = np.arange(number) % len(LABELS)
    contexts = generator.standard_normal((number, FEATURES))
    worth = generator.standard_normal((len(LABELS), FEATURES))
    rewards = (contexts * worth[arms]).sum(axis=1) + generator.standard_normal(number)
    return arms, contexts, rewards


def round_of(seed: int = 1) -> NDArray[np.float64]:
    """The contexts of a round."""
    return np.random.default_rng(seed).standard_normal((len(LABELS), FEATURES))


def _learned(kind: type[Policy], number: int = 120, **settings: Any) -> Policy:
    policy = make(kind, **settings)
    policy.absorb(*rows(number))
    return policy


def _table(policy: Policy, contexts: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    return policy.select(round_of() if contexts is None else contexts).scores.table


@contract
def order_does_not_matter(kind: type[Policy]) -> None:
    """One at a time, in a batch, late and shuffled: the same scores to 1e-8."""
    arms, contexts, rewards = rows(120)
    batch, single, late = make(kind), make(kind), make(kind)
    batch.absorb(arms, contexts, rewards)
    for arm, context, reward in zip(arms, contexts, rewards, strict=True):
        single.absorb([arm], [context], [reward])
    decisions = [
        Decision(int(arm), 1.0, False, 0, context, batch.select(round_of()).scores)
        for arm, context in zip(arms, contexts, strict=True)
    ]
    batch = batch.clone()
    batch.absorb(arms, contexts, rewards)
    order = np.random.default_rng(3).permutation(len(arms))
    late.update([decisions[i] for i in order], rewards[order])
    expected = _table(batch)
    for other in (single, late):
        np.testing.assert_allclose(_table(other), expected, rtol=1e-8, atol=1e-8)


@contract
def select_learns_nothing(kind: type[Policy]) -> None:
    """Decisions leave the scores of a round as they were."""
    policy = _learned(kind, exploration=0.5)
    before = _table(policy)
    for seed in range(50):
        policy.select(round_of(seed))
    np.testing.assert_array_equal(_table(policy), before)


@contract
def seeds_decide(kind: type[Policy]) -> None:
    """The same seed gives the same decisions, another one others."""

    def chosen(seed: int) -> list[int]:
        policy = _learned(kind, seed=seed, exploration=0.5)
        return [policy.select(round_of(t)).arm for t in range(60)]

    assert chosen(1) == chosen(1), "the same seed gave different decisions"
    assert chosen(1) != chosen(2), "different seeds gave the same 60 decisions"


@contract
def saving_keeps_every_bit(kind: type[Policy]) -> None:
    """Through JSON, pickle and copy: the same state and the same decisions afterwards."""
    for number in (0, 4, 120):  # nothing, singular designs, full rank
        policy = _learned(kind, number, exploration=0.3)
        policy.select(round_of())
        text = json.dumps(to_dict(policy))
        others = [
            from_dict(json.loads(text)),
            pickle.loads(pickle.dumps(policy)),
            copy.deepcopy(policy),
        ]
        for other in others:
            assert json.dumps(to_dict(other)) == text, "the state changed on its way"
            twin = copy.deepcopy(policy)
            for seed in range(20):
                mine, its = twin.select(round_of(seed)), other.select(round_of(seed))
                assert (mine.arm, mine.propensity) == (its.arm, its.propensity)
                np.testing.assert_array_equal(mine.scores.table, its.scores.table)
                twin.update(mine, 1.0)
                other.update(its, 1.0)


@contract
def clones_start_afresh(kind: type[Policy]) -> None:
    """A clone has the settings and none of the data; working with it leaves the first alone."""
    policy = _learned(kind)
    before = _table(policy)
    twin = policy.clone()
    assert twin.settings() == policy.settings()
    assert twin.counts.sum() == 0 and twin.round == 0
    twin.absorb(*rows(30, seed=9))
    np.testing.assert_array_equal(_table(policy), before)


@contract
def only_available_arms(kind: type[Policy]) -> None:
    """An arm that is not there is never chosen; a lone one always is."""
    policy = _learned(kind, exploration=0.5)
    for seed in range(100):
        mask = np.random.default_rng(seed).random(len(LABELS)) < 0.4
        mask[seed % len(LABELS)] = True
        decision = policy.select(round_of(seed), available=mask)
        assert mask[decision.arm], f"arm {decision.arm} was not available"
        assert 0.0 < decision.propensity <= 1.0
        chances = policy.propensities(round_of(seed), available=mask)
        assert (chances[~mask] == 0.0).all(), "an arm that is not there has a propensity"
        np.testing.assert_allclose(chances.sum(), 1.0, atol=1e-6)
    alone = policy.select(round_of(), available=[4])
    assert alone.arm == 4
    np.testing.assert_allclose(alone.propensity, 1.0, atol=1e-6)


@contract
def starts_cold(kind: type[Policy]) -> None:
    """With no data every arm is tried while rewards are equal, and nothing is NaN.

    A rule that follows estimates alone, without widths, breaks this: give arms that were never
    seen an infinite upper bound.
    """
    policy = make(kind, exploration="none")
    contexts = np.tile(round_of()[0], (len(LABELS), 1))
    chances = policy.propensities(contexts)
    np.testing.assert_allclose(chances.sum(), 1.0, atol=1e-6)
    assert not np.isnan(_table(policy, contexts)).any()
    met = set()
    for _ in range(60):
        decision = policy.select(contexts)
        met.add(decision.arm)
        policy.update(decision, 1.0)
    assert met == set(range(len(LABELS))), f"with equal rewards only arms {sorted(met)} were tried"


@contract
def ties_are_even(kind: type[Policy]) -> None:
    """Arms of a group that nothing tells apart are equally likely."""
    policy = make(kind, exploration="none")
    contexts = np.ones((len(LABELS), FEATURES))
    chances = policy.propensities(contexts)
    for name in ("F", "M"):
        mine = chances[np.array(LABELS) == name]
        np.testing.assert_allclose(mine, mine.mean(), atol=1e-6)
    _frequencies_match(policy, contexts, chances)


@contract
def propensities_are_frequencies(kind: type[Policy]) -> None:
    """Reported propensities sum to 1 and are what happens (chi-squared)."""
    for seed in range(3):
        policy = _learned(kind, 30, exploration=0.2, seed=seed)
        contexts = 0.3 * round_of(seed)
        chances = policy.propensities(contexts)
        np.testing.assert_allclose(chances.sum(), 1.0, atol=1e-6)
        _frequencies_match(policy, contexts, chances)


def _frequencies_match(
    policy: Policy, contexts: NDArray[np.float64], chances: NDArray[np.float64]
) -> None:
    from scipy.stats import chi2

    number = 3000
    assert policy.horizon is None or policy.horizon >= HORIZON
    counted = np.zeros(len(LABELS))
    for key in range(number):
        policy.round = 0  # the same round again and again, with random numbers of its own
        policy._key = key
        decision = policy.select(contexts)
        counted[decision.arm] += 1
        np.testing.assert_allclose(decision.propensity, chances[decision.arm], atol=1e-9)
    possible = chances > 1e-9
    assert counted[~possible].sum() == 0, "an arm of propensity 0 was chosen"
    expected = number * chances[possible]
    statistic = float(((counted[possible] - expected) ** 2 / expected).sum())
    limit = chi2.isf(LEVEL, max(int(possible.sum()) - 1, 1))
    assert statistic < limit, f"propensities {chances.round(3)} but frequencies {counted / number}"


@contract
def permuting_arms_permutes_scores(kind: type[Policy]) -> None:
    """No arm is special: scores and propensities follow a permutation of the arms."""
    arms, contexts, rewards = rows(120)
    order = np.array([3, 0, 4, 1, 5, 2])
    place = np.argsort(order)  # arm order[i] becomes arm i
    first = _learned(kind, exploration=0.2)
    second = make(kind, tuple(LABELS[i] for i in order), exploration=0.2)
    second.absorb(place[arms], contexts, rewards)
    now = round_of()
    np.testing.assert_allclose(
        _table(second, now[order]), _table(first, now)[:, order], rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(
        second.propensities(now[order]), first.propensities(now)[order], atol=1e-7
    )


@contract
def scaling_rewards_scales_scores(kind: type[Policy]) -> None:
    """Rewards and their noise in other units give the same scores in those units."""
    arms, contexts, rewards = rows(120)
    small = _learned(kind, noise=1.0)
    large = make(kind, noise=1000.0)
    large.absorb(arms, contexts, 1000.0 * rewards)
    np.testing.assert_allclose(_table(large), 1000.0 * _table(small), rtol=1e-7, atol=1e-7)


@contract
def never_nan(kind: type[Policy]) -> None:
    """Zero, tiny, huge: widths are >= 0, finite or infinite, nothing is NaN, all can be saved."""
    for singular in ("infinite", "pseudo-inverse", "ridge"):
        for noise in (1.0, "estimate"):
            for sizes in ((0.0, 1e-6, 1.0, 1e6), (1e-308, 1e-160, 1e-100), (1e99, 1.0, 1e-99)):
                policy = make(kind, singular=singular, noise=noise)
                for seed in range(24):
                    scale, worth = sizes[seed % len(sizes)], sizes[seed // 4 % len(sizes)]
                    _no_nan(policy, scale * round_of(seed), worth * seed / 24.0)
                json.dumps(to_dict(policy), allow_nan=False)


def _no_nan(policy: Policy, contexts: NDArray[np.float64], reward: float) -> None:
    decision = policy.select(contexts)
    size = np.abs(contexts).max()
    assert not np.isnan(decision.scores.table).any(), f"a score is NaN at contexts of size {size}"
    assert np.isfinite(decision.scores.estimate).all()
    assert (decision.scores.width >= 0.0).all()
    assert (decision.scores.correction_width >= 0.0).all()
    policy.update(decision, reward)


@contract
def widths_shrink(kind: type[Policy]) -> None:
    """In a fixed direction the width of an arm never grows with data."""
    policy = make(kind)
    now = np.ones((len(LABELS), FEATURES))
    before = policy.select(now).scores.width
    for seed in range(12):
        policy.absorb(*rows(30, seed))
        policy.round = 0
        after = policy.select(now).scores.width
        assert (after <= before * (1.0 + 1e-9)).all()
        before = after


@contract
def bad_input_is_told(kind: type[Policy]) -> None:
    """Every kind of bad input: a ValueError that names it, and nothing is learned."""
    policy = _learned(kind)
    before = json.dumps(to_dict(policy))
    good = round_of()
    decision = policy.clone().select(good)
    for wrong in (np.nan, np.inf, -np.inf):
        broken = good.copy()
        broken[2, 1] = wrong
        _refused("contexts of arm 2", policy.select, broken)
        _refused("reward", policy.update, decision, wrong)
        _refused("rewards in row 1", policy.absorb, [0, 1], good[:2], [1.0, wrong])
        _refused("contexts in row 0", policy.absorb, [0], broken[2:3], [1.0])
    _refused("contexts has shape", policy.select, good[:-1])
    _refused("contexts has shape", policy.select, good[:, :-1])
    _refused("contexts has shape", policy.select, good[0])
    _refused("contexts has shape", policy.absorb, [0], good[:1, :1], [1.0])
    _refused("rewards has shape", policy.absorb, [0], good[:1], [1.0, 2.0])
    for arm in (-1, len(LABELS)):
        _refused("arms is", policy.absorb, [arm], good[:1], [1.0])
        _refused("available is", policy.select, good, [arm])
    _refused("names an arm twice", policy.select, good, [0, 1, 0, 1, 0, 1])
    _refused("available leaves no arm", policy.select, good, np.zeros(len(LABELS), dtype=bool))
    _refused("available has shape", policy.select, good, np.ones(2, dtype=bool))
    assert json.dumps(to_dict(policy)) == before, "bad input changed what was learned"
    for name, values in {
        "delta": (0.0, 1.0, -0.1, 2.0, np.nan, "much"),
        "horizon": (0, -5, 2.5, np.inf),
        "n_features": (0, -1, 1.5),
        "noise": (0.0, -1.0, np.nan, "loud"),
        "singular": ("none",),
        "ridge": (0.0, -1.0, np.inf),
        "exploration": ("often", -0.1, 1.1, [0.5, 2.0], []),
        "seed": (-1, 0.5),
    }.items():
        for value in values:
            _refused(name, make, kind, **{name: value})
    _refused("a group without arms", Groups, ["F", "M"], "X")


def _refused(words: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> None:
    try:
        function(*arguments, **named)
    except ValueError as error:
        text = str(error)
        assert words in text and "\n" not in text, f"{text!r} does not say {words!r} in one line"
    else:
        raise AssertionError(f"bad input was accepted; expected an error that says {words!r}")


@contract
def single_arms_warn(kind: type[Policy]) -> None:
    """A policy that learns about groups warns of a group of one arm."""
    if not kind.learns_groups:
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(kind, ("F", "M", "M"))
    assert any("single arm" in str(warning.message) for warning in caught)


@contract
def simulates(kind: type[Policy]) -> None:
    """The simulator gives what the live policy gives, and the same for any number of workers."""
    world = SyntheticWorld(n_arms=6, n_features=FEATURES, n_sensitive=3)
    horizon = 60
    stream = np.random.SeedSequence(5)
    policy = kind(world.groups, FEATURES, horizon=horizon, seed=3)
    played = run(policy, world, horizon, stream, trace=True).trace

    generator = np.random.default_rng(np.random.SeedSequence(5))
    instance: Any = world.begin(generator)
    live = kind(world.groups, FEATURES, horizon=horizon, seed=3)
    for t in range(horizon):
        contexts = generator.random((6, FEATURES))
        decision = live.select(contexts)
        arm = decision.arm
        mean = (instance.coefficients[arm] + instance.bias[arm]) @ contexts[arm]
        reward = mean + generator.standard_normal()
        assert arm == int(played[t, 0]), f"the simulation chose another arm in round {t + 1}"
        np.testing.assert_allclose(reward, played[t, 2], rtol=1e-12)
        live.update(decision, played[t, 2])
    one = simulate([kind], world, horizon, replications=4, seed=2, workers=1).runs
    two = simulate([kind], world, horizon, replications=4, seed=2, workers=2).runs
    assert one.equals(two), "the number of workers changed the numbers"
