"""The list of contracts, and the small policies and data that they use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.groups import Groups
from evenhand.policies.base import Policy

Contract = Callable[[type[Policy]], None]
CONTRACTS: list[Contract] = []

FEATURES, HORIZON, LEVEL = 3, 500, 1e-6
LABELS = ("F", "M", "F", "M", "F", "M")


def contract(function: Contract) -> Contract:
    """Add a check to `CONTRACTS`."""
    CONTRACTS.append(function)
    return function


def make(kind: type[Policy], labels: tuple[str, ...] = LABELS, **settings: Any) -> Policy:
    """A policy over six arms of two groups."""
    return kind(
        Groups(labels, sensitive="F"),
        **{"n_features": FEATURES, "horizon": HORIZON, "seed": 7, **settings},
    )


def rows(number: int, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Observations: arms, standardised contexts, and rewards that depend on both."""
    generator = np.random.default_rng(seed)
    arms = np.arange(number) % len(LABELS)
    contexts = generator.standard_normal((number, FEATURES))
    worth = generator.standard_normal((len(LABELS), FEATURES))
    rewards = (contexts * worth[arms]).sum(axis=1) + generator.standard_normal(number)
    return arms, contexts, rewards


def round_of(seed: int = 1) -> NDArray[np.float64]:
    """The contexts of a round."""
    return np.random.default_rng(seed).standard_normal((len(LABELS), FEATURES))


def learned(kind: type[Policy], number: int = 120, **settings: Any) -> Policy:
    """A policy that has learned from `number` rows."""
    policy = make(kind, **settings)
    policy.absorb(*rows(number))
    return policy


def scores_of(policy: Policy, contexts: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """The scores of a round."""
    return policy.select(round_of() if contexts is None else contexts).scores.table
