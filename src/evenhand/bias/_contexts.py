"""The contexts behind a report: averages, spread, kinds of features, and how groups overlap.

A coefficient of the bias says how the gap between two groups changes with a feature. It is not a
gap itself: if women have 20 points more in one department and 1 point more in another, the
coefficient of the second is -19. So a report also gives the gaps, within each category and at
values of each number, with all other features at their averages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand import _checks
from evenhand._columns.column import Column
from evenhand.bias.statistics import Array, Statistics, Whole, totals
from evenhand.errors import InputError, setting

# Averages of two groups that are further apart, in pooled standard deviations of a feature, leave
# the groups little in common: of two normal distributions 62 % at 1, and 32 % at 2.
WEAK_OVERLAP = 1.0
# The same for all features together, along the line that separates two groups best.
WEAK_TOGETHER = 2.0
MOST_GROUPS = 30  # up to which all pairs are checked

INTERCEPT, BINARY, NUMBER = "intercept", "0/1", "number"


@dataclass(frozen=True, eq=False)
class Contexts:
    """What is known of the contexts of each group: NaN where a group has none."""

    means: Array | None  # (groups, features)
    overall: Array | None  # (features,)
    apart: Array | None  # (groups, groups, features), in pooled standard deviations, signed
    spread: Array  # (features,): the standard deviation, or the root mean square without means
    kinds: tuple[str, ...]
    together: Array | None = None  # (groups, groups): as apart, of all features (Mahalanobis)
    arms: Array | None = None  # (arms, features): of an arm from everyone, in standard deviations


def describe(stats: Statistics) -> Contexts:
    """Averages, spread and overlap from the sums."""
    groups, d = len(stats.groups), stats.n_features
    weight = stats.n if stats.weights is None else stats.weights
    total = np.bincount(stats.of, weight, groups).astype(np.float64)
    squares = totals(np.einsum("ikk->ik", stats.gram), stats.of, groups)
    everyone = max(total.sum(), 1e-300)
    if stats.means is None:
        size = np.sqrt(squares.sum(axis=0) / everyone)
        return Contexts(None, None, None, size, (NUMBER,) * d)
    sums = totals(weight[:, None] * stats.means, stats.of, groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        means, squares_on_average = sums / total[:, None], squares / total[:, None]
    overall, square = sums.sum(axis=0) / everyone, squares.sum(axis=0) / everyone
    return Contexts(
        means,
        overall,
        _apart(means, _variance(means, squares_on_average)),
        np.sqrt(_variance(overall, square)),
        tuple(_kind(means[total > 0, k], squares_on_average[total > 0, k]) for k in range(d)),
        _together(stats, means, total) if groups <= MOST_GROUPS else None,
        _arms_from(stats, overall, np.sqrt(_variance(overall, square))),
    )


def _together(stats: Statistics, means: Array, total: Array) -> Array:
    """The distance of groups on the combination of features that separates them best.

    It is Mahalanobis', sqrt(d' P^-1 d), with the difference d of their means and the average P of
    their covariances.
    """
    groups, d = means.shape
    gram = totals(stats.gram, stats.of, groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = gram / total[:, None, None] - means[:, :, None] * means[:, None, :]
    distance = np.zeros((groups, groups))
    for a, b in np.argwhere(np.triu(np.outer(total > d, total > d), 1)):
        pooled = (inside[a] + inside[b]) / 2.0
        size = np.sqrt(np.maximum(np.diag(pooled), 0.0))
        # A feature that does not vary has no scale here; `_apart` looks at it by itself.
        known = size > 1e-6 * np.sqrt(np.diag(gram[a] + gram[b]) / (total[a] + total[b]))
        gap = (means[a] - means[b])[known] / size[known]
        shape = pooled[np.ix_(known, known)] / np.outer(size[known], size[known])
        inverse = np.linalg.pinv(shape, rcond=1e-9, hermitian=True)
        distance[a, b] = distance[b, a] = np.sqrt(max(float(gap @ inverse @ gap), 0.0))
    return distance


def _arms_from(stats: Statistics, overall: Array, spread: Array) -> Array | None:
    if stats.arms is None or stats.means is None:
        return None
    gap = np.where(stats.n[:, None] > 0.0, stats.means - overall, 0.0)
    gap = np.where(np.abs(gap) > 1e-9 * np.abs(overall), gap, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance: Array = np.where(gap == 0.0, 0.0, np.abs(gap) / spread)
    return distance


def _variance(mean: Array, square: Array) -> Array:
    """Mean square less squared mean; 0 if that is no more than rounding."""
    variance = square - mean**2
    rounded = np.where(np.isnan(variance), np.nan, 0.0)
    return np.where(variance > 1e-12 * square, variance, rounded)


def _apart(means: Array, variance: Array) -> Array:
    gap = means[:, None] - means[None]
    gap = np.where(np.abs(gap) > 1e-9 * np.abs(means[:, None]), gap, 0.0 * gap)
    pooled = np.sqrt((variance[:, None] + variance[None]) / 2.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance: Array = np.where(gap == 0.0, 0.0, gap / pooled)
    return distance


def _kind(means: Array, squares: Array) -> str:
    """Only 0 and 1 are their own squares: the mean of such a feature is its mean square."""
    if not len(means) or (np.abs(means - squares) > 1e-9 * squares).any():
        return NUMBER
    return INTERCEPT if (np.abs(means - 1.0) <= 1e-9).all() else BINARY


def units_of(
    contexts: Contexts, features: tuple[str, ...], given: Mapping[str, float] | None
) -> tuple[float, ...]:
    """The step of each feature that words and charts use.

    As given, or 1 for an intercept and for features of 0 and 1, or the power of ten next to the
    standard deviation.
    """
    unknown = [name for name in given or {} if name not in features]
    if unknown:
        raise InputError(
            f"{setting('units')} has {unknown[0]!r}, which is not a feature; allowed are "
            f"{', '.join(features)}"
        )
    units = []
    for name, kind, spread in zip(features, contexts.kinds, contexts.spread, strict=True):
        if given and name in given:
            units.append(_checks.number(f"units of {name}", given[name], 0, np.inf, open_ends=True))
        elif kind != NUMBER or not spread > 0.0:
            units.append(1.0)
        else:
            units.append(float(10.0 ** np.round(np.log10(spread))))
    return tuple(units)


def weak_overlap(contexts: Contexts, group: int, others: Whole) -> dict[int, tuple[int, float]]:
    """The features in which a group hardly overlaps with another: which other, and how far."""
    if contexts.apart is None:
        return {}
    weak = {}
    for k in range(contexts.apart.shape[2]):
        far = [(abs(contexts.apart[group, g, k]), int(g)) for g in others if g != group]
        distance, other = max(far, default=(0.0, 0))
        if distance > WEAK_OVERLAP:
            weak[k] = (other, float(contexts.apart[group, other, k]))
    return weak


@dataclass(frozen=True, eq=False)
class Place:
    """A context to evaluate: everyone's average, except for the value of one column."""

    column: str
    at: str
    context: Array


