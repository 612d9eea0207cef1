"""Worlds: where contexts and rewards come from.

A world is a description; `begin` makes one instance of it for a replication: a NamedTuple of
arrays, for which `draw_round` is written with `@world_kernel(MyInstance)`. By default the noise is
normal, with the instance's field `noise` as its standard deviation, and the received reward is the
sum of its mean and the noise. Write `draw_noise` and `receive` to change that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numba.extending import overload

from evenhand._compile import INLINED
from evenhand._compile.generics import Generic
from evenhand.groups import Groups
from evenhand.worlds._arrivals import TrueRewards, checked

Function = TypeVar("Function", bound=Callable[..., Any])


class World:
    """A source of rounds: `groups` of the arms, `n_features`, and `begin` for a replication.

    docs/how-to/write-a-world.md shows how to write one.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> class Certain(eh.SyntheticWorld):
        ...     def begin(self, generator):
        ...         return super().begin(generator)._replace(noise=0.0)
        >>> Certain(n_arms=4).begin(np.random.default_rng(1)).noise
        0.0
    """

    groups: Groups
    n_features: int
    true_rewards: TrueRewards | None = None
    """Which decisions get a true reward, and when; see `with_true_rewards`."""

    def with_true_rewards(
        self,
        share: float,
        delay: int = 0,
        noise: float = 1.0,
        common: float = 0.0,
        by_context: float | Sequence[float] = 0.0,
        by_outcome: float = 0.0,
        scale: float = 1.0,
        offset: float = 0.0,
    ) -> Self:
        """The same world, in which some decisions get a true reward some rounds later.

        Policies that learn from true rewards learn them; all others ignore them.

        Args:
            share: the probability that a decision gets one.
            delay: how many rounds later.
            noise: the standard deviation of true rewards around their mean.
            common: how much of the noise of the observed reward is in the true one as well.
            by_context: what a feature adds to the log-odds of arriving, one number or one for each
                feature; `share` is then the probability where all features are 0.
            by_outcome: what the noise of the true reward adds to these log-odds: above 0, good
                outcomes are known more often than bad ones.
            scale: true rewards are reported in other units: offset + scale * true reward is in
                units of the observed reward.
            offset: see `scale`.

        Example:
            >>> import evenhand as eh
            >>> world = eh.SyntheticWorld(n_arms=4).with_true_rewards(share=0.05, delay=50)
            >>> eh.simulate([eh.PooledGroupFair], world, horizon=100, replications=2).runs.shape[0]
            2
        """
        world = copy(self)
        world.true_rewards = checked(
            self.n_features, share, delay, noise, common, by_context, by_outcome, scale, offset
        )
        return world

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return self.groups.n_arms

    @property
    def row_length(self) -> int:
        """How many numbers `draw_round` fills in for an arm.

        They are its features and, if it comes with the round, its membership behind them.

        Example:
            >>> import evenhand as eh
            >>> eh.SyntheticWorld(n_features=2).row_length
            2
        """
        return self.n_features + (len(self.groups.columns) if self.groups.changes else 0)

    def fingerprint(self) -> str:
        """The description of the world as text, by which finished work is recognised.

        Example:
            >>> import evenhand as eh
            >>> worlds = [eh.SyntheticWorld(n_arms=4, noise=noise) for noise in (1.0, 1.0, 0.5)]
            >>> len({world.fingerprint() for world in worlds})
            2
        """
        return repr({name: str(value) for name, value in vars(self).items()})

    def begin(self, generator: np.random.Generator) -> NamedTuple:
        """One instance, with everything that is drawn once per replication."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to begin")


