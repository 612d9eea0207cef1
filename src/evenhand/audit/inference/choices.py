"""How the regressions are weighted and what their errors trust, where the user leaves it open."""

from __future__ import annotations

import numpy as np

from evenhand.audit.inference.robust import CLASSICAL, FEW_ROWS
from evenhand.audit.settings import Settings
from evenhand.bias._fit import ARMS, AUTO, PULLS, settled
from evenhand.bias.statistics import Bools, Statistics
from evenhand.errors import InputError, setting

# Above this many rows nobody pays for a second pass who did not ask for it.
ROBUST_UP_TO = 2_000_000
# Regressions times features: the square of it is how many products of clusters there can be.
MOST_SCORES = 2000
FEW_IN_AN_ARM = 10  # clusters: with two, intervals cover in 85 percent


def weighting_of(stats: Statistics, settings: Settings, clusters: int | None) -> tuple[str, str]:
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
                f"{setting('weighting')} is 'arms' with clusters, and {few}; errors need several "
                f"in every arm: choose {setting('weighting', 'pulls')}, or leave "
                f"{setting('cluster')} out"
            )
        if wanted == AUTO and clusters < FEW_IN_AN_ARM:
            return PULLS, f"{few}, too few for errors"
    if clusters is not None and many > MOST_SCORES and wanted != PULLS:
        why = f"{len(stats.arms or ())} arms times {stats.n_features} coefficients"
        if wanted == ARMS:
            raise InputError(
                f"{setting('weighting')} is 'arms' with clusters and {why}; allowed are "
                f"{MOST_SCORES:,} of them with clusters: choose {setting('weighting', 'pulls')}, "
                "or fewer features"
            )
        return PULLS, f"{why} are too many for errors of clusters"
    weighting, instead = settled(stats, wanted)
    return weighting, instead if wanted == AUTO else ""


def robust_groups(stats: Statistics, settings: Settings, weighting: str, weighted: bool) -> Bools:
    """Which groups have robust errors, of rows that do not belong together."""
    if settings.errors != AUTO or weighted:
        return np.full(len(stats.groups), settings.errors != CLASSICAL)
    if stats.n.sum() > ROBUST_UP_TO:
        return np.zeros(len(stats.groups), dtype=np.bool_)
    return rows_suffice(stats, weighting)


def rows_suffice(stats: Statistics, weighting: str) -> Bools:
    """Whether every regression of a group has rows enough for robust errors, by group."""
    n, few = stats.n, FEW_ROWS * stats.n_features
    if weighting != ARMS:
        n = np.bincount(stats.of, stats.n, len(stats.groups)).astype(np.float64)[stats.of]
    short = np.bincount(stats.of, (n > 0.0) & (n < few), len(stats.groups))
    found: Bools = short == 0.0
    return found
