"""Features from columns: numbers as they are or standardised, categories as 0/1 or codes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_bool_dtype

from evenhand._checks import LARGEST
from evenhand._columns.buckets import is_dates, is_nominal
from evenhand._columns.column import FLAGS, Column
from evenhand._columns.diagnosis import (
    as_texts,
    dates,
    dates_in_text,
    numbers_as_text,
    numbers_in_text,
    too_many,
)
from evenhand._columns.missing import filled
from evenhand._columns.missing_marks import Marks
from evenhand._columns.words import INTERCEPT, MISSING, category, other, tell, word, written
from evenhand._prose import number_of
from evenhand.errors import DataError, blank, setting

CATEGORIES = 20  # kept for a nominal feature, unless given
MOST_CATEGORIES = 1000  # with more, it is not a nominal feature
MANY_CODES = 50  # with more different values, numbering them deserves a warning


class Encoding(NamedTuple):
    """How categories become features.

    Args:
        one_hot: a 0/1 feature for each; otherwise a single feature of integer codes.
        categories: how many have their own feature; the rest are "other".
        intercept: whether there is one. Then the most frequent category has no feature: it is the
            baseline of the others.
    """

    one_hot: bool = True
    categories: int = CATEGORIES
    intercept: bool = True


class Feature(NamedTuple):
    """One number of a context: its name and the value of every row.

    `levels` are the categories that the values number from 0; empty for numbers. A feature for one
    category has the name of its column in `column`, and all categories of it in `categories`.
    """

    name: str
    values: NDArray[Any]
    levels: tuple[str, ...] = ()
    column: str = ""
    categories: tuple[str, ...] = ()


def features_of(
    frame: pd.DataFrame,
    listed: Sequence[str],
    nominal_columns: Collection[str],
    how: Encoding,
    marks: Marks | None = None,
    decimal: str = ".",
) -> list[Feature]:
    """The features that columns become.

    Args:
        frame: the table.
        listed: the columns of it that become features.
        nominal_columns: columns of numbers that are really categories.
        how: how categories are encoded.
        marks: those that are known, to be repeated in errors.
        decimal: what text of the table has in place of a decimal point.
    """
    features: list[Feature] = []
    for name in listed:
        column = frame[name]
        if name not in nominal_columns:
            _check_kind(column, marks or Marks(), decimal)
        nominal = name in nominal_columns or is_nominal(column)
        flag = None
        if not (nominal and how.one_hot):  # there a gap is the last category
            column, flag = filled(column, nominal)
        features += encode(column, nominal, how)
        if flag is not None:
            features.append(Feature(str(flag.name), flag.to_numpy()))
    names = [*[INTERCEPT] * how.intercept, *(feature.name for feature in features)]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(
            f"{setting('features')}: two would be called {twice[0]!r}; rename a column",
            value=twice[0],
        )
    return features


def most_frequent_first(counts: pd.Series[Any]) -> list[str]:
    """Categories by number of rows, the most frequent first, and ties by name.

    The first is the baseline of the others.

    Args:
        counts: the number of rows of each category, with the categories as its index.

    Example:
        >>> import pandas as pd
        >>> from evenhand._columns.features import most_frequent_first
        >>> most_frequent_first(pd.Series({"nurse": 2, "cook": 7, "judge": 2}))
        ['cook', 'judge', 'nurse']
    """
    pairs = sorted((-int(n), str(name)) for name, n in counts.items())
    return [name for _, name in pairs]


def encode(column: pd.Series[Any], nominal: bool, how: Encoding) -> list[Feature]:
    """The features that a column becomes.

    One-hot features are named "column=category", the most frequent first, and rare ones beyond
    `how.categories` are merged into "other". A missing value is a category after them, so it is
    not what the others are compared with, however frequent. All other columns are without missing
    values. Codes number the categories in the order in which
    they first appear, or in their own order if they have one.

    Example:
        >>> import pandas as pd
        >>> from evenhand._columns.features import Encoding, encode
        >>> jobs = pd.Series(["b", "a", "b"], name="job")
        >>> [(job.name, job.values.tolist()) for job in encode(jobs, True, Encoding())]
        [('job=a', [False, True, False])]
        >>> codes = encode(jobs, True, Encoding(one_hot=False))
        >>> codes[0].name, codes[0].values.tolist()
        ('job', [0, 1, 0])
    """
    name = str(column.name)
    if not nominal:
        return [Feature(name, finite(column))]
    return _one_hot(name, column, how) if how.one_hot else [_coded(name, column)]


def _coded(name: str, column: pd.Series[Any]) -> Feature:
    codes, levels = _codes(column)
    if len(levels) > max(MANY_CODES, len(column) / 2):
        tell(
            f"feature {name!r} has {len(levels):,} different values in {len(column):,} rows, and "
            f"numbering them is meaningless; leave it out with {setting('leave_out', [name])}, or "
            "merge them into a few categories"
        )
    return Feature(name, codes, tuple(word(level) for level in levels))


def _one_hot(name: str, column: pd.Series[Any], how: Encoding) -> list[Feature]:
    text = column.astype(object).map(word, na_action="ignore")
    order = most_frequent_first(text.value_counts())
    if len(order) > MOST_CATEGORIES:
        raise too_many(name, len(order))
    kept, rest = order[: how.categories], order[how.categories :]
    gaps = text.isna()
    if gaps.any() and MISSING not in kept:
        kept, rest = [*kept, MISSING], [value for value in rest if value != MISSING]
    text = text.where(~gaps, MISSING)
    labels = {value: category(name, value) for value in kept}
    if rest:
        merged = other(name, kept)
        labels[merged.removeprefix(f"{name}=")] = merged
        text = text.where(text.isin(kept), merged.removeprefix(f"{name}="))
        tell(
            f"feature {name!r} has {len(order):,} categories, and all but the {how.categories} "
            f"most frequent are merged into {merged!r}; choose how many to keep with "
            f"{setting('categories', blank('NUMBER'))}"
        )
    words = tuple(labels)
    first = int(how.intercept and len(words) > 1)
    values = text.to_numpy(dtype=object)
    return [Feature(labels[value], values == value, (), name, words) for value in words[first:]]


def columns_of(features: Sequence[Feature], scales: pd.DataFrame) -> list[Column]:
    """The columns that features were made from, for a bias report; codes are left out.

    Args:
        features: all but the intercept.
        scales: the mean that was subtracted from each, a row per feature in the order of contexts.
    """
    columns: dict[str, Column] = {}
    at = {str(name): k for k, name in enumerate(scales["feature"])}
    for feature in features:
        if feature.levels or feature.name not in at:
            continue
        k, flag = at[feature.name], bool(np.isin(feature.values, (0, 1)).all())
        centre = float(scales["mean"].iloc[k])
        name = feature.column or feature.name
        ends = (float(feature.values.min()), float(feature.values.max()))
        categories = feature.categories or (FLAGS if flag else ())
        before = columns.get(name, Column(name, (), categories, *ends))
        columns[name] = replace(
            before, features=(*before.features, k), centres=(*before.centres, centre)
        )
    return list(columns.values())


def _codes(column: pd.Series[Any]) -> tuple[NDArray[np.int64], list[Any]]:
    if isinstance(column.dtype, pd.CategoricalDtype) and column.cat.ordered:
        kept = column.cat.remove_unused_categories()
        return np.asarray(kept.cat.codes, dtype=np.int64), list(kept.cat.categories)
    codes, levels = pd.factorize(column)
    return codes.astype(np.int64), list(levels)


def finite(column: pd.Series[Any], role: str = "features") -> NDArray[Any]:
    """The numbers of a column; an error names the row of one that is not finite.

    Args:
        column: the numbers.
        role: the setting that names the column.
    """
    values = column.to_numpy(dtype=bool) if is_bool_dtype(column) else column.to_numpy()
    bad = np.flatnonzero(~(np.abs(values) <= LARGEST)) if values.dtype.kind == "f" else np.empty(0)
    if bad.size:
        raise DataError(
            f"column {column.name!r} has {number_of(bad.size, 'value')} that "
            f"{'is' if bad.size == 1 else 'are'} infinite or beyond {LARGEST:g}, the first in row "
            f"{column.index[bad[0]]}; correct the table, or "
            f"{'leave the column out' if role == 'features' else 'name another column'}",
            parameter=role,
            value=column.name,
        )
    return values


def _check_kind(column: pd.Series[Any], marks: Marks, decimal: str) -> None:
    """Refuse dates, and numbers that are text because of some words: both would be categories."""
    if not is_nominal(column) or isinstance(column.dtype, pd.CategoricalDtype):
        return
    name = str(column.name)
    if is_dates(column):
        raise dates(name)
    values = as_texts(column)
    if dates_in_text(values):
        raise dates(name)
    held = numbers_in_text(values, marks, decimal)
    if held is None:
        return
    where = ""
    if held.word is not None:
        rows = column.index[column.map(written, na_action="ignore") == held.word]
        where = f" (first row {rows[0]})" if len(rows) else ""
    raise numbers_as_text(name, held, where)


def told_of_constants(features: Sequence[Feature], intercept: bool, scaled: bool) -> list[Feature]:
    """Drop constant features that would break the fit, and warn of all constant ones."""
    dropped: list[str] = []
    constant: list[str] = []
    for name, values, *_ in features:
        if np.all(values == values[0]) or (scaled and not values.std(dtype=np.float64) > 0.0):
            (dropped if intercept or scaled or not values[0] else constant).append(name)
    if dropped:
        tell(
            f"features: column {', '.join(dropped)} has the same value in every row and is left out"
        )
    if constant:
        tell(
            f"features: column {', '.join(constant)} has the same value in every row: it acts as "
            "an intercept"
        )
    return [feature for feature in features if feature.name not in dropped]


def matrix(
    features: Sequence[Feature], order: NDArray[np.int64], intercept: bool, standardise: bool
) -> tuple[NDArray[np.float64], pd.DataFrame]:
    """The contexts, filled column by column in one array, and their means and deviations."""
    extra = int(intercept)
    contexts = np.empty((order.size, extra + len(features)))
    scales = [(INTERCEPT, 0.0, 1.0)] * extra
    if intercept:
        contexts[:, 0] = 1.0
    for k, (name, values, *_) in enumerate(features, extra):
        mean, deviation = 0.0, 1.0
        contexts[:, k] = values[order]
        if standardise:
            mean, deviation = (
                float(values.mean(dtype=np.float64)),
                float(values.std(dtype=np.float64)),
            )
            contexts[:, k] -= mean
            contexts[:, k] /= deviation
        scales.append((name, mean, deviation))
    return contexts, pd.DataFrame(scales, columns=["feature", "mean", "deviation"])
