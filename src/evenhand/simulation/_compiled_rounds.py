"""One replication: a policy in a world, and sums over its rounds, in a compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._checks import LARGEST
from evenhand._compile import compiled, entry_point, woven
from evenhand._compile.generics import telling
from evenhand._compile.intrinsics import borrowed
from evenhand.policies._kernels import learn, learn_true, settle
from evenhand.policies._live_calls import check_arm, choose
from evenhand.policies._settings import plays_in_python
from evenhand.policies._state import ROUND, on_round, room_of_call
from evenhand.policies.base import Policy
from evenhand.simulation._plain_rounds import Watch, each_round, for_both
from evenhand.worlds._arrivals import arrivals_of, true_reward_of, waiting_room
from evenhand.worlds._instances import begin
from evenhand.worlds.base import World, draw_noise, draw_round, receive

SEGMENT = 20_000  # rounds between two checks whether to stop
PERCEIVED, TRUE, EXPLORED, N_TOTALS = 0, 1, 2, 3
TRACE = ("arm", "explored", "reward", "perceived_regret", "true_regret")

_INSTANCE, _ARGUMENTS = 8, 13  # the place of `instance` in the arguments of `rounds`, and all

Flush = Callable[[int, NDArray[np.float64]], None]


class Run(NamedTuple):
    """The result of a replication: sums over its rounds, pulls per arm, and maybe a trace."""

    totals: NDArray[np.float64]
    pulls: NDArray[np.int64]
    trace: NDArray[np.float64]


class SharedLoops:
    """What the replications of a piece of work share: compiled loops, and a generator."""

    def __init__(self) -> None:
        self.loops: dict[Any, Callable[..., Any]] = {}
        self._generator: np.random.Generator | None = None

    def generator(self, world: World, stream: np.random.SeedSequence) -> np.random.Generator:
        """A generator at the beginning of a stream.

        Compiled code asks a new one for pointers, which leaves circular garbage behind: about a
        quarter of the 0.1 ms that a replication takes beside its rounds. So one is reset to the
        beginning, except for a user's worlds, which may use more of it than its numbers.
        """
        if not type(world).__module__.startswith("evenhand."):
            return np.random.default_rng(stream)
        if self._generator is None:
            self._generator = np.random.default_rng(stream)
        else:
            self._generator.bit_generator.state = np.random.PCG64(stream).state
        return self._generator


def run(
    policy: Policy,
    world: World,
    horizon: int,
    stream: np.random.SeedSequence,
    trace: bool = False,
) -> Run:
    """Play `horizon` rounds of `world`, whose random numbers all come from `stream`."""
    out = Run(
        np.zeros(N_TOTALS),
        np.zeros(world.n_arms, dtype=np.int64),
        np.zeros((horizon if trace else 0, len(TRACE))),
    )
    play(policy, world, horizon, stream, out, Watch(), SharedLoops())
    return out


def play(
    policy: Policy,
    world: World,
    horizon: int,
    stream: np.random.SeedSequence,
    out: Run,
    watch: Watch,
    shared: SharedLoops,
    flush: Flush | None = None,
) -> None:
    """`run` into existing arrays, watched from outside.

    Args:
        policy: a policy without data.
        world: the world to play in.
        horizon: the number of rounds.
        stream: the seed of all random numbers.
        out: arrays of zeros. With `flush`, its trace has room for SEGMENT rounds and is reused.
        watch: checked before every segment of rounds, and updated after it.
        shared: compiled loops, by the types of rules and worlds, and a generator.
        flush: called with the first round of a segment and its part of the trace.
    """
    if plays_in_python(type(policy)):
        _play_plain(policy, world, horizon, stream, out, watch, flush)
        return
    generator = shared.generator(world, stream)
    instance = begin(world, generator)
    observed, true = np.empty(world.n_arms), np.empty(world.n_arms)
    truth: tuple[Any, ...] = ()
    if world.true_rewards is not None and policy.learns_truth:
        arrivals = arrivals_of(world.true_rewards, world.n_features, stream)
        truth = (arrivals, waiting_room(world.true_rewards, world.row_length))
    with telling(f"{type(policy).__name__} in {type(world).__name__}"):
        for first in range(1, horizon + 1, SEGMENT):
            watch.check()
            last = min(first + SEGMENT - 1, horizon)
            # With `flush` the trace is a buffer of one segment.
            trace = out.trace[: last - first + 1] if flush else out.trace[first - 1 : last]
            _play_compiled(
                shared.loops,
                policy._rule,
                policy._state,
                policy._members,
                policy._schedule,
                policy._all_arms,
                policy._key,
                first,
                last,
                instance,
                generator,
                observed,
                true,
                out._replace(trace=trace),
                *truth,
            )
            policy.round = last
            if flush:
                flush(first, trace)
            watch.add(last - first + 1)


def _play_plain(
    policy: Policy,
    world: World,
    horizon: int,
    stream: np.random.SeedSequence,
    out: Run,
    watch: Watch,
    flush: Flush | None,
) -> None:
    """The same for a policy in plain Python, through its public methods."""
    for now in each_round(policy, world, horizon, stream):
        place = (now.round - 1) % SEGMENT
        if place == 0:
            watch.check()
            last = min(now.round + SEGMENT - 1, horizon)
            trace = out.trace[: last - now.round + 1] if flush else out.trace[now.round - 1 : last]
            part = out._replace(trace=trace)
        decision = now.decision
        note(part, place, decision.arm, decision.explored, now.reward, now.observed, now.true)
        if now.round == last:
            if flush:
                flush(last - place, trace)
            watch.add(place + 1)


def _play_compiled(loops: dict[Any, Callable[..., Any]], *given: Any) -> None:
    """Run the compiled loop for a policy and a world, which is looked up once in a piece of work.

    Evenhand's rules and worlds have the same types in all replications. So Numba's dispatch on
    them, a tenth of a replication of 1,000 rounds, is skipped.
    """
    rule, own, instance = given[0], given[1].own, given[_INSTANCE]
    kinds = type(rule), type(own), type(instance), len(given)
    loop = rounds if len(given) == _ARGUMENTS else rounds_with_truth
    if kinds not in loops:
        play = for_both(loop, rule, own, instance)
        loops[kinds] = entry_point(play, *given) if play is loop else play
    loops[kinds](*given)


@compiled
def rounds(  # type: ignore[no-untyped-def]
    rule,
    state,
    members,
    schedule,
    available,
    key,
    first,
    last,
    instance,
    generator,
    observed,
    true,
    out,
):
    """Rounds `first` to `last`: contexts, choice, reward, update; sums of regret in `out`."""
    padded, work, room = room_of_call(state)
    memory = borrowed(on_round(state, members, padded, work, room))
    rule, state, schedule = borrowed(rule), borrowed(state), borrowed(schedule)
    group_of = memory.members.group_of
    available, instance, out = borrowed(available), borrowed(instance), borrowed(out)
    observed, true, generator = borrowed(observed), borrowed(true), borrowed(generator)
    contexts = memory.contexts[: memory.settings.n_arms]  # without the padding
    for t in range(first, last + 1):
        draw_round(instance, t, generator, contexts, observed, true)
        # Noise is drawn before the choice, one number a round whatever arm is chosen: so all
        # policies meet the same world in the same replication.
        noise = draw_noise(instance, t, generator)
        arm, explored = choose(rule, memory, schedule, available, t, key)
        reward = _earn(memory, instance, t, arm, observed, noise)
        note(out, t - first, arm, explored, reward, observed, true)
        # The policy may learn by round, and must learn this reward as one of round t.
        state.levels[ROUND, 0] = t
        learn(rule, state, arm, group_of[arm], memory.contexts[arm], reward)
        settle(rule, state)
    padded[0, 0] = work[0, 0] = room[0] = 0.0  # Numba frees an array after its last use


@compiled
def rounds_with_truth(  # type: ignore[no-untyped-def]
    rule,
    state,
    members,
    schedule,
    available,
    key,
    first,
    last,
    instance,
    generator,
    observed,
    true,
    out,
    arrivals,
    waiting,
):
    """The same where some decisions get a true reward, `arrivals.delay` rounds later."""
    padded, work, room = room_of_call(state)
    memory = borrowed(on_round(state, members, padded, work, room))
    group_of = memory.members.group_of
    contexts = memory.contexts[: memory.settings.n_arms]  # without the padding
    for t in range(first, last + 1):
        draw_round(instance, t, generator, contexts, observed, true)
        noise = draw_noise(instance, t, generator)
        arm, explored = choose(rule, memory, schedule, available, t, key)
        reward = _earn(memory, instance, t, arm, observed, noise)
        note(out, t - first, arm, explored, reward, observed, true)
        state.levels[ROUND, 0] = t
        x = memory.contexts[arm]
        learn(rule, state, arm, group_of[arm], x, reward)
        arrives, value = true_reward_of(arrivals, t, x, true[arm], reward - observed[arm])
        # A ring with delay + 1 places: round t writes the one that round t - delay - 1 had, and
        # reads the next, which is that of round t - delay.
        row = waiting[t % waiting.shape[0]]
        row[0], row[1], row[2], row[3] = t if arrives else 0, arm, value, reward
        row[4:] = x
        row = waiting[(t + 1) % waiting.shape[0]]
        if row[0] > 0.0:
            state.levels[ROUND, 0] = row[0]
            # Learned with the round and the context of its own decision.
            past = int(row[1])
            learn_true(rule, state, past, group_of[past], row[4:], row[2], row[3])
        settle(rule, state)
    padded[0, 0] = work[0, 0] = room[0] = 0.0  # Numba frees an array after its last use


@woven
def _earn(memory, instance, t, arm, observed, noise):  # type: ignore[no-untyped-def]
    """The reward of the arm, both checked: rules and worlds may be the user's."""
    check_arm(memory, arm)
    reward = receive(instance, t, arm, observed[arm], noise)
    if not abs(reward) <= LARGEST:
        raise ValueError("a world gave a reward that is not finite, or above 1e100")
    return reward


@woven
def note(out, place, arm, explored, reward, observed, true):  # type: ignore[no-untyped-def]
    """Perceived regret with the reward received, true regret without noise, as published."""
    perceived = _highest(observed) - reward
    regret = _highest(true) - true[arm]
    out.totals[PERCEIVED] += perceived
    out.totals[TRUE] += regret
    out.totals[EXPLORED] += explored
    out.pulls[arm] += 1
    if out.trace.shape[0]:
        row = out.trace[place]
        row[0], row[1], row[2], row[3], row[4] = arm, explored, reward, perceived, regret


@woven
def _highest(values):  # type: ignore[no-untyped-def]
    """The highest value; NaN if there is one. `np.max` takes as long as a solve at d = 2."""
    top = values[0]
    for i in range(1, values.size):
        value = values[i]
        if value > top or value != value:
            top = value
    return top
