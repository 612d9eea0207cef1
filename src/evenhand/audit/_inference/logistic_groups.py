"""The logistic models of groups: vectors of log-odds, mean chances, their errors, and tests.

Errors are of the kind that the straight lines of the same audit have: robust ones and those of
clusters with the same corrections, or else the inverse of the information. Rows with weights always
have robust ones: the information takes a weight for a number of people.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import fdtrc

from evenhand.audit._inference.cluster_errors import between_groups, cluster_correction
from evenhand.audit._inference.logistic_newton import Logits, fit_logits
from evenhand.audit._inference.logistic_queries import Link
from evenhand.audit._inference.logistic_sums import Solved, solved
from evenhand.audit._inference.regression_scores import Fits
from evenhand.audit._inference.standard_errors import (
    CLASSICAL,
    CLUSTERED,
    FEW_EVENTS,
    ROBUST,
    Errors,
    corrections,
    symmetric,
)
from evenhand.audit._input.sources import Source
from evenhand.bias._fit import ARMS, FEWER, Designs, Fit, solve_designs
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Array, Statistics, totals

LINE, LOGISTIC = 0, 1  # the places of the link tests
MOST_CHANCES = 2000  # regressions times coefficients: all of them stand in one query


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """The logistic models of the groups, about the centres.

    `odds` has the groups' vectors in log-odds. `chances` has one number for each group: the mean
    chance of a 1 over all rows, as if all of them were of that group. `why` says by group why it
    has no logistic model. `line` and `logistic` are the p-values of the link tests; None where
    nothing can be tested.
    """

    odds: Fit
    chances: Fit
    why: dict[str, str]
    line: float | None
    logistic: float | None
    steps: int
    kind: str  # of the errors


def fit_logistic(
    source: Source,
    rows: Any,
    stats: Statistics,
    lines: Fits,
    errors: Errors,
    report: BiasReport,
    careful: bool,
) -> LogisticFit | str:
    """Fit a logistic model for every group, or say why there can be none.

    Args:
        source: where the rows are.
        rows: as `prepared` made them, with rewards of 0 and 1.
        stats: their sums.
        lines: the straight lines.
        errors: those of the straight lines.
        report: of the straight lines, about the centres, with the first features of the sums.
        careful: whether to correct for few rows, as the straight lines do.
    """
    many = len(lines.labels)
    if many * stats.n_features > MOST_CHANCES:
        return (
            f"{many} regressions with {stats.n_features} coefficients each are too many for one "
            f"(at most {MOST_CHANCES:,} coefficients in all: merge groups or arms, or leave "
            "features out)"
        )
    gram = totals(stats.gram, stats.of, many) if report.weighting != ARMS else stats.gram
    logits = fit_logits(source, rows, lines, gram)
    passes = solved(source, logits, lines, gram, errors)
    groups, d = len(report.groups), len(report.features)
    # A weight of 10 is not ten people.
    kind = ROBUST if errors.kind == CLASSICAL and stats.weights is not None else errors.kind
    spread = _spread(passes, lines, errors, kind, careful, stats)
    fit = report._fit
    reasons = _reasons(logits, fit)
    blocked = tuple(diagonal or reasons.get(g, "") for g, diagonal in enumerate(fit.blocked))
    whole = _by_group(spread, lines, np.eye(stats.n_features), groups)
    diagonal = np.arange(groups)
    dependent = kind == CLUSTERED and errors.crossing > 0
    odds = replace(
        fit,
        vectors=totals(lines.part[:, None] * passes.fits.vectors, lines.of, groups)[:, :d],
        covariances=np.array([symmetric(block) for block in whole[diagonal, diagonal, :d, :d]]),
        blocked=blocked,
        between=whole[:, :, :d, :d] if dependent else None,
    )
    rank = solve_designs(gram.sum(axis=0)[None], stats.precision).rank[0]
    partial = np.bincount(lines.of, lines.rank < rank, groups) > 0
    unseen = tuple(
        reason or (f"{home} has {FEWER} those of the others" if less else "")
        for reason, home, less in zip(blocked, fit.homes, partial, strict=True)
    )
    chances = _of_chances(passes, lines, spread, replace(odds, blocked=unseen), dependent)
    tests = [_link_test(link, passes, at, errors, logits) for at, link in enumerate(passes.links)]
    why = {report.groups[g]: logits.why[k] for k, g in enumerate(lines.of) if logits.why[k]}
    return LogisticFit(odds, chances, why, tests[LINE], tests[LOGISTIC], logits.steps, kind)


def _reasons(logits: Logits, fit: Fit) -> dict[int, str]:
    """Why a group has no logistic model, by the first of its regressions that has none."""
    reasons: dict[int, str] = {}
    for k, reason in enumerate(logits.why):
        if reason:
            where = fit.labels[k] if len(fit.labels) == len(logits.why) else fit.homes[k]
            reasons.setdefault(int(logits.fits.of[k]), f"{where} has no logistic model: {reason}")
    return reasons


def _spread(
    passes: Solved, lines: Fits, errors: Errors, kind: str, careful: bool, stats: Statistics
) -> Array:
    """The covariances of all pairs of regressions' vectors, (fits, fits, d, d).

    With H the information and B the sum of s s' over the scores of rows or clusters, they are
    H^-1 where errors are classical, and H^-1 B H^-1 times the correction otherwise.
    """
    fits, many, d = passes.fits, len(lines.labels), lines.vectors.shape[1]
    meat = passes.products[:, :, :d, :d]
    if kind == CLUSTERED:
        between = np.einsum("kij,kljm,lmn->klin", fits.inverse, meat, fits.inverse)
        factor = cluster_correction(errors.total, lines.n.sum(), lines.rank.sum())
        corrected: Array = factor * between
        return corrected
    diagonal = np.arange(many)
    covariances = np.zeros((many, many, d, d))
    covariances[diagonal, diagonal] = fits.inverse
    if kind == ROBUST:
        plain = np.array([stats.groups[g] in errors.classical for g in lines.of])
        plain &= stats.weights is None
        careful_part = fits.inverse @ meat[diagonal, diagonal] @ fits.inverse
        careful_part *= corrections(lines, careful)[:, None, None]
        covariances[diagonal, diagonal] = np.where(plain[:, None, None], fits.inverse, careful_part)
    return covariances


def _by_group(spread: Array, lines: Fits, reach: Array, groups: int) -> Array:
    """The covariances of all pairs of groups' vectors, from those of their regressions."""
    part = replace(lines, inverse=np.broadcast_to(reach, lines.inverse.shape))
    return between_groups(part, spread, groups)


