"""The last two passes over the rows, at the solutions of the logistic models.

The first sums up the information, what the chances of a 1 would be if all rows were of one group,
and what link tests need. A link test asks whether the square of the prediction would add anything
to it: it does where the form of the model is wrong. It is a score test, so no model is fitted
again. The second pass sums up the squares of the scores, by cluster where there are clusters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand.audit._inference.cluster_errors import cluster_products
from evenhand.audit._inference.logistic_newton import (
    LARGEST,
    Logits,
    basis_of,
    chance_of,
    with_chances,
)
from evenhand.audit._inference.robust import CLUSTERED, Errors
from evenhand.audit._inference.scores import (
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

SATURATED = 1e-9  # of the square of a prediction: if the model leaves less, it explains all of it


@dataclass(frozen=True, eq=False)
class Link:
    """The scores of the squared prediction in every regression, less what the model explains."""

    score: Array  # (fits,); NaN where the model can follow any rewards, or has no slopes at all
    explained: Array  # (fits, d): the coefficients of the squared prediction on the features
    centre: Array  # (fits,): of the prediction
    spread: Array  # (fits,)


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
    d, many = logits.fits.vectors.shape[1], len(lines.labels)
    links = (_link(lines.vectors, gram, lines), _link(logits.fits.vectors, gram, lines))
    rows = _predicted(source, logits, lines, links)
    x = [number(1.0), *(rows[f"z{i}"] for i in range(d - 1))]
    weight = rows["w"] if "w" in rows.columns else number(1.0)
    wanted = {f"h{i}_{j}": (rows["v"] * x[i] * x[j]).sum() for i in range(d) for j in range(i, d)}
    for name, q, e, v in (("l", "ql", "el", weight), ("b", "qb", "e", rows["v"])):
        square = rows[q]
        wanted |= {f"{name}x{i}": (v * square * feature).sum() for i, feature in enumerate(x)}
        wanted |= {f"{name}q": (v * square * square).sum(), f"{name}t": (rows[e] * square).sum()}
    wanted |= {f"u{i}": (rows["e"] * feature).sum() for i, feature in enumerate(x)}
    for f in range(many):
        p, slope = rows[f"chance{f}"], rows[f"chance{f}"] * (number(1.0) - rows[f"chance{f}"])
        wanted[f"p{f}"] = (weight * p).sum()
        wanted |= {f"p{f}_{i}": (weight * slope * feature).sum() for i, feature in enumerate(x)}
    frame = fetch_by(source, rows, ["k"], wanted | counted_again(rows))
    check_same_rows(source, frame, lines)
    information = np.zeros((many, d, d))
    at = frame["k"].to_numpy(dtype=np.int64)
    for i in range(d):
        for j in range(i, d):
            information[at, i, j] = information[at, j, i] = frame[f"h{i}_{j}"].to_numpy(float)
    inverse = np.array([_inverse(logits, gram, information, k) for k in range(many)])
    fits = replace(logits.fits, inverse=inverse)
    slopes = _by_fit(frame, [f"u{i}" for i in range(d)], many)
    links = (
        _scored(links[0], frame, "l", lines.inverse, np.zeros_like(slopes)),
        _scored(links[1], frame, "b", inverse, slopes),
    )
    total = float(lines.weight.sum())
    whole = frame.sum()
    return Solved(
        fits,
        np.array([whole[f"p{f}"] for f in range(many)], dtype=np.float64) / total,
        np.array([[whole[f"p{f}_{i}"] for i in range(d)] for f in range(many)]) / total,
        links,
        _products(source, rows, fits, links, errors),
    )


def _link(vectors: Array, gram: Array, fits: Fits) -> Link:
    """The centre and spread of predictions: squares are taken about them, to keep their digits."""
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


def _predicted(source: Source, logits: Logits, lines: Fits, links: tuple[Link, Link]) -> Any:
    """Rows with chances by all models, residuals of straight lines in el, squares in ql and qb."""
    rows = with_chances(source, logits.rows, logits.fits)
    places = {"ml": links[0].centre, "sl": links[0].spread}
    places |= {"mb": links[1].centre, "sb": links[1].spread}
    rows = looked_up(source, rows, named("l", lines.vectors) | places)
    rows = worked_out(source, rows.mutate(line=linear(rows, "l", lines.vectors.shape[1])))
    residual = rows["y"] - rows["line"]
    far_l = (rows["line"] - rows["ml"]) / rows["sl"]
    far_b = (rows["eta"] - rows["mb"]) / rows["sb"]
    x = [number(1.0), *(rows[f"z{i}"] for i in range(lines.vectors.shape[1] - 1))]
    chances = {}
    for f, vector in enumerate(logits.fits.vectors):
        eta = sum((number(b) * feature for b, feature in zip(vector, x, strict=True)), number(0.0))
        chances[f"chance{f}"] = chance_of(eta.clip(number(-LARGEST), number(LARGEST)))
    residual = rows["w"] * residual if "w" in rows.columns else residual
    rows = rows.mutate(**chances, el=residual, ql=far_l * far_l, qb=far_b * far_b)
    return worked_out(source, rows)


def _inverse(logits: Logits, gram: Array, information: Array, k: int) -> Array:
    """The inverse of the information, in the directions that the rows showed."""
    if logits.why[k]:
        return np.zeros_like(gram[k])
    basis = basis_of(gram[k], logits.fits.rank[k])
    inverse: Array = basis @ np.linalg.inv(basis.T @ information[k] @ basis) @ basis.T
    return inverse


def _scored(link: Link, frame: pd.DataFrame, name: str, inverse: Array, slopes: Array) -> Link:
    """The score of the squared prediction q: sum e q - a' sum e x, with a = H^-1 sum v q x.

    a is how the features explain q. `slopes` has sum e x, which is 0 for the straight line.
    """
    many, d = slopes.shape
    cross = _by_fit(frame, [f"{name}x{i}" for i in range(d)], many)
    square, score = _by_fit(frame, [f"{name}q", f"{name}t"], many).T
    explained = np.einsum("kij,kj->ki", inverse, cross)
    left = square - np.einsum("ki,ki->k", explained, cross)
    free = (left > SATURATED * square) & np.isfinite(link.score)
    own = score - np.einsum("ki,ki->k", explained, slopes)
    return replace(link, score=np.where(free, own, np.nan), explained=explained)


def _by_fit(frame: pd.DataFrame, names: list[str], many: int) -> Array:
    by_fit = np.zeros((many, len(names)))
    by_fit[frame["k"].to_numpy(dtype=np.int64)] = frame[names].to_numpy(dtype=np.float64)
    return by_fit


def _products(
    source: Source, rows: Any, fits: Fits, links: tuple[Link, Link], errors: Errors
) -> Array:
    """The sums over rows, or over clusters, of products of scores."""
    d, many = fits.vectors.shape[1], len(fits.labels)
    rows = looked_up(
        source, rows, named("al", links[0].explained) | named("ab", links[1].explained)
    )
    x = [number(1.0), *(rows[f"z{i}"] for i in range(d - 1))]
    scores = [rows["e"] * feature for feature in x]
    scores.append(rows["el"] * (rows["ql"] - linear(rows, "al", d)))
    scores.append(rows["e"] * (rows["qb"] - linear(rows, "ab", d)))
    if errors.kind == CLUSTERED:
        crossing = errors.crossing > 0 or "a" in fits.keys
        return cluster_products(source, rows, scores, fits, crossing)
    rows = rows.mutate(**{f"s{i}": score for i, score in enumerate(scores)})
    pairs = [(i, j) for i in range(d) for j in range(i, d)] + [(d, d), (d + 1, d + 1)]
    wanted = {f"p{i}_{j}": (rows[f"s{i}"] * rows[f"s{j}"]).sum() for i, j in pairs}
    frame = fetch_by(source, rows, ["k"], wanted | counted_again(rows))
    check_same_rows(source, frame, fits)
    products = np.zeros((many, many, d + 2, d + 2))
    at = frame["k"].to_numpy(dtype=np.int64)
    for i, j in pairs:
        products[at, at, i, j] = products[at, at, j, i] = frame[f"p{i}_{j}"].to_numpy(
            dtype=np.float64
        )
    return products
