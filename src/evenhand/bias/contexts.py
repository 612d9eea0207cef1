"""The contexts behind a report: averages, spread, kinds of features, and how groups overlap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evenhand import _checks
from evenhand.bias.statistics import Array, Statistics, Whole, totals

# Averages of two groups that are further apart, in pooled standard deviations of a feature, leave
# the groups little in common: of two normal distributions 62 % at 1, and 32 % at 2.
WEAK_OVERLAP = 1.0
# The same for all features together, along the line that tells two groups apart best.
WEAK_TOGETHER = 2.0
MOST_GROUPS = 30  # for which all pairs are looked at

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
    """How far groups are apart on the combination of features that tells them apart best."""
    groups, d = means.shape
    gram = totals(stats.gram, stats.of, groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = gram / total[:, None, None] - means[:, :, None] * means[:, None, :]
    found = np.zeros((groups, groups))
    for a, b in np.argwhere(np.triu(np.outer(total > d, total > d), 1)):
        pooled = (inside[a] + inside[b]) / 2.0
        size = np.sqrt(np.maximum(np.diag(pooled), 0.0))
        # A feature that does not vary is not told apart here, but one by one.
        known = size > 1e-6 * np.sqrt(np.diag(gram[a] + gram[b]) / (total[a] + total[b]))
        gap = (means[a] - means[b])[known] / size[known]
        shape = pooled[np.ix_(known, known)] / np.outer(size[known], size[known])
        inverse = np.linalg.pinv(shape, rcond=1e-9, hermitian=True)
        found[a, b] = found[b, a] = np.sqrt(max(float(gap @ inverse @ gap), 0.0))
    return found


def _arms_from(stats: Statistics, overall: Array, spread: Array) -> Array | None:
    if stats.arms is None or stats.means is None:
        return None
    gap = np.where(stats.n[:, None] > 0.0, stats.means - overall, 0.0)
    gap = np.where(np.abs(gap) > 1e-9 * np.abs(overall), gap, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = np.where(gap == 0.0, 0.0, np.abs(gap) / spread)
    return found


def _variance(mean: Array, square: Array) -> Array:
    """Mean square less squared mean; what is no more than rounding is 0."""
    found = square - mean**2
    return np.where(found > 1e-12 * square, found, np.where(np.isnan(found), np.nan, 0.0))


def _apart(means: Array, variance: Array) -> Array:
    gap = means[:, None] - means[None]
    gap = np.where(np.abs(gap) > 1e-9 * np.abs(means[:, None]), gap, 0.0 * gap)
    pooled = np.sqrt((variance[:, None] + variance[None]) / 2.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = np.where(gap == 0.0, 0.0, gap / pooled)
    return found


def _kind(means: Array, squares: Array) -> str:
    """Only 0 and 1 are their own squares: the mean of such a feature is its mean square."""
    if not len(means) or (np.abs(means - squares) > 1e-9 * squares).any():
        return NUMBER
    return INTERCEPT if (np.abs(means - 1.0) <= 1e-9).all() else BINARY


def units_of(
    contexts: Contexts, features: tuple[str, ...], given: Mapping[str, float] | None
) -> tuple[float, ...]:
    """The step of each feature that words and charts speak of.

    As given, or 1 for an intercept and for features of 0 and 1, or the power of ten next to the
    standard deviation.
    """
    unknown = [name for name in given or {} if name not in features]
    if unknown:
        raise ValueError(
            f"units has {unknown[0]!r}, which is no feature; allowed are {', '.join(features)}"
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
    """The features in which a group hardly overlaps with one of the others: with which, how far."""
    if contexts.apart is None:
        return {}
    found = {}
    for k in range(contexts.apart.shape[2]):
        far = [(abs(contexts.apart[group, g, k]), int(g)) for g in others if g != group]
        distance, other = max(far, default=(0.0, 0))
        if distance > WEAK_OVERLAP:
            found[k] = (other, float(contexts.apart[group, other, k]))
    return found
