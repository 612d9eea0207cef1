"""Sums of squared residuals: what robust errors need of every row, in one pass.

The coefficients are known after the first pass, so the regressions of the whole log, of its time
windows and within these can all be summed up in the second. Each needs the sum of e^2 x x' by
group, arm and window, where e is the residual times the weight: with a column of 0 and 1 for a
window, the products are those of the window's rows.

DuckDB runs in this process. There rows come as columns in batches, and a product of matrices sums
up what SQL would write as hundreds of sums. Other engines run elsewhere, and a query of sums
transfers less from there than its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from evenhand.audit._inference.regression_scores import (
    Fits,
    check_same_rows,
    counted_again,
    numbered,
    with_effects,
    with_residuals,
)
from evenhand.audit._input.expressions import number
from evenhand.audit._input.sources import Source
from evenhand.audit._sums.aggregate import fetch_by
from evenhand.audit._sums.batches import Batch, Coding, Room, rows_of_batch
from evenhand.bias.statistics import Array, Whole


@dataclass(frozen=True, eq=False)
class Question:
    """Regressions whose residuals are asked for.

    `lift` has a matrix per window that maps the features of the log, (d,), to those of the
    regressions, (D,), which may have columns for windows. A window that it lacks plays no part.
    Without it they are the features of the log, in every row. With a `context` only the squares of
    rows' effects on their group's feedback there are asked for, which are sums of one number.
    """

    fits: Fits
    rows: Any  # those that play a part, with all columns, for engines that are asked by SQL
    lift: Mapping[int, Array] | None = None
    context: Array | None = None

    @property
    def reach(self) -> Array:
        """A^-1 x of each regression at the context, by its part in its group: (fits, d)."""
        assert self.context is not None
        return self.fits.part[:, None] * (self.fits.inverse @ self.context)


@dataclass(eq=False)
class SecondPass:
    """All questions of an audit, answered together when the first of them is asked."""

    source: Source
    rows: Any  # as `prepared` made them
    windows: int  # 0 where there are none
    questions: dict[str, Question] = field(default_factory=dict)
    answers: dict[str, Array] = field(default_factory=dict)

    def products(self, name: str) -> Array:
        """The sum of e^2 x x' of each regression: (fits, D, D)."""
        question = self.questions[name]
        if self.source.kind != "duckdb":
            return _queried(self.source, question)
        if name not in self.answers:
            self.answers |= _streamed(self)
        return self.answers[name]

    def squares(self, name: str) -> Array:
        """The sum of squares of rows' effects at the context of the question: (fits,)."""
        if self.source.kind != "duckdb":
            return _queried_squares(self.source, self.questions[name])
        return self.products(name)[:, 0, 0]


def _streamed(second: SecondPass) -> dict[str, Array]:
    """The answers to all questions from one pass over the rows of DuckDB."""
    questions = list(second.questions.values())
    # One coding of cells serves all questions: cells by group and arm add up to those by group.
    finest = max((question.fits for question in questions), key=lambda fits: len(_keys(fits)))
    keys = _keys(finest)
    labels = list(dict.fromkeys(label[: len(keys)] for label in finest.labels))
    coding = Coding(keys, labels, second.windows + 1)
    places = [_place(question, coding) for question in questions]
    features = sum(name.startswith("z") for name in second.rows.columns)
    tally = _Tally(places, coding, features + 1)
    second.source.stream(
        _columns(second.rows, coding, features), tally.add, rows_of_batch(features + 1)
    )
    products = {}
    for name, question, place, meat in zip(
        second.questions, questions, places, tally.meat, strict=True
    ):
        check_same_rows(second.source, tally.seen(place.fit, len(question.fits.n)), question.fits)
        products[name] = _gathered(question, place, meat, coding.times)
    return products


def _keys(fits: Fits) -> list[str]:
    return [key for key in fits.keys if key != "t"]


@dataclass(frozen=True, eq=False)
class _Place:
    """For a question, the regression of each cell of the pass, -1 for none, and its vector."""

    fit: Whole  # (cells,)
    vectors: Array  # (cells, d): coefficients of the features of the log
    reach: Array | None  # (cells, d): where squares at a context are asked for


def _place(question: Question, coding: Coding) -> _Place:
    fits, lift = question.fits, question.lift
    labels, times = coding.labels, coding.times
    number_of = {label: k for k, label in enumerate(fits.labels)}
    n_keys = len(_keys(fits))
    assert coding.keys[:n_keys] == _keys(fits)
    fit = np.full((len(labels), times), -1, dtype=np.int64)
    d = fits.vectors.shape[1] if lift is None else next(iter(lift.values())).shape[1]
    vectors = np.zeros((len(labels), times, d))
    for i, label in enumerate(labels):
        for t in range(times):
            where = (*label[:n_keys], t) if "t" in fits.keys else label[:n_keys]
            if where not in number_of or (lift is not None and t not in lift):
                continue
            fit[i, t] = k = number_of[where]
            own_b = fits.vectors[k]
            # b . (T x) = (b T) . x: the columns of windows are constants within a cell, so the
            # features of the log suffice.
            vectors[i, t] = own_b if lift is None else own_b @ lift[t]
    reach = None if question.context is None else question.reach[fit.ravel()]
    return _Place(fit.ravel(), vectors.reshape(-1, d), reach)


