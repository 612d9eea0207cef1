"""Where contexts and rewards come from.

A world is a description; `begin` makes one instance of it for a replication: a NamedTuple of
arrays, for which `draw_round` is written with `@world_kernel(MyInstance)`. An instance has a field
`noise`, the standard deviation of the observed rewards around their mean. How the reward received
is made of that mean and the noise can be written as well: `@world_kernel(MyInstance, receive)`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba.extending import overload

from evenhand._compile import INLINED, Sources, compiled, note_source, sources_of
from evenhand.groups import Groups

Function = TypeVar("Function", bound=Callable[..., Any])


class World:
    """A source of rounds: `groups` of the arms, `n_features`, and `begin` for a replication."""

    groups: Groups
    n_features: int

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return self.groups.n_arms

    def fingerprint(self) -> str:
        """What the world is, as text: finished work is found again by it."""
        return repr({name: str(value) for name, value in vars(self).items()})

    def begin(self, generator: np.random.Generator) -> NamedTuple:
        """One instance, with whatever is drawn once per replication."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to begin")


def draw_round(
    instance: Any, generator: np.random.Generator, contexts: Any, observed: Any, true: Any
) -> None:
    """Fill the contexts of a round and, per arm, the mean observed and the true reward.

    It must draw as many random numbers whatever arms are chosen: then all policies meet the same
    rounds.
    """


def receive(instance: Any, mean: float, noise: float) -> float:  # type: ignore[empty-body]
    """The reward received for an arm with this mean observed reward; their sum by default."""


_WRITTEN: dict[tuple[str, type | None], Callable[..., Any]] = {}


def world_kernel(
    instance: type | None, generic: Callable[..., Any] = draw_round
) -> Callable[[Function], Function]:
    """Write `draw_round`, or `receive`, for a kind of instance."""

    def register(function: Function) -> Function:
        _WRITTEN[generic.__name__, instance] = function
        note_source(Path(function.__code__.co_filename))
        return function

    return register


def world_sources(instance: type) -> Sources:
    """The files of the user's that a kind of instance and its functions stand in."""
    return sources_of(
        instance, *(written for (_, kind), written in _WRITTEN.items() if kind is instance)
    )


def _find(name: str, instance: Any) -> Callable[..., Any] | None:
    kind = getattr(instance, "instance_class", None)  # of Numba's type for a NamedTuple
    return _WRITTEN.get((name, kind)) or _WRITTEN.get((name, None))


@overload(draw_round, jit_options=INLINED)
def _draw_round(instance, generator, contexts, observed, true):  # type: ignore[no-untyped-def]
    return _find("draw_round", instance)


@overload(receive, jit_options=INLINED)
def _receive(instance, mean, noise):  # type: ignore[no-untyped-def]
    return _find("receive", instance)


@world_kernel(None, receive)
def _receive_sum(instance, mean, noise):  # type: ignore[no-untyped-def]
    return mean + noise


@compiled
def next_round(instance, generator, contexts, observed, true):  # type: ignore[no-untyped-def]
    """`draw_round`, callable from Python."""
    draw_round(instance, generator, contexts, observed, true)


@compiled
def reward_of(instance, mean, noise):  # type: ignore[no-untyped-def]
    """`receive`, callable from Python."""
    return receive(instance, mean, noise)
