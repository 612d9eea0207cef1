"""The sums behind the regressions, in the features' own coordinates, as plain NumPy arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.leastsquares._layout import BASIS, COUNT, RANK, RESIDUAL, RIDGE, Regressions
from evenhand.leastsquares._prior import Prior
from evenhand.leastsquares._saved import factors, saved_tail, to_saved

Array = NDArray[np.float64]


class Sums(NamedTuple):
    """Per regression: observations n, X'X, X'y and y'y, without any ridge."""

    n: NDArray[np.float64]
    gram: NDArray[np.float64]
    moment: NDArray[np.float64]
    square: NDArray[np.float64]


def sums(fits: Regressions, prior: Prior | None = None) -> Sums:
    """n, X'X, X'y and y'y of every regression, without its ridge or prior.

    They are exact up to the rounding of X'X and of the ridge. Results computed from them lose
    digits that R keeps (see `evenhand.leastsquares`), so use them for reports, not for decisions.

    Args:
        fits: the regressions.
        prior: the prior that they were made with, if any.

    Example:
        >>> import numpy as np
        >>> from evenhand.leastsquares import absorb, regressions
        >>> from evenhand.leastsquares._sums import sums
        >>> two = regressions(2, n_features=1, singular="ridge", ridge=0.5)
        >>> absorb(two, 0, np.array([2.0]), 3.0)
        >>> absorb(two, 0, np.array([1.0]), 1.0)
        >>> totals = sums(two)
        >>> totals.n.tolist(), totals.gram[:, 0, 0].round(9).tolist()
        ([2.0, 0.0], [5.0, 0.0])
        >>> totals.moment[:, 0].round(9).tolist(), totals.square.round(9).tolist()
        ([7.0, 0.0], [10.0, 0.0])
    """
    n, triangle, z, residual = _read(fits)
    square = residual + np.sum(z * z, axis=1)
    if fits.singular == RIDGE:
        return _without_ridge(fits.ridge, n, triangle, z, square)
    if prior is not None:
        return _without_prior(prior, n, triangle, z, square)
    _, root, _, _ = roots(fits)
    transposed = root.transpose(0, 2, 1)
    return Sums(n.copy(), transposed @ root, (transposed @ z[..., None])[..., 0], square)


def roots(
    fits: Regressions,
) -> tuple[Array, Array, Array, Array]:
    """n, R and z with R'R = X'X and R'z = X'y, and the residuals; not for a ridge or prior.

    R is in the features' own coordinates and, where a design is singular, has rows of zeros.
    """
    d, tail, flat = fits.n_features, saved_tail(fits), _flat(fits)
    n, triangle, z, residual = _read(fits)
    # At full rank R is in the features' coordinates; before, in those of the directions seen.
    basis = flat[:, tail + BASIS :].reshape(-1, d, d).copy()
    # The basis was folded into R then; what is in its place is left over.
    basis[flat[:, tail + RANK] == d] = np.eye(d)
    # Features were multiplied by their factors before they were absorbed.
    used = factors(fits).reshape(-1, d)[: fits.number, None, :]
    return n, triangle @ basis / np.where(used > 0.0, used, 1.0), z, residual


def _flat(fits: Regressions) -> NDArray[np.float64]:
    """A row per regression, in the order of a saved table."""
    saved = to_saved(fits)
    by_lane = saved.transpose(0, 2, 1)[:, : fits.per_block]
    return by_lane.reshape(-1, saved.shape[1])[: fits.number]


def _read(
    fits: Regressions,
) -> tuple[Array, Array, Array, Array]:
    """Per regression: n, the triangle R, z and the residual sum of squares."""
    d, tail, flat = fits.n_features, saved_tail(fits), _flat(fits)
    triangle = np.zeros((fits.number, d, d))
    columns, rows = np.tril_indices(d)  # R is packed by columns
    triangle[:, rows, columns] = flat[:, : tail - 2 * d]
    return (
        flat[:, tail + COUNT],
        triangle,
        flat[:, tail - 2 * d : tail - d],
        flat[:, tail + RESIDUAL],
    )


def _without_prior(
    prior: Prior,
    n: NDArray[np.float64],
    triangle: NDArray[np.float64],
    z: NDArray[np.float64],
    square: NDArray[np.float64],
) -> Sums:
    """R'R is X'X + precision, R'z is X'y + precision mean; y'y has mean' precision mean added."""
    transposed, seen = triangle.transpose(0, 2, 1), n > 0.0
    prior_moment = prior.precision @ prior.mean
    return Sums(
        n.copy(),
        (transposed @ triangle - prior.precision) * seen[:, None, None],
        ((transposed @ z[..., None])[..., 0] - prior_moment) * seen[:, None],
        (square - prior.mean @ prior_moment) * seen,
    )


def _without_ridge(
    ridge: float,
    n: NDArray[np.float64],
    triangle: NDArray[np.float64],
    z: NDArray[np.float64],
    square: NDArray[np.float64],
) -> Sums:
    """R'R is X'X + ridge, and y'y = residuals + |z|^2 + ridge |b|^2 at the shrunk b = R^-1 z.

    The penalised sum of squares |y - X b|^2 + ridge |b|^2 is y'y - |z|^2 at its minimum, because
    z'z = b' R'R b = b . X'y. What a regression keeps is |y - X b|^2 alone (`_note_ridge`), so y'y
    is that, plus ridge |b|^2, plus |z|^2.

    X'X = R'R - ridge I is a difference. With a small ridge it keeps its digits; with one that is
    large beside X'X it has lost the digits by which the ridge is larger.
    """
    transposed = triangle.transpose(0, 2, 1)
    shrunk = np.linalg.solve(triangle, z[..., None])[..., 0]
    gram = transposed @ triangle - ridge * np.eye(z.shape[1])
    square = square + ridge * np.sum(shrunk * shrunk, axis=1)
    # Where nothing was seen, only the rounding of the ridge is left over.
    seen = np.einsum("ikk->ik", gram) > 1e-12 * ridge
    gram *= seen[:, :, None] & seen[:, None, :]
    return Sums(
        n.copy(),
        gram,
        (transposed @ z[..., None])[..., 0] * seen,
        square * (n > 0.0),
    )
