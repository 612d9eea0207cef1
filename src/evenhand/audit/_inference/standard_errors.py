"""Errors that do not assume equal noise.

With A = X'WX and B the sum of w^2 e^2 x x', the covariance is A^-1 B A^-1, times the usual
correction n / (n - d) for one regression with all groups and d coefficients in it (HC1). For rows
that belong together, B comes from `cluster_errors` and the correction is CR1.

`robust_groups` and `weighting_of` decide what a user leaves open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.audit._inference.regression_scores import Fits
from evenhand.audit._settings import AuditSettings
from evenhand.bias._fit import ARMS, AUTO, PULLS, by_arms, by_pulls, settled
from evenhand.bias.statistics import Array, Bools, Statistics, Whole, totals
from evenhand.errors import InputError, setting

CLASSICAL, ROBUST, CLUSTERED = "classical", "robust", "cluster"
FEW_ROWS = 20  # for every coefficient: with as many, robust errors are too small by 3 % or so
FEW_EVENTS = 10  # rewards of 1, or of 0, in a regression


@dataclass(frozen=True, eq=False)
class Errors:
    """Covariances of the groups' vectors about the centres, by group, and degrees of freedom."""

    kind: str
    covariances: dict[str, Array] | None = None
    freedom: dict[str, float] | None = None
    clusters: dict[str, int] | None = None
    total: int = 0  # clusters
    crossing: int = 0  # clusters with rows in more than one group
    between: dict[tuple[str, str], Array] | None = None  # of two groups, if there are such
    classical: tuple[str, ...] = ()  # groups with too few rows for the errors of the others
    blocked: dict[str, str] | None = None  # groups that have no errors at all, and why


def robust(
    meat: Array,
    stats: Statistics,
    fits: Fits,
    weighting: str,
    binary: bool,
    careful: bool,
    enough: Bools,
) -> Errors:
    """The covariances from squared residuals of single rows, of the groups that have enough.

    A group that has too few keeps the errors of its own fit. This is decided group by group: a
    third group of three rows must not take away what protects the other two.

    Args:
        meat: the sum of e^2 x x' of every regression, from the second pass.
        stats: the sums of the first.
        fits: the regressions.
        weighting: by arms or by pulls.
        binary: whether rewards are 0 and 1.
        careful: whether to correct for few rows and few events, or to give plain HC1.
        enough: whether each group has enough rows.
    """
    factors = corrections(fits, careful)
    parts = fits.inverse @ meat @ fits.inverse * factors[:, None, None]
    # Added, not put in its place: residuals of the other outcome still count.
    if binary and careful:
        parts += _few_events(fits)[:, None, None] * fits.inverse
    # The vector of a group is a mean of its arms', which are fitted to different rows.
    whole = totals(fits.part[:, None, None] ** 2 * parts, fits.of, len(stats.groups))
    freedom = _by_group(stats) - np.bincount(fits.of, fits.rank, len(stats.groups))
    usable = np.flatnonzero((freedom > 0.0) & enough)
    rest = classical(stats, fits, weighting, binary)
    own = {stats.groups[g]: symmetric(whole[g]) for g in usable}
    # Groups that are not named here keep the covariance of their own fit.
    others = {
        name: covariance for name, covariance in (rest.covariances or {}).items() if name not in own
    }
    return Errors(
        ROBUST,
        own | others,
        {stats.groups[g]: float(freedom[g]) for g in usable}
        | {name: (rest.freedom or {})[name] for name in others},
        classical=tuple(
            name
            for name, n, ok in zip(stats.groups, _by_group(stats), enough, strict=True)
            if n > 0.0 and not ok
        ),
    )


def classical(stats: Statistics, fits: Fits, weighting: str, binary: bool) -> Errors:
    """The errors of the fit itself; larger ones with hardly any rewards of 1, or of 0."""
    few = _few_events(fits) if binary else np.zeros(len(fits.labels))
    if not few.any():
        return Errors(CLASSICAL)
    fit = (by_arms if weighting == ARMS else by_pulls)(stats, None)
    parts = (fits.part**2 * few)[:, None, None] * fits.inverse
    more = totals(parts, fits.of, len(stats.groups))
    known = [g for g in range(len(stats.groups)) if fit.freedom[g] > 0.0]
    return Errors(
        CLASSICAL,
        {stats.groups[g]: symmetric(fit.covariances[g] + more[g]) for g in known},
        {stats.groups[g]: float(fit.freedom[g]) for g in known},
    )


def _by_group(stats: Statistics) -> Array:
    """The rows of each group."""
    return np.bincount(stats.of, stats.n, len(stats.groups)).astype(np.float64)


