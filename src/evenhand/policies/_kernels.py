"""The functions that a policy is made of, and the functions that call them.

A policy is a *rule*: a NamedTuple with the policy's own numbers. The eight generic functions below
take the rule as their first argument, and `@kernel(score, MyRule)` marks the implementation for a
class of rules; Numba chooses it by the type of the rule. Live decisions and simulations both call
these functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba.extending import overload

from evenhand._borrow import borrowed
from evenhand._checks import LARGEST
from evenhand._compile import (
    INLINED,
    Sources,
    inlined,
    live,
    open_to_users,
    sources_of,
    subroutine,
    woven,
)
from evenhand._dispatch import Generic
from evenhand._streams import mix, uniform
from evenhand.leastsquares._vectors import place
from evenhand.policies._state import (
    ESTIMATE,
    GROUP_ESTIMATE,
    GROUP_WIDTH,
    ROUND,
    UPPER,
    WIDTH,
    absorb_reward,
    on_round,
    room_of_call,
    score_arms,
    score_group,
)
from evenhand.policies.exploration import probability

Function = TypeVar("Function", bound=Callable[..., Any])

# Places in the random stream of a round. A rule that draws more starts at FREE.
EXPLORES, PICKS, FREE = 0, 1, 2


def learn(rule: Any, state: Any, arm: int, group: int, x: Any, reward: float) -> None:
    """Learn a reward of `arm` at the context `x`, when the arm was a candidate of `group`.

    By default the regressions of the arm and, if they are kept, of the group absorb it
    (`absorb_reward`).

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import absorb_reward, kernel, learn
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(learn, MyRule)
        ... def my_learn(rule, state, arm, group, x, reward):
        ...     absorb_reward(state, arm, group, x, min(reward, 1.0))
    """


def learn_true(
    rule: Any, state: Any, arm: int, group: int, x: Any, value: float, observed: float
) -> None:
    """Learn a true reward: what the choice of `arm` at `x` was really worth, known later.

    `observed` is the observed reward of the same decision, NaN if it is not known. By default
    nothing is learned, and `update` refuses true rewards; see `Policy.learns_truth`.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import absorb_reward, kernel, learn_true
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(learn_true, MyRule)
        ... def my_learn_true(rule, state, arm, group, x, value, observed):
        ...     absorb_reward(state, arm, group, x, value)
    """


def settle(rule: Any, state: Any) -> None:
    """Called after `learn`, once for all rewards of a call; by default it does nothing.

    For what takes long and is needed only before the next decision.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import kernel, settle
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(settle, MyRule)
        ... def my_settle(rule, state):
        ...     state.own.mean[0] = state.own.total[0] / max(state.own.count[0], 1.0)
    """


def score(rule: Any, memory: Any, t: int) -> None:
    """Fill `memory.work` with the scores of all arms for `memory.contexts`. Every rule has one.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import add_up, kernel, score, score_arms
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(score, MyRule)
        ... def my_score(rule, memory, t):
        ...     score_arms(memory, t)
        ...     add_up(memory)
    """


def draw(rule: Any, memory: Any, available: Any, key: Any) -> int:  # type: ignore[empty-body]
    """The arm of an exploiting round; by default the highest upper bound, ties at random.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import PICKS, draw, kernel, pick, uniform
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(draw, MyRule)
        ... def my_draw(rule, memory, available, key):
        ...     return pick(available, uniform(key, PICKS))
    """


def chance(rule: Any, memory: Any, available: Any, arm: int) -> float:  # type: ignore[empty-body]
    """The probability that `draw` returns `arm`, with the present scores.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import chance, kernel
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(chance, MyRule)
        ... def my_chance(rule, memory, available, arm):
        ...     return available[arm] / available.sum()
    """


def explore(rule: Any, memory: Any, available: Any, key: Any) -> int:  # type: ignore[empty-body]
    """The arm of an exploring round; by default uniform over the available arms.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import PICKS, best, explore, kernel, uniform
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(explore, MyRule)
        ... def my_explore(rule, memory, available, key):
        ...     return best(memory, available, uniform(key, PICKS))
    """


def explore_chance(rule: Any, memory: Any, available: Any, arm: int) -> float:  # type: ignore[empty-body]
    """The probability that `explore` returns `arm`.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import best_chance, explore_chance, kernel
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(explore_chance, MyRule)
        ... def my_explore_chance(rule, memory, available, arm):
        ...     return best_chance(memory, available, arm)
    """


_KERNELS = Generic(
    "@kernel({function}, {kind})",
    learn,
    learn_true,
    settle,
    score,
    draw,
    chance,
    explore,
    explore_chance,
)
rule_sources = _KERNELS.sources


def kernel(generic: Callable[..., Any], rule: type | None) -> Callable[[Function], Function]:
    """Write one of the generic functions for a kind of rule.

    docs/how-to/write-a-policy.md has whole policies.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import add_up, kernel, score, score_arms
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(score, MyRule)
        ... def my_score(rule, memory, t):
        ...     score_arms(memory, t)
        ...     add_up(memory)
    """
    return _KERNELS.write(generic, rule)


def sources_for(rule: Any, own: Any) -> Sources:
    """The user's files that define a rule and its own state; see `for_sources`."""
    of_rule, of_own = rule_sources(type(rule)), sources_of(type(own))
    return None if of_rule is None or of_own is None else tuple(sorted({*of_rule, *of_own}))


