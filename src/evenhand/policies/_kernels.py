"""The functions that a policy is made of.

A policy is a *rule*: a NamedTuple with the policy's own numbers. The eight generic functions below
take the rule as their first argument, and `@kernel(score, MyRule)` marks the implementation for a
class of rules; Numba chooses it by the type of the rule. Live decisions and simulations both call
these functions (`evenhand.policies._live_calls`). `evenhand.policies._defaults` has those that a
rule does not write for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba.extending import overload

from evenhand._compile import INLINED
from evenhand._compile.disk_cache import Sources, sources_of
from evenhand._compile.generics import Generic
from evenhand.errors import InputError

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

    For slow work that is needed only before the next decision.

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


def learns_itself(rule: type) -> bool:
    """Whether a kind of rule has a `learn` or `settle` of its own."""
    return not (_is_default("learn", rule) and _is_default("settle", rule))


def _is_default(name: str, rule: type) -> bool:
    return _KERNELS.find(name, rule) is _KERNELS.find(name, None)


def check_rule(rule: Any, policy: str, learns_truth: bool) -> None:
    """Refuse a rule that compiled code cannot take, or that would ignore true rewards."""
    _KERNELS.check(rule, f"{policy}.rule", "score")
    if learns_truth and _is_default("learn_true", type(rule)):
        raise InputError(
            f"{policy} takes true rewards, and nothing learns them; mark a function with "
            f"@kernel(learn_true, {type(rule).__name__}), or set learns_truth to False"
        )


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
