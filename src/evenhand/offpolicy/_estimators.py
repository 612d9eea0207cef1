"""IPS, SNIPS and DR, each as a solution of mean(a - v b) = 0: one form for all intervals.

With weights w = target / propensity of the chosen arm, and q what a model predicts:

| estimator | value | contribution of a group | value within a group |
|---|---|---|---|
| IPS | w r | w r [g] over 1 | w r [g] over the target's chance of g |
| SNIPS | w r over w | w r [g] over w | w r [g] over w [g] |
| DR | sum of target q, plus w (r - q) | the same over arms of g | that over the same chance |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand._checks import Array, Bools
from evenhand.offpolicy.logged import Logged

ESTIMATORS = ("ips", "snips", "dr")
LOGGED = "logged"
VALUE, CONTRIBUTION, WITHIN, SHARE = "value", "contribution", "within", "share"


class Terms(NamedTuple):
    """The estimate is sum(a) / sum(b). `weights` are those of the rows it rests on."""

    a: Array
    b: Array
    weights: Array


class Rows(NamedTuple):
    """What all estimators need, for one kind of reward."""

    log: Logged
    target: Array  # (rows, arms)
    weights: Array
    rewards: Array
    predicted: Array | None  # (rows, arms)


def terms(name: str, quantity: str, group: int | None, rows: Rows) -> Terms:
    """The terms of an estimator, of everything (group None) or of a group."""
    log, ones = rows.log, np.ones(rows.log.n)
    inside = ones if group is None else (log.of == group).astype(np.float64)
    if name == LOGGED:
        return Terms(rows.rewards * inside, inside if quantity == WITHIN else ones, inside)
    w = rows.weights * inside
    if name == "snips":
        return Terms(w * rows.rewards, w if quantity == WITHIN else rows.weights, w)
    arms: Bools = np.ones(log.groups.n_arms, dtype=np.bool_)
    if group is not None:
        arms = log.groups.of == group
    below = rows.target[:, arms].sum(axis=1) if quantity == WITHIN else ones
    if name == "ips":
        return Terms(w * rows.rewards, below, w)
    assert rows.predicted is not None
    direct = np.sum(rows.target[:, arms] * rows.predicted[:, arms], axis=1)
    own = rows.predicted[np.arange(log.n), log.arms]
    return Terms(direct + w * (rows.rewards - own), below, w)


def estimate(found: Terms) -> float:
    """The solution of mean(a - v b) = 0; NaN where b is 0."""
    below = float(found.b.sum())
    return float(found.a.sum()) / below if below > 0.0 else float("nan")


def influence(found: Terms, value: float) -> Array:
    """What every row does to the estimate, to first order."""
    parts: Array = (found.a - value * found.b) / found.b.mean()
    return parts


def effective(weights: Array) -> float:
    """How many rows of equal weight are worth as much (Kish)."""
    square = float(np.sum(weights**2))
    return float(np.sum(weights)) ** 2 / square if square > 0.0 else 0.0
