"""Microseconds per live decision: `select` and `update` through the public API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import partial
from itertools import cycle, islice
from typing import Any

import numpy as np

import evenhand as eh
from benchmarks.peers.harness import enough_rounds, measure
from benchmarks.simulated import EARLY, SEGMENT, Figures, Life

# What a user may ask for beyond the defaults, and pays for.
SETTINGS: dict[str, tuple[type[eh.Policy], dict[str, Any]]] = {
    "GroupFairTopInterval": (eh.GroupFairTopInterval, {}),
    "GroupFairTopInterval, no horizon": (eh.GroupFairTopInterval, {"horizon": None}),
    "GroupFairTopInterval, noise estimated": (eh.GroupFairTopInterval, {"noise": "estimate"}),
    "GroupFairTopInterval, ridge": (eh.GroupFairTopInterval, {"singular": "ridge"}),
    "NaiveFair, Thompson sampling": (eh.NaiveFair, {"inside": "thompson"}),
}


def live(life: Life, seconds: float, repeats: int) -> Figures:
    """The next rounds of a policy's life, one call of `select` and one of `update` each."""
    given = _given(life)

    def prepare() -> Callable[[int], None]:
        copy = deepcopy(life.policy)
        _play(copy, given, 1)  # a copy finds its compiled functions again on first use
        return partial(_play, copy, given)

    number = enough_rounds(prepare(), seconds, least=20, most=SEGMENT)
    return measure(prepare, number, repeats)


def settings(names: Iterable[str], seconds: float, repeats: int) -> Iterator[Figures]:
    """The cost of some settings, at n 10, d 5."""
    for name in names:
        kind, chosen = SETTINGS[name]
        life = Life(kind, 10, 5, **chosen)
        life.age(EARLY)
        yield {"name": name, **live(life, seconds, repeats)}


def _given(life: Life, number: int = 64) -> list[tuple[Any, list[float]]]:
    """Contexts of some rounds, and for each the reward of every arm."""
    n, d = life.policy.n_arms, life.policy.n_features
    generator = np.random.default_rng(3)
    rows = []
    for _ in range(number):
        contexts = generator.random((n, d))
        rewards = np.sum(contexts * life.coefficients(), axis=1) + generator.standard_normal()
        rows.append((contexts, rewards.tolist()))
    return rows


def _play(policy: eh.Policy, given: list[tuple[Any, list[float]]], number: int) -> None:
    for contexts, rewards in islice(cycle(given), number):
        decision = policy.select(contexts)
        policy.update(decision, rewards[decision.arm])
