"""The input of `evenhand.bias.measured`, from a policy or an audit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Evidence(NamedTuple):
    """What a policy or an audit gives: the posterior from feedback with a flat bias, and truth.

    The bias of a contrast k of columns, which are groups or those of the general form, is
    (k (x) x) . (m - eta), and that of the reference, psi_0, is added where it is `whole`.
    """

    unit: NDArray[np.float64]  # of the features
    rho: float  # of rewards
    flat: float  # the prior variance of a bias
    freedom: float  # the degrees of freedom of the variances behind a bias
    means: NDArray[np.float64]  # (means, d)
    basis: NDArray[np.float64]  # (columns, means): columns are basis @ means
    seen: NDArray[np.bool_]  # which columns have feedback; nothing is said of the others
    first: int  # how many columns, from the first, have no eta
    contrasts: NDArray[np.float64]  # (rows of the report, columns)
    whole: NDArray[np.bool_]
    scale: float
    offset: float
    blended: Callable[[float], Any]  # the `Blend` at a kappa^2
    # Residuals of feedback where true rewards came, and their covariance; None: not known.
    arrival: tuple[NDArray[np.float64], NDArray[np.float64]] | None
    # The degrees of freedom of a covariance that is estimated as a whole, not up to a factor.
    of_covariance: float = np.inf
