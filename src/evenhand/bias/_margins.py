"""Cells that borrow from their margins: "F & black" from all women and from all black people.

The level y_c of the feedback for a cell c is known with the covariance S. It is taken as additive
margins plus a deviation of its own,

    y = theta + noise,  theta = X b + delta,  delta ~ N(0, tau^2),

where X has a column for each category of each attribute. Given tau, b is fitted by generalised
least squares with the covariance V = S + tau^2, and with B = tau^2 V^-1

    theta = X b + B (y - X b),
    its covariance  B S + (I - B) X C X' (I - B)',  C = (X' V^-1 X)^+,

in which the second part is the uncertainty of the margins. With tau = 0 it is the additive fit, and
with a large tau the cells by themselves. A cell that is not known has the margins alone, and tau^2
more variance.

Four cells say little about tau. Intervals that took one value of it, such as zero, for the truth
would be too short. So everything is averaged over tau by its likelihood (that of REML) and Daniels'
uniform shrinkage prior (1999), under which B is uniform between 0 and 1 for a cell of median
variance. `paule_mandel` is the point estimate that is reported beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from evenhand.bias.statistics import Array, Bools

STEPS = 80  # of the average over tau
# Its values of tau^2 go from NEAR times a usual variance to FAR times the larger of that and the
# point estimate; those less likely than LIKELY are left out.
NEAR, FAR, LIKELY = 1e-3, 1e3, 1e-6
SEEN = 1e-9  # singular values of the margins below this part of the largest count as zero
FLOOR = 1e-12  # variances are at least this part of the largest


@dataclass(frozen=True, eq=False)
class Shrunk:
    """Levels of cells, shrunk towards their margins.

    Attributes:
        level: of each cell; NaN where neither it nor its margins are known.
        covariance: of the levels.
        own: the weight that a cell's own data has in it, 0 to 1.
        tau: the standard deviation of what margins do not explain (Paule and Mandel).
        freedom: how many comparisons of cells bear on tau; with 0, cells are not shrunk.
    """

    level: Array
    covariance: Array
    own: Array
    tau: float
    freedom: int


def margins(cells: pd.DataFrame) -> Array:
    """The design of additive margins: an intercept, and a column for every category.

    Example:
        >>> import pandas as pd
        >>> from evenhand.bias._margins import margins
        >>> margins(pd.DataFrame({"sex": ["F", "F", "M"], "race": ["a", "b", "a"]})).tolist()
        [[1.0, 1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 1.0, 0.0]]
    """
    columns: list[Array] = [np.ones(len(cells))]
    for name in cells:
        values = cells[name].astype(str)
        categories = sorted(set(values))
        columns += [(values == category).to_numpy().astype(float) for category in categories]
    return np.column_stack(columns)


def shrink(level: Array, covariance: Array, design: Array, tau: float | None = None) -> Shrunk:
    """Shrink levels of cells towards additive margins.

    Args:
        level: of each cell; NaN where it is not known.
        covariance: of the levels that are known, (cells, cells).
        design: the margins of each cell, of full rank or not.
        tau: the standard deviation of what margins do not explain. Unless given, results are
            averaged over its values by how likely the data make them.

    Example:
        >>> import numpy as np
        >>> from evenhand.bias._margins import shrink
        >>> x = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
        >>> shrunk = shrink(np.array([0.0, 1.0, 2.0, 5.0]), np.eye(4), x, tau=0.0)
        >>> shrunk.level.round(9).tolist()
        [-0.5, 1.5, 2.5, 4.5]
    """
    known = ~np.isnan(level)
    if not known.any():
        nothing = np.full(len(level), np.nan)
        return Shrunk(nothing, np.outer(nothing, nothing), np.zeros(len(level)), 0.0, 0)
    spread = _invertible(covariance[np.ix_(known, known)], level[known])
    basis, reached = _basis(design, known)
    y, x = level[known], basis[known]
    freedom = len(y) - x.shape[1]
    best = paule_mandel(y, spread, x) if tau is None else tau
    if tau is None and freedom > 0:
        taus, weights = _open(y, spread, x, best)
    else:  # without degrees of freedom the cells stay as they are, whatever tau is
        taus, weights = np.array([best]), np.ones(1)
    levels, covariances, own = _given(taus, y, spread, basis, known)
    # The law of total variance: the mean of the covariances given tau, and the covariance of the
    # levels between the values of tau.
    middle = weights @ levels
    off = levels - middle
    whole = np.tensordot(weights, covariances + off[:, :, None] * off[:, None, :], 1)
    nowhere = ~(reached | known)
    return Shrunk(np.where(nowhere, np.nan, middle), whole, weights @ own, best, freedom)


def _invertible(spread: Array, y: Array) -> Array:
    """A covariance with a floor, for cells whose feedback is exact or depends on others'."""
    size = max(float(np.diag(spread).max()), float(np.var(y)), 1e-300)
    lifted: Array = spread + FLOOR * size * np.eye(len(y))
    return lifted


