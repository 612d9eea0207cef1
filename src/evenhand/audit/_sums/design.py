"""The columns of the regression: an intercept, numbers, categories as 0 and 1, and gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evenhand._columns.column import FLAGS, Column
from evenhand._columns.words import INTERCEPT, MISSING, category, gap, other
from evenhand.audit._input.expressions import as_number, is_missing, number
from evenhand.audit._input.first_look import Look
from evenhand.bias.statistics import Array

NUMBER, CATEGORY, GAP = "number", "category", "gap"


@dataclass(frozen=True)
class DesignColumn:
    """One column of the regression, made from one column of the log."""

    name: str
    column: str
    kind: str
    category: str | None = None  # None with kind CATEGORY: all those that have none of their own
    centre: float = 0.0


@dataclass(frozen=True, eq=False)
class Design:
    """The columns of the regression except the intercept, which always comes first."""

    features: tuple[DesignColumn, ...]
    kept: dict[str, tuple[str, ...]]  # by nominal column: the categories that are not merged
    fill: bool
    reward_centre: float
    constant: dict[str, float] = field(default_factory=dict)  # left out, by name: their value

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the coefficients."""
        return (INTERCEPT, *(feature.name for feature in self.features))

    @property
    def centres(self) -> Array:
        """What was subtracted from each column; nothing from the intercept."""
        return np.array([0.0, *(feature.centre for feature in self.features)])

    def columns(self, low: Array, high: Array) -> tuple[Column, ...]:
        """The columns of the log, each with its coefficients.

        Args:
            low: the least value of each feature.
            high: the largest.
        """
        columns: dict[str, Column] = {}
        for k, feature in enumerate(self.features):
            if feature.kind == NUMBER:
                columns[feature.name] = Column(feature.name, (k + 1,), low=low[k], high=high[k])
            elif feature.kind == GAP:
                columns[feature.name] = Column(feature.name, (k + 1,), FLAGS)
            else:
                first = Column(feature.column, (), self.kept[feature.column][:1])
                before = columns.get(feature.column, first)
                known = feature.category or feature.name.removeprefix(category(feature.column, ""))
                columns[feature.column] = replace(
                    before,
                    features=(*before.features, k + 1),
                    categories=(*before.categories, known),
                )
        return tuple(columns.values())

    def without(self, numbers: Sequence[int]) -> Design:
        """The design without these features, by number, which are constant over all rows."""
        dropped = [self.features[i] for i in numbers]
        return replace(
            self,
            features=tuple(feature for feature in self.features if feature not in dropped),
            constant={feature.name: feature.centre for feature in dropped},
        )

    def expression(self, table: Any, feature: DesignColumn) -> Any:
        """A feature, less its centre, in the engine."""
        column = table[feature.column]
        if feature.kind == GAP:
            return as_number(is_missing(column))
        if feature.kind == NUMBER:
            value = as_number(column) - number(feature.centre)
            # A filled gap is at the centre; the coefficient of its GAP column absorbs the effect.
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
        gaps: how many values a column to fill in lacks, where it lacks some.
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
            features += [
                DesignColumn(category(name, category_name), name, CATEGORY, category_name)
                for category_name in known[1:]
            ]
            if merged:
                features.append(DesignColumn(other(name, known), name, CATEGORY))
        else:
            label = name if name != INTERCEPT else f"{name} (column)"
            features.append(DesignColumn(label, name, NUMBER, centre=look.centres[name]))
            if lacks:
                features.append(DesignColumn(gap(name), name, GAP))
    return Design(tuple(features), kept, fill, look.reward_centre)
