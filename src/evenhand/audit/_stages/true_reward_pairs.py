"""The rows that have a true reward: the bias measured on them, and its covariance with theta.

The bias of a group measured on pairs, gamma_g, is the regression of feedback less true reward on
the features, of the rows that have both. The groups' vectors theta_g, of all feedback, come from
the same rows and more, so the two are dependent. With e the residual of a row in theirs, and u in
the regression on pairs, their covariance is A^-1 (sum of e u x x') G^-1, where A and G are the sums
of x x' of all rows and of pairs.

Whether a true reward is known may depend on the outcome. So v, the indicator of a true reward less
what the features explain of it, is multiplied by e: v e has the mean 0 unless the rows with a true
reward had another outcome than their features explain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.audit._inference.cluster_errors import (
    cluster_correction,
    cluster_counts,
    cluster_products,
)
from evenhand.audit._inference.regression_scores import (
    Fits,
    changed,
    linear,
    looked_up,
    named,
    numbered,
    worked_out,
)
from evenhand.audit._inference.regressions import WHOLE
from evenhand.audit._inference.standard_errors import (
    CLASSICAL,
    FEW_ROWS,
    corrections,
    row_corrections,
)
from evenhand.audit._input.expressions import is_missing, number
from evenhand.audit._stages.fitting import AuditRun, Fitted
from evenhand.audit._sums.aggregate import fetch_by, sums
from evenhand.audit._sums.cells import make_cells
from evenhand.bias._fit import AUTO, solve_designs
from evenhand.bias.statistics import Array, Bools, Whole, totals

LEAST = 1e-9  # of the rows: if features leave less of the indicator, it is rounding
LEAST_PART = 0.1  # of a classical variance: a robust one below that cannot be trusted
FEW_KNOWN = 20  # rows with a true reward, or without: below that the noise is taken as equal


@dataclass(frozen=True, eq=False)
class Pairs:
    """By group: rows with a true reward, the bias that they measure, and a test of their arrival.

    Attributes:
        n: the rows with a true reward.
        rest: the rows without.
        vectors: gamma, (groups, d), about the centres of the log's design.
        full: whether the pairs of a group show all directions of the features.
        own: the covariances of gamma, (groups, groups, d, d).
        cross: those of theta and gamma, (groups of theta, groups of gamma, d, d).
        feedback: those of theta that belong to these.
        freedom: the degrees of freedom of a group's pairs.
        robust: whether their noise is not taken as equal.
        later: by how much feedback was higher where a true reward is known, NaN where that cannot
            be estimated.
        later_covariance: the covariances of these, (groups, groups).
    """

    n: Array
    rest: Array
    vectors: Array
    full: Bools
    own: Array
    cross: Array
    feedback: Array
    freedom: Array
    robust: Bools
    later: Array
    later_covariance: Array


@dataclass(frozen=True, eq=False)
class _Sums:
    """The regressions of the log, and the sums of their rows with a true reward."""

    fits: Fits
    of_groups: int
    n: Array  # (fits,)
    gram: Array  # (fits, d, d)
    inverse: Array  # (groups, d, d): of the sums of all pairs of a group
    rank: Whole

    def by_group(self, values: Array) -> Array:
        """Sums over the regressions of a group."""
        return totals(values, self.fits.of, self.of_groups)

    @property
    def reach(self) -> Array:
        """The effect of the score of a row on the vector of its group: (fits, d, d)."""
        return self.fits.part[:, None, None] * self.fits.inverse

    @property
    def varies(self) -> Array:
        """The sum of v^2, by group: how much of the indicator no feature explains."""
        first = self.gram[:, 0]
        explained = np.einsum("ki,kij,kj->k", first, self.fits.inverse, first)
        return self.by_group(np.maximum(self.gram[:, 0, 0] - explained, 0.0))


def find_pairs(run: AuditRun, fitted: Fitted) -> Pairs:
    """Sum up the rows that have a true reward, and how they depend on all rows."""
    source, precision = run.source, fitted.stats.precision
    fits = fitted.regressions.second.questions[WHOLE].fits
    d, groups = fits.vectors.shape[1], len(fitted.stats.groups)
    rows = numbered(fitted.rows, fits)
    known = ~is_missing(rows["r"])
    added = rows["y"] + number(fitted.design.reward_centre) - rows["r"]
    rows = rows.mutate(known=known, added=known.ifelse(added, number(0.0)))
    paired = rows.filter(rows["known"])
    paired = paired.mutate(y=paired["added"])
    frame = fetch_by(source, paired, ["k"], sums(paired, d - 1))
    cells, at = make_cells(frame, d - 1), frame["k"].to_numpy(dtype=np.int64)
    n, gram, moment = (
        totals(part, at, len(fits.n)) for part in (cells.n, cells.gram, cells.moment)
    )
    designs = solve_designs(totals(gram, fits.of, groups), precision)
    pairs = _Sums(fits, groups, n, gram, designs.inverse, designs.rank)
    vectors = np.einsum("gij,gj->gi", designs.inverse, pairs.by_group(moment))
    scored = _scored(run, rows, pairs, vectors)
    covariances_of = _single if run.look.columns.cluster is None else _clustered
    own, cross, feedback, score, freedom, robust = covariances_of(run, fitted, pairs, scored)
    varies, rest = pairs.varies, pairs.by_group(fits.n - n)
    testable = (varies > LEAST * pairs.by_group(gram[:, 0, 0])) & (rest > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        later = np.where(testable, score[0] / varies, np.nan)
        later_covariance = score[1] / (varies[:, None] * varies)
    return Pairs(
        n=pairs.by_group(n),
        rest=rest,
        vectors=vectors,
        full=designs.rank == d,
        own=own,
        cross=cross,
        feedback=feedback,
        freedom=freedom,
        robust=robust,
        later=later,
        later_covariance=later_covariance,
    )


def _scored(run: AuditRun, rows: Any, pairs: _Sums, vectors: Array) -> Any:
    """The rows with e, u and v e, times their weights."""
    d = vectors.shape[1]
    # What the features explain of the indicator of a true reward, in each regression.
    # The regression of an indicator: its products with the features are their sums over the rows
    # where it is 1, which is the first row of the pairs' X'WX.
    explained = np.einsum("kij,kj->ki", pairs.fits.inverse, pairs.gram[:, 0])
    values = named("b", pairs.fits.vectors) | named("m", vectors[pairs.fits.of])
    rows = looked_up(run.source, rows, values | named("h", explained))
    e, u = rows["y"] - linear(rows, "b", d), rows["added"] - linear(rows, "m", d)
    if run.weighted:
        e, u = rows["w"] * e, rows["w"] * u
    u = rows["known"].ifelse(u, number(0.0))
    v = rows["known"].ifelse(number(1.0), number(0.0)) - linear(rows, "h", d)
    return worked_out(run.source, rows.mutate(e=e, u=u, ve=v * e))


Covariances = tuple[Array, Array, Array, tuple[Array, Array], Array, Bools]


def _single(run: AuditRun, fitted: Fitted, pairs: _Sums, rows: Any) -> Covariances:
    """Independent rows: robust where a group has enough pairs.

    With G = sum x x' of a group's pairs, gamma has the covariance G^-1 (sum u^2 x x') G^-1 where it
    is robust, and sigma^2 G^-1 otherwise. That with theta is A^-1 (sum e u x x') G^-1, or with the
    correlation of e and u in place of the single products.
    """
    fits, source, d = pairs.fits, run.source, pairs.gram.shape[1]
    auto = run.settings.errors == AUTO
    of_group = pairs.by_group(pairs.n)
    robust = np.full(pairs.of_groups, run.weighted or run.settings.errors != CLASSICAL)
    if auto and not run.weighted:
        robust = of_group >= FEW_ROWS * d
    paired = rows.filter(rows["known"])
    z = [None, *(paired[f"z{i}"] for i in range(d - 1))]
    aggregates = {}
    for name, product in (("uu", paired["u"] * paired["u"]), ("eu", paired["e"] * paired["u"])):
        for i in range(d):
            for j in range(i, d):
                term = product if z[i] is None else product * z[i]
                aggregates[f"{name}{i}_{j}"] = (term if z[j] is None else term * z[j]).sum()
    aggregates |= {"ee": (paired["e"] * paired["e"]).sum(), "seen": paired.count()}
    frame = fetch_by(source, paired, ["k"], aggregates)
    at = frame["k"].to_numpy(dtype=np.int64)
    _check(run, pairs, at, frame["seen"].to_numpy(dtype=np.float64))
    products = {}
    for name in ("uu", "eu"):
        table = np.zeros((len(fits.n), d, d))
        for i in range(d):
            for j in range(i, d):
                table[at, i, j] = table[at, j, i] = frame[f"{name}{i}_{j}"].to_numpy(np.float64)
        products[name] = table
    ee = np.zeros(len(fits.n))
    ee[at] = frame["ee"].to_numpy(np.float64)
    every = corrections(fits, auto)
    freedom = of_group - pairs.rank
    own_factor = row_corrections(of_group, pairs.rank, d, auto)
    inverse = pairs.inverse
    meat = inverse @ pairs.by_group(products["uu"]) @ inverse * own_factor[:, None, None]
    roots = np.sqrt(every * own_factor[fits.of])[:, None, None]
    shared = pairs.by_group(roots * (pairs.reach @ products["eu"])) @ inverse
    # Where pairs are few, their noise is taken as equal within a group.
    uu, eu, ee = (
        pairs.by_group(part) for part in (products["uu"][:, 0, 0], products["eu"][:, 0, 0], ee)
    )
    variance = uu / np.maximum(freedom, 1.0)
    correlation = np.divide(eu, np.sqrt(ee * uu), out=np.zeros_like(eu), where=ee * uu > 0.0)
    of_feedback = fitted.centred._fit.noise
    # As a correlation times the standard deviations that are used elsewhere, so that the joint
    # covariance of theta and gamma stays positive semidefinite.
    covariance = correlation * np.sqrt(
        np.where(np.isfinite(of_feedback), of_feedback, 0.0) * variance
    )
    plain = covariance[:, None, None] * (pairs.by_group(pairs.reach @ pairs.gram) @ inverse)
    of_all = _between(fitted)
    equal = np.where(np.isfinite(of_feedback), of_feedback, 0.0)[:, None, None]
    equal = equal * pairs.by_group(fits.part[:, None, None] * pairs.reach)
    own, cross = (np.zeros((pairs.of_groups, pairs.of_groups, d, d)) for _ in range(2))
    diagonal = np.arange(pairs.of_groups)
    if not run.weighted:
        same = variance[:, None, None] * inverse
        # All three blocks of a group must be of one kind, or they would not be a covariance
        # together.
        robust = robust & _trusted(meat, same) & _trusted(of_all[diagonal, diagonal], equal)
        of_all[diagonal, diagonal] = np.where(
            robust[:, None, None], of_all[diagonal, diagonal], equal
        )
    wide = robust[:, None, None]
    own[diagonal, diagonal] = np.where(wide, meat, variance[:, None, None] * inverse)
    cross[diagonal, diagonal] = np.where(wide, shared, plain)
    return own, cross, of_all, _arrival(run, fitted, pairs, rows), freedom, robust


def _between(fitted: Fitted) -> Array:
    """The covariances of the groups' vectors, (groups, groups, d, d)."""
    fit = fitted.centred._fit
    if fit.between is not None:
        return fit.between.copy()
    m, d = fit.vectors.shape
    whole = np.zeros((m, m, d, d))
    whole[np.arange(m), np.arange(m)] = fit.covariances
    return whole


def _trusted(robust: Array, classical: Array) -> Bools:
    """Whether the robust variances of a group can be trusted: no coefficient rests on a row or two.

    Such rows have no residuals, so their squares would say that the coefficient is certain.
    """
    own, other = np.einsum("gkk->gk", robust), np.einsum("gkk->gk", classical)
    trusted: Bools = (own >= LEAST_PART * other).all(axis=1)
    return trusted


def _arrival(run: AuditRun, fitted: Fitted, pairs: _Sums, rows: Any) -> tuple[Array, Array]:
    """The sum of v e of each group, and its covariance."""
    fits = pairs.fits
    aggregates = {"s": rows["ve"].sum(), "ss": (rows["ve"] * rows["ve"]).sum()}
    frame = fetch_by(run.source, rows, ["k"], aggregates)
    at = frame["k"].to_numpy(dtype=np.int64)
    score, square = np.zeros(len(fits.n)), np.zeros(len(fits.n))
    score[at], square[at] = frame["s"].to_numpy(np.float64), frame["ss"].to_numpy(np.float64)
    variance, known = pairs.by_group(square), pairs.by_group(pairs.n)
    few = np.minimum(known, pairs.by_group(fits.n) - known) < FEW_KNOWN
    noise = fitted.centred._fit.noise
    if not run.weighted:
        variance = np.where(few & np.isfinite(noise), noise * pairs.varies, variance)
    return pairs.by_group(score), np.diag(variance)


def _clustered(run: AuditRun, fitted: Fitted, pairs: _Sums, rows: Any) -> Covariances:
    """Rows that belong together: the scores of a cluster are summed up first (CR1).

    A row has 2 d + 1 scores: d of theta, e x; d of gamma, u x, which are 0 without a true reward;
    and v e, of arrival. So in the products of two regressions, [:d] is theta, [d:-1] is gamma and
    [-1] is arrival. CR1 multiplies the scores of theta by the root of one factor and those of gamma
    by the root of another, so their product has the root of both.
    """
    fits, source, d = pairs.fits, run.source, pairs.gram.shape[1]
    paired = rows.filter(rows["known"])
    counts, all_counts = cluster_counts(source, paired), cluster_counts(source, rows)
    z = [None, *(rows[f"z{i}"] for i in range(d - 1))]
    scores = [rows[name] if x is None else rows[name] * x for name in ("e", "u") for x in z]
    crossing = all_counts.crossing > 0 or "a" in fits.keys
    meat = cluster_products(source, rows, [*scores, rows["ve"]], fits, crossing)
    factor = cluster_correction(float(all_counts.total), fits.n.sum(), fits.rank.sum())
    of_pairs = max(float(counts.total), 2.0)
    own_factor = cluster_correction(of_pairs, pairs.n.sum(), pairs.rank.sum())
    groups = pairs.of_groups
    own, cross = np.zeros((groups, groups, d, d)), np.zeros((groups, groups, d, d))
    scores_of, covariance = np.zeros(groups), np.zeros((groups, groups))
    for i, j in np.argwhere(meat.any(axis=(2, 3))):
        g, h = fits.of[i], fits.of[j]
        block = meat[i, j]
        own[g, h] += own_factor * pairs.inverse[g] @ block[d:-1, d:-1] @ pairs.inverse[h]
        cross[g, h] += np.sqrt(factor * own_factor) * (
            pairs.reach[i] @ block[:d, d:-1] @ pairs.inverse[h]
        )
        covariance[g, h] += factor * block[-1, -1]
    frame = fetch_by(source, rows, ["k"], {"s": rows["ve"].sum()})
    sums_of = np.zeros(len(fits.n))
    sums_of[frame["k"].to_numpy(dtype=np.int64)] = frame["s"].to_numpy(np.float64)
    scores_of = pairs.by_group(sums_of)
    freedom = np.array([counts.by_group.get(name, 0) - 1.0 for name in fitted.stats.groups])
    every = np.ones(groups, dtype=np.bool_)
    return own, cross, _between(fitted), (scores_of, covariance), freedom, every


def _check(run: AuditRun, pairs: _Sums, at: Whole, seen: Array) -> None:
    """Raise if another pass saw other rows with a true reward."""
    if not np.array_equal(seen, pairs.n[at]) or pairs.n.sum() != seen.sum():
        raise changed(run.source, "the rows with a true reward", pairs.n.sum(), float(seen.sum()))
