"""A reward model for the doubly robust estimator: ridge regression per arm, cross-fitted."""

from __future__ import annotations

import numpy as np

from evenhand._checks import Array, Whole
from evenhand.offpolicy.logged import Logged


def cross_fitted(log: Logged, rewards: Array, folds: int, ridge: float, seed: int) -> Array:
    """The predicted reward of every row and arm, by a model that has not seen the row.

    Each arm has its own regression on the context, with an intercept that is not penalised and
    features in standard deviations. Without contexts it is the mean. An arm that the other folds
    never chose gets the mean of its group, or of all.

    Args:
        log: the decisions.
        rewards: what to predict.
        folds: how many parts; each is predicted from the others.
        ridge: the penalty; 1 weighs as much as one row.
        seed: of the random parts.
    """
    n, k = log.n, log.groups.n_arms
    fold = np.random.default_rng(seed).permutation(np.arange(n) % min(folds, n))
    own, asked = _features(log)
    found = np.empty((n, k))
    for part in range(min(folds, n)):
        there, others = fold == part, np.flatnonzero(fold != part)
        for arm in range(k):
            rows = _training(others, log, arm)
            mean = float(rewards[rows].mean()) if rows.size else 0.0
            found[there, arm] = mean
            if own is None or asked is None or not (log.arms[rows] == arm).all() or rows.size < 2:
                continue
            centre = own[rows].mean(axis=0)
            x = own[rows] - centre
            gram = x.T @ x + ridge * np.eye(x.shape[1])
            slope = np.linalg.solve(gram, x.T @ (rewards[rows] - mean))
            context = asked[there] if asked.ndim == 2 else asked[there, arm]
            found[there, arm] += (context - centre) @ slope
    return found


def _training(others: Whole, log: Logged, arm: int) -> Whole:
    """Rows of the arm; of its group if it has none; of all if that has none."""
    own: Whole = others[log.arms[others] == arm]
    if own.size:
        return own
    group: Whole = others[log.of[others] == log.groups.of[arm]]
    return group if group.size else others


def _features(log: Logged) -> tuple[Array | None, Array | None]:
    """The contexts of chosen arms and of all, in standard deviations."""
    own = log.chosen_contexts
    if own is None or log.contexts is None:
        return None, None
    centre, spread = own.mean(axis=0), own.std(axis=0)
    spread = np.where(spread > 1e-12 * np.maximum(np.abs(centre), 1e-300), spread, 1.0)
    return (own - centre) / spread, (log.contexts - centre) / spread
