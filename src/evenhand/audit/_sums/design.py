"""The columns of the regression: an intercept, numbers, categories as 0 and 1, and gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evenhand._columns.words import INTERCEPT, MISSING, category, gap, other
from evenhand.audit._input.engines import as_number, is_missing, number
from evenhand.audit._input.scan import Look
from evenhand.bias._contexts import FLAGS, Column
from evenhand.bias.statistics import Array

NUMBER, CATEGORY, GAP = "number", "category", "gap"


@dataclass(frozen=True)
class Feature:
    """One column of the regression, made from one column of the log."""

    name: str
    column: str
    kind: str
    category: str | None = None  # None with kind CATEGORY: none of those that have their own
    centre: float = 0.0


@dataclass(frozen=True, eq=False)
class Design:
    """The columns of the regression but the intercept, which comes first and is always there."""

    features: tuple[Feature, ...]
    kept: dict[str, tuple[str, ...]]  # by nominal column: the categories that are not merged
    fill: bool
    reward_centre: float
    constant: dict[str, float] = field(default_factory=dict)  # left out, by name: their value

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the coefficients."""
        return (INTERCEPT, *(one.name for one in self.features))

    @property
    def centres(self) -> Array:
        """What was subtracted from each column; nothing from the intercept."""
        return np.array([0.0, *(one.centre for one in self.features)])

    def columns(self, low: Array, high: Array) -> tuple[Column, ...]:
        """The columns of the log, each with its coefficients.

        Args:
            low: the least value of each feature.
            high: the largest.
        """
        found: dict[str, Column] = {}
        for k, one in enumerate(self.features):
            if one.kind == NUMBER:
                found[one.name] = Column(one.name, (k + 1,), low=low[k], high=high[k])
            elif one.kind == GAP:
                found[one.name] = Column(one.name, (k + 1,), FLAGS)
            else:
                first = Column(one.column, (), self.kept[one.column][:1])
                before = found.get(one.column, first)
                known = one.category or one.name.removeprefix(category(one.column, ""))
                found[one.column] = replace(
                    before,
                    features=(*before.features, k + 1),
                    categories=(*before.categories, known),
                )
        return tuple(found.values())

    def without(self, numbers: Sequence[int]) -> Design:
        """The others, if these features, by number, have the same value in every row."""
        gone = [self.features[i] for i in numbers]
        return replace(
            self,
            features=tuple(one for one in self.features if one not in gone),
            constant={one.name: one.centre for one in gone},
        )

    def expression(self, table: Any, feature: Feature) -> Any:
        """A feature, less its centre, in the engine."""
        column = table[feature.column]
        if feature.kind == GAP:
            return as_number(is_missing(column))
        if feature.kind == NUMBER:
            value = as_number(column) - number(feature.centre)
            # A filled gap stands at the centre; its own column takes what that does.
            return is_missing(column).ifelse(number(0.0), value) if self.fill else value
        text = column.cast("string")
        if self.fill:
            text = text.coalesce(MISSING)
        if feature.category is not None:
            return as_number(text == feature.category)
        return as_number(text.notin(self.kept[feature.column]))


def make_design(look: Look, gaps: dict[str, int], fill: bool) -> Design:
    """The columns of the regression.

    Args:
        look: the first look at the log.
        gaps: how many values each column lacks that is filled in, where it lacks some.
        fill: whether these are filled in.
    """
    features, kept = [], {}
    for name in look.columns.features:
        lacks = fill and gaps.get(name, 0) > 0
        if name in look.categories:
            known = list(look.categories[name])
            merged = look.merged[name] > 0
            if lacks and MISSING not in known:
                known.append(MISSING)
            kept[name] = (*known, *look.rare[name])  # the rare ones count as the first
            # The most frequent is what the others are compared with.
            features += [Feature(category(name, one), name, CATEGORY, one) for one in known[1:]]
            if merged:
                features.append(Feature(other(name, known), name, CATEGORY))
        else:
            label = name if name != INTERCEPT else f"{name} (column)"
            features.append(Feature(label, name, NUMBER, centre=look.centres[name]))
            if lacks:
                features.append(Feature(gap(name), name, GAP))
    return Design(tuple(features), kept, fill, look.reward_centre)
