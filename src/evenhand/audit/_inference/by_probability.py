"""Regressions with groups known by probability: E[y | x, p] = sum_g p_g x'beta_g.

Every group's coefficients enter with the probability of the group, so all are one regression of the
reward on p (x) x. It is unbiased if the probabilities are calibrated given the features: among rows
with the same features and probabilities, a fraction p_g is of group g. Rows are neither assigned to
their likelier group nor split among groups; both would make a bias look smaller than it is. The
noise is that of a mixture, unequal by its nature, so errors are robust (HC1) or of clusters (CR1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evenhand.audit._inference.cluster_errors import cluster_counts, cluster_products
from evenhand.audit._inference.regression_scores import Fits, numbered, with_residuals, worked_out
from evenhand.audit._inference.second_pass import Question, SecondPass
from evenhand.audit._input.expressions import number
from evenhand.audit._input.sources import Source
from evenhand.audit._sums.aggregate import fetch_by, sums
from evenhand.audit._sums.cells import make_cells
from evenhand.audit._sums.streamed import streamed
from evenhand.bias._fit import solve_designs
from evenhand.bias.statistics import PRECISION, Array
from evenhand.errors import DataError

ALL = "all"  # the label of the one regression


@dataclass(frozen=True, eq=False)
class Mixture:
    """The groups' coefficients with their covariances, and sums by probability.

    Attributes:
        vectors: (groups, d), about the centres.
        covariances: (groups, groups, d, d).
        plain: the mean reward of each group, about the centre.
        plain_covariance: of these.
        n: the expected number of rows of each group.
        freedom: the degrees of freedom of each group.
        gram: the sums of p_g x x', (groups, d, d).
        moment: the sums of p_g x y.
        square: the sum of y^2.
        clusters: how many there are; 0 without.
        rows: of the log.
    """

    vectors: Array
    covariances: Array
    plain: Array
    plain_covariance: Array
    n: Array
    freedom: Array
    gram: Array
    moment: Array
    square: float
    clusters: int
    rows: int


def mixed_rows(rows: Any, membership: list[tuple[int, float]], features: list[int]) -> Any:
    """Rows whose features are p (x) x, group by group, the intercept of each first.

    Args:
        rows: as `prepared` made them, with the probabilities among the features.
        membership: the number of the feature, and its centre, of every group's probability.
        features: the numbers of the others.
    """
    import ibis

    chances = [rows[f"z{i}"] + number(centre) for i, centre in membership]
    wanted, j = {}, 0
    for chance in chances:
        for k in (None, *features):
            wanted[f"z{j}"] = chance if k is None else chance * rows[f"z{k}"]
            j += 1
    more = {name: rows[name] for name in ("w", "c") if name in rows.columns}
    return rows.select(g=ibis.literal(ALL), y=rows["y"], **wanted, **more)


def fit_mixture(source: Source, rows: Any, m: int, d: int, names: tuple[str, ...]) -> Mixture:
    """Fit in two passes: with q = p (x) x, the coefficients are (sum q q')^-1 (sum q y).

    Args:
        source: where the rows are.
        rows: as `mixed_rows` made them.
        m: the number of groups.
        d: the number of coefficients of each.
        names: of the coefficients.
    """
    size = m * d
    frame = _sums(source, rows, size)
    cells = make_cells(frame, size)
    gram, moment = cells.gram[0, 1:, 1:], cells.moment[0, 1:]
    n = float(cells.n[0])
    inverse = _inverse(gram, m, d, names)
    vectors = inverse @ moment
    fits = _fits(vectors, n, cells, size)
    blocks = gram.reshape(m, d, m, d)
    whole = blocks.sum(axis=2)  # probabilities sum to 1, so this is the sum of p_g x x'
    clustered = "c" in rows.columns
    clusters = cluster_counts(source, rows).total if clustered else 0
    if clustered and clusters < 2:
        raise DataError("cluster: there is a single cluster; errors need several: name another")
    # The parts of CR1 and HC1 that have no coefficients in them, which mean rewards need alone.
    rough = clusters / (clusters - 1.0) if clustered else n / (n - 1.0)
    factor = (rough * (n - 1.0) if clustered else n) / max(n - size, 1.0)
    covariance = factor * inverse @ _meat(source, rows, fits, size) @ inverse
    plain, of_plain = _averages(source, rows, fits, inverse, vectors.reshape(m, d), whole)
    # sum p_g^2 is at most sum p_g, with equality where all probabilities are 0 or 1: rows that may
    # be of any group say less of each.
    # Weights count relative to their mean, so that their scale does not matter.
    rows_per_weight = n / cells.gram[0, 0, 0]
    freedom = np.array([blocks[g, 0, g, 0] for g in range(m)]) * rows_per_weight - d
    if clustered:
        freedom = np.minimum(freedom, clusters - 1.0)
    return Mixture(
        vectors=vectors.reshape(m, d),
        covariances=covariance.reshape(m, d, m, d).transpose(0, 2, 1, 3),
        plain=plain,
        plain_covariance=rough * of_plain,
        n=whole[:, 0, 0] * rows_per_weight,
        freedom=np.maximum(freedom, 1.0),
        gram=whole,
        moment=moment.reshape(m, d),
        square=float(cells.square[0]),
        clusters=clusters,
        rows=int(n),
    )


def _averages(
    source: Source, rows: Any, fits: Fits, inverse: Array, vectors: Array, whole: Array
) -> tuple[Array, Array]:
    """The mean reward of each group, and the covariance of these.

    It is beta_g at the average features of the group, the sum of p_g x over that of p_g. Both are
    estimates: a row changes the first by A^-1 p (x) x e, and the second by p_g (x - mean).
    """
    m, d = vectors.shape
    weight = whole[:, 0, 0]
    means = whole[:, 0] / weight[:, None]
    plain = np.einsum("gk,gk->g", vectors, means)
    # A^-1 (e_g (x) mean x_g): the effect of a score on beta_g at the average features of g.
    reach = np.einsum("igk,gk->gi", inverse.reshape(m * d, m, d), means)
    own = np.zeros((m, m, d))
    # beta_g . (x - mean x_g) p_g / N_g: the effect of a row on those averages; the intercept is set
    # below.
    own[np.arange(m), np.arange(m)] = vectors / weight[:, None]
    own[np.arange(m), np.arange(m), 0] -= plain / weight
    scored = with_residuals(source, numbered(rows, fits), fits)
    w = scored["w"] if "w" in scored.columns else number(1.0)
    effects = {
        f"v{g}": scored["e"] * _times(scored, reach[g]) + w * _times(scored, own[g].ravel())
        for g in range(m)
    }
    influences = worked_out(source, scored.mutate(**effects))
    if "c" in rows.columns:
        influences = influences.group_by(["k", "c"]).aggregate(
            **{name: influences[name].sum() for name in effects}
        )
    pairs = [(g, h) for g in range(m) for h in range(g, m)]
    aggregates = {f"p{g}_{h}": (influences[f"v{g}"] * influences[f"v{h}"]).sum() for g, h in pairs}
    answer = fetch_by(source, influences, ["k"], aggregates).iloc[0]
    covariance = np.zeros((m, m))
    for g, h in pairs:
        covariance[g, h] = covariance[h, g] = float(answer[f"p{g}_{h}"])
    return plain, covariance


def _times(rows: Any, coefficients: Array) -> Any:
    """The sum of the features z times coefficients, without an intercept."""
    total: Any = number(0.0)
    for i, value in enumerate(coefficients):
        if value != 0.0:
            total = total + rows[f"z{i}"] * number(float(value))
    return total


def _sums(source: Source, rows: Any, size: int) -> pd.DataFrame:
    if source.kind == "duckdb":
        return streamed(source, rows, ["g"], size, 1, {}, [(ALL,)])[0]
    return fetch_by(source, rows, ["g"], sums(rows, size))


def _inverse(gram: Array, m: int, d: int, names: tuple[str, ...]) -> Array:
    """(X'X)^-1, or an error that names the features for which groups cannot be told apart."""
    designs = solve_designs(gram[None], PRECISION)
    if designs.rank[0] < m * d:
        linked = np.flatnonzero(np.abs(designs.missing[0]).max(axis=1) > 1e-6)
        linked = np.union1d(linked, np.flatnonzero(designs.absent[0]))
        which = list(dict.fromkeys(names[k % d] for k in linked))
        raise DataError(
            f"the probabilities of groups do not vary enough to tell groups apart by "
            f"{', '.join(which)}: leave these features out, or merge groups"
        )
    inverse: Array = designs.inverse[0]
    return inverse


def _fits(beta: Array, n: float, cells: Any, size: int) -> Fits:
    """One regression of all rows; the intercept that comes with rows has a coefficient of 0."""
    return Fits(
        keys=("g",),
        labels=((ALL,),),
        of=np.zeros(1, dtype=np.int64),
        vectors=np.concatenate([[0.0], beta])[None],
        inverse=np.zeros((1, size + 1, size + 1)),
        rank=np.array([size]),
        part=np.ones(1),
        n=np.array([n]),
        total=cells.moment[:, 0],
        square=cells.square,
        weight=cells.gram[:, 0, 0],
    )


def _meat(source: Source, rows: Any, fits: Fits, size: int) -> Array:
    """The sum of s s', with the scores s = e q of rows, or their sums over clusters."""
    if "c" not in rows.columns:
        second = SecondPass(source, rows, 0, {ALL: Question(fits, rows)})
        whole: Array = second.products(ALL)[0, 1:, 1:]
        return whole
    scored = with_residuals(source, numbered(rows, fits), fits)
    scores = [scored["e"] * scored[f"z{i}"] for i in range(size)]
    by_cluster: Array = cluster_products(source, scored, scores, fits, crossing=False)[0, 0]
    return by_cluster
