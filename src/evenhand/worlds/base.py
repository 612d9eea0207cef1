"""Where contexts and rewards come from.

A world is a description; `begin` makes one instance of it for a replication: a NamedTuple of
arrays, for which `draw_round` is written with `@world_kernel(MyInstance)`. An instance has a field
`noise`, the standard deviation of the observed rewards around their mean.
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


_WRITTEN: dict[type, Callable[..., Any]] = {}


def world_kernel(instance: type) -> Callable[[Function], Function]:
    """Write `draw_round` for a kind of instance."""

    def register(function: Function) -> Function:
        _WRITTEN[instance] = function
        note_source(Path(function.__code__.co_filename))
        return function

    return register


def world_sources(instance: type) -> Sources:
    """The files of the user's that a kind of instance and its function stand in."""
    return sources_of(*([instance, _WRITTEN[instance]] if instance in _WRITTEN else [instance]))


@overload(draw_round, jit_options=INLINED)
def _draw_round(instance, generator, contexts, observed, true):  # type: ignore[no-untyped-def]
    return _WRITTEN.get(getattr(instance, "instance_class", None))  # type: ignore[arg-type]


@compiled
def next_round(instance, generator, contexts, observed, true):  # type: ignore[no-untyped-def]
    """`draw_round`, callable from Python."""
    draw_round(instance, generator, contexts, observed, true)
