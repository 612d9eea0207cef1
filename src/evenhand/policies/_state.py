"""The state that every policy learns, the groups of the candidates, and the memory of a round."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import compiled, woven
from evenhand._compile.intrinsics import stays_a_function
from evenhand.leastsquares import (
    LANES,
    Prior,
    Regressions,
    listed,
    noise_variance,
    regressions,
    room_for,
)
from evenhand.leastsquares._absorb import absorb_in
from evenhand.leastsquares._layout import count_of, width_of
from evenhand.policies._quantiles import normal_quantile

# The rows of Memory.work. The first five are the scores that a decision shows.
ESTIMATE, WIDTH, CORRECTION, CORRECTION_WIDTH, UPPER = range(5)
GROUP_ESTIMATE, GROUP_WIDTH, VARIANCE = 5, 6, 7
N_SCORES, N_ROWS = 5, 8

# Limits of the factor of widths: above 0, because 0 times an infinite variance is NaN, and small
# enough that the product with the largest variance does not overflow in a sum.
TINY, WIDEST = 1e-300, 1e140

# The rows of State.levels. NOISE is sigma^2 and its degrees of freedom, 0 if sigma is known. ROUND
# begins with the round of the decision whose reward is being learned.
SIZE, QUANTILE, NOISE, ROUND = range(4)
ARM = -1


class WidthSettings(NamedTuple):
    """The numbers behind the widths, the same for every policy. Arrays would cost time."""

    n_arms: int
    delta: float
    horizon: int  # 0 without a horizon: the level depends on the round
    noise: float  # the known sigma; negative: estimated from the residuals
    by_round: bool
    by_variance: bool
    first_of_ties: bool


class Nothing(NamedTuple):
    """The default of `Policy.learns`: nothing besides the regressions."""


NOTHING = Nothing()


class State(NamedTuple):
    """Everything that a policy has learned, and the settings to interpret it; `save` writes it.

    `own` is the policy's own, see `Policy.learns`: arrays that are added when states are merged.
    """

    arms: Regressions
    groups: Regressions
    own: Any
    levels: NDArray[np.float64]  # SIZE and QUANTILE by group and, last, of an arm; NOISE, ROUND
    settings: WidthSettings


class Members(NamedTuple):
    """The group of every candidate of a round, and lists of arms for rules to iterate over.

    It belongs to the round, not to the rule. A policy whose groups do not come with the round has
    the same for every round.
    """

    group_of: NDArray[np.int64]
    listed: NDArray[np.int64]  # group after group, each a list as `evenhand.leastsquares.listed`
    starts: NDArray[np.int64]  # where the list of each group begins, and where the last one ends
    sizes: NDArray[np.int64]  # how many arms each group has
    everyone: NDArray[np.int64]  # all arms, as `listed`


class Memory(NamedTuple):
    """The argument of a rule's kernels: the state, and the round to decide.

    Each call makes its own arrays for the round, so many calls can run at once.
    """

    arms: Regressions
    groups: Regressions
    own: Any
    levels: NDArray[np.float64]
    settings: WidthSettings
    members: Members
    contexts: NDArray[np.float64]  # of this round, padded to whole blocks of arms
    work: NDArray[np.float64]  # the scores, and what they are made from
    room: NDArray[np.float64]  # for solving


def make_state(
    group_sizes: NDArray[np.int64],
    n_arms: int,
    n_features: int,
    learn_groups: bool,
    singular: str,
    ridge: float,
    settings: WidthSettings,
    own: NamedTuple = NOTHING,
    prior: Prior | None = None,
) -> State:
    """A state without data. Group regressions are kept only for policies that use them."""
    sizes = np.append(group_sizes, 1).astype(np.float64)
    levels = np.zeros((4, sizes.size))
    levels[SIZE] = sizes
    levels[QUANTILE] = [
        normal_quantile(level(settings, max(settings.horizon, 1), size, False)) for size in sizes
    ]
    # No degrees of freedom stand for a known noise; one and an infinite variance for a noise that
    # nothing is known about.
    levels[NOISE, :2] = (settings.noise**2, 0.0) if settings.noise > 0.0 else (np.inf, 1.0)
    n_groups = group_sizes.size if learn_groups else 0
    return State(
        arms=regressions(n_arms, n_features, singular, ridge, prior=prior),
        groups=regressions(n_groups, n_features, singular, ridge, shared=True, prior=prior),
        own=own,
        levels=levels,
        settings=settings,
    )


def members_of(group_of: NDArray[np.int64], n_groups: int) -> Members:
    """The lists of a round from the group of every arm.

    Example:
        >>> import numpy as np
        >>> from evenhand.policies._state import members_of
        >>> members_of(np.array([1, 0, 1]), 2).sizes.tolist()
        [1, 2]
    """
    lists = [listed(group_of == group) for group in range(n_groups)]
    return Members(
        group_of,
        np.concatenate(lists),
        np.cumsum([0, *(arms.size for arms in lists)]),
        np.bincount(group_of, minlength=n_groups),
        listed(group_of >= 0),
    )


@woven
def on_round(state, members, contexts, work, room):  # type: ignore[no-untyped-def]
    """The memory of a round, with the arrays of the call."""
    return Memory(
        state.arms,
        state.groups,
        state.own,
        state.levels,
        state.settings,
        members,
        contexts,
        work,
        room,
    )


@woven
def room_of_call(state):  # type: ignore[no-untyped-def]
    """Contexts, work and room for one call, so that many calls can run at once."""
    n, d = state.settings.n_arms, state.arms.n_features
    columns = width_of(n)
    contexts = np.empty((columns, d))
    for i in range(n, columns):  # padding, which is solved together with the arms
        for k in range(d):
            contexts[i, k] = 0.0
    return contexts, np.empty((N_ROWS, columns)), np.empty(room_for(d))


def copied(state: State) -> State:
    """The state in arrays of its own.

    Example:
        >>> import evenhand as eh
        >>> from evenhand.policies._state import copied
        >>> policy = eh.TopInterval(["F", "M"], n_features=1)
        >>> before = copied(policy._state)
        >>> policy.absorb([0], [[1.0]], [2.0])
        >>> float(before.arms.array.sum()) < float(policy._state.arms.array.sum())
        True
    """
    return state._replace(
        arms=state.arms._replace(array=state.arms.array.copy()),
        groups=state.groups._replace(array=state.groups.array.copy()),
        own=type(state.own)(*(table.copy() for table in state.own)),
        levels=state.levels.copy(),
    )


def blank_of(state: State) -> tuple[NDArray[Any], ...]:
    """A copy of the state before anything was learned, for `wipe`."""
    return tuple(table.copy() for table in tables_of(state))


def wipe(state: State, blank: tuple[NDArray[Any], ...]) -> None:
    """Forget everything, in place: faster than making a new state. Or go to another state."""
    for table, before in zip(tables_of(state), blank, strict=True):
        table[...] = before


def tables_of(state: State) -> tuple[NDArray[Any], ...]:
    """All arrays that learning changes."""
    return state.arms.array, state.groups.array, state.levels, *state.own


def tables_of_arm(state: State, members: Members, arm: int) -> tuple[NDArray[Any], ...]:
    """The part of `tables_of` that a reward of one arm changes."""
    block = state.arms.array[arm // state.arms.per_block]
    group = state.groups.array[members.group_of[arm] : members.group_of[arm] + 1]  # if it is kept
    return block, group, state.levels, *state.own


@woven
def absorb_reward(state, arm, group, x, reward):  # type: ignore[no-untyped-def]
    """Add an observation to the arm's regression and, if they are kept, to its group's.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import absorb_reward, kernel, learn
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(learn, MyRule)
        ... def my_learn(rule, state, arm, group, x, reward):
        ...     absorb_reward(state, arm, group, x, min(reward, 1.0))
    """
    absorb_in(state.arms, arm, LANES, x, reward)
    if state.groups.number:
        absorb_in(state.groups, group, 1, x, reward)
    if state.settings.noise < 0.0:
        estimate_noise(state.arms, state.levels)


@woven
def arm_count(known, arm):  # type: ignore[no-untyped-def]
    """How many rewards an arm has learned from: `Policy.counts` for compiled rules.

    `known` is the `memory` of `score`, or the `state` of `learn`.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import UPPER, arm_count, kernel, score
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(score, MyRule)
        ... def my_score(rule, memory, t):
        ...     for i in range(memory.settings.n_arms):
        ...         memory.work[UPPER, i] = -arm_count(memory, i)  # the arm seen least
    """
    return count_of(known.arms, arm)


@woven
def round_learned(state):  # type: ignore[no-untyped-def]
    """In `learn`: the round of the decision whose reward it is, 0 if that is not known.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import absorb_reward, kernel, learn, round_learned
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(learn, MyRule)
        ... def my_learn(rule, state, arm, group, x, reward):
        ...     if round_learned(state) > 100:  # what was decided before is forgotten
        ...         absorb_reward(state, arm, group, x, reward)
    """
    return state.levels[ROUND, 0]


@woven
def check_group(known, group):  # type: ignore[no-untyped-def]
    """Refuse a group without a regression, which would be read outside an array."""
    if group < 0 or group >= known.groups.number:
        raise ValueError(
            "a kernel asks for a group without a regression: set learns_groups to True"
        )


@woven
def group_count(known, group):  # type: ignore[no-untyped-def]
    """How many rewards a group has learned from, for policies with `learns_groups`.

    Without that it is an error, as is a group that does not exist.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import UPPER, group_count, kernel, score
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(score, MyRule)
        ... def my_score(rule, memory, t):
        ...     for i in range(memory.settings.n_arms):
        ...         memory.work[UPPER, i] = -group_count(memory, memory.members.group_of[i])
    """
    check_group(known, group)
    return count_of(known.groups, group)


@compiled
def estimate_noise(arms, levels):  # type: ignore[no-untyped-def]
    """Estimate sigma^2 from the residuals of all arms; infinite while there are none."""
    stays_a_function()
    variance, freedom = noise_variance(arms)
    levels[NOISE, 0], levels[NOISE, 1] = variance, max(freedom, 1.0)


@compiled
def level(settings, t, size, of_arm):  # type: ignore[no-untyped-def]
    """delta / (2 n T) for an arm (size 1), delta / (2 (n / |P_j|) T) for a group (size |P_j|).

    Algorithm 1, lines 9, 13 and 14. The round replaces T without a horizon and, for arms only, if
    the convention says so.
    """
    by_round = settings.by_round and (of_arm or settings.horizon == 0)
    # Past its horizon a policy goes on as if it had none, so that levels never grow.
    rounds = t if by_round else max(settings.horizon, t)
    return max(min(settings.delta * size / (2.0 * settings.n_arms * rounds), 0.5), 1e-300)
