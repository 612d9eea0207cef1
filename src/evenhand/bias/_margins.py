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
more of variance.

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
    parts = [_given(value, y, spread, basis, known) for value in taus]
    middle = sum(w * part[0] for w, part in zip(weights, parts, strict=True))
    whole = sum(
        w * (part[1] + np.outer(part[0] - middle, part[0] - middle))
        for w, part in zip(weights, parts, strict=True)
    )
    own = sum(w * part[2] for w, part in zip(weights, parts, strict=True))
    nowhere = ~(reached | known)
    return Shrunk(
        np.where(nowhere, np.nan, middle), np.asarray(whole), np.asarray(own), best, freedom
    )


def _invertible(spread: Array, y: Array) -> Array:
    """A covariance with a floor, for cells whose feedback is exact or depends on others'."""
    size = max(float(np.diag(spread).max()), float(np.var(y)), 1e-300)
    lifted: Array = spread + FLOOR * size * np.eye(len(y))
    return lifted


def _basis(design: Array, known: Bools) -> tuple[Array, Bools]:
    """The margins in as many columns as the known cells identify, and the cells that they cover."""
    _, held, rows = np.linalg.svd(design[known], full_matrices=False)
    rows = rows[held > SEEN * held.max(initial=0.0)]
    basis: Array = design @ rows.T
    left = np.linalg.norm(design - basis @ rows, axis=1)
    return basis, left <= 1e-6 * np.linalg.norm(design, axis=1)


def _given(
    tau: float, y: Array, spread: Array, basis: Array, known: Bools
) -> tuple[Array, Array, Array]:
    """Levels, their covariance and the weight of own data, if tau is known."""
    x, identity = basis[known], np.eye(len(y))
    precision = np.linalg.inv(spread + tau**2 * identity)
    margin = np.linalg.inv(x.T @ precision @ x)
    b = margin @ x.T @ precision @ y
    pull = tau**2 * precision
    level, moves = basis @ b, basis.copy()
    level[known] += pull @ (y - x @ b)
    moves[known] = (identity - pull) @ x
    rest = np.diag(np.where(known, 0.0, tau**2))
    within = pull @ spread
    rest[np.ix_(known, known)] = (within + within.T) / 2.0
    own = np.zeros(len(known))
    own[known] = np.diag(pull)
    return level, rest + moves @ margin @ moves.T, own


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
    if freedom < 1 or _left_over(0.0, y, spread, x)[0] <= freedom:
        return 0.0
    top = _usual(spread)
    while _left_over(top, y, spread, x)[0] > freedom:
        top *= 4.0
    from scipy.optimize import brentq  # 0.1 s, which audits of one attribute need not wait for

    square = brentq(lambda v: _left_over(v, y, spread, x)[0] - freedom, 0.0, top, xtol=1e-14 * top)
    return float(np.sqrt(square))


def _left_over(square: float, y: Array, spread: Array, x: Array) -> tuple[float, float]:
    """For a tau^2: the weighted sum of squared residuals, and the log-likelihood of REML."""
    whole = spread + square * np.eye(len(y))
    precision = np.linalg.inv(whole)
    inner = x.T @ precision @ x
    b = np.linalg.solve(inner, x.T @ precision @ y)
    left = float((y - x @ b) @ precision @ (y - x @ b))
    size = np.linalg.slogdet(whole)[1] + np.linalg.slogdet(inner)[1]
    return left, -0.5 * float(size + left)


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
    prior = np.log(squares) - 2.0 * np.log(usual + squares)
    logs = prior + np.array([_left_over(square, y, spread, x)[1] for square in squares])
    weights = np.exp(logs - logs.max())
    keep = weights > LIKELY
    return np.sqrt(squares[keep]), weights[keep] / weights[keep].sum()
