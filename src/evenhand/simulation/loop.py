"""One replication: a policy in a world, round by round. The compiled loop, and the plain one."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import compiled, for_sources, inlined
from evenhand._generic import telling
from evenhand.policies.base import Policy
from evenhand.policies.kernels import check_arm, choose, rule_sources
from evenhand.policies.memory import LARGEST, remember
from evenhand.worlds.base import (
    World,
    begin,
    draw_noise,
    draw_round,
    next_round,
    receive,
    reward_of,
    world_sources,
)

SEGMENT = 20_000  # rounds between two looks at whether to stop
PERCEIVED, TRUE, EXPLORED, N_TOTALS = 0, 1, 2, 3
TRACE = ("arm", "explored", "reward", "perceived_regret", "true_regret")


class Run(NamedTuple):
    """What is kept of a replication: sums over its rounds, pulls per arm, and maybe a trace."""

    totals: NDArray[np.float64]
    pulls: NDArray[np.int64]
    trace: NDArray[np.float64]


class Stopped(Exception):
    """The run was asked to stop."""


def run(
    policy: Policy,
    world: World,
    horizon: int,
    stream: np.random.SeedSequence,
    trace: bool = False,
    stop: Event | None = None,
) -> Run:
    """Play `horizon` rounds of `world`, whose random numbers all come from `stream`."""
    generator = np.random.default_rng(stream)
    instance = begin(world, generator)
    n = world.n_arms
    out = Run(
        np.zeros(N_TOTALS),
        np.zeros(n, dtype=np.int64),
        np.zeros((horizon if trace else 0, len(TRACE))),
    )
    observed, true = np.empty(n), np.empty(n)
    where = (instance, generator, observed, true, out)
    play = _for_types(rounds, policy._rule, instance) if policy.is_compiled() else None
    with telling(f"{type(policy).__name__} in {type(world).__name__}"):
        for first in range(1, horizon + 1, SEGMENT):
            if stop is not None and stop.is_set():
                raise Stopped
            last = min(first + SEGMENT - 1, horizon)
            if play is not None:
                play(
                    policy._rule,
                    policy._memory,
                    policy._schedule,
                    policy._all_arms,
                    policy._key,
                    first,
                    last,
                    *where,
                )
            else:
                _plain_rounds(policy, first, last, *where)
            policy.round = last
    return out


def _for_types(
    function: Callable[..., Any], rule: NamedTuple, instance: NamedTuple
) -> Callable[..., Any]:
    """A compiled function for a rule and a world, which may be the user's."""
    of_rule, of_world = rule_sources(type(rule)), world_sources(type(instance))
    both = None if of_rule is None or of_world is None else tuple({*of_rule, *of_world})
    return for_sources(function, both)


@compiled
def rounds(  # type: ignore[no-untyped-def]
    rule, memory, schedule, available, key, first, last, instance, generator, observed, true, out
):
    """Rounds `first` to `last`: contexts, choice, reward, update; sums of regret in `out`."""
    contexts = memory.contexts[: memory.settings.n_arms]  # without the padding
    for t in range(first, last + 1):
        draw_round(instance, t, generator, contexts, observed, true)
        noise = draw_noise(instance, t, generator)
        arm, explored = choose(rule, memory, schedule, available, t, key)
        check_arm(memory, arm)
        reward = receive(instance, t, arm, observed[arm], noise)
        if not abs(reward) <= LARGEST:
            raise ValueError("a world gave a reward that is not finite, or above 1e100")
        _note(out, t, arm, explored, reward, observed, true)
        remember(memory, arm, memory.contexts[arm], reward)


@inlined
def _note(out, t, arm, explored, reward, observed, true):  # type: ignore[no-untyped-def]
    """Perceived regret with the reward received, true regret without noise, as published."""
    perceived = np.max(observed) - reward
    regret = np.max(true) - true[arm]
    out.totals[PERCEIVED] += perceived
    out.totals[TRUE] += regret
    out.totals[EXPLORED] += explored
    out.pulls[arm] += 1
    if out.trace.shape[0]:
        row = out.trace[t - 1]
        row[0], row[1], row[2], row[3], row[4] = arm, explored, reward, perceived, regret


def _plain_rounds(
    policy: Policy,
    first: int,
    last: int,
    instance: Any,
    generator: np.random.Generator,
    observed: NDArray[np.float64],
    true: NDArray[np.float64],
    out: Run,
) -> None:
    """The same rounds for a policy in plain Python, through its public face."""
    contexts = np.empty((policy.n_arms, policy.n_features))
    draw = _for_types(next_round, policy._rule, instance)
    given = _for_types(reward_of, policy._rule, instance)
    for t in range(first, last + 1):
        noise = draw(instance, t, generator, contexts, observed, true)
        decision = policy.select(contexts)
        reward = float(given(instance, t, decision.arm, observed[decision.arm], noise))
        _note(out, t, decision.arm, decision.explored, reward, observed, true)
        policy.update(decision, reward)
