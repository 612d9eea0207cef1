"""The posterior with a flat prior for the bias, which shrinks nothing: for reports only."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import compiled
from evenhand.policies.pooled_group_fair._hyperparameters import estimate_variances
from evenhand.policies.pooled_group_fair._posterior import (
    blank_posterior,
    in_units,
    unit_of_rewards,
    units_of,
    work_out,
)

FLAT = 1e8  # the prior variance of a bias, in units of the model's: as good as infinite


class Flat(NamedTuple):
    """The starting point of reports, in either form of the model."""

    unit: NDArray[np.float64]  # of the features
    of_rewards: float  # the unit of rewards
    variances: Any
    freedom: NDArray[np.float64]  # what sigma^2 rests on, and tau^2
    prior: float  # the variance of a bias before the data
    post: Any


@compiled
def flat_posterior(sums, group_of, sizes, known_sigma2, d):  # type: ignore[no-untyped-def]
    """Units, variances with their degrees of freedom, and the posterior with a flat bias."""
    unit, of_rewards = units_of(sums, d), unit_of_rewards(sums)
    data = in_units(sums, unit, of_rewards, group_of, sizes)
    post = blank_posterior(sums.shape[0], sizes.size, d)
    variances, freedom = estimate_variances(data, known_sigma2 / of_rewards / of_rewards, post)
    # The variances have been estimated with the model's own prior. Only the effects get a flat one.
    flat = FLAT / variances.least[0]
    for k in range(d):
        for j in range(d):
            precision = 1.0 / flat if k == j else 0.0
            variances.omega_inverse[k, j] = variances.lambda_inverse[k, j] = precision
    # Both precisions are the same small number times I, so that is their smallest eigenvalue.
    variances.least[0] = variances.least[1] = 1.0 / flat
    work_out(data, variances, post)
    return Flat(unit, of_rewards, variances, freedom, flat, post)
