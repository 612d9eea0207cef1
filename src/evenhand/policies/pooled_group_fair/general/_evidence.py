"""The starting point of `Measured`, in the general form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import compiled
from evenhand.bias._evidence import Evidence
from evenhand.policies.pooled_group_fair._flat_posterior import Flat
from evenhand.policies.pooled_group_fair.general._layout import GeneralRule, GeneralState
from evenhand.policies.pooled_group_fair.general._posterior import add_in_units, blank_data
from evenhand.policies.pooled_group_fair.general._true_learning import (
    truth_in_units,
    units_of_truth,
)
from evenhand.policies.pooled_group_fair.general._true_posterior import blend
from evenhand.policies.pooled_group_fair.general.beliefs import GeneralBeliefs

Array = NDArray[np.float64]


@compiled
def _units(rule, of_reference, post, unit, of_rewards):  # type: ignore[no-untyped-def]
    return units_of_truth(rule, of_reference, post, unit, of_rewards)


@compiled
def _blended(rule, own, weights, free, basis, flat, scale, offset, kappa2):  # type: ignore[no-untyped-def]
    size, d = flat.post.M.size, flat.unit.size
    data = blank_data(own.settled_arms.shape[0], size, d)
    add_in_units(data, own.settled, own.settled_arms, flat.unit, flat.of_rewards)
    add_in_units(data, own.fresh, own.fresh_arms, flat.unit, flat.of_rewards)
    truth = truth_in_units(own.true, own.true_arms, size, scale, offset, flat.unit, flat.of_rewards)
    kinds, variances = rule.kinds, flat.variances
    return blend(data, kinds, variances, flat.post, truth, weights, free, basis, kappa2)


def evidence_of(
    rule: GeneralRule, own: GeneralState, beliefs: GeneralBeliefs, free: bool
) -> Evidence:
    """The start for a state, with the reference of some beliefs; `free` if nobody named it."""
    flat, design, weights = beliefs.flat, beliefs.design, beliefs.weights
    scale, offset = _units(rule, own.true_reference, flat.post, flat.unit, flat.of_rewards)
    rows, basis = design.rows(weights), design.basis(beliefs.mass, seen=True)
    seen = np.ones(design.kinds.size, dtype=bool)
    seen[1 : 1 + design.n_levels] = beliefs.mass > 0.0
    return Evidence(
        flat.unit,
        flat.of_rewards,
        flat.prior,
        max(float(flat.freedom[1 if rule.recurs else 0]), 1.0),
        basis.T @ flat.post.M.reshape(design.kinds.size, -1),
        basis,
        seen,
        1,
        np.array([row.contrast for row in rows]),
        np.array([row.whole for row in rows]),
        float(scale),
        float(offset),
        lambda kappa2: _blended(rule, own, weights, free, basis, flat, scale, offset, kappa2),
        _arrival(rule, own, flat),
    )


def _arrival(rule: GeneralRule, own: GeneralState, flat: Flat) -> tuple[Array, Array] | None:
    """The sum of the residuals of feedback where true rewards came, and its variance, as arrays.

    Of their variance, sigma^2 each, the fit takes a part, because it has seen the same rewards.
    With fewer than two for every feature it may take nearly all, and the test would rest on a small
    difference of estimates: then there is no test. With more, the difference still has a floor, a
    tenth of one reward's variance, so that the test never takes a residual for certain.
    """
    d, size, post = rule.n_features, flat.post.M.size, flat.post
    units = np.tile(flat.unit, size // d)
    z, y, total = own.true[-size - 2 : -2] / units, own.true[-2], own.true[-1]
    if total < 2 * d:
        return None
    fitted = 0.0
    if rule.recurs:
        x = own.true_arms[:, -d:] / flat.unit
        y = y - flat.of_rewards * np.einsum("ni,ni->", post.u, x)
        z = z - np.einsum("nij,ni->j", post.D, x)
        fitted += np.einsum("ni,nij,nj->", x, post.S, x)
    residual = float(y - flat.of_rewards * z @ post.M)
    # The same rewards have also taught the effects: with g = sum (z - D_i' x), g' V g of the
    # variance is theirs, beside x' S_i x of the arms.
    fitted += z @ post.V @ z
    sigma2 = flat.variances.sigma2[0]
    left = max(sigma2 * total - fitted, 0.1 * sigma2)
    return np.array([residual]), np.array([[flat.of_rewards**2 * left]])
