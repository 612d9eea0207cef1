"""Contracts about decisions: what is chosen, and how likely."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contracts._common import (
    FEATURES,
    HORIZON,
    LABELS,
    LEVEL,
    contract,
    learned,
    make,
    round_of,
    rows,
    scores_of,
)
from evenhand.policies.base import Policy
from evenhand.simulation import simulate
from evenhand.simulation._compiled_rounds import run
from evenhand.worlds import SyntheticWorld


@contract
def select_learns_nothing(kind: type[Policy]) -> None:
    """Decisions do not change the scores of a round."""
    policy = learned(kind, exploration=0.5)
    before = scores_of(policy)
    for seed in range(50):
        policy.select(round_of(seed))
    np.testing.assert_array_equal(scores_of(policy), before)


@contract
def seeds_decide(kind: type[Policy]) -> None:
    """The same seed gives the same decisions, another seed gives others."""

    def chosen(seed: int) -> list[int]:
        policy = learned(kind, seed=seed, exploration=0.5)
        return [policy.select(round_of(t)).arm for t in range(60)]

    assert chosen(1) == chosen(1), "the same seed gave different decisions"
    assert chosen(1) != chosen(2), "different seeds gave the same 60 decisions"


@contract
def only_available_arms(kind: type[Policy]) -> None:
    """An arm that is not available is never chosen; the only available one always is."""
    policy = learned(kind, exploration=0.5)
    for seed in range(100):
        mask = np.random.default_rng(seed).random(len(LABELS)) < 0.4
        mask[seed % len(LABELS)] = True
        decision = policy.select(round_of(seed), available=mask)
        assert mask[decision.arm], f"arm {decision.arm} was not available"
        assert 0.0 < decision.propensity <= 1.0
        chances = policy.propensities(round_of(seed), available=mask)
        assert (chances[~mask] == 0.0).all(), "an arm that is not available has a propensity"
        np.testing.assert_allclose(chances.sum(), 1.0, atol=1e-6)
    alone = policy.select(round_of(), available=[4])
    assert alone.arm == 4
    np.testing.assert_allclose(alone.propensity, 1.0, atol=1e-6)


@contract
def starts_cold(kind: type[Policy]) -> None:
    """Without data, every arm is tried while rewards are equal, and nothing is NaN.

    A rule that ranks by estimates alone, without widths, breaks this: give an infinite upper bound
    to arms that were never seen.
    """
    policy = make(kind, exploration="none")
    contexts = np.tile(round_of()[0], (len(LABELS), 1))
    chances = policy.propensities(contexts)
    np.testing.assert_allclose(chances.sum(), 1.0, atol=1e-6)
    assert not np.isnan(scores_of(policy, contexts)).any()
    tried = set()
    for _ in range(60):
        decision = policy.select(contexts)
        tried.add(decision.arm)
        policy.update(decision, 1.0)
    assert tried == set(range(len(LABELS))), f"only arms {sorted(tried)} were tried"


@contract
def ties_are_even(kind: type[Policy]) -> None:
    """Arms of a group that nothing distinguishes are equally likely."""
    policy = make(kind, exploration="none")
    contexts = np.ones((len(LABELS), FEATURES))
    chances = policy.propensities(contexts)
    for name in ("F", "M"):
        of_group = chances[np.array(LABELS) == name]
        np.testing.assert_allclose(of_group, of_group.mean(), atol=1e-6)
    _frequencies_match(policy, contexts, chances)


@contract
def propensities_are_frequencies(kind: type[Policy]) -> None:
    """Propensities sum to 1 and match the frequencies of decisions (chi-squared)."""
    for seed in range(3):
        policy = learned(kind, 30, exploration=0.2, seed=seed)
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
        policy.round = 0  # the same round each time, with other random numbers
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
    """Permuting the arms permutes scores and propensities: no arm is special."""
    arms, contexts, rewards = rows(120)
    order = np.array([3, 0, 4, 1, 5, 2])
    place = np.argsort(order)  # arm order[i] becomes arm i
    first = learned(kind, exploration=0.2)
    second = make(kind, tuple(LABELS[i] for i in order), exploration=0.2)
    second.absorb(place[arms], contexts, rewards)
    now = round_of()
    np.testing.assert_allclose(
        scores_of(second, now[order]), scores_of(first, now)[:, order], rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(
        second.propensities(now[order]), first.propensities(now)[order], atol=1e-7
    )


@contract
def simulates(kind: type[Policy]) -> None:
    """The simulator makes the live policy's decisions, with any number of workers."""
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
    with_one = simulate([kind], world, horizon, replications=4, seed=2, workers=1).runs
    with_two = simulate([kind], world, horizon, replications=4, seed=2, workers=2).runs
    assert with_one.equals(with_two), "the number of workers changed the results"
