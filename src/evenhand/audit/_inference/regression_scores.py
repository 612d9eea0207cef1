"""The regressions of a log, and the effect of every row on them, as expressions in the engine.

A regression belongs to a group, or to an arm of it, or to one of these in a time window. With A =
X'WX, the score of a row is its weight times its residual times its features, w e x, and A^-1 times
that is the effect of the row on the coefficients, to first order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evenhand.audit._input.expressions import number
from evenhand.audit._input.sources import Source
from evenhand.bias._fit import ARMS, solve_designs
from evenhand.bias.statistics import Array, Statistics, Whole, totals
from evenhand.errors import DataError

SAME = 1e-8  # of the size of a sum: engines add up in any order


@dataclass(frozen=True, eq=False)
class Fits:
    """Regressions, each with the values of the columns g, a or t that its rows have."""

    keys: tuple[str, ...]
    labels: tuple[tuple[object, ...], ...]
    of: Whole  # the group of each
    vectors: Array  # (fits, d)
    inverse: Array  # (fits, d, d): A^-1
    rank: Whole
    part: Array  # (fits,): the weight of each in the vector of its group
    n: Array  # (fits,): its rows
    total: Array  # (fits,): the sum of their rewards about the centre, times their weights
    square: Array  # (fits,): the same of their squares
    weight: Array  # (fits,): the sum of the weights; the number of rows where there are none


def fits_of(stats: Statistics, weighting: str, places: Mapping[str, tuple[str, str]]) -> Fits:
    """One regression per group, or one per arm, depending on the weighting.

    Args:
        stats: the sums.
        weighting: by arms or by pulls.
        places: the group and arm in the log, by the name of the arm in the sums.
    """
    groups = len(stats.groups)
    if weighting == ARMS:
        of, rows = stats.of, np.arange(len(stats.n), dtype=np.int64)
        keys: tuple[str, ...] = ("g", "a")
        labels: list[tuple[object, ...]] = [places[arm] for arm in stats.arms or ()]
    else:
        of = np.arange(groups, dtype=np.int64)
        rows = stats.of
        keys, labels = ("g",), [(name,) for name in stats.groups]
    n, gram, moment, square = (
        totals(sums, rows, len(labels))
        for sums in (stats.n, stats.gram, stats.moment, stats.square)
    )
    designs = solve_designs(gram, stats.precision)
    return Fits(
        keys,
        tuple(labels),
        of,
        np.einsum("pij,pj->pi", designs.inverse, moment),
        designs.inverse,
        designs.rank,
        # By arms every arm of a group has the same weight; by pulls there is one regression, with
        # the weight 1.
        1.0 / np.maximum(np.bincount(of, minlength=groups), 1.0)[of],
        n,
        moment[:, 0],
        square,
        gram[:, 0, 0],
    )


def in_windows(parts: Sequence[Fits]) -> Fits:
    """The regressions of all windows together."""
    return Fits(
        (*parts[0].keys, "t"),
        tuple((*label, t) for t, part in enumerate(parts) for label in part.labels),
        np.concatenate([part.of for part in parts]),
        np.concatenate([part.vectors for part in parts]),
        np.concatenate([part.inverse for part in parts]),
        np.concatenate([part.rank for part in parts]),
        np.concatenate([part.part for part in parts]),
        np.concatenate([part.n for part in parts]),
        np.concatenate([part.total for part in parts]),
        np.concatenate([part.square for part in parts]),
        np.concatenate([part.weight for part in parts]),
    )


def numbered(rows: Any, fits: Fits) -> Any:
    """The rows with the number of their regression in a column k, found once for all later use.

    Windows are numbered one after the other, so that their number need not be looked up.
    """
    import ibis

    keys = [key for key in fits.keys if key != "t"]
    labels = list(dict.fromkeys(label[: len(keys)] for label in fits.labels))
    branches = []
    for i, label in enumerate(labels):
        in_fit = rows[keys[0]] == label[0]
        for key, label_value in zip(keys[1:], label[1:], strict=True):
            in_fit = in_fit & (rows[key] == label_value)
        branches.append((in_fit, i))
    number_of = ibis.cases(*branches)
    if "t" in fits.keys:
        number_of = number_of + rows["t"] * len(labels)
    return rows.mutate(k=number_of.cast("int64"))


def with_residuals(source: Source, rows: Any, fits: Fits) -> Any:
    """Numbered rows with a column e: the residual times the row's weight."""
    rows = looked_up(source, rows, named("b", fits.vectors))
    return rows.mutate(e=_residual(rows, fits))