def _of_chances(passes: Solved, lines: Fits, spread: Array, odds: Fit, dependent: bool) -> Fit:
    """The mean chances of the groups, as a fit with a single feature that is always 1."""
    groups = len(odds.blocked)
    # The delta method: what a change of the coefficients does to the mean chance.
    # The rows over which the mean is taken count as given, as everywhere in a report.
    between = np.einsum("ki,klij,lj->kl", passes.slope, spread, passes.slope)
    part = np.zeros((groups, len(lines.of)))
    part[lines.of, np.arange(len(lines.of))] = lines.part
    whole = (part @ between @ part.T)[:, :, None, None]
    diagonal = np.arange(groups)
    return replace(
        odds,
        vectors=(part @ passes.chance)[:, None],
        covariances=whole[diagonal, diagonal],
        designs=Designs(
            inverse=np.ones((groups, 1, 1)),
            rank=np.ones(groups, dtype=np.int64),
            scale=np.ones((groups, 1)),
            absent=np.zeros((groups, 1), dtype=np.bool_),
            missing=np.zeros((groups, 1, 1)),
        ),
        of=diagonal,
        labels=odds.homes,
        rounding=np.zeros((groups, 1, 1)),
        between=whole if dependent else None,
    )


def _link_test(
    link: Link, passes: Solved, which: int, errors: Errors, logits: Logits
) -> float | None:
    """The p-value of the test that no regression is curved; None where nothing can be tested.

    The statistic is t' V^-1 t / k, with the scores t of the squared predictions of k regressions
    and their covariance V.
    """
    fits, d = passes.fits, passes.fits.vectors.shape[1]
    at = d + which
    spread = passes.products[:, :, at, at]
    used = np.isfinite(link.score) & (np.diag(spread) > 0.0)
    # Few rows or few events show nothing, and the test would not keep its level.
    ones = fits.total * fits.n / np.maximum(fits.weight, 1e-300)
    used &= (fits.n - fits.rank > 2.0 * d) & (np.minimum(ones, fits.n - ones) >= FEW_EVENTS)
    if which == LOGISTIC:
        used &= logits.known
    if not used.any():
        return None
    n, rank = float(fits.n.sum()), float(fits.rank.sum())
    factor, freedom = n / max(n - rank, 1.0), max(n - rank, 1.0)
    if errors.kind == CLUSTERED:
        factor, freedom = cluster_correction(errors.total, n, rank), float(errors.total) - 1.0
    size = np.sqrt(np.diag(spread)[used] * factor)
    score = link.score[used] / size
    # As correlations, because the scores of groups of very different sizes differ by powers of ten.
    correlation = factor * spread[np.ix_(used, used)] / np.outer(size, size)
    statistic = float(score @ np.linalg.lstsq(correlation, score, rcond=1e-9)[0])
    many = int(used.sum())
    return float(fdtrc(many, freedom, statistic / many))