def columns_of(features: tuple[str, ...], contexts: Contexts) -> tuple[Column, ...]:
    """A column for each feature except the intercept: the default unless columns are given."""
    return tuple(
        Column(name, (k,))
        for k, (name, kind) in enumerate(zip(features, contexts.kinds, strict=True))
        if kind != INTERCEPT
    )


def places_of(
    columns: tuple[Column, ...],
    overall: Array,
    spread: Array,
    values: Mapping[str, Sequence[float]] | None = None,
) -> list[Place]:
    """Every category of every column, and two values of every number.

    Args:
        columns: all of them.
        overall: the average context of everyone.
        spread: the standard deviation of each feature.
        values: where to look at numbers, by column; one standard deviation below and above the
            average unless given, or the least and the largest value where that is nearer.
    """
    given = dict(values or {})
    known = {column.name for column in columns if not column.categories}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise InputError(
            f"{setting('values')} has {unknown[0]!r}, which is not a column of numbers; "
            f"allowed are {', '.join(sorted(known)) or 'none'}"
        )
    places = []
    for column in columns:
        if column.categories:
            spare = len(column.categories) - len(column.features)
            for i, category in enumerate(column.categories):
                flags = [float(i - spare == j) for j in range(len(column.features))]
                places.append(_place(column, category, flags, overall))
            continue
        k = column.features[0]
        mean = overall[k] - float(column.at([0.0])[0])
        for number in given.get(column.name, _two_values(column, mean, spread[k])):
            value = _checks.number(
                f"values of {column.name}", number, -_checks.LARGEST, _checks.LARGEST
            )
            places.append(_place(column, f"{value:.6g}", [value], overall))
    return places


def _place(column: Column, at: str, values: list[float], overall: Array) -> Place:
    context = overall.copy()
    context[list(column.features)] = column.at(values)
    return Place(column.name, at, context)


def _two_values(column: Column, mean: float, spread: float) -> list[float]:
    """One standard deviation below and above the average, in few digits, and never beyond the data.

    Rounding could go beyond the range of the data, whose ends are therefore not rounded.
    """
    if not spread > 0.0:
        return []
    digits = int(1 - np.floor(np.log10(spread)))
    ends = [round(mean - spread, digits), round(mean + spread, digits)]
    return [float(np.clip(end, column.low, column.high)) for end in ends]
