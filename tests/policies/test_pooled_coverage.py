"""Intervals of PooledGroupFair cover under adaptive sampling."""

import numpy as np
import pytest

import evenhand as eh
from evenhand.simulation._compiled_rounds import run

WORLDS = {
    "defaults": eh.SyntheticWorld(),
    "two of ten": eh.SyntheticWorld(n_sensitive=2),
    "spread": eh.SyntheticWorld(spread=[6.0, 1.0]),
    "loud": eh.SyntheticWorld(noise=5.0),
    "three groups": eh.SyntheticWorld(group_sizes=[2, 3, 5]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_intervals_cover(name):
    """Nominal 90 %, 120 replications of 300 rounds: below .82 is three standard errors off."""
    world, number, level = WORLDS[name], 120, 0.9
    m = len(world.groups)
    first = [world.groups.labels.index(group) for group in world.groups.names]
    covered = np.zeros((number, 3))
    contexts = np.random.default_rng(1).random((number, world.n_arms, world.n_features))
    for replication in range(number):
        stream = (77, replication)
        policy = eh.PooledGroupFair(
            world.groups, world.n_features, reference=world.groups.names[-1], seed=replication
        )
        run(policy, world, 300, np.random.SeedSequence(stream))
        truth = world.begin(np.random.default_rng(np.random.SeedSequence(stream)))
        x = contexts[replication]
        worth, bias = (truth.coefficients * x).sum(1), (truth.bias * x).sum(1)
        for place, (estimate, width) in enumerate(
            (policy.intervals(x, level), policy.corrected_intervals(x, level))
        ):
            target = worth + bias if place == 0 else worth
            covered[replication, place] = np.mean(np.abs(estimate - target) <= width)
        table = policy.bias(level=level).at(x[0]).iloc[: m - 1]
        target = truth.bias[first[: m - 1]] @ x[0]
        covered[replication, 2] = np.mean((table.low <= target) & (target <= table.high))
    assert (covered.mean(axis=0) > 0.82).all(), covered.mean(axis=0)