def _basis(design: Array, known: Bools) -> tuple[Array, Bools]:
    """The margins in as many columns as the known cells identify, and the cells that they cover."""
    _, held, rows = np.linalg.svd(design[known], full_matrices=False)
    # Margins are redundant: the categories of every attribute add up to the intercept. Only what
    # the known cells identify is fitted.
    rows = rows[held > SEEN * held.max(initial=0.0)]
    basis: Array = design @ rows.T
    left = np.linalg.norm(design - basis @ rows, axis=1)
    return basis, left <= 1e-6 * np.linalg.norm(design, axis=1)


def _given(
    taus: Array, y: Array, spread: Array, basis: Array, known: Bools
) -> tuple[Array, Array, Array]:
    """For each tau: levels, their covariance, and the weight of own data.

    In the notation at the top, with a row for every cell, known or not:

        pull = B = tau^2 V^-1             of the known cells, towards their own data
        level = X b + B (y - X b)         X b alone where a cell is not known
        moves = (I - B) X                 how levels follow b; X where a cell is not known
        rest = B S                        their variance given b; tau^2 where a cell is not known
        covariance = rest + moves C moves'
    """
    x, identity, squares = basis[known], np.eye(len(y)), taus[:, None, None] ** 2
    precision = np.linalg.inv(spread + squares * identity)
    margin = np.linalg.inv(x.T @ precision @ x)
    b = margin @ (x.T @ (precision @ y)[..., None])
    pull = squares * precision
    level, moves = (basis @ b)[..., 0], np.tile(basis, (len(taus), 1, 1))
    level[:, known] += (pull @ (y[:, None] - x @ b))[..., 0]
    moves[:, known] = (identity - pull) @ x
    rest = squares * np.diag(~known)
    within = pull @ spread
    rest[:, np.outer(known, known)] = ((within + within.mT) / 2.0).reshape(len(taus), -1)
    own = np.zeros((len(taus), len(known)))
    own[:, known] = np.einsum("tii->ti", pull)
    return level, rest + moves @ margin @ moves.mT, own


def paule_mandel(y: Array, spread: Array, x: Array) -> float:
    """The tau at which the weighted sum of squared residuals equals its degrees of freedom.

    Example:
        >>> import numpy as np
        >>> from evenhand.bias._margins import paule_mandel
        >>> x = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
        >>> round(paule_mandel(np.array([0.0, 0.0, 0.0, 4.0]), np.eye(4), x) ** 2, 9)
        3.0
    """
    freedom = len(y) - x.shape[1]

    def excess(square: float) -> float:
        return float(_left_over(np.array([square]), y, spread, x)[0][0] - freedom)

    if freedom < 1 or excess(0.0) <= 0.0:
        return 0.0
    top = _usual(spread)
    # The excess falls with tau^2, so a bracket is found by going up until it is negative.
    while excess(top) > 0.0:
        top *= 4.0
    from scipy.optimize import brentq  # 0.1 s, which audits of one attribute need not wait for

    return float(np.sqrt(brentq(excess, 0.0, top, xtol=1e-14 * top)))


def _left_over(squares: Array, y: Array, spread: Array, x: Array) -> tuple[Array, Array]:
    """For each tau^2: the weighted sum of squared residuals, and the log-likelihood of REML."""
    whole = spread + squares[:, None, None] * np.eye(len(y))
    precision = np.linalg.inv(whole)
    inner = x.T @ precision @ x
    b = np.linalg.solve(inner, x.T @ (precision @ y)[..., None])
    rest = y[:, None] - x @ b
    left = (rest.mT @ precision @ rest)[:, 0, 0]
    # REML: the second determinant is what fitting the margins costs.
    size = np.linalg.slogdet(whole)[1] + np.linalg.slogdet(inner)[1]
    return left, -0.5 * (size + left)


def _usual(spread: Array) -> float:
    """The variance of a usual cell: the median, which a hardly known cell does not move."""
    return float(np.median(np.diag(spread)))


def _open(y: Array, spread: Array, x: Array, best: float) -> tuple[Array, Array]:
    """Values of tau, and how likely each is, with the uniform prior for B of a usual cell.

    The values are evenly spaced in their logarithm and go far beyond the point estimate: with many
    rows, deviations may be a thousand times as large as their errors.
    """
    usual = _usual(spread)
    most = max(usual, best**2)
    squares = np.geomspace(NEAR * usual, FAR * most, STEPS)
    # Uniform B = tau^2 / (usual + tau^2) has the density usual / (usual + tau^2)^2 in tau^2. The
    # values are spaced by their logarithm, which adds the factor tau^2.
    prior = np.log(squares) - 2.0 * np.log(usual + squares)
    logs = prior + _left_over(squares, y, spread, x)[1]
    weights = np.exp(logs - logs.max())
    keep = weights > LIKELY
    return np.sqrt(squares[keep]), weights[keep] / weights[keep].sum()
