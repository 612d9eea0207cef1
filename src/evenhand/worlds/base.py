"""Where contexts and rewards come from.

A world is a description; `begin` makes one instance of it for a replication: a NamedTuple of
arrays, for which `draw_round` is written with `@world_kernel(MyInstance)`. The noise is normal, and
its standard deviation is the instance's field `noise`, unless `draw_noise` is written as well. How
the reward received is made of its mean and the noise is `receive`; it adds them unless written.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba.extending import overload

from evenhand._compile import INLINED, compiled
from evenhand._dispatch import Generic
from evenhand.errors import InputError
from evenhand.groups import Groups
from evenhand.worlds._uniforms import check_generator

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
    instance: Any, t: int, generator: np.random.Generator, contexts: Any, observed: Any, true: Any
) -> None:
    """Fill the contexts of round t and, per arm, the mean observed and the true reward.

    Rounds count from 1. The arm of the round is not known yet, so all policies meet the same
    rounds.
    """
    _written("draw_round", instance)(instance, t, generator, contexts, observed, true)


def draw_noise(instance: Any, t: int, generator: np.random.Generator) -> float:
    """The noise of round t: normal with the deviation `instance.noise`, unless written.

    It is drawn after the contexts and before the arm is chosen: then all policies meet the same.
    """
    return _written("draw_noise", instance)(instance, t, generator)  # type: ignore[no-any-return]


def receive(instance: Any, t: int, arm: int, mean: float, noise: float) -> float:
    """The reward received for an arm with this mean observed reward; their sum unless written.

    `noise` is what `draw_noise` gave. Regret knows the means alone, so nothing here counts as
    worth.
    """
    return _written("receive", instance)(instance, t, arm, mean, noise)  # type: ignore[no-any-return]


_KERNELS = Generic("@world_kernel({kind}, {function})", draw_round, draw_noise, receive)
world_sources = _KERNELS.sources


def _written(name: str, instance: Any) -> Callable[..., Any]:
    found = _KERNELS.find(name, type(instance))
    assert found is not None
    return found


def world_kernel(
    instance: type | None, generic: Callable[..., Any] = draw_round
) -> Callable[[Function], Function]:
    """Write `draw_round`, `draw_noise` or `receive` for a kind of instance.

    A kind that inherits from another, such as `LinearInstance`, has the functions of that one.

    Example: see docs/how-to/write-a-world.md, or any file of `evenhand/worlds`.
    """
    return _KERNELS.write(generic, instance)


@overload(draw_round, jit_options=INLINED)
def _draw_round(instance, t, generator, contexts, observed, true):  # type: ignore[no-untyped-def]
    return _KERNELS.find_typed("draw_round", instance)


@overload(draw_noise, jit_options=INLINED)
def _draw_noise(instance, t, generator):  # type: ignore[no-untyped-def]
    return _KERNELS.find_typed("draw_noise", instance)


@overload(receive, jit_options=INLINED)
def _receive(instance, t, arm, mean, noise):  # type: ignore[no-untyped-def]
    return _KERNELS.find_typed("receive", instance)


@world_kernel(None, draw_noise)
def _normal_noise(instance, t, generator):  # type: ignore[no-untyped-def]
    return instance.noise * generator.standard_normal()


@world_kernel(None, receive)
def _receive_sum(instance, t, arm, mean, noise):  # type: ignore[no-untyped-def]
    return mean + noise


@compiled
def compiled_draw(instance, t, generator, contexts, observed, true):  # type: ignore[no-untyped-def]
    """`draw_round` and `draw_noise`, compiled and callable from Python: gives the noise."""
    draw_round(instance, t, generator, contexts, observed, true)
    return draw_noise(instance, t, generator)


@compiled
def compiled_receive(instance, t, arm, mean, noise):  # type: ignore[no-untyped-def]
    """`receive`, compiled and callable from Python."""
    return receive(instance, t, arm, mean, noise)


# Mistakes in worlds of the user's --------------------------------------------------------------

_TRIED: set[tuple[type, int, int]] = set()


def begin(world: World, generator: np.random.Generator) -> Any:
    """An instance of a world, checked."""
    check_generator(generator)
    instance = world.begin(generator)
    kind = type(instance)
    tried = (kind, world.n_arms, world.n_features) in _TRIED
    if tried and world_sources(kind) == ():
        return instance  # ours, and so always of the same types
    _KERNELS.check(instance, f"{type(world).__name__}.begin", "draw_round")
    if _KERNELS.find("draw_noise", kind) is _normal_noise and not _is_number(instance):
        raise InputError(
            f"{kind.__name__} has no number in a field noise, the standard deviation of normal "
            "noise; give it one, or write draw_noise for other noise"
        )
    if not tried:
        if world_sources(kind) != ():
            _try_round(world, deepcopy(instance), deepcopy(generator))
        _TRIED.add((kind, world.n_arms, world.n_features))
    return instance


def _is_number(instance: Any) -> bool:
    noise = getattr(instance, "noise", None)
    return isinstance(noise, (int, float, np.integer, np.floating))


def _try_round(world: World, instance: Any, generator: np.random.Generator) -> None:
    """A round in plain Python, where writing outside of an array is noticed; compiled it is not.

    What goes wrong in plain Python in other ways may be right for Numba, which says so if not.
    """
    contexts = np.full((world.n_arms, world.n_features), np.nan)
    observed, true = np.full(world.n_arms, np.nan), np.full(world.n_arms, np.nan)
    name = type(instance).__name__
    try:
        with np.errstate(all="ignore"):
            draw_round(instance, 1, generator, contexts, observed, true)
            noise = draw_noise(instance, 1, generator)
            reward = float(receive(instance, 1, 0, observed[0], noise))
    except (IndexError, ValueError) as error:
        raise InputError(
            f"the functions for {name} fail in a round with contexts of shape {contexts.shape} "
            f"and rewards of shape {observed.shape}: {error}"
        ) from error
    except Exception:
        return
    for what, values in (("contexts", contexts), ("observed", observed), ("a reward", reward)):
        if not np.isfinite(values).all():
            raise InputError(
                f"the functions for {name} leave {what} at {_first_bad(values)} in round 1; "
                "allowed are finite numbers in all places"
            )


def _first_bad(values: Any) -> float:
    flat = np.ravel(values)
    return float(flat[~np.isfinite(flat)][0])
