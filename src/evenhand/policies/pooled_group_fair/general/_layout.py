"""The general form in memory: its rule, fixed when the policy is made, and its state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import subroutine
from evenhand._compile.intrinsics import stays_a_function
from evenhand.policies.pooled_group_fair._layout import (
    EMPTY,
    N_NUMBERS,
    N_OF_TRUTH,
    REWARD_UNIT,
    SCALE,
)

MEAN = 0  # the kind of the first column; attributes are 1, 2, ..., and intersections the last


class GeneralRule(NamedTuple):
    """Which columns a candidate's weights are made of, and what candidates are compared with.

    With a levels in all, a candidate has `a` numbers: 1 at its levels, or probabilities. They come
    behind its features where membership comes with the round; otherwise `levels` has them.
    """

    n_features: int
    levels: NDArray[np.float64]  # (arms, a); no rows if membership comes with the round
    cells: NDArray[np.int64]  # (intersections, attributes): the levels of every intersection
    kinds: NDArray[np.int64]  # of every column: MEAN, an attribute, or an intersection
    reference: NDArray[np.float64]  # the weights that candidates are compared with
    sigma2: float  # negative: estimated
    recurs: bool  # whether an arm is the same candidate, or seat, in every round
    free: bool  # whether nobody named the reference, so that it may be distorted itself
    true_scale: float  # of true rewards in units of feedback; 0: estimated, with the offset
    true_offset: float
    probes: bool


@subroutine
def fill_weights(rule, arm, x, weights):  # type: ignore[no-untyped-def]
    """The weights of a candidate; that of an intersection is the product of its levels'."""
    d, fixed, a = rule.n_features, rule.levels.shape[0] > 0, rule.levels.shape[1]
    # The first column is for all: z begins with x itself, and z z' with x x'.
    weights[0] = 1.0
    for level in range(a):
        weights[1 + level] = rule.levels[arm, level] if fixed else x[d + level]
    for cell in range(rule.cells.shape[0]):
        weight = 1.0
        for attribute in range(rule.cells.shape[1]):
            weight *= weights[1 + rule.cells[cell, attribute]]
        weights[1 + a + cell] = weight


@subroutine
def is_reference(rule, weights):  # type: ignore[no-untyped-def]
    """Whether a candidate has no level that the reference does not have."""
    for level in range(rule.levels.shape[1]):
        # A candidate of whom probabilities are known is of the reference only if it cannot be of
        # another level.
        if weights[1 + level] > 0.0 and rule.reference[1 + level] == 0.0:
            return False
    return True


class GeneralState(NamedTuple):
    """The own state of a policy with n arms, d features, q columns and a levels.

    With z = weights (x) context, a vector of q d numbers, all sums are in the caller's units; the
    rest is in units of the root mean square of features and rewards. Arms that come once have no
    sums of their own.
    """

    settled: NDArray[np.float64]  # z z' (qd x qd), z y (qd), y y, count
    fresh: NDArray[np.float64]  # the same, of later decisions
    settled_arms: NDArray[np.float64]  # per arm: z x' (qd x d), x y (d), count
    fresh_arms: NDArray[np.float64]
    arms: NDArray[np.float64]  # per arm: S (d x d), u (d), D (d x qd)
    means: NDArray[np.float64]  # (1 + qd, qd): M, and below it its covariance V
    mass: NDArray[np.float64]  # per level: the sum of its weights over all rewards
    common: NDArray[np.float64]  # numbers as in `pooled_group_fair._layout`; 1 / units
    # Of true rewards, first as `settled` and `settled_arms`. Then over all: z, the true reward; and
    # of those whose feedback y is known as well: z, y and 1. And per arm: x; and of those: x.
    true: NDArray[np.float64]
    true_arms: NDArray[np.float64]
    # Of those of the reference, per arm (or one row): sums of x x', x z, z^2, 1, x, z.
    true_reference: NDArray[np.float64]
    truth: NDArray[np.float64]  # numbers as in `pooled_group_fair._layout`
    # The maps of `_blend.Blend`, and their results for the effects: M after truth, M - eta, psi_0.
    m_map: NDArray[np.float64]
    m_at_0: NDArray[np.float64]
    e_map: NDArray[np.float64]
    e_at_0: NDArray[np.float64]
    after: NDArray[np.float64]


# Policies saved before there were true rewards do not have these.
OF_GENERAL_TRUTH = ("true_arms", "true_reference", "after")  # besides those of the fixed form


def new_state(n_arms: int, d: int, columns: int, levels: int, recurs: bool) -> GeneralState:
    """A state that has learned nothing."""
    n, size = n_arms if recurs else 0, columns * d
    state = GeneralState(
        np.zeros(size * size + size + 2),
        np.zeros(size * size + size + 2),
        np.zeros((n, size * d + d + 1)),
        np.zeros((n, size * d + d + 1)),
        np.zeros((n, d * d + d + d * size)),
        np.zeros((1 + size, size)),
        np.zeros(levels),
        np.zeros(N_NUMBERS + d),
        np.zeros(size * size + 3 * size + 5),
        np.zeros((n, size * d + 3 * d + 1)),
        np.zeros((max(n, 1), d * d + 2 * d + 3)),
        np.zeros(N_OF_TRUTH),
        np.zeros((size, size)),
        np.zeros(size),
        np.zeros((size, size)),
        np.zeros(size),
        np.zeros((3, size)),
    )
    state.truth[SCALE] = 1.0
    state.common[REWARD_UNIT] = 1.0
    state.common[EMPTY] = levels
    return state


@subroutine
def add_reward(rule, sums, of_arms, arm, weights, x, reward):  # type: ignore[no-untyped-def]
    """Add a reward to the sums of all, and to those of its arm."""
    stays_a_function()
    d, q = rule.n_features, weights.size
    size = q * d
    for column in range(q):
        weight = weights[column]
        if weight == 0.0:
            continue
        for k in range(d):
            # z z' = (w w') (x) (x x'). Most weights are 0, so only the blocks of columns that the
            # candidate has are touched.
            z, here = weight * x[k], column * d + k
            for other in range(q):
                if weights[other] != 0.0:
                    for j in range(d):
                        sums[here * size + other * d + j] += z * weights[other] * x[j]
            sums[size * size + here] += z * reward
            if rule.recurs:
                for j in range(d):
                    of_arms[arm, here * d + j] += z * x[j]
    sums[size * size + size] += reward * reward
    sums[size * size + size + 1] += 1.0
    if rule.recurs:
        for k in range(d):
            of_arms[arm, size * d + k] += x[k] * reward
        of_arms[arm, size * d + d] += 1.0
