"""Marks: what people write for a missing value, such as "?", "NA" or -9.

How a value is compared with a mark depends on the column: text without the spaces around it,
numbers as numbers. So "-9" is the -9 of a column of integers and the -9.0 of a column of doubles.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from evenhand._columns.kinds_of_text import are_numbers, with_point
from evenhand._columns.words import as_written, shown, tell, written
from evenhand.errors import InputError, as_given, setting

EVERY = "*"  # instead of a column's name: all columns

# In lower case. Used for hints in messages only: no value is missing because of it.
LIKELY = frozenset(
    ("", "?", "-", "--", ".", "*", "na", "n/a", "#n/a", "nan", "none", "null", "unknown")
)
Given = Collection[str | float] | Mapping[str, Collection[str | float] | float] | str


@dataclass(frozen=True)
class Marks:
    """What stands for missing values: in every column, and in single ones by name."""

    every: tuple[str, ...] = ()
    own: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Any) -> Marks:
        """From a user's input, checked.

        Args:
            given: a list, or lists by column, {"*": ["?"], "age": [-1]}, with "*" for all columns.

        Example:
            >>> from evenhand._columns.missing_marks import Marks
            >>> marks = Marks.of({"*": ["?"], "age": [-1.0]})
            >>> marks.of_column("age"), marks.of_column("debt")
            (('?', '-1'), ('?',))
        """
        if isinstance(given, Marks):
            return given
        if not isinstance(given, Mapping):
            return cls(listed_marks(given))
        for name in given:
            if not isinstance(name, str):
                raise InputError(
                    f"{setting('missing_marks')} has {name!r} for a column; allowed are names of "
                    f"columns, and {EVERY!r} for all of them",
                    value=name,
                )
        own = {
            name: listed_marks([marks] if isinstance(marks, Real) else marks)
            for name, marks in given.items()
        }
        every = own.pop(EVERY, ())
        return cls(every, {name: marks for name, marks in own.items() if marks})

    def __bool__(self) -> bool:
        return bool(self.every or self.own)

    def of_column(self, name: str) -> tuple[str, ...]:
        """The marks of a column."""
        return (*self.every, *self.own.get(name, ()))

    def with_more(self, more: Collection[str]) -> list[str] | dict[str, list[str]]:
        """These marks and more for every column, as a user would give them."""
        every = list(dict.fromkeys([*self.every, *more]))
        if not self.own:
            return every
        own = {name: list(marks) for name, marks in self.own.items()}
        return {**own, EVERY: every} if every else own

    def check_columns(self, known: Collection[str]) -> None:
        """Raise an error if there are marks for a column that does not exist."""
        for name in self.own:
            if name not in known:
                raise InputError(
                    f"{setting('missing_marks')} names {name!r}, which is not a column; there are "
                    f"{shown(known)}",
                    value=name,
                )

    def check_rewards(self, reward: str, values: Mapping[str, float] | None) -> None:
        """Raise an error if a mark of the reward is also one of its values."""
        shared = [mark for mark in self.of_column(reward) if mark in (values or ())]
        if shared:
            raise InputError(
                f"{setting('reward_values')} and {setting('missing_marks')} both have "
                f"{shared[0]!r}; a value is either a reward or a mark of a missing one: remove it "
                "from one of them",
                value=shared[0],
            )


def listed_marks(given: Any) -> tuple[str, ...]:
    """The marks of a list as words, checked."""
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, Collection) or isinstance(listed, Mapping):
        raise InputError(
            f"{setting('missing_marks')} is {as_given(given)}; allowed is a list of strings and "
            f"numbers, such as {setting('missing_marks', ['?', 'NA', -9])}, or such lists by "
            f"column, {setting('missing_marks', {'age': [-1]})}",
            value=given,
        )
    for mark in listed:
        if isinstance(mark, bool) or not isinstance(mark, (str, Real)):
            raise InputError(
                f"{setting('missing_marks')} has {mark!r}; allowed are strings and numbers",
                value=mark,
            )
    return tuple(dict.fromkeys(written(mark) for mark in listed))


def tell_of_idle(mark: str, where: str) -> None:
    """Warn of a mark that occurs nowhere; it may be misspelt."""
    tell(
        f"{setting('missing_marks')} has {mark!r}, which is not in {where}; a mark is a whole "
        "cell, not a part of one: correct it, or remove it"
    )


def without_marks(
    frame: pd.DataFrame, marks: Marks, decimal: str = ".", names: Collection[str] = ()
) -> pd.DataFrame:
    """The table with missing values in place of marks and, in columns with marks, of empty text.

    Text that held marks and otherwise only numbers becomes numbers. Without a mark it is left
    alone, and so are codes: "01" is not 1.

    Args:
        frame: a table.
        marks: what stands for missing values in it.
        decimal: what its text has in place of a decimal point.
        names: columns whose text stays text, because it holds names.

    Example:
        >>> import pandas as pd
        >>> from evenhand._columns.missing_marks import Marks, without_marks
        >>> table = pd.DataFrame({"age": [31, -9], "debt": ["?", "2.5"]})
        >>> without_marks(table, Marks.of(["?", -9])).isna().to_dict("list")
        {'age': [False, True], 'debt': [True, False]}
    """
    if not marks:
        return frame
    marks.check_columns([str(name) for name in frame.columns])
    changed, idle = {}, {mark for mark in marks.every if mark.lower() not in LIKELY}
    for place, name in enumerate(frame.columns):
        words = marks.of_column(str(name))
        if words:
            column = frame.iloc[:, place]
            here = _is_one_of(column, ("", *words))
            _find(idle, column, here)
            if here.any() or str(name) in marks.own:
                changed[place] = _cleared(column, here, None if str(name) in names else decimal)
    for mark in sorted(idle):
        tell_of_idle(mark, "any column")
    if not changed:
        return frame
    columns = [changed.get(place, frame.iloc[:, place]) for place in range(frame.shape[1])]
    return pd.concat(columns, axis=1)


def _find(idle: set[str], column: pd.Series[Any], here: pd.Series[bool]) -> None:
    """Remove from the idle marks those that are in a column."""
    if idle and here.any():
        idle -= {mark for mark in idle if _is_one_of(column[here], [mark]).any()}


def _is_one_of(column: pd.Series[Any], words: Collection[str]) -> pd.Series[bool]:
    kind = column.dtype
    if types.is_bool_dtype(kind) and not types.is_object_dtype(kind):
        known = [word.lower() == "true" for word in words if word.lower() in ("true", "false")]
        return column.isin(known)
    if types.is_numeric_dtype(kind):
        numbers = [number for number in map(as_written, words) if number is not None]
        if kind == np.float32:  # which holds the nearest number instead
            numbers += [
                float(np.float32(number)) for number in numbers if abs(number) < np.finfo("f4").max
            ]
        return column.isin(numbers)
    if types.is_datetime64_any_dtype(kind):
        return pd.Series(False, index=column.index)
    if isinstance(kind, pd.CategoricalDtype):
        known = [category for category in column.cat.categories if written(category) in words]
        return column.isin(known)
    return column.astype(object).map(written, na_action="ignore").isin(list(words))


def _cleared(column: pd.Series[Any], here: pd.Series[bool], decimal: str | None) -> pd.Series[Any]:
    """A column without its marks, as numbers if the rest is; text stays text without a decimal."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.where(~here).cat.remove_unused_categories()
    if types.is_bool_dtype(column.dtype) or types.is_integer_dtype(column.dtype):
        return column.astype(object).where(~here, None).convert_dtypes()
    cleared = column.where(~here)
    if types.is_numeric_dtype(column.dtype):
        return cleared
    text = cleared.astype(object).map(written, na_action="ignore")
    if decimal is None or not are_numbers(text.dropna(), decimal):
        return cleared
    return pd.to_numeric(with_point(text, decimal))
