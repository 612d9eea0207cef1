"""The passes of `logistic_sums` as queries, for engines that hold the rows, and for clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.audit._inference.cluster_errors import cluster_products
from evenhand.audit._inference.logistic_newton import LARGEST, Logits, chance_of, with_chances
from evenhand.audit._inference.regression_scores import (
    Fits,
    check_same_rows,
    counted_again,
    linear,
    looked_up,
    named,
    worked_out,
)
from evenhand.audit._input.expressions import number
from evenhand.audit._input.sources import Source
from evenhand.audit._sums.aggregate import fetch_by
from evenhand.bias.statistics import Array


@dataclass(frozen=True, eq=False)
class Link:
    """The scores of the squared prediction in every regression, less what the model explains."""

    score: Array  # (fits,); NaN where the model can follow any rewards, or has no slopes at all
    explained: Array  # (fits, d): the coefficients of the squared prediction on the features
    centre: Array  # (fits,): of the prediction
    spread: Array  # (fits,)


@dataclass(frozen=True, eq=False)
class Models:
    """Both models of the same rows, and the links of each: of the straight line first."""

    logits: Logits
    lines: Fits
    links: tuple[Link, Link]


class LinkSums(NamedTuple):
    """Sums with the squared prediction q of every regression."""

    cross: Array  # (fits, d): v q x
    square: Array  # (fits,): v q^2
    score: Array  # (fits,): e q


class Sums(NamedTuple):
    """The sums of the first pass, for every regression."""

    information: Array  # (fits, d, d): v x x'
    score: Array  # (fits, d): e x
    line: LinkSums  # with the weight in place of v
    logistic: LinkSums
    chance: Array  # (fits,): weighted chances of all rows, by each regression
    slope: Array  # (fits, d): their derivative by the coefficients

    @classmethod
    def nothing(cls, many: int, d: int) -> Sums:
        """Sums over no rows."""
        line, logistic = (
            LinkSums(np.zeros((many, d)), np.zeros(many), np.zeros(many)) for _ in range(2)
        )
        score, slope = np.zeros((many, d)), np.zeros((many, d))
        return cls(np.zeros((many, d, d)), score, line, logistic, np.zeros(many), slope)


def predicted(source: Source, models: Models) -> Any:
    """Rows with e, v, p and eta of `with_chances`.

    Residuals of straight lines are in el, and squared predictions about their centres in ql and qb.
    """
    rows = with_chances(source, models.logits.rows, models.logits.fits)
    of_line, of_logits = models.links
    places = {"ml": of_line.centre, "sl": of_line.spread}
    places |= {"mb": of_logits.centre, "sb": of_logits.spread}
    vectors = models.lines.vectors
    rows = looked_up(source, rows, named("l", vectors) | places)
    rows = worked_out(source, rows.mutate(line=linear(rows, "l", vectors.shape[1])))
    residual = rows["y"] - rows["line"]
    residual = rows["w"] * residual if "w" in rows.columns else residual
    far_l = (rows["line"] - rows["ml"]) / rows["sl"]
    far_b = (rows["eta"] - rows["mb"]) / rows["sb"]
    return worked_out(source, rows.mutate(el=residual, ql=far_l * far_l, qb=far_b * far_b))


def first_pass(source: Source, models: Models) -> Sums:
    """The sums of the first pass.

    The names of their columns, with i and j for coefficients and f for a regression:

        h{i}_{j}         v x_i x_j, the information
        u{i}             e x_i, the score
        lx{i}, lq, lt    w q x_i, w q^2 and e q of the straight line and its squared prediction q
        bx{i}, bq, bt    v q x_i, v q^2 and e q of the logistic model
        p{f}, p{f}_{i}   chances of all rows by regression f, and their derivative by coefficient i
    """
    many, d = models.lines.vectors.shape
    rows = _with_all_chances(source, predicted(source, models), models.logits.fits.vectors)
    x = _features(rows, d)
    weight = rows["w"] if "w" in rows.columns else number(1.0)
    aggregates = {
        f"h{i}_{j}": (rows["v"] * x[i] * x[j]).sum() for i in range(d) for j in range(i, d)
    }
    for name, q, e, v in (("l", "ql", "el", weight), ("b", "qb", "e", rows["v"])):
        square = rows[q]
        aggregates |= {f"{name}x{i}": (v * square * feature).sum() for i, feature in enumerate(x)}
        aggregates |= {
            f"{name}q": (v * square * square).sum(),
            f"{name}t": (rows[e] * square).sum(),
        }
    aggregates |= {f"u{i}": (rows["e"] * feature).sum() for i, feature in enumerate(x)}
    for f in range(many):
        p, slope = rows[f"chance{f}"], rows[f"chance{f}"] * (number(1.0) - rows[f"chance{f}"])
        aggregates[f"p{f}"] = (weight * p).sum()
        aggregates |= {f"p{f}_{i}": (weight * slope * feature).sum() for i, feature in enumerate(x)}
    frame = fetch_by(source, rows, ["k"], aggregates | counted_again(rows))
    check_same_rows(source, frame, models.lines)
    sums, whole = Sums.nothing(many, d), frame.sum()
    for i in range(d):
        for j in range(i, d):
            column = _by_fit(frame, f"h{i}_{j}", many)
            sums.information[:, i, j] = sums.information[:, j, i] = column
        sums.score[:, i] = _by_fit(frame, f"u{i}", many)
        sums.slope[:, i] = [whole[f"p{f}_{i}"] for f in range(many)]
    sums.chance[:] = [whole[f"p{f}"] for f in range(many)]
    for name, link in (("l", sums.line), ("b", sums.logistic)):
        link.cross[:] = np.array([_by_fit(frame, f"{name}x{i}", many) for i in range(d)]).T
        link.square[:] = _by_fit(frame, f"{name}q", many)
        link.score[:] = _by_fit(frame, f"{name}t", many)
    return sums


def _with_all_chances(source: Source, rows: Any, vectors: Array) -> Any:
    """The chance of each row by every regression, as if the row were of it."""
    x, chances = _features(rows, vectors.shape[1]), {}
    for f, vector in enumerate(vectors):
        eta = sum((number(b) * feature for b, feature in zip(vector, x, strict=True)), number(0.0))
        chances[f"chance{f}"] = chance_of(eta.clip(number(-LARGEST), number(LARGEST)))
    return worked_out(source, rows.mutate(**chances))


def second_pass(source: Source, models: Models) -> Array:
    """The sums over rows of products of scores; those of a link with another's are left out."""
    many, d = models.lines.vectors.shape
    rows, scores = _scores(source, models)
    rows = rows.mutate(**{f"s{i}": score for i, score in enumerate(scores)})
    pairs = [(i, j) for i in range(d) for j in range(i, d)] + [(d, d), (d + 1, d + 1)]
    aggregates = {f"p{i}_{j}": (rows[f"s{i}"] * rows[f"s{j}"]).sum() for i, j in pairs}
    frame = fetch_by(source, rows, ["k"], aggregates | counted_again(rows))
    check_same_rows(source, frame, models.lines)
    products, own = np.zeros((many, many, d + 2, d + 2)), np.arange(many)
    for i, j in pairs:
        products[own, own, i, j] = products[own, own, j, i] = _by_fit(frame, f"p{i}_{j}", many)
    return products


