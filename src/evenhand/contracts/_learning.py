"""Contracts about learning: what the scores depend on, and what is kept."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
from numpy.typing import NDArray

from evenhand.contracts._common import (
    FEATURES,
    LABELS,
    contract,
    learned,
    make,
    round_of,
    rows,
    scores_of,
)
from evenhand.policies.base import Policy
from evenhand.policies.decision import Decision
from evenhand.policies.saving import from_dict, to_dict


@contract
def order_does_not_matter(kind: type[Policy]) -> None:
    """One at a time, in a batch, late or shuffled, rewards give the same scores, to 1e-8."""
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
    expected = scores_of(batch)
    for other in (single, late):
        np.testing.assert_allclose(scores_of(other), expected, rtol=1e-8, atol=1e-8)


@contract
def saving_keeps_every_bit(kind: type[Policy]) -> None:
    """JSON, pickle and copy keep the state bit for bit, and the decisions that follow."""
    for number in (0, 4, 120):  # nothing, singular designs, full rank
        policy = learned(kind, number, exploration=0.3)
        policy.select(round_of())
        text = json.dumps(to_dict(policy))
        others = [
            from_dict(json.loads(text)),
            pickle.loads(pickle.dumps(policy)),
            copy.deepcopy(policy),
        ]
        for other in others:
            assert json.dumps(to_dict(other)) == text, "the state changed"
            twin = copy.deepcopy(policy)
            for seed in range(20):
                expected, actual = twin.select(round_of(seed)), other.select(round_of(seed))
                assert (expected.arm, expected.propensity) == (actual.arm, actual.propensity)
                np.testing.assert_array_equal(expected.scores.table, actual.scores.table)
                twin.update(expected, 1.0)
                other.update(actual, 1.0)


@contract
def clones_start_afresh(kind: type[Policy]) -> None:
    """A clone has the settings and none of the data; using it does not change the original."""
    policy = learned(kind)
    before = scores_of(policy)
    twin = policy.clone()
    assert twin.settings() == policy.settings()
    assert twin.counts.sum() == 0 and twin.round == 0
    twin.absorb(*rows(30, seed=9))
    np.testing.assert_array_equal(scores_of(policy), before)


@contract
def scaling_rewards_scales_scores(kind: type[Policy]) -> None:
    """Rewards and noise in other units give the same scores in those units."""
    arms, contexts, rewards = rows(120)
    small = learned(kind, noise=1.0)
    large = make(kind, noise=1000.0)
    large.absorb(arms, contexts, 1000.0 * rewards)
    np.testing.assert_allclose(scores_of(large), 1000.0 * scores_of(small), rtol=1e-7, atol=1e-7)


@contract
def never_nan(kind: type[Policy]) -> None:
    """With zero, tiny and huge numbers, widths are >= 0, nothing is NaN, and all can be saved."""
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
    """In a fixed direction, the width of an arm never grows with data.

    Policies that estimate their variances are exempt: data may show that these are larger.
    """
    if kind.estimates_variances:
        return
    policy = make(kind)
    now = np.ones((len(LABELS), FEATURES))
    before = policy.select(now).scores.width
    for seed in range(12):
        policy.absorb(*rows(30, seed))
        policy.round = 0
        after = policy.select(now).scores.width
        assert (after <= before * (1.0 + 1e-9)).all()
        before = after
