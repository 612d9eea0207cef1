"""What regressions start from: a prior with mean and precision matrix, or a ridge towards 0."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand.errors import InputError


class Prior(NamedTuple):
    """The belief about coefficients before any data: N(mean, sigma^2 precision^-1).

    A ridge is the prior with mean 0 and precision ridge I, except in how noise is estimated from
    the residuals (see `noise_variance`).

    Example:
        >>> import numpy as np
        >>> from evenhand.leastsquares import Prior, absorb, coefficients, regressions
        >>> fits = regressions(1, n_features=1, prior=Prior(np.array([2.0]), np.eye(1)))
        >>> absorb(fits, 0, np.array([1.0]), 4.0)
        >>> coefficients(fits, 0).round(9).tolist()
        [3.0]
    """

    mean: NDArray[np.float64]
    precision: NDArray[np.float64]


def checked_prior(prior: Prior, n_features: int) -> Prior:
    """The prior in arrays; an InputError unless it is a normal distribution of this many numbers.

    Example:
        >>> from evenhand.leastsquares._prior import Prior, checked_prior
        >>> checked_prior(Prior([2.0], [[4.0]]), 1).mean
        array([2.])
        >>> checked_prior(Prior([2.0], [[0.0]]), 1)
        Traceback (most recent call last):
        evenhand.errors.InputError: the prior's precision is not positive definite; allowed is ...
    """
    if not isinstance(prior, Prior):
        raise InputError(
            f"the prior is {_checks.shown(prior)}; allowed is Prior(mean, precision) or None"
        )
    d = n_features
    mean = _checks.numbers("the prior's mean", prior.mean, (d,))
    precision = _checks.numbers("the prior's precision", prior.precision, (d, d))
    # A covariance that was inverted numerically is symmetric only up to rounding.
    if np.abs(precision - precision.T).max() > 1e-9 * np.abs(precision).max():
        raise InputError(
            "the prior's precision is not symmetric; allowed is the inverse of a covariance matrix"
        )
    try:
        np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        raise InputError(
            "the prior's precision is not positive definite; allowed is the inverse of a "
            "covariance matrix, such as a small number times the identity"
        ) from None
    return Prior(mean, precision)


def write_prior(rows: NDArray[np.float64], prior: Prior, width: int, tail: int) -> None:
    """Set R'R = precision and R'z = precision mean, as if such rows had been observed.

    With Cholesky's precision = L L', R = L' is upper triangular and R'R = L L'. With z = R mean,
    R'z = L L' mean. So the prior is d more rows of data, R with the rewards z, which have no
    residuals: from here on nothing in this package has to know that there is a prior, except what
    takes it out again (`_sums`). It counts for no observations, and for no degrees of freedom.

    `rows` has a lane per regression in its last index, and all of them get the same.
    """
    d = prior.mean.size
    root = np.linalg.cholesky(prior.precision).T
    for k in range(d):
        # Rows of R are packed: each is one number shorter than the one before.
        start = k * width - k * (k + 1) // 2
        rows[:, start + k : start + d] = root[k, k:, None]
    rows[:, tail - 2 * width : tail - 2 * width + d] = (root @ prior.mean)[:, None]
    rows[:, tail - width : tail - width + d] = (1.0 / np.diag(root))[:, None]


def write_ridge(
    rows: NDArray[np.float64], ridge: float, n_features: int, width: int, tail: int
) -> None:
    """Set R'R = ridge I and R'z = 0: a prior with mean 0."""
    k, d = np.arange(n_features), n_features
    rows[:, k * width - k * (k - 1) // 2] = np.sqrt(ridge)
    rows[:, tail - width : tail - width + d] = 1.0 / np.sqrt(ridge)
