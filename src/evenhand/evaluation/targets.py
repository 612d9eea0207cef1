"""What the policy to be evaluated would do: a probability for every row and arm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from evenhand._arrays import numbers
from evenhand.evaluation.arrays import Array, whole_numbers
from evenhand.evaluation.logged import Logged


@runtime_checkable
class HasPropensities(Protocol):
    """Whatever tells the probabilities of its arms at contexts (arms, features)."""

    def propensities(self, contexts: Any) -> Any:
        """A probability for each arm."""


Target = ArrayLike | Callable[[Array], ArrayLike] | HasPropensities


def policy_probabilities(policy: HasPropensities, log: Logged) -> Array:
    """What a policy as it stands now would do in every row, (rows, arms).

    The policy learns nothing from this: it is evaluated as it is, with the exploration of the round
    that it is in.

    Args:
        policy: anything with a method `propensities(contexts)`, contexts of shape (arms, features).
        log: with contexts of all arms, or shared ones.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> policy = eh.UniformRandom(["F", "M"], n_features=1)
        >>> log = eh.evaluation.Logged([0, 1], [1, 0], [0.5, 0.5], ["F", "M"], np.ones((2, 1)))
        >>> eh.evaluation.policy_probabilities(policy, log).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """
    if log.contexts is None or (log.contexts.ndim == 2 and not log.shared):
        raise ValueError(
            "contexts of all arms are not in the log, so a policy cannot say what it would do; "
            "give contexts of shape (rows, arms, features), or its probabilities as target"
        )
    k = log.groups.n_arms
    rows = log.contexts
    if rows.ndim == 2:
        rows = np.broadcast_to(rows[:, None, :], (log.n, k, rows.shape[1]))
    found = [np.asarray(policy.propensities(np.ascontiguousarray(row))) for row in rows]
    return _checked(np.array(found, dtype=np.float64), log)


def probabilities(target: Target, log: Logged) -> Array:
    """A target in any of its forms as probabilities, (rows, arms)."""
    if isinstance(target, HasPropensities):
        return policy_probabilities(target, log)
    if callable(target):
        if log.contexts is None:
            raise ValueError("target is a function and the log has no contexts; give contexts")
        target = target(log.contexts)
    array = np.asarray(target)
    if array.ndim == 1:
        chosen = whole_numbers("target", array, log.n, log.groups.n_arms)
        return np.eye(log.groups.n_arms)[chosen]
    return _checked(array, log)


def _checked(given: Any, log: Logged) -> Array:
    table = numbers("target", given, (log.n, log.groups.n_arms))
    off = np.abs(table.sum(axis=1) - 1.0) > 1e-6
    if (table < -1e-12).any() or off.any():
        row = int(np.argmax(off | (table < 0.0).any(axis=1)))
        raise ValueError(
            f"target has probabilities in row {row} that sum to {table[row].sum():g}, the least "
            f"{table[row].min():g}; allowed are numbers of at least 0 that sum to 1"
        )
    return np.maximum(table, 0.0)