def of_clusters(source: Source, models: Models, crossing: bool) -> Array:
    """The sums over clusters of products of scores.

    Args:
        source: where the rows are.
        models: the models, with the links that were scored.
        crossing: whether a cluster may have rows in several regressions.
    """
    rows, scores = _scores(source, models)
    return cluster_products(source, rows, scores, models.lines, crossing)


def _scores(source: Source, models: Models) -> tuple[Any, list[Any]]:
    """The rows, and their scores as expressions: of every coefficient, and of both links."""
    d = models.lines.vectors.shape[1]
    of_line, of_logits = models.links
    explained = named("al", of_line.explained) | named("ab", of_logits.explained)
    rows = looked_up(source, predicted(source, models), explained)
    scores = [rows["e"] * feature for feature in _features(rows, d)]
    scores.append(rows["el"] * (rows["ql"] - linear(rows, "al", d)))
    scores.append(rows["e"] * (rows["qb"] - linear(rows, "ab", d)))
    return rows, scores


def _features(rows: Any, d: int) -> list[Any]:
    return [number(1.0), *(rows[f"z{i}"] for i in range(d - 1))]


def _by_fit(frame: pd.DataFrame, name: str, many: int) -> Array:
    """A column of the answer, 0 for regressions without rows."""
    by_fit = np.zeros(many)
    by_fit[frame["k"].to_numpy(dtype=np.int64)] = frame[name].to_numpy(dtype=np.float64)
    return by_fit
