"""The columns that people know, and the features that they became in a report.

A coefficient of the bias says how the gap between two groups changes with a feature. It is no gap:
where women have 20 points more in one department and 1 point more in another, the coefficient of
the second is -19. So a report also gives the gap itself, within each category and at values of each
number, with all other features at their average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand import _checks
from evenhand.bias.contexts import INTERCEPT, Contexts
from evenhand.bias.statistics import Array

FLAGS = ("0", "1")  # the categories of a number that is nothing else


@dataclass(frozen=True)
class Column:
    """A column of a table, and the features that it became.

    Attributes:
        name: of the column.
        features: their positions in a context.
        categories: empty for a number. Otherwise one for each feature; one more, in front, where
            that one has no feature of its own: the baseline, at which all of them are 0.
        low: the least value of a number, where it is known.
        high: the largest.
        centres: what was subtracted from each feature before it came into a context, if anything.
    """

    name: str
    features: tuple[int, ...]
    categories: tuple[str, ...] = ()
    low: float = -np.inf
    high: float = np.inf
    centres: tuple[float, ...] = ()

    def at(self, values: Sequence[float]) -> Array:
        """What a context holds where the features have these values."""
        found: Array = np.asarray(values, dtype=np.float64) - (self.centres or 0.0)
        return found

    @property
    def baseline(self) -> str | None:
        """The category without a feature of its own, if there is one."""
        return self.categories[0] if len(self.categories) > len(self.features) else None

    def category_of(self, feature: int) -> str:
        """The category that a feature stands for."""
        spare = len(self.categories) - len(self.features)
        return self.categories[self.features.index(feature) + spare]


@dataclass(frozen=True, eq=False)
class Place:
    """A context to look at: a column, its value there, in words or as a number."""

    column: str
    at: str
    context: Array


def columns_of(features: tuple[str, ...], contexts: Contexts) -> tuple[Column, ...]:
    """A column for each feature but the intercept, where nobody says more."""
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
        raise ValueError(
            f"values has {unknown[0]!r}, which is no column of numbers; allowed are "
            f"{', '.join(sorted(known)) or 'none'}"
        )
    found = []
    for column in columns:
        if column.categories:
            spare = len(column.categories) - len(column.features)
            for i, category in enumerate(column.categories):
                flags = [float(i - spare == j) for j in range(len(column.features))]
                found.append(_place(column, category, flags, overall))
            continue
        k = column.features[0]
        mean = overall[k] - float(column.at([0.0])[0])
        for one in given.get(column.name, _two_values(column, mean, spread[k])):
            value = _checks.number(f"values of {column.name}", one, -1e100, 1e100)
            found.append(_place(column, f"{value:.6g}", [value], overall))
    return found


def _place(column: Column, at: str, values: list[float], overall: Array) -> Place:
    context = overall.copy()
    context[list(column.features)] = column.at(values)
    return Place(column.name, at, context)


def _two_values(column: Column, mean: float, spread: float) -> list[float]:
    """One standard deviation below and above the average, in few digits, and never beyond the data.

    Rounding could leave the range of the data, so the ends of it are taken as they are.
    """
    if not spread > 0.0:
        return []
    digits = int(1 - np.floor(np.log10(spread)))
    ends = [round(mean - spread, digits), round(mean + spread, digits)]
    return [float(np.clip(one, column.low, column.high)) for one in ends]