def row_corrections(n: Array, rank: Whole, features: int, careful: bool) -> Array:
    """HC1: n / (n - d) of the whole, or of a regression with so few rows that its own is larger."""
    whole = n.sum() / max(n.sum() - rank.sum(), 1.0)
    own = n / np.maximum(n - rank, 1.0)
    # The larger of both, never the smaller: a regression with few rows has residuals that are too
    # small by more than the whole's factor allows for.
    few = careful & (n < FEW_ROWS * features)
    factor: Array = np.where(few, np.maximum(own, whole), whole)
    return factor


def corrections(fits: Fits, careful: bool) -> Array:
    """`row_corrections` of regressions."""
    return row_corrections(fits.n, fits.rank, fits.vectors.shape[1], careful)


def _few_events(fits: Fits) -> Array:
    """The variance of a reward of 0 or 1 where a regression has hardly any of one of them.

    Residuals are then zero or near it, and say nothing. So one more of each is added: the variance
    is p (1 - p) with p = (ones + 1) / (n + 2). Weights count by their part of the whole, and their
    mean makes up for what they add to X'WX.
    """
    mean = np.maximum(fits.weight, 1e-300) / np.maximum(fits.n, 1.0)
    ones = fits.total / mean
    chance = (ones + 1.0) / (fits.n + 2.0)
    few = np.minimum(ones, fits.n - ones) < FEW_EVENTS
    variance: Array = np.where(few, mean * chance * (1.0 - chance), 0.0)
    return variance


def symmetric(matrix: Array) -> Array:
    """A covariance made exactly symmetric, which rounding does not leave it."""
    average: Array = (matrix + matrix.T) / 2.0
    return average


# Regressions times features: the square of it is how many products of clusters there can be.
MOST_SCORES = 2000
FEW_IN_AN_ARM = 10  # clusters: with two, intervals cover in 85 percent


def weighting_of(
    stats: Statistics, settings: AuditSettings, clusters: int | None
) -> tuple[str, str]:
    """The weighting, and why it is by pulls where it was to be by arms.

    Args:
        stats: the sums of the log.
        settings: what the user chose.
        clusters: how many the arm with the fewest has; None where rows do not belong together.
    """
    wanted = settings.weighting
    many = 0 if stats.arms is None else len(stats.arms) * stats.n_features
    if wanted == ARMS and stats.arms is None:
        raise InputError(
            f"{setting('weighting')} is 'arms', and a group has a single arm that serves other "
            f"groups as well; choose {setting('weighting', 'pulls')}"
        )
    if clusters is not None and stats.arms is not None and wanted != PULLS:
        # Scores of an arm with a single cluster sum to zero, and so would its error.
        few = f"an arm has only {clusters} cluster{'s' if clusters != 1 else ''}"
        if wanted == ARMS and clusters < 2:
            raise InputError(
                f"{setting('weighting')} is 'arms' with clusters, and {few}; standard errors need "
                f"several in every arm: choose {setting('weighting', 'pulls')}, or leave "
                f"{setting('cluster')} out"
            )
        if wanted == AUTO and clusters < FEW_IN_AN_ARM:
            return PULLS, f"{few}, too few for standard errors"
    if clusters is not None and many > MOST_SCORES and wanted != PULLS:
        why = f"{len(stats.arms or ())} arms times {stats.n_features} coefficients"
        if wanted == ARMS:
            raise InputError(
                f"{setting('weighting')} is 'arms' with clusters and {why}; allowed are "
                f"{MOST_SCORES:,} of them with clusters: choose {setting('weighting', 'pulls')}, "
                "or fewer features"
            )
        return PULLS, f"{why} are too many for cluster-robust standard errors"
    weighting, instead = settled(stats, wanted)
    return weighting, instead if wanted == AUTO else ""


def robust_groups(
    stats: Statistics, settings: AuditSettings, weighting: str, weighted: bool
) -> Bools:
    """Which groups have robust errors, where there are no clusters."""
    if settings.errors != AUTO or weighted:
        return np.full(len(stats.groups), settings.errors != CLASSICAL)
    return rows_suffice(stats, weighting)


def rows_suffice(stats: Statistics, weighting: str) -> Bools:
    """Whether every regression of a group has enough rows for robust errors, by group."""
    n, few = stats.n, FEW_ROWS * stats.n_features
    if weighting != ARMS:
        n = np.bincount(stats.of, stats.n, len(stats.groups)).astype(np.float64)[stats.of]
    short = np.bincount(stats.of, (n > 0.0) & (n < few), len(stats.groups))
    suffice: Bools = short == 0.0
    return suffice