def check_rule(rule: Any, policy: str) -> None:
    """Refuse a rule that compiled code cannot take."""
    _KERNELS.check(rule, f"{policy}.rule", "score")


@overload(learn, jit_options=INLINED)
def _learn(rule, state, arm, group, x, reward):  # type: ignore[no-untyped-def]
    return _KERNELS.find_typed("learn", rule)


@overload(learn_true, jit_options=INLINED)
def _learn_true(rule, state, arm, group, x, value, observed):  # type: ignore[no-untyped-def]
    return _KERNELS.find_typed("learn_true", rule)


@overload(settle, jit_options=INLINED)
def _settle(rule, state):  # type: ignore[no-untyped-def]
    return _KERNELS.find_typed("settle", rule)


@overload(score, jit_options=INLINED)
def _score(rule, memory, t):  # type: ignore[no-untyped-def]
    return _KERNELS.find_typed("score", rule)


@overload(draw, jit_options=INLINED)
def _draw(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return _KERNELS.find_typed("draw", rule)


@overload(chance, jit_options=INLINED)
def _chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    return _KERNELS.find_typed("chance", rule)


@overload(explore, jit_options=INLINED)
def _explore(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return _KERNELS.find_typed("explore", rule)


@overload(explore_chance, jit_options=INLINED)
def _explore_chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    return _KERNELS.find_typed("explore_chance", rule)


# The defaults --------------------------------------------------------------------------------


@inlined
def pick(chosen, u):  # type: ignore[no-untyped-def]
    """One of the arms marked in `chosen`, all equally likely, by the uniform number `u`.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import PICKS, explore, kernel, pick, uniform
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(explore, MyRule)
        ... def my_explore(rule, memory, available, key):
        ...     return pick(available, uniform(key, PICKS))
    """
    count = 0
    for i in range(chosen.size):
        count += chosen[i]
    place = min(int(u * count), count - 1)
    for i in range(chosen.size):
        if chosen[i]:
            if place == 0:
                return i
            place -= 1
    return -1


@open_to_users
def best(memory, allowed, u):  # type: ignore[no-untyped-def]
    """The allowed arm with the highest upper bound; ties by `u`, or the first by convention.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import PICKS, best, draw, kernel, uniform
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(draw, MyRule)
        ... def my_draw(rule, memory, available, key):
        ...     return best(memory, available, uniform(key, PICKS))
    """
    return _best(memory.work, memory.settings.first_of_ties, allowed, u)


@open_to_users
def best_chance(memory, allowed, arm):  # type: ignore[no-untyped-def]
    """The probability that `best` returns `arm`.

    Example:
        >>> from typing import NamedTuple
        >>> from evenhand.policies.compiled import best_chance, chance, kernel
        >>> class MyRule(NamedTuple):
        ...     pass
        >>> @kernel(chance, MyRule)
        ... def my_chance(rule, memory, available, arm):
        ...     return best_chance(memory, available, arm)
    """
    return _best_chance(memory.work, memory.settings.first_of_ties, allowed, arm)


@inlined
def _best(work, first_of_ties, allowed, u):  # type: ignore[no-untyped-def]
    top, ties, arm = -np.inf, 0, -1
    for i in range(allowed.size):
        if allowed[i]:
            upper = work[UPPER, i]
            if arm < 0 or upper > top:
                top, ties, arm = upper, 1, i
            elif upper == top:
                ties += 1
    if ties == 1 or first_of_ties:
        return arm
    place = min(int(u * ties), ties - 1)
    for i in range(arm, allowed.size):
        if allowed[i] and work[UPPER, i] == top:
            if place == 0:
                return i
            place -= 1
    return arm


@subroutine
def _best_chance(work, first_of_ties, allowed, arm):  # type: ignore[no-untyped-def]
    upper = work[UPPER]
    if not allowed[arm]:
        return 0.0
    ties = 0
    for i in range(allowed.size):
        if allowed[i]:
            if upper[i] > upper[arm]:
                return 0.0
            if upper[i] == upper[arm]:
                if i < arm and first_of_ties:
                    return 0.0
                ties += 1
    return 1.0 if first_of_ties else 1.0 / ties


@kernel(learn, None)
def _learn_by_regressions(rule, state, arm, group, x, reward):  # type: ignore[no-untyped-def]
    absorb_reward(state, arm, group, x, reward)


@kernel(learn_true, None)
def _learn_nothing_true(rule, state, arm, group, x, value, observed):  # type: ignore[no-untyped-def]
    pass


@kernel(settle, None)
def _settle_nothing(rule, state):  # type: ignore[no-untyped-def]
    pass


@kernel(draw, None)
def _draw_best(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return best(memory, available, uniform(key, PICKS))


@kernel(chance, None)
def _chance_best(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    return best_chance(memory, available, arm)


@kernel(explore, None)
def _explore_all(rule, memory, available, key):  # type: ignore[no-untyped-def]
    return pick(available, uniform(key, PICKS))


@kernel(explore_chance, None)
def _explore_all_chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    return available[arm] / np.sum(available)


# What uses them ------------------------------------------------------------------------------


@open_to_users
def choose(rule, memory, schedule, available, t, key):  # type: ignore[no-untyped-def]
    """The arm of round t and whether it explores. `score` runs only if it is needed."""
    round_key = mix(key, t)
    if _explores(schedule, t, round_key):
        return explore(rule, memory, available, round_key), True
    score(rule, memory, t)
    return draw(rule, memory, available, round_key), False


@woven
def _explores(schedule, t, round_key):  # type: ignore[no-untyped-def]
    return uniform(round_key, EXPLORES) < probability(schedule, t)


@woven
def check_arm(memory, arm):  # type: ignore[no-untyped-def]
    """Refuse a wrong arm from a user's rule, which would write outside of an array."""
    if arm < 0 or arm >= memory.settings.n_arms:
        raise ValueError("draw or explore gave an arm that does not exist")


@woven
def load_contexts(memory, contexts):  # type: ignore[no-untyped-def]
    """Copy the contexts of a round into the padded array; returns the first bad arm, or -1."""
    given, room, bad = place(contexts, 0), place(memory.contexts, 0), False
    for p in range(contexts.size):  # plain enough for the compiler to vectorise
        room[p] = given[p]
        bad |= not abs(given[p]) <= LARGEST
    if bad:
        for i in range(contexts.shape[0]):
            for k in range(contexts.shape[1]):
                if not abs(contexts[i, k]) <= LARGEST:
                    return i
    return -1


# Functions that Python calls. They hold the interpreter's lock (`live`), so a decision never sees a
# partly updated state. Each call has its own working memory, so decisions do not see each other's.


@live
def decide(rule, state, members, schedule, available, t, key, contexts, context, scores):  # type: ignore[no-untyped-def]
    """A live decision: the arm, its propensity, whether it explored; -1 - i: arm i is not finite.

    Fills in `context` for the chosen arm and `scores` for all arms, in exploring rounds as well.
    """
    mine, work, room = room_of_call(state)
    memory = borrowed(on_round(state, members, mine, work, room))
    rule, schedule, available = borrowed(rule), borrowed(schedule), borrowed(available)
    bad = load_contexts(memory, borrowed(contexts))
    if bad >= 0:
        return -1 - bad, 0.0, False
    score(rule, memory, t)  # called in one place only: it takes longest to compile
    round_key = mix(key, t)
    explored = _explores(schedule, t, round_key)
    if explored:
        arm = explore(rule, memory, available, round_key)
    else:
        arm = draw(rule, memory, available, round_key)
    check_arm(memory, arm)
    chance_of_it = propensity(rule, memory, schedule, available, t, arm)
    # Numba frees what is not used any more, so what was borrowed is used until the end.
    for k in range(context.size):
        context[k] = mine[arm, k]
    for row in range(scores.shape[0]):
        for i in range(scores.shape[1]):
            scores[row, i] = work[row, i]
    room[0] = 0.0
    return arm, chance_of_it, explored


@live
def teach(rule, state, arm, group, x, reward, t, last):  # type: ignore[no-untyped-def]
    """`learn` with a check of the context, False if it has a bad number; the last one settles."""
    x = borrowed(x)
    for k in range(x.size):
        if not abs(x[k]) <= LARGEST:
            return False
    state.levels[ROUND, 0] = t
    learn(borrowed(rule), borrowed(state), arm, group, x, reward)
    if last:
        settle(borrowed(rule), borrowed(state))
    return True


@live
def teach_true(rule, state, arm, group, x, value, observed, t, last):  # type: ignore[no-untyped-def]
    """`learn_true` with a check of the context, False if it has a bad number; the last settles."""
    x = borrowed(x)
    for k in range(x.size):
        if not abs(x[k]) <= LARGEST:
            return False
    state.levels[ROUND, 0] = t
    learn_true(borrowed(rule), borrowed(state), arm, group, x, value, observed)
    if last:
        settle(borrowed(rule), borrowed(state))
    return True


@open_to_users
def propensity(rule, memory, schedule, available, t, arm):  # type: ignore[no-untyped-def]
    """The probability that round t chooses `arm`, with the present scores."""
    p = probability(schedule, t)
    total = 0.0
    if p > 0.0:
        total += p * explore_chance(rule, memory, available, arm)
    if p < 1.0:
        total += (1.0 - p) * chance(rule, memory, available, arm)
    return total


@live
def all_propensities(rule, state, members, schedule, available, t, contexts, out):  # type: ignore[no-untyped-def]
    """`propensity` of every arm in round t; -1, or the first arm whose context is not finite."""
    mine, work, room = room_of_call(state)
    memory = borrowed(on_round(state, members, mine, work, room))
    bad = load_contexts(memory, contexts)
    if bad < 0:
        score(rule, memory, t)
        for arm in range(out.size):
            out[arm] = propensity(rule, memory, schedule, available, t, arm)
    mine[0, 0] = work[0, 0] = room[0] = 0.0  # borrowed until here
    return bad


@live
def arm_intervals(state, members, t, contexts, out):  # type: ignore[no-untyped-def]
    """Estimate and width of every arm; -1, or the first arm whose context is not finite."""
    mine, work, room = room_of_call(state)
    memory = on_round(state, members, mine, work, room)
    bad = load_contexts(memory, contexts)
    if bad < 0:
        score_arms(memory, t)
        out[0] = work[ESTIMATE, : out.shape[1]]
        out[1] = work[WIDTH, : out.shape[1]]
    return bad


@live
def group_intervals(state, members, t, contexts, out):  # type: ignore[no-untyped-def]
    """psi_j . x_i and its width for every group and arm; -1, or the first bad arm."""
    mine, work, room = room_of_call(state)
    memory = on_round(state, members, mine, work, room)
    bad = load_contexts(memory, contexts)
    if bad < 0:
        n = out.shape[2]
        for group in range(out.shape[1]):
            score_group(memory, group, members.everyone, t)
            out[0, group] = work[GROUP_ESTIMATE, :n]
            out[1, group] = work[GROUP_WIDTH, :n]
    return bad
