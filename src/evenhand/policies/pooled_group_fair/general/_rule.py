"""The columns of the general form: what is fixed when the policy is made."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import subroutine

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
        if weights[1 + level] > 0.0 and rule.reference[1 + level] == 0.0:
            return False
    return True
