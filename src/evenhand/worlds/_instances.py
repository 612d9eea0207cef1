"""Checked instances of worlds: mistakes in a user's world are found before it is compiled."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from evenhand._compile import compiled
from evenhand._random import check_generator
from evenhand.errors import InputError
from evenhand.worlds.base import (
    WORLD_KERNELS,
    World,
    draw_noise,
    draw_round,
    receive,
    world_sources,
)


@compiled
def compiled_draw(instance, t, generator, contexts, observed, true):  # type: ignore[no-untyped-def]
    """`draw_round` and `draw_noise`, compiled and callable from Python; returns the noise."""
    draw_round(instance, t, generator, contexts, observed, true)
    return draw_noise(instance, t, generator)


@compiled
def compiled_receive(instance, t, arm, mean, noise):  # type: ignore[no-untyped-def]
    """`receive`, compiled and callable from Python."""
    return receive(instance, t, arm, mean, noise)


_TRIED: set[tuple[type, int, int]] = set()


def begin(world: World, generator: np.random.Generator) -> Any:
    """An instance of a world, checked."""
    check_generator(generator)
    instance = world.begin(generator)
    kind = type(instance)
    tried = (kind, world.n_arms, world.n_features) in _TRIED
    if tried and world_sources(kind) == ():
        return instance  # one of evenhand's own, which always has the same types
    WORLD_KERNELS.check(instance, f"{type(world).__name__}.begin", "draw_round")
    normal = WORLD_KERNELS.find("draw_noise", kind) is WORLD_KERNELS.find("draw_noise", None)
    if normal and not _is_number(instance):
        raise InputError(
            f"{kind.__name__} has no number in a field noise, the standard deviation of normal "
            "noise; give it one, or write draw_noise for other noise"
        )
    if not tried:
        if world_sources(kind) != ():
            # On copies: a round that was tried must not change the rounds that follow.
            _try_round(world, deepcopy(instance), deepcopy(generator))
        _TRIED.add((kind, world.n_arms, world.n_features))
    return instance


def _is_number(instance: Any) -> bool:
    noise = getattr(instance, "noise", None)
    return isinstance(noise, (int, float, np.integer, np.floating))


def _try_round(world: World, instance: Any, generator: np.random.Generator) -> None:
    """Play a round in plain Python, which notices writes outside an array; Numba does not.

    Other errors in plain Python may be correct in Numba, which reports them if they are not.
    """
    contexts = np.full((world.n_arms, world.row_length), np.nan)
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
    for part, values in (("contexts", contexts), ("observed", observed), ("a reward", reward)):
        if not np.isfinite(values).all():
            raise InputError(
                f"the functions for {name} leave {part} at {_first_bad(values)} in round 1; "
                "allowed are finite numbers in all places"
            )


def _first_bad(values: Any) -> float:
    flat = np.ravel(values)
    return float(flat[~np.isfinite(flat)][0])
