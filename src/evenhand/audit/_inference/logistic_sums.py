"""The last two passes over the rows, at the solutions of the logistic models.

The first sums up the information, what the chances of a 1 would be if all rows were of one group,
and what link tests need. A link test asks whether the square of the prediction would add anything
to it: it does where the form of the model is wrong. It is a score test, so no model is fitted
again. The second pass sums up the squares of the scores, by cluster where there are clusters.

Rows that come here in batches are summed up by products of matrices. For the others, and for
clusters, `logistic_queries` asks the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evenhand.audit._inference import logistic_queries as queries
from evenhand.audit._inference.logistic_batches import Batches, Run
from evenhand.audit._inference.logistic_newton import Logits, basis_of, log_odds, sigmoid
from evenhand.audit._inference.logistic_queries import Link, LinkSums, Models, Sums
from evenhand.audit._inference.regression_scores import Fits
from evenhand.audit._inference.standard_errors import CLUSTERED, Errors
from evenhand.audit._input.sources import Source
from evenhand.bias.statistics import Array

SATURATED = 1e-9  # of the square of a prediction: if the model leaves less, it explains all of it


@dataclass(frozen=True, eq=False)
class Solved:
    """Logistic regressions with their information, and the sums of their scores' products."""

    fits: Fits  # `inverse` is that of the information
    chance: Array  # (fits,): the mean chance of a 1 over all rows, by each regression
    slope: Array  # (fits, d): its derivative by the coefficients
    links: tuple[Link, Link]  # of the straight line, and of the logistic model
    # (fits, fits, d + 2, d + 2): of the scores of coefficients, and of both links
    products: Array


def solved(source: Source, logits: Logits, lines: Fits, gram: Array, errors: Errors) -> Solved:
    """The sums over the rows at the solutions.

    Args:
        source: where the rows are.
        logits: the solutions.
        lines: the straight lines of the same rows.
        gram: (fits, d, d), X'WX of each.
        errors: those of the straight lines, for whether there are clusters.
    """
    links = (_link(lines.vectors, gram, lines), _link(logits.fits.vectors, gram, lines))
    models, batches = Models(logits, lines, links), logits.batches
    sums = queries.first_pass(source, models) if batches is None else _first_pass(batches, models)
    inverse = np.array(
        [_inverse(logits, gram[k], sums.information[k], k) for k in range(len(gram))]
    )
    fits = replace(logits.fits, inverse=inverse)
    links = (
        _scored(links[0], sums.line, lines.inverse, np.zeros_like(sums.score)),
        _scored(links[1], sums.logistic, inverse, sums.score),
    )
    models = replace(models, links=links)
    if errors.kind == CLUSTERED:
        crossing = errors.crossing > 0 or "a" in fits.keys
        products = queries.of_clusters(source, models, crossing)
    elif batches is None:
        products = queries.second_pass(source, models)
    else:
        products = _second_pass(batches, models)
    total = float(lines.weight.sum())
    return Solved(fits, sums.chance / total, sums.slope / total, links, products)


def _link(vectors: Array, gram: Array, fits: Fits) -> Link:
    """The centre and spread of predictions: squares are taken about them, to keep their digits.

    The mean and the mean square of a prediction b . x are in the sums: first row of X'WX times b,
    and b' X'WX b, over the weight. (q - c)^2 differs from q^2 by a multiple of q and a constant.
    Both are in the model already, so the test is the same about any centre and in any unit.

    A prediction that is the same in every row has no square to test; its score is NaN from here on,
    and its spread is 1 so that nothing is divided by 0.
    """
    weight = np.maximum(fits.weight, 1e-300)
    centre = np.einsum("kd,kd->k", gram[:, 0], vectors) / weight
    square = np.einsum("kd,kde,ke->k", vectors, gram, vectors) / weight
    spread = np.sqrt(np.maximum(square - centre**2, 0.0))
    flat = spread <= 1e-9 * np.maximum(np.abs(centre), 1e-300)
    return Link(
        np.where(flat, np.nan, 0.0),
        np.zeros_like(vectors),
        centre,
        np.where(flat, 1.0, spread),
    )


@dataclass(frozen=True, eq=False)
class _Predicted:
    """What both models say of rows of one regression; names as in `logistic_queries.predicted`."""

    e: Array  # w (y - p)
    v: Array  # w p (1 - p)
    el: Array  # w (y - line)
    ql: Array  # the squared prediction of the straight line, about its centre
    qb: Array  # and that of the logistic model


