"""Microseconds per simulated round: the compiled loop of one replication, on one core."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import evenhand as eh
from benchmarks.peers.harness import enough_rounds, measure
from evenhand.policies import POLICIES
from evenhand.simulation import _compiled_rounds as loop

Figures = dict[str, Any]

ARMS, FEATURES = (10, 100, 1000), (2, 5, 20, 40)
HORIZON = 1_000  # of a replication, the paper's default
LONG = 2_000_000  # what policies are made for that are measured late in their life
EARLY, LATE = 1_000, 100_000
SEGMENT = 5_000  # rounds after EARLY or LATE that may be timed


def policies() -> dict[str, type[eh.Policy]]:
    """All policies of the package with a compiled rule, in the order of the alphabet.

    Without GroupFairIntervalChaining, whose rounds take time in proportion to the square of the
    number of arms: 1,000 rounds with 1,000 arms would take minutes.
    """
    own = {name: kind for name, kind in POLICIES.items() if kind.__module__.startswith("evenhand.")}
    del own[eh.GroupFairIntervalChaining.__name__]
    return {name: own[name] for name in sorted(own) if own[name].is_compiled()}


def world(n: int, d: int) -> eh.SyntheticWorld:
    return eh.SyntheticWorld(n_arms=n, n_features=d, n_sensitive=n // 2)


def make(kind: Callable[..., eh.Policy], n: int, d: int, **settings: Any) -> eh.Policy:
    settings = {"horizon": LONG, "seed": 1, **settings}
    return kind(world(n, d).groups, d, **settings)


def compile_for(kinds: Iterable[type[eh.Policy]]) -> None:
    """Compiled is once per kind of policy, whatever n and d: off the clock, here."""
    for kind in kinds:
        policy = make(kind, 4, 2)
        loop.run(policy, world(4, 2), 20, np.random.SeedSequence(1))
        policy.update(policy.select(np.ones((4, 2))), 1.0)
        policy.absorb([0], np.ones((1, 2)), [1.0])


# A replication ------------------------------------------------------------------------------------


def replication(
    kind: Callable[..., eh.Policy], n: int, d: int, seconds: float, repeats: int
) -> Figures:
    """Rounds 1 to HORIZON of a new policy, as many replications as fit into `seconds`.

    Includes what `run` does once per replication; the policy itself is made off the clock.
    """
    place = world(n, d)

    def prepare(number: int) -> Callable[[int], None]:
        made = [make(kind, n, d, horizon=HORIZON, seed=seed) for seed in range(number)]
        for policy in made:
            _ = policy.counts  # its memory is made on first use
        return partial(_replications, made, place)

    begin = time.perf_counter()
    prepare(1)(HORIZON)
    took = time.perf_counter() - begin
    number = max(1, round(seconds / took))
    return measure(lambda: prepare(number), number * HORIZON, repeats if took < 0.5 else 3)


def _replications(made: list[eh.Policy], place: eh.World, _: int) -> None:
    for seed, policy in enumerate(made):
        loop.run(policy, place, HORIZON, np.random.SeedSequence(seed))


def through_simulate(kind: type[eh.Policy], n: int, d: int, repeats: int) -> Figures:
    """The same through the public function, with all that it does around the rounds."""
    number = 200

    def play(_: int) -> None:
        eh.simulate([kind], world(n, d), HORIZON, replications=number, seed=1, workers=1)

    return measure(lambda: play, number * HORIZON, repeats)


# Early and late in a policy's life ----------------------------------------------------------------


class Life:
    """A policy that has seen `round` rounds of a world, of which copies are measured."""

    def __init__(self, kind: Callable[..., eh.Policy], n: int, d: int, **settings: Any) -> None:
        self.generator = np.random.default_rng(1)
        self.instance: Any = world(n, d).begin(self.generator)
        self.policy = make(kind, n, d, **settings)

    def age(self, t: int) -> None:
        """Learn from uniformly chosen arms until round `t`: quicker than to play, same state."""
        number = t - self.policy.round
        n, d = self.policy.n_arms, self.policy.n_features
        arms = self.generator.integers(n, size=number)
        contexts = self.generator.random((number, d))
        rewards = np.sum(contexts * self.coefficients()[arms], axis=1)
        rewards += self.instance.noise * self.generator.standard_normal(number)
        self.policy.absorb(arms, contexts, rewards)
        self.policy.round = t

    def play(self, t: int) -> None:
        """Play until round `t`."""
        rounds(self.policy, self.instance, self.generator, t - self.policy.round)

    def coefficients(self) -> NDArray[np.float64]:
        """Of the observed rewards: with the bias."""
        total: NDArray[np.float64] = self.instance.coefficients + self.instance.bias
        return total

    def simulated(self, seconds: float, repeats: int) -> Figures:
        """The next rounds, simulated; the life itself does not go on."""

        def prepare() -> Callable[[int], None]:
            copy = deepcopy(self.policy)
            return partial(rounds, copy, self.instance, np.random.default_rng(2))

        number = enough_rounds(prepare(), seconds, least=20, most=SEGMENT)
        return measure(prepare, number, repeats)


def rounds(policy: eh.Policy, instance: Any, generator: np.random.Generator, number: int) -> None:
    """The next rounds of a policy, by the loop that `run` drives from round 1."""
    n, first = policy.n_arms, policy.round + 1
    out = loop.Run(
        np.zeros(loop.N_TOTALS), np.zeros(n, dtype=np.int64), np.zeros((0, len(loop.TRACE)))
    )
    loop.rounds(
        rule=policy._rule,
        state=policy._state,
        members=policy._members,
        schedule=policy._schedule,
        available=policy._all_arms,
        key=policy._key,
        first=first,
        last=first + number - 1,
        instance=instance,
        generator=generator,
        observed=np.empty(n),
        true=np.empty(n),
        out=out,
    )
    policy.round += number


def long_run(seconds: float, repeats: int, until: int) -> Iterator[Figures]:
    """GroupFairTopInterval at n 10, d 2, by its own play, at ever later rounds."""
    life = Life(eh.GroupFairTopInterval, 10, 2)
    t = EARLY
    while t <= until:
        life.play(t)
        yield {"t": t, **life.simulated(seconds, repeats)}
        t *= 10
