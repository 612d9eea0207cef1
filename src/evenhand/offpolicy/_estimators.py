"""IPS, SNIPS and DR, each as a solution of mean(a - v b) = 0: one form for all intervals.

With weights w = target / propensity of the chosen arm, and q the prediction of a model:

| estimator | value | contribution of a group | value within a group |
|---|---|---|---|
| IPS | w r | w r [g] over 1 | w r [g] over the target's probability of g |
| SNIPS | w r over w | w r [g] over w | w r [g] over w [g] |
| DR | sum of target q, plus w (r - q) | the same over arms of g | that over the same probability |

The model q is a ridge regression per arm, cross-fitted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand._checks import Array, Whole
from evenhand.offpolicy.logged import Logged

ESTIMATORS = ("ips", "snips", "dr")
LOGGED = "logged"
VALUE, CONTRIBUTION, WITHIN, SHARE = "value", "contribution", "within", "share"


class RatioTerms(NamedTuple):
    """The estimate is sum(a) / sum(b). `weights` are those of the rows it rests on."""

    a: Array
    b: Array
    weights: Array


class WeightedRows(NamedTuple):
    """What all estimators need, for one kind of reward."""

    log: Logged
    target: Array  # (rows, arms)
    weights: Array
    rewards: Array
    predicted: Array | None  # (rows, arms)


def terms(name: str, quantity: str, group: int | None, rows: WeightedRows) -> RatioTerms:
    """The terms of an estimator, overall (group None) or for a group."""
    log, ones = rows.log, np.ones(rows.log.n)
    inside = ones if group is None else (log.of == group).astype(np.float64)
    if name == LOGGED:
        return RatioTerms(rows.rewards * inside, inside if quantity == WITHIN else ones, inside)
    w = rows.weights * inside
    if name == "snips":
        # Divided by the sum of the weights and not by the number of rows: weights of 1 on average
        # may be far from it in a sample. Biased, and less so the more rows there are.
        return RatioTerms(w * rows.rewards, w if quantity == WITHIN else rows.weights, w)
    # What the target would do is known in every row, whatever was chosen: the denominator needs no
    # weights.
    chances = np.where(log.inside(group), rows.target, 0.0)
    below = chances.sum(axis=1) if quantity == WITHIN else ones
    if name == "ips":
        return RatioTerms(w * rows.rewards, below, w)
    assert rows.predicted is not None
    # Doubly robust: the model's value of the target, and its error where the reward is known,
    # weighted. It is right if either the model or the propensities are.
    direct = np.sum(chances * rows.predicted, axis=1)
    own = rows.predicted[np.arange(log.n), log.arms]
    return RatioTerms(direct + w * (rows.rewards - own), below, w)


def estimate(terms: RatioTerms) -> float:
    """The solution of mean(a - v b) = 0; NaN where b is 0."""
    below = float(terms.b.sum())
    return float(terms.a.sum()) / below if below > 0.0 else float("nan")


def influence(terms: RatioTerms, value: float) -> Array:
    """The influence of every row on the estimate, to first order: (a - v b) / mean(b)."""
    parts: Array = (terms.a - value * terms.b) / terms.b.mean()
    return parts


def effective(weights: Array) -> float:
    """The effective number of rows, (sum w)^2 / sum w^2 (Kish)."""
    square = float(np.sum(weights**2))
    return float(np.sum(weights)) ** 2 / square if square > 0.0 else 0.0


def cross_fitted(log: Logged, rewards: Array, folds: int, ridge: float, seed: int) -> Array:
    """The predicted reward of every row and arm, by a model that has not seen the row.

    Each arm has its own regression on the context, with an intercept that is not penalised and
    features in standard deviations. Without contexts it is the mean. An arm that the other folds
    never chose gets the mean of its group, or of all.

    Args:
        log: the decisions.
        rewards: what to predict.
        folds: the number of folds; each is predicted from the others.
        ridge: the penalty; 1 weighs as much as one row.
        seed: of the random folds.
    """
    n, k = log.n, log.groups.n_arms
    # Folds of equal size, at random.
    fold = np.random.default_rng(seed).permutation(np.arange(n) % min(folds, n))
    own, offered = _features(log)
    predicted = np.empty((n, k))
    for part in range(min(folds, n)):
        there, others = fold == part, np.flatnonzero(fold != part)
        for arm in range(k):
            rows = _training(others, log, arm)
            mean = float(rewards[rows].mean()) if rows.size else 0.0
            predicted[there, arm] = mean
            if own is None or offered is None or not (log.arms[rows] == arm).all() or rows.size < 2:
                continue
            centre = own[rows].mean(axis=0)
            x = own[rows] - centre
            # Features are centred within the arm, so the intercept is the mean and is not
            # penalised.
            gram = x.T @ x + ridge * np.eye(x.shape[1])
            slope = np.linalg.solve(gram, x.T @ (rewards[rows] - mean))
            context = offered[there] if offered.ndim == 2 else offered[there, arm]
            predicted[there, arm] += (context - centre) @ slope
    return predicted


def _training(others: Whole, log: Logged, arm: int) -> Whole:
    """Rows of the arm; of its group if it has none and is in one; of all if that has none."""
    own: Whole = others[log.arms[others] == arm]
    if own.size or log.members is not None:
        return own if own.size else others
    group: Whole = others[log.of[others] == log.groups.of[arm]]
    return group if group.size else others


def _features(log: Logged) -> tuple[Array | None, Array | None]:
    """The contexts of chosen arms and of all, in standard deviations."""
    own = log.chosen_contexts
    if own is None or log.contexts is None:
        return None, None
    centre, spread = own.mean(axis=0), own.std(axis=0)
    # A feature that does not vary is left as it is, 0 about its mean.
    spread = np.where(spread > 1e-12 * np.maximum(np.abs(centre), 1e-300), spread, 1.0)
    return (own - centre) / spread, (log.contexts - centre) / spread