def _predicted(models: Models, run: Run) -> _Predicted:
    k, x, y, w = run
    eta = log_odds(models.logits.fits.vectors[k], x)
    chance = sigmoid(eta)
    line = models.lines.vectors[k] @ x
    of_line, of_logits = models.links
    return _Predicted(
        w * (y - chance),
        w * chance * (1.0 - chance),
        w * (y - line),
        ((line - of_line.centre[k]) / of_line.spread[k]) ** 2,
        ((eta - of_logits.centre[k]) / of_logits.spread[k]) ** 2,
    )


def _first_pass(batches: Batches, models: Models) -> Sums:
    """The sums that `Sums` names, by products of matrices.

    Only the last loop mixes regressions: the mean chance by regression f is over the rows of all of
    them, as if each row were of f. Its derivative by the coefficients, sum w p (1 - p) x, is what
    the delta method needs to turn their covariance into the error of the mean chance.
    """
    vectors = models.logits.fits.vectors
    sums = Sums.nothing(*vectors.shape)

    def add(runs: list[Run]) -> None:
        for run in runs:
            k, x, _, w = run
            rows = _predicted(models, run)
            sums.information[k] += (x * rows.v) @ x.T
            sums.score[k] += x @ rows.e
            _add_link(sums.line, k, x, w, rows.ql, rows.el)
            _add_link(sums.logistic, k, x, rows.v, rows.qb, rows.e)
            for f, vector in enumerate(vectors):  # as if the rows were of each regression
                chance = sigmoid(log_odds(vector, x))
                sums.chance[f] += w @ chance
                sums.slope[f] += x @ (w * chance * (1.0 - chance))

    batches.each(add)
    return sums


def _add_link(link: LinkSums, k: int, x: Array, v: Array, q: Array, e: Array) -> None:
    weighted = v * q
    link.cross[k] += x @ weighted
    link.square[k] += weighted @ q
    link.score[k] += e @ q


def _second_pass(batches: Batches, models: Models) -> Array:
    """The sums of products of the scores of rows, for robust errors.

    The score of a row is e x for the coefficients. For a link test it is e (q - a . x), where q is
    the squared prediction and a . x what the features explain of it: the coefficients have been
    fitted, so the part of q in their direction says nothing, and leaving it in would make the
    variance of the test too large. a is known only after the first pass, hence the second.
    """
    many, d = models.lines.vectors.shape
    products = np.zeros((many, many, d + 2, d + 2))
    of_line, of_logits = models.links

    def add(runs: list[Run]) -> None:
        for run in runs:
            k, x = run.k, run.x
            rows = _predicted(models, run)
            scores = x * rows.e
            products[k, k, :d, :d] += scores @ scores.T
            left = (
                rows.el * (rows.ql - of_line.explained[k] @ x),
                rows.e * (rows.qb - of_logits.explained[k] @ x),
            )
            for i, score in enumerate(left, start=d):
                products[k, k, i, i] += score @ score

    batches.each(add)
    return products


def _inverse(logits: Logits, gram: Array, information: Array, k: int) -> Array:
    """The inverse of the information, in the directions that the rows showed."""
    # It has no solution, so its rows say nothing of an information there.
    if logits.why[k]:
        return np.zeros_like(gram)
    basis = basis_of(gram, logits.fits.rank[k])
    inverse: Array = basis @ np.linalg.inv(basis.T @ information @ basis) @ basis.T
    return inverse


def _scored(link: Link, sums: LinkSums, inverse: Array, score: Array) -> Link:
    """The score of the squared prediction q: sum e q - a' sum e x, with a = H^-1 sum v q x.

    a is how the features explain q. `score` has sum e x, which is 0 for the straight line.
    """
    explained = np.einsum("kij,kj->ki", inverse, sums.cross)
    # The square of what is left of q, sum v q^2 - a' H a.
    left = sums.square - np.einsum("ki,ki->k", explained, sums.cross)
    free = (left > SATURATED * sums.square) & np.isfinite(link.score)
    own = sums.score - np.einsum("ki,ki->k", explained, score)
    return replace(link, score=np.where(free, own, np.nan), explained=explained)
