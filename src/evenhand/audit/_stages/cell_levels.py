"""The level of every cell, features held constant: from its own regression, or a common one.

A cell needs more rows than coefficients for a regression of its own. Where hardly any cell has
them, as with many attributes or features, all cells together say what the features do: one slope
for every feature, from how rows differ within their cells, and a level for every cell (the analysis
of covariance). It assumes that slopes and noise are the same in all cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit

from evenhand.audit._report.intersections import COMMON_SLOPES, SHRUNK
from evenhand.bias._contrasts import compare
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Array, Bools, Statistics, totals

SPARE = 2  # rows more than coefficients that a cell needs for an estimate of its own
LEAST_FREEDOM = 0.5  # of f - 2 in Student's variance, which does not exist with two degrees
LEAST_LEFT = 10.0  # degrees of freedom for common slopes
SEEN = 1e-9  # of the largest eigenvalue: directions with less cannot be held constant


class Levels(NamedTuple):
    """The mean reward of each cell at everyone's average context, and its errors."""

    level: Array  # (cells,)
    spread: Array  # (cells, cells): the covariance
    known: Bools  # (cells,)
    why: list[str]
    contrast: Array  # (cells, cells): what the gap of each cell is made of
    gaps: pd.DataFrame  # estimate, standard_error, low and high of the gap of each cell
    kind: str = SHRUNK


def own_levels(report: BiasReport) -> Levels:
    """The levels by the cells' own regressions.

    With few rows the variance itself is an estimate: it is widened to that of Student's
    distribution, by f / (f - 2) with f degrees of freedom.
    """
    m, d = len(report.groups), len(report.features)
    place = np.zeros(d) if report.overall is None else report.overall
    fit = report._fit
    at_place = compare(fit, np.eye(m), np.tile(place, (m, 1)), report.level, report.features)
    n = np.array(report.observations)
    known: Bools = at_place.identified & (n >= d + SPARE)
    spread = np.array([[fit.covariance(i, j, place) for j in range(m)] for i in range(m)])
    freedom = np.where(np.isfinite(at_place.freedom), at_place.freedom, np.inf)
    with np.errstate(invalid="ignore"):
        inflation = np.where(
            np.isinf(freedom), 1.0, freedom / np.maximum(freedom - 2.0, LEAST_FREEDOM)
        )
    spread[np.arange(m), np.arange(m)] *= inflation
    few = f"fewer than {d + SPARE} rows, too few for a regression of its own with {d} coefficients"
    table = report.by_group
    gaps = table[["estimate", "standard_error", "low", "high"]].reset_index(drop=True)
    gaps.loc[~known] = np.nan
    why = [few if many < d + SPARE else str(own) for many, own in zip(n, table["why"], strict=True)]
    held = np.nan_to_num(report._weights)
    return Levels(at_place.estimate, np.nan_to_num(spread), known, why, held, gaps)


def common_levels(stats: Statistics, reference: str | None, level: float) -> Levels | None:
    """The levels with common slopes; None where rows do not suffice for these either.

    With S and s the sums of (x - x_c)(x - x_c)' and (x - x_c) y within cells, the slopes are
    b = S^-1 s. The level of cell c is y_c + a_c' b, where a_c = mean x - x_c, and the covariance
    of the levels is sigma^2 (diag(1 / n_c) + a_c' S^-1 a_d).

    Args:
        stats: the sums of the cells, about the centres, without weights.
        reference: the cell that others are compared with, or None for their mean.
        level: of the intervals.
    """
    m = len(stats.groups)
    gram, moment, square = (
        totals(part, stats.of, m) for part in (stats.gram, stats.moment, stats.square)
    )
    n = np.bincount(stats.of, stats.n, m).astype(np.float64)
    rows = np.maximum(n, 1.0)
    mean, reward = gram[:, 0, 1:] / rows[:, None], moment[:, 0] / rows
    inside = (gram[:, 1:, 1:] - n[:, None, None] * mean[:, :, None] * mean[:, None, :]).sum(axis=0)
    with_reward = (moment[:, 1:] - (n * reward)[:, None] * mean).sum(axis=0)
    scale = np.sqrt(np.maximum(np.diag(inside), 1e-300))
    inverse = np.linalg.pinv(inside / np.outer(scale, scale), rcond=SEEN, hermitian=True)
    inverse /= np.outer(scale, scale)
    slopes = inverse @ with_reward
    left = n.sum() - (n > 0.0).sum() - np.linalg.matrix_rank(inverse, hermitian=True)
    if left < LEAST_LEFT:
        return None
    noise = float((square - n * reward**2).sum() - slopes @ with_reward) / left
    offsets = (n @ mean) / n.sum() - mean
    reached = offsets @ inverse @ inside
    size = np.abs(offsets) * scale
    held_equal = (np.abs(reached - offsets) * scale <= 1e-6 * (1.0 + size)).all(axis=1)
    known: Bools = (n > 0.0) & held_equal
    spread = max(noise, 0.0) * (np.diag(1.0 / rows) + offsets @ inverse @ offsets.T)
    known_diagonal = np.eye(m) * known[:, None]
    at = None if reference is None else stats.groups.index(reference)
    share = known / max(known.sum(), 1) if at is None else np.eye(m)[at]
    contrast = known_diagonal - known[:, None] * share
    if at is not None and not known[at]:
        return None
    value = reward + offsets @ slopes
    gap = contrast @ np.where(known, value, 0.0)
    error = np.sqrt(np.maximum(np.einsum("ci,ij,cj->c", contrast, spread, contrast), 0.0))
    half_width = float(stdtrit(left, 0.5 + level / 2.0)) * error
    gaps = pd.DataFrame(
        {
            "estimate": gap,
            "standard_error": error,
            "low": gap - half_width,
            "high": gap + half_width,
        }
    )
    gaps.loc[~known] = np.nan
    why = ["" if ok else "it differs in a feature that never varies within a cell" for ok in known]
    return Levels(value, spread, known, why, contrast, gaps, COMMON_SLOPES)


def half_widths(contrast: Array, covariance: Array, level: float) -> Array:
    """Half of the interval of each gap, of normal levels with that covariance."""
    variance = np.einsum("ci,ij,cj->c", contrast, covariance, contrast)
    half_width: Array = float(ndtri(0.5 + level / 2.0)) * np.sqrt(np.maximum(variance, 0.0))
    return half_width
