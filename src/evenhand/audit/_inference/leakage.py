"""Features that give away what they should only help to explain: the reward, or the group.

A copy of the reward leaves nothing to be biased when it is held constant. A stand-in for the group
leaves nobody to compare with. Both show in the sums that are there already.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from evenhand.audit._sums.design import Design
from evenhand.bias.statistics import Array, Statistics, totals

# R squared of one column by itself, adjusted for chance.
COPY = 0.999
STAND_IN = 0.95  # of two groups of equal size, it is wrong about one row in 80


@dataclass(frozen=True)
class Giveaways:
    """Columns of the log that predict the reward or identify a group, each by itself."""

    reward: dict[str, float] = field(default_factory=dict)  # R squared within groups
    group: dict[str, tuple[str, ...]] = field(default_factory=dict)  # the groups it identifies


def giveaways(stats: Statistics, design: Design) -> Giveaways:
    """Look at every column alone; categories of a column count together."""
    of = (stats.of, len(stats.groups))
    gram, moment = totals(stats.gram, *of), totals(stats.moment, *of)
    square, n = totals(stats.square, *of), totals(stats.n, *of)
    reward, group = {}, {}
    for name in dict.fromkeys(feature.column for feature in design.features):
        at = [1 + i for i, feature in enumerate(design.features) if feature.column == name]
        block = gram[:, [0, *at]][:, :, [0, *at]]
        fit = _of_reward(block, moment[:, [0, *at]], square, n)
        if fit > COPY:
            reward[name] = fit
        by_group = _of_groups(block, n)
        if (by_group > STAND_IN).any():
            group[name] = tuple(stats.groups[g] for g in np.flatnonzero(by_group > STAND_IN))
    return Giveaways(reward, group)


def _of_reward(gram: Array, moment: Array, square: Array, n: Array) -> float:
    """R squared of the reward within groups, every group with its own coefficients."""
    weight = np.maximum(gram[:, 0, 0], 1e-300)
    total = square - moment[:, 0] ** 2 / weight
    # Rewards that do not vary within a group cannot be explained, and rounding must not look as if
    # they were.
    total = np.where(total > 1e-12 * square, total, 0.0)
    cross = moment[:, 1:] - gram[:, 0, 1:] * (moment[:, 0] / weight)[:, None]
    explained, rank = _explained(_about_mean(gram, weight), cross)
    left = np.maximum(total - explained, 0.0).sum()
    # Every group has its own mean and its own coefficients, and both cost degrees of freedom.
    return float(_adjusted(left, total.sum(), n.sum() - np.count_nonzero(n), rank.sum()))


def _of_groups(gram: Array, n: Array) -> Array:
    """R squared of being in each group, over all rows."""
    whole = gram.sum(axis=0)
    everyone = max(whole[0, 0], 1e-300)
    part = gram[:, 0, 0] / everyone
    total = everyone * part * (1.0 - part)
    # The group is a column of 0 and 1 with the mean `part`. Its product with a feature is the
    # feature's sum in the group.
    cross = gram[:, 0, 1:] - part[:, None] * whole[0, 1:]
    spread = np.broadcast_to(_about_mean(whole[None], everyone), (len(gram), *_inner(gram)))
    explained, rank = _explained(spread, cross)
    left = np.maximum(total - explained, 0.0)
    return _adjusted(left, total, n.sum() - 1.0, rank)


def _about_mean(gram: Array, weight: Array | float) -> Array:
    """Products about the mean; those that are no more than rounding are 0.

    sum (x - m)(x - m)' = sum x x' - s s' / n with the sums s. It is a difference, and where a
    feature hardly varies beside its mean all of its digits may be rounding. A variance that small
    would later be divided by, so the feature is left out: its row and column are 0.
    """
    first, products = gram[:, 0, 1:], gram[:, 1:, 1:]
    weights = np.reshape(weight, (-1, 1, 1))
    spread = products - first[:, :, None] * first[:, None] / weights
    kept = np.einsum("gkk->gk", spread) > 1e-12 * np.einsum("gkk->gk", products)
    inside: Array = np.where(kept[:, :, None] & kept[:, None], spread, 0.0)
    return inside


def _explained(spread: Array, cross: Array) -> tuple[Array, Array]:
    """What a block of features explains of a total, and with how many coefficients.

    With S the products of the features about their means, and c those with what is to be explained,
    a least squares fit explains c' S^+ c. S is scaled to correlations first, so that one limit for
    its eigenvalues suits all units. Directions below it are the same categories in other words, or
    rounding. They explain nothing more, and do not count as coefficients.
    """
    size = np.sqrt(np.einsum("gkk->gk", spread))
    size = np.where(size > 0.0, size, 1.0)
    even = spread / (size[:, :, None] * size[:, None])
    scaled = cross / size
    values, vectors = np.linalg.eigh(even)
    large = values > 1e-9 * even.shape[1]
    along = np.einsum("gki,gk->gi", vectors, scaled)
    parts = np.where(large, along**2 / np.where(large, values, 1.0), 0.0)
    return parts.sum(axis=1), large.sum(axis=1)


def _adjusted(left: Array, total: Array, freedom: float, rank: Array) -> Array:
    """Adjusted R squared, 1 - (left / (freedom - rank)) / (total / freedom); 0 without any."""
    rest = np.maximum(freedom - rank, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        adjusted: Array = 1.0 - (left / rest) / (total / freedom)
    return np.where((rest > 0.0) & (total > 0.0), adjusted, 0.0)


def _inner(gram: Array) -> tuple[int, int]:
    return gram.shape[1] - 1, gram.shape[2] - 1