def draw_round(
    instance: Any, t: int, generator: np.random.Generator, contexts: Any, observed: Any, true: Any
) -> None:
    """Fill in the contexts of round t and, per arm, the mean observed and the true reward.

    Rounds count from 1. The arm of the round is not known yet, so all policies meet the same
    rounds.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> from evenhand.worlds.base import draw_round
        >>> world = eh.LinearWorld(["F", "M"], coefficients=[[2.0], [2.0]], bias=[[-1.0], [0.0]])
        >>> generator = np.random.default_rng(1)
        >>> contexts, observed, true = np.empty((2, 1)), np.empty(2), np.empty(2)
        >>> draw_round(world.begin(generator), 1, generator, contexts, observed, true)
        >>> (observed / true).tolist()
        [0.5, 1.0]
    """
    _written("draw_round", instance)(instance, t, generator, contexts, observed, true)


def draw_noise(instance: Any, t: int, generator: np.random.Generator) -> float:
    """The noise of round t: by default normal, with the standard deviation `instance.noise`.

    It is drawn after the contexts and before the arm is chosen, so all policies get the same noise.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> from evenhand.worlds.base import draw_noise
        >>> world = eh.LinearWorld(["F", "M"], [[1.0], [2.0]], bias=[[0.0], [0.0]], noise=0.0)
        >>> generator = np.random.default_rng(1)
        >>> draw_noise(world.begin(generator), 1, generator)
        0.0
    """
    return _written("draw_noise", instance)(instance, t, generator)  # type: ignore[no-any-return]


def receive(instance: Any, t: int, arm: int, mean: float, noise: float) -> float:
    """The reward received for an arm with this mean observed reward; by default mean + noise.

    `noise` comes from `draw_noise`. True regret is computed from the means alone.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> from evenhand.worlds.base import receive
        >>> instance = eh.SyntheticWorld(n_arms=4).begin(np.random.default_rng(1))
        >>> receive(instance, t=1, arm=0, mean=2.0, noise=0.5)
        2.5
    """
    return _written("receive", instance)(instance, t, arm, mean, noise)  # type: ignore[no-any-return]


WORLD_KERNELS = Generic("@world_kernel({kind}, {function})", draw_round, draw_noise, receive)
world_sources = WORLD_KERNELS.sources


def _written(name: str, instance: Any) -> Callable[..., Any]:
    function = WORLD_KERNELS.find(name, type(instance))
    assert function is not None
    return function


def world_kernel(
    instance: type | None, generic: Callable[..., Any] = draw_round
) -> Callable[[Function], Function]:
    """Write `draw_round`, `draw_noise` or `receive` for a kind of instance.

    A class inherits the functions of its base classes, such as those of `LinearInstance`.
    docs/how-to/write-a-world.md has whole worlds.

    Example:
        >>> from evenhand.worlds.base import draw_noise, world_kernel
        >>> from evenhand.worlds.synthetic import LinearInstance
        >>> class UniformNoise(LinearInstance):
        ...     pass
        >>> @world_kernel(UniformNoise, draw_noise)
        ... def uniform_noise(instance, t, generator):
        ...     return instance.noise * (generator.random() - 0.5)
    """
    return WORLD_KERNELS.write(generic, instance)


@overload(draw_round, jit_options=INLINED)
def _draw_round(instance, t, generator, contexts, observed, true):  # type: ignore[no-untyped-def]
    return WORLD_KERNELS.find_typed("draw_round", instance)


@overload(draw_noise, jit_options=INLINED)
def _draw_noise(instance, t, generator):  # type: ignore[no-untyped-def]
    return WORLD_KERNELS.find_typed("draw_noise", instance)


@overload(receive, jit_options=INLINED)
def _receive(instance, t, arm, mean, noise):  # type: ignore[no-untyped-def]
    return WORLD_KERNELS.find_typed("receive", instance)


@world_kernel(None, draw_noise)
def _normal_noise(instance, t, generator):  # type: ignore[no-untyped-def]
    return instance.noise * generator.standard_normal()


@world_kernel(None, receive)
def _receive_sum(instance, t, arm, mean, noise):  # type: ignore[no-untyped-def]
    return mean + noise
