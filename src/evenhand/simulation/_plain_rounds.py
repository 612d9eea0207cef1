"""A policy in a world, round by round in plain Python: slower, but every round can be seen.

`Watch` counts the rounds of a simulation, and can stop it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from threading import Event, Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import for_sources
from evenhand._compile.generics import telling
from evenhand.policies._kernels import sources_for
from evenhand.policies._state import NOTHING
from evenhand.policies.base import Policy
from evenhand.policies.decision import Decision
from evenhand.worlds._arrivals import arrivals_of, true_reward_of
from evenhand.worlds._instances import begin, compiled_draw, compiled_receive
from evenhand.worlds.base import World, world_sources

Array = NDArray[np.float64]


class Round(NamedTuple):
    """What happened in a round. The arrays are used again in the next one: copy what you keep.

    `observed` and `true` are the rewards of all arms without noise, `reward` is the one received.
    `arrived` has the earlier decision whose true reward becomes known in this round, and the true
    reward.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> from evenhand.simulation import Round, each_round
        >>> world = eh.SyntheticWorld(n_arms=4, n_sensitive=2)
        >>> policy = eh.UniformRandom(world.groups, world.n_features, seed=1)
        >>> (first,) = each_round(policy, world, 1, np.random.SeedSequence(1))
        >>> isinstance(first, Round), first.round, first.contexts.shape, first.observed.size
        (True, 1, (4, 2), 4)
    """

    round: int
    contexts: Array
    decision: Decision
    reward: float
    observed: Array
    true: Array
    arrived: tuple[Decision, float] | None = None


def each_round(
    policy: Policy, world: World, horizon: int, stream: np.random.SeedSequence
) -> Iterator[Round]:
    """Play `horizon` rounds, and yield each of them before the policy learns its reward.

    The numbers are those of the compiled loop of `simulate`, where rounds cannot be seen. The
    policy has learned everything once the iterator is exhausted.

    Args:
        policy: made for the groups and features of the world, without data.
        world: where contexts and rewards come from.
        horizon: the number of rounds.
        stream: the seed of the world's random numbers.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> from evenhand.simulation import each_round
        >>> world = eh.SyntheticWorld(n_arms=4, n_sensitive=2)
        >>> policy = eh.UniformRandom(world.groups, world.n_features, seed=1)
        >>> stream = np.random.SeedSequence(1)
        >>> [now.decision.round for now in each_round(policy, world, 3, stream)]
        [1, 2, 3]
        >>> int(policy.counts.sum())
        3
    """
    generator = np.random.default_rng(stream)
    instance = begin(world, generator)
    observed, true = np.empty(world.n_arms), np.empty(world.n_arms)
    contexts = np.empty((world.n_arms, world.row_length))
    arrivals = _Arrivals(world, stream) if world.true_rewards and policy.learns_truth else None
    with telling(f"{type(policy).__name__} in {type(world).__name__}"):
        draw = for_both(compiled_draw, policy._rule, NOTHING, instance)
        receive = for_both(compiled_receive, policy._rule, NOTHING, instance)
        for t in range(1, horizon + 1):
            noise = draw(instance, t, generator, contexts, observed, true)
            decision = policy.select(contexts)
            reward = float(receive(instance, t, decision.arm, observed[decision.arm], noise))
            arrived = arrivals.after(decision, reward, observed, true) if arrivals else None
            yield Round(t, contexts, decision, reward, observed, true, arrived)
            policy.update(decision, reward)
            if arrived is not None:
                policy.update(arrived[0], true_reward=arrived[1])


class _Arrivals:
    """The true rewards that are still pending."""

    def __init__(self, world: World, stream: np.random.SeedSequence) -> None:
        settings = world.true_rewards
        assert settings is not None
        self._arrivals = arrivals_of(settings, world.n_features, stream)
        self._waiting: deque[tuple[Decision, float] | None] = deque([None] * settings.delay)

    def after(
        self, decision: Decision, reward: float, observed: Array, true: Array
    ) -> tuple[Decision, float] | None:
        """The true reward, if any, that arrives in the round of this decision."""
        arm = decision.arm
        arrives, value = true_reward_of(
            self._arrivals, decision.round, decision.context, true[arm], reward - observed[arm]
        )
        self._waiting.append((decision, value) if arrives else None)
        return self._waiting.popleft()


def for_both(
    function: Callable[..., Any], rule: NamedTuple, own: NamedTuple, instance: NamedTuple
) -> Callable[..., Any]:
    """A compiled function for a rule, its own state, and a world; each may be the user's."""
    of_rule, of_world = sources_for(rule, own), world_sources(type(instance))
    sources = None if of_rule is None or of_world is None else tuple({*of_rule, *of_world})
    return for_sources(function, sources)


class Stopped(Exception):
    """The run was stopped."""


class Watch:
    """The progress of a simulation, shared by its threads.

    Example:
        >>> from evenhand.simulation._plain_rounds import Watch
        >>> watch = Watch()
        >>> watch.add(20)
        >>> watch.done
        20
    """

    def __init__(self) -> None:
        self.done = 0
        self._lock, self._stop = Lock(), Event()

    def add(self, rounds: int) -> None:
        """Count rounds that are done."""
        with self._lock:
            self.done += rounds

    def stop(self) -> None:
        """Make the next `check` raise `Stopped`."""
        self._stop.set()

    def check(self) -> None:
        """Raise `Stopped` after `stop`."""
        if self._stop.is_set():
            raise Stopped
