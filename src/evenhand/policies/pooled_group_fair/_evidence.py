"""The starting point of `Measured`, in the fixed form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import compiled
from evenhand.bias._evidence import Evidence
from evenhand.policies.pooled_group_fair._layout import PooledRule
from evenhand.policies.pooled_group_fair._posterior import in_units
from evenhand.policies.pooled_group_fair._true_learning import truth_in_units, units_of_truth
from evenhand.policies.pooled_group_fair._true_posterior import blend
from evenhand.policies.pooled_group_fair.beliefs import Beliefs

Array = NDArray[np.float64]


@compiled
def _units(rule, true, post, variances, unit, of_rewards):  # type: ignore[no-untyped-def]
    return units_of_truth(rule, true, post, variances, unit, of_rewards)


@compiled
def _blended(rule, sums, true, flat, scale, offset, kappa2):  # type: ignore[no-untyped-def]
    truth = truth_in_units(true, scale, offset, flat.unit, flat.of_rewards)
    data = in_units(sums, flat.unit, flat.of_rewards, rule.group_of, rule.sizes)
    return blend(data, flat.variances, flat.post, truth, rule.weights, rule.free, kappa2)


def evidence_of(rule: PooledRule, true: Array, sums: Array, beliefs: Beliefs) -> Evidence:
    """The start for a state's sums of true rewards and of feedback."""
    flat, m = beliefs.flat, rule.sizes.size
    scale, offset = _units(rule, true, flat.post, flat.variances, flat.unit, flat.of_rewards)
    return Evidence(
        flat.unit,
        flat.of_rewards,
        flat.prior,
        max(float(flat.freedom[1:].sum()), 1.0),
        flat.post.m,
        np.eye(m),
        np.ones(m, dtype=bool),
        0,
        np.eye(m) - rule.weights,
        np.ones(m, dtype=bool),
        float(scale),
        float(offset),
        lambda kappa2: _blended(rule, sums, true, flat, scale, offset, kappa2),
        _arrival(rule, true, flat),
    )


def _arrival(rule: PooledRule, true: Array, flat: Any) -> tuple[Array, Array] | None:
    """The sum of the residuals of feedback where true rewards came, and its variance, as arrays.

    If a true reward came for a reason that has nothing to do with the outcome, the sum of these
    residuals is 0 up to chance. With the mean of its group known, the residuals of an arm have the
    covariance sigma^2 I - X S_i X': the fit has seen the same rewards. So a sum over n of them has
    the variance n sigma^2 - x' S_i x, with x the sum of their contexts.

    That the means of groups are estimated too takes off a little more, which is left out.
    With fewer than two rewards for every feature the fit explains nearly all, and there is no test.
    Otherwise the difference has a floor, a tenth of one reward's variance.
    """
    d, group, post, variances = rule.n_features, rule.group_of, flat.post, flat.variances
    rho, unit = flat.of_rewards, flat.unit
    p = 1.0 / variances.tau2[group]
    pull = np.einsum("nij,nj->ni", post.S, post.m[group]) * p[:, None]
    theta = rho * (post.u + pull) / unit
    x, y, number = true[:, -d - 2 : -2], true[:, -2], true[:, -1]
    total = number.sum()
    if total < 2 * d:
        return None
    residual = float((y - np.einsum("ni,ni->n", theta, x)).sum())
    # What the fit takes off the variance of the sum: x' S_i x, with x the sum of an arm's contexts.
    in_units_of_features = x / unit
    fitted = np.einsum("ni,nij,nj->n", in_units_of_features, post.S, in_units_of_features).sum()
    left = max(variances.sigma2[0] * total - fitted, 0.1 * variances.sigma2[0])
    return np.array([residual]), np.array([[rho**2 * left]])