def with_effects(source: Source, rows: Any, fits: Fits, reach: Array) -> Any:
    """Numbered rows with a column v: their effect on their group's feedback at a context.

    `reach` is A^-1 times that context, times the part of the regression in its group.
    """
    rows = looked_up(source, rows, named("b", fits.vectors) | named("u", reach))
    return rows.mutate(v=_residual(rows, fits) * linear(rows, "u", fits.vectors.shape[1]))


def counted_again(rows: Any) -> dict[str, Any]:
    """Sums that show whether a later pass saw the rows of the first: count and reward."""
    reward = rows["w"] * rows["y"] if "w" in rows.columns else rows["y"]
    return {"seen": rows.count(), "seen_y": reward.sum()}


def check_same_rows(source: Source, frame: pd.DataFrame, fits: Fits) -> None:
    """Raise if a later pass saw other rows than those that the regressions come from.

    Every standard error comes from residuals that a query of its own sums up. If that query found
    no rows of a group (a label that an engine writes in two ways, a log that is being written), the
    errors would be zero, and the bias certain.

    Args:
        source: where the rows are.
        frame: a row per regression, k, with what `counted_again` asked for.
        fits: the regressions.
    """
    at = frame["k"].to_numpy(dtype=np.int64)
    seen, reward = np.zeros(len(fits.n)), np.zeros(len(fits.n))
    seen[at] = frame["seen"].to_numpy(dtype=np.float64)
    reward[at] = frame["seen_y"].to_numpy(dtype=np.float64)
    # By Cauchy and Schwarz a sum of rewards can be no more than this.
    size = np.sqrt(np.maximum(fits.weight * fits.square, 0.0))
    # Counts must agree exactly, sums of rewards up to the order of adding.
    other = (seen != fits.n) | (np.abs(reward - fits.total) > SAME * size)
    for k in np.flatnonzero(other):
        raise changed(source, f"group {fits.labels[k][0]}", fits.n[k], seen[k])


def changed(source: Source, who: str, first: float, then: float) -> DataError:
    """The error for a log that was not the same in two passes."""
    rows = (
        f"{first:,.0f} rows in one pass and {then:,.0f} in the next"
        if first != then
        else "other rewards in one pass than in the next"
    )
    return DataError(
        f"{source.label}: {who} had {rows}; the log must not change while it is audited: audit a "
        "copy, and if that says the same, please report it"
    )


def _residual(rows: Any, fits: Fits) -> Any:
    residual = rows["y"] - linear(rows, "b", fits.vectors.shape[1])
    return rows["w"] * residual if "w" in rows.columns else residual


def linear(rows: Any, name: str, d: int) -> Any:
    """The sum of the features times their coefficients, the intercept first."""
    prediction = rows[f"{name}0"]
    for i in range(1, d):
        prediction = prediction + rows[f"{name}{i}"] * rows[f"z{i - 1}"]
    return prediction


def named(name: str, coefficients: Array) -> dict[str, Array]:
    return {f"{name}{i}": column for i, column in enumerate(coefficients.T)}


def worked_out(source: Source, rows: Any) -> Any:
    """Rows whose columns are computed once, however often they are used afterwards.

    PostgreSQL repeats a column's expression wherever it is used, and again in what uses that: sums
    of chances, of features made from words, took ten minutes and now take seconds. It does not look
    into a query with a limit.
    """
    return rows.limit(2**62) if source.kind == "postgres" else rows


def looked_up(source: Source, rows: Any, values: dict[str, Array]) -> Any:
    """The rows with these columns, by the number of their regression.

    A join with a table of a few rows is the fastest. PostgreSQL requires the right to create that
    table, which a user who only reads may lack: there they are constants in the query.
    """
    import ibis
    import pyarrow as pa

    if source.kind == "postgres":
        return rows.mutate(
            **{
                name: ibis.array([number(value) for value in column])[rows["k"]]
                for name, column in values.items()
            }
        )
    numbers = {"k": np.arange(len(next(iter(values.values()))), dtype=np.int64), **values}
    return rows.join(ibis.memtable(pa.table(numbers)), "k")