def _columns(rows: Any, coding: Coding, features: int) -> Any:
    """The rows as the tally wants them: cell, reward, features, weight."""
    more = {"w": rows["w"]} if "w" in rows.columns else {}
    wanted = {f"z{i}": rows[f"z{i}"] for i in range(features)}
    return rows.select(cell=coding.number_of(rows), y=rows["y"], **wanted, **more)


class _Tally:
    """Sums by cell, batch after batch."""

    def __init__(self, places: list[_Place], coding: Coding, d: int) -> None:
        self.places, self.coding, self.d, self.room = places, coding, d, Room()
        sizes = [d if place.reach is None else 1 for place in places]
        self.meat = [np.zeros((coding.cells, size, size)) for size in sizes]
        self.count, self.reward = np.zeros(coding.cells), np.zeros(coding.cells)

    def add(self, arrow: Any) -> None:
        """Take in a batch of `_columns`: add s s' for the scores s = e x of its rows."""
        batch = Batch(arrow, self.coding)
        x = batch.features(self.room.of(self.d, len(batch)))
        y = batch.column("y")
        weight = batch.column("w") if batch.has("w") else None
        heavy = y if weight is None else weight * y
        for at, rows in batch.runs():
            self.count[at] += batch.sizes[at]
            self.reward[at] += heavy[rows].sum()
            for place, meat in zip(self.places, self.meat, strict=True):
                if place.fit[at] < 0:
                    continue
                here = x[:, rows]
                residual = y[rows] - place.vectors[at] @ here
                if weight is not None:
                    residual *= weight[rows]
                score = (
                    here * residual
                    if place.reach is None
                    else (place.reach[at] @ here * residual)[None]
                )
                meat[at] += score @ score.T

    def seen(self, fit: Whole, fits: int) -> pd.DataFrame:
        """The rows and rewards that the pass saw of every regression, for `check_same_rows`."""
        known = fit >= 0
        return pd.DataFrame(
            {
                "k": np.arange(fits),
                "seen": np.bincount(fit[known], self.count[known], fits),
                "seen_y": np.bincount(fit[known], self.reward[known], fits),
            }
        )


def _gathered(question: Question, place: _Place, meat: Array, times: int) -> Array:
    """The sums of cells as those of regressions: T B T' with the lift T for columns of windows."""
    fits, lift = question.fits, question.lift
    wide = fits.vectors.shape[1] if question.context is None else 1
    products = np.zeros((len(fits.labels), wide, wide))
    for cell in np.flatnonzero(place.fit >= 0):
        block = meat[cell]
        if lift is not None:
            matrix = lift[int(cell) % times]
            # Scores follow in the same way: e T x for e x, so T B T' for their products.
            block = matrix @ block @ matrix.T
        products[place.fit[cell]] += block
    return products


def _queried(source: Source, question: Question) -> Array:
    """The products of one question, summed up by SQL."""
    fits = question.fits
    scored = with_residuals(source, numbered(question.rows, fits), fits)
    d = fits.vectors.shape[1]
    x = [number(1.0), *(scored[f"z{i}"] for i in range(d - 1))]
    weight = scored["e"] * scored["e"]
    aggregates = {f"s{i}_{j}": (weight * x[i] * x[j]).sum() for i in range(d) for j in range(i, d)}
    frame = fetch_by(source, scored, ["k"], aggregates | counted_again(scored))
    check_same_rows(source, frame, fits)
    meat = np.zeros((len(fits.labels), d, d))
    for row in frame.to_dict(orient="records"):
        for i in range(d):
            for j in range(i, d):
                meat[int(row["k"]), i, j] = meat[int(row["k"]), j, i] = row[f"s{i}_{j}"]
    return meat


def _queried_squares(source: Source, question: Question) -> Array:
    """The squares of one question at its context, summed up by SQL."""
    fits = question.fits
    scored = with_effects(source, numbered(question.rows, fits), fits, question.reach)
    squares_of = {"v": (scored["v"] * scored["v"]).sum(), **counted_again(scored)}
    frame = fetch_by(source, scored, ["k"], squares_of)
    check_same_rows(source, frame, fits)
    squares = np.zeros(len(fits.labels))
    squares[frame["k"].to_numpy(dtype=np.int64)] = frame["v"].to_numpy(dtype=np.float64)
    return squares
