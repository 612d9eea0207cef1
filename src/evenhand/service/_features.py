"""Features and groups as callers give them, and the columns that a policy sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from evenhand._checks import LARGEST
from evenhand._columns.words import INTERCEPT, category
from evenhand._membership import membership
from evenhand.errors import InputError
from evenhand.groups import Attribute, Groups
from evenhand.service._problems import Refused

NUMBER, WHOLE, YES_NO, CATEGORY, TEXT = "number", "whole", "yes-no", "category", "text"
TYPES = (NUMBER, WHOLE, YES_NO, CATEGORY, TEXT)
LONGEST = 200  # characters of a text


@dataclass(frozen=True)
class CandidateFeature:
    """A feature of the configuration: its type, its unit, and what is allowed."""

    name: str
    type: str = NUMBER
    unit: str = ""
    low: float = -LARGEST
    high: float = LARGEST
    values: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """One for a number; for a category, one per value except the first, which is the base.

        The configuration fixes the values and their order, and what is learned depends on it. So
        the base is not the most frequent value, as in tables, which nobody knows before the first
        decision.

        A text has none: it is not learned, and only its keyed hash is kept.
        """
        if self.type == TEXT:
            return ()
        if self.type != CATEGORY:
            return (self.name,)
        return tuple(category(self.name, value) for value in self.values[1:])

    @property
    def allowed(self) -> str:
        """What is allowed, in words that name no value of a caller."""
        if self.type == CATEGORY:
            return f"one of {', '.join(self.values)}"
        if self.type == YES_NO:
            return "true or false"
        if self.type == TEXT:
            return f"a text of up to {LONGEST} characters"
        kind = "a whole number" if self.type == WHOLE else "a number"
        if self.low == -LARGEST and self.high == LARGEST:
            return kind
        if self.high == LARGEST:
            return f"{kind} of at least {self.low:g}"
        if self.low == -LARGEST:
            return f"{kind} up to {self.high:g}"
        return f"{kind} from {self.low:g} to {self.high:g}"


class Encoder:
    """Features of candidates as rows of numbers, the intercept first if there is one."""

    def __init__(self, features: Sequence[CandidateFeature], intercept: bool) -> None:
        self.features, self.intercept = tuple(features), intercept
        first = (INTERCEPT,) if intercept else ()
        self.columns = first + tuple(name for f in features for name in f.columns)
        self.only_numbers = all(f.type in (NUMBER, WHOLE) for f in features)
        names = [feature.name for feature in features]
        self._pick: Callable[[Any], Any] = itemgetter(*names) if len(names) > 1 else _one_of(names)
        self._low = np.array([feature.low for feature in features])
        self._high = np.array([feature.high for feature in features])
        self._whole = [k for k, feature in enumerate(features) if feature.type == WHOLE]
        self._start = len(first)
        self.labels = {INTERCEPT: "the arm itself"}  # columns in words
        for feature in features:
            unit = f" ({feature.unit})" if feature.unit else ""
            self.labels |= {column: f"{column}{unit}" for column in feature.columns}
        kinds = {f.name: f.type for f in features if f.type != CATEGORY}
        self._kinds = {column: kinds.get(column, YES_NO) for column in self.columns}
        self.texts = tuple(feature.name for feature in features if feature.type == TEXT)

    def shown(self, column: str, value: float) -> str:
        """The value of a column in words; nothing for the arm itself. Texts have no column."""
        if column not in self._kinds or (self.intercept and column == INTERCEPT):
            return ""
        if self._kinds[column] == YES_NO:
            return "yes" if value else "no"
        return f"{value:.6g}"

    def texts_of(self, given: Sequence[Any]) -> list[tuple[str, ...]]:
        """The texts of every candidate, which `rows` has checked."""
        places = [k for k, feature in enumerate(self.features) if feature.type == TEXT]
        picked = (self._pick(item) if type(item) is dict else item for item in given)
        return [tuple(values[k] for k in places) for values in picked]

    def rows(self, given: Sequence[Any]) -> NDArray[np.float64]:
        """A row per candidate; a value that is not allowed is refused by candidate and feature."""
        number = len(self.features)
        picked = []
        for place, features in enumerate(given):
            if len(features) != number:
                self._misfit(features, place)
            if type(features) is dict:
                try:
                    features = self._pick(features)
                except KeyError:
                    self._misfit(features, place)
            picked.append(features)
        table = np.empty((len(given), len(self.columns)))
        table[:, : self._start] = 1.0
        if not self.only_numbers:
            for place, values in enumerate(picked):
                table[place, self._start :] = self._encoded(values, place)
            return table
        values = np.array(picked, dtype=np.float64).reshape(len(given), number)
        wrong = ~((values >= self._low) & (values <= self._high))  # NaN is wrong as well
        for k in self._whole:
            wrong[:, k] |= values[:, k] != np.rint(values[:, k])
        if wrong.any():
            place, k = np.argwhere(wrong)[0]
            raise self._refused(int(place), self.features[k])
        table[:, self._start :] = values
        return table

    def _encoded(self, given: Sequence[Any], place: int) -> list[float]:
        """The columns of a candidate that has more than numbers."""
        values: list[float] = []
        for feature, value in zip(self.features, given, strict=True):
            if feature.type == TEXT:
                if type(value) is not str or not 0 < len(value) <= LONGEST:
                    raise self._refused(place, feature)
                continue
            if feature.type == CATEGORY:
                if value not in feature.values:
                    raise self._refused(place, feature)
                values.extend(float(value == name) for name in feature.values[1:])
                continue
            good = type(value) in (float, int) or (type(value) is bool and feature.type == YES_NO)
            if feature.type == YES_NO:
                good = good and value in (0, 1)
            good = good and feature.low <= value <= feature.high
            if not good or (feature.type == WHOLE and value != value // 1):
                raise self._refused(place, feature)
            values.append(float(value))
        return values

    @staticmethod
    def _refused(place: int, feature: CandidateFeature) -> Refused:
        where = f"candidates[{place}].features.{feature.name}"
        return Refused(where, f"allowed is {feature.allowed}")

    def _misfit(self, given: Any, place: int) -> NoReturn:
        where, number = f"candidates[{place}].features", len(self.features)
        if not isinstance(given, dict):
            raise Refused(where, f"has {len(given)} values; allowed are {number}")
        absent = [feature.name for feature in self.features if feature.name not in given]
        if absent:
            raise Refused(f"{where}.{absent[0]}", "is missing; every feature has to be given")
        known = ", ".join(feature.name for feature in self.features)
        raise Refused(where, f"has a feature that is unknown; known are {known}")


def _one_of(names: list[str]) -> Callable[[Any], Any]:
    """For a single name, `itemgetter` does not return a tuple."""
    return lambda given: tuple(given[name] for name in names)


def membership_rows(groups: Groups, given: Sequence[Any]) -> NDArray[np.float64]:
    """A row of membership per candidate; a refusal never repeats the value.

    Args:
        groups: made by `Groups.per_round`.
        given: per candidate a level, probabilities of the levels, or None for not stated; with
            several attributes a mapping from their names to these, or None.

    Example:
        >>> import evenhand as eh
        >>> from evenhand.service._features import membership_rows
        >>> groups = eh.Groups.per_round(2, {"sex": ["F", "M"]})
        >>> membership_rows(groups, ["F", {"F": 0.5, "M": 0.5}]).tolist()
        [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]
    """
    attributes = groups.attributes
    columns: dict[str, Any] = {attributes[0].name: list(given)}
    if len(attributes) > 1:
        for place, group in enumerate(given):
            if group is not None:
                _check_names(attributes, group, place)
        columns = {
            attribute.name: [None if group is None else group[attribute.name] for group in given]
            for attribute in attributes
        }
    try:
        return membership(groups, columns, len(given))
    except InputError:
        raise _refused(groups, columns) from None


def _check_names(attributes: Sequence[Attribute], group: Mapping[str, Any], place: int) -> None:
    where = f"candidates[{place}].group"
    for attribute in attributes:
        if attribute.name not in group:
            raise Refused(
                f"{where}.{attribute.name}", "is missing; give it, or null if they did not say"
            )
    if len(group) > len(attributes):
        known = ", ".join(attribute.name for attribute in attributes)
        raise Refused(where, f"has an attribute that is unknown; known are {known}")


def _refused(groups: Groups, columns: Mapping[str, Sequence[Any]]) -> Refused:
    """The first candidate and attribute that is not allowed."""
    for attribute in groups.attributes:
        alone = Groups.per_round(1, {attribute.name: attribute.levels})
        name = f".{attribute.name}" if len(groups.attributes) > 1 else ""
        for place, group in enumerate(columns[attribute.name]):
            try:
                membership(alone, [group], 1)
            except InputError:
                return Refused(
                    f"candidates[{place}].group{name}",
                    f"allowed is one of {', '.join(attribute.levels)}, null, or probabilities of "
                    "these that sum to 1",
                )
    raise AssertionError
