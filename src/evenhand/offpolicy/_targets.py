"""What the policy to be evaluated would do: a probability for every row and arm."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from evenhand import _checks
from evenhand._checks import Array, Bools, numbers, unmasked, whole_numbers
from evenhand.errors import InputError, in_python, setting
from evenhand.groups import Groups
from evenhand.offpolicy.logged import Logged


class HasPropensities(Protocol):
    """Anything that gives the probabilities of its arms at contexts (arms, features)."""

    def propensities(self, contexts: Any) -> Any:
        """A probability for each arm."""


Target = ArrayLike | Callable[[Array], ArrayLike] | HasPropensities | str
UNIFORM = "uniform"


def policy_probabilities(policy: HasPropensities, log: Logged) -> Array:
    """The probabilities of all arms under a policy as it is now, in every row, (rows, arms).

    The policy learns nothing from this: it is evaluated as it is, with the exploration of its
    current round.

    Args:
        policy: anything with a method `propensities(contexts)`, contexts of shape (arms, features).
            In rounds with missing arms it also gets `available`, true or false for every arm.
        log: with contexts of all arms, or shared ones.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> policy = eh.UniformRandom(["F", "M"], n_features=1)
        >>> log = eh.offpolicy.Logged([0, 1], [1, 0], [0.5, 0.5], ["F", "M"], np.ones((2, 1)))
        >>> eh.offpolicy.policy_probabilities(policy, log).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """
    groups, features = getattr(policy, "groups", None), getattr(policy, "n_features", None)
    if isinstance(groups, Groups) and features is not None:
        check_fit(policy, log.groups, features if log.contexts is None else log.contexts.shape[-1])
    if log.contexts is None or (log.contexts.ndim == 2 and not log.shared):
        raise InputError(
            "the log lacks the contexts of all arms, so a policy cannot say what it would do; "
            f"write a log that keeps all candidates{in_python(', with candidates=True')}, or "
            f"choose another target, such as {setting('target', UNIFORM)}",
            parameter="target",
        )
    k = log.groups.n_arms
    rows = log.contexts
    if rows.ndim == 2:
        rows = np.broadcast_to(rows[:, None, :], (log.n, k, rows.shape[1]))
    chances = np.empty((log.n, k))
    for number, row in enumerate(rows):
        arms = None if log.available is None else log.available[number]
        chances[number] = _propensities(policy, np.ascontiguousarray(row), arms)
    return _checked(chances, log)


def check_fit(policy: Any, groups: Groups, n_features: int) -> None:
    """Refuse a policy with other arms or features than the log."""
    if list(policy.groups.labels) != list(groups.labels):
        raise InputError(
            f"{setting('target')} has {policy.n_arms} arms in groups "
            f"{', '.join(policy.groups.labels)}; the log has {groups.n_arms} in "
            f"{', '.join(groups.labels)}: allowed is a policy over the same arms"
        )
    row_length = policy.n_features + (len(policy.groups.columns) if policy.groups.changes else 0)
    if row_length != n_features:
        raise InputError(
            f"{setting('target')} has {row_length} features, with the levels of groups that come "
            f"with each round; the log has {n_features}"
            if policy.groups.changes
            else f"{setting('target')} has {row_length} features; the log has {n_features}"
        )


def _propensities(policy: HasPropensities, contexts: Array, available: Bools | None) -> Array:
    if available is None or available.all():
        chances = policy.propensities(contexts)
    elif "available" in signature(policy.propensities).parameters:
        chances = policy.propensities(contexts, available=available)  # type: ignore[call-arg]
    else:
        raise InputError(
            f"{setting('target')} has a method propensities without a parameter 'available', and "
            "arms are missing in some rounds of the log; add it, or give probabilities"
        )
    return numbers("propensities of the target", chances, (len(contexts),))


def probabilities(target: Target, log: Logged) -> Array:
    """A target of any kind as probabilities, (rows, arms)."""
    if isinstance(target, str):
        _checks.one_of("target", target, [UNIFORM])
        return _uniform(log)
    if callable(getattr(target, "propensities", None)):  # a policy that logs passes it on
        return policy_probabilities(cast(HasPropensities, target), log)
    if callable(target):
        if log.contexts is None:
            raise InputError(
                f"{setting('target')} is a function and the log has no contexts; give contexts"
            )
        target = target(log.contexts)
    unmasked("target", target)
    array = np.asarray(target)
    if array.ndim == 1:
        chosen = whole_numbers("target", array, log.n, log.groups.n_arms)
        return np.eye(log.groups.n_arms)[chosen]
    return _checked(array, log)


def _uniform(log: Logged) -> Array:
    """Every available arm with the same probability."""
    arms = np.ones((log.n, log.groups.n_arms))
    if log.available is not None:
        arms = log.available.astype(np.float64)
    chances: Array = arms / arms.sum(axis=1, keepdims=True)
    return chances


def _checked(given: Any, log: Logged) -> Array:
    table = numbers("target", given, (log.n, log.groups.n_arms))
    off = np.abs(table.sum(axis=1) - 1.0) > 1e-6
    if (table < -1e-12).any() or off.any():
        row = int(np.argmax(off | (table < 0.0).any(axis=1)))
        raise InputError(
            f"{setting('target')} has probabilities in row {row} that sum to {table[row].sum():g}, "
            f"the least {table[row].min():g}; allowed are numbers of at least 0 that sum to 1"
        )
    return np.maximum(table, 0.0)
