"""Features from columns: numbers as they are or standardised, categories as codes or one-hot."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_bool_dtype

from evenhand.bias._contexts import FLAGS, Column
from evenhand.columns.buckets import is_dates, is_nominal, word
from evenhand.columns.files import tell
from evenhand.columns.missing import filled
from evenhand.errors import DataError, setting

MOST_LEVELS = 50  # of a nominal feature that is made one-hot
INTERCEPT = "intercept"
LARGEST = 1e100  # beyond, sums of squares overflow
GAPS = frozenset(("?", "-", "--", ".", "*", "na", "n/a", "#n/a", "nan", "none", "null", "unknown"))


class Feature(NamedTuple):
    """One number of a context: its name and the value of every row.

    `levels` are the categories that the values number from 0 on; none for numbers. A feature that
    stands for one category has the name of its column in `column`, and all of its categories.
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
    one_hot: bool,
    intercept: bool,
) -> list[Feature]:
    """The features that columns become. Where there is an intercept, one category is left out."""
    found: list[Feature] = []
    for name in listed:
        column = frame[name]
        if name not in nominal_columns:
            _check_kind(column)
        nominal = name in nominal_columns or is_nominal(column)
        column, flag = filled(column, nominal)
        found += encode(column, nominal, one_hot, leave_first_out=intercept)
        if flag is not None:
            found.append(Feature(str(flag.name), flag.to_numpy()))
    names = [*[INTERCEPT] * intercept, *(feature.name for feature in found)]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"{setting('features')}: two would be called {twice[0]!r}; rename a column")
    return found


def encode(
    column: pd.Series[Any], nominal: bool, one_hot: bool, leave_first_out: bool
) -> list[Feature]:
    """The features that a column becomes. It has no missing values any more.

    Codes count the categories in the order in which they first appear, or in their own order where
    they have one. One-hot features are named "column = category".

    Example:
        >>> import pandas as pd
        >>> from evenhand.columns.encoding import encode
        >>> codes = encode(pd.Series(["b", "a", "b"], name="job"), True, False, False)
        >>> codes[0].name, codes[0].values.tolist()
        ('job', [0, 1, 0])
    """
    name = str(column.name)
    if not nominal:
        return [Feature(name, finite(column))]
    codes, levels = _codes(column)
    if not one_hot:
        if len(levels) > max(MOST_LEVELS, len(column) / 2):
            tell(
                f"features: column {name!r} has {len(levels):,} different values in "
                f"{len(column):,} rows, and numbering them tells nothing; leave it out, or make "
                "some categories of it"
            )
        return [Feature(name, codes, tuple(word(level) for level in levels))]
    if len(levels) > MOST_LEVELS:
        raise DataError(
            f"{setting('features')}: column {name!r} has {len(levels):,} categories, and each "
            f"would be a feature (at most {MOST_LEVELS}); leave it out, merge rare ones, or use "
            f"{setting('nominal', 'codes')}"
        )
    first = int(leave_first_out and len(levels) > 1)
    words = tuple(word(level) for level in levels)
    return [
        Feature(f"{name} = {word(level)}", codes == code, (), name, words)
        for code, level in enumerate(levels)
        if code >= first
    ]


def columns_of(features: Sequence[Feature], scales: pd.DataFrame) -> list[Column]:
    """The columns that features were made of, for a bias report; codes are none.

    Args:
        features: all but the intercept.
        scales: the mean that was subtracted from each, a row per feature in the order of contexts.
    """
    found: dict[str, Column] = {}
    at = {str(name): k for k, name in enumerate(scales["feature"])}
    for one in features:
        if one.levels or one.name not in at:
            continue
        k, flag = at[one.name], bool(np.isin(one.values, (0, 1)).all())
        centre = float(scales["mean"].iloc[k])
        name = one.column or one.name
        ends = (float(one.values.min()), float(one.values.max()))
        before = found.get(name, Column(name, (), one.categories or (FLAGS if flag else ()), *ends))
        found[name] = replace(
            before, features=(*before.features, k), centres=(*before.centres, centre)
        )
    return list(found.values())


def _codes(column: pd.Series[Any]) -> tuple[NDArray[np.int64], list[Any]]:
    if isinstance(column.dtype, pd.CategoricalDtype) and column.cat.ordered:
        kept = column.cat.remove_unused_categories()
        return np.asarray(kept.cat.codes, dtype=np.int64), list(kept.cat.categories)
    codes, levels = pd.factorize(column)
    return codes.astype(np.int64), list(levels)


def finite(column: pd.Series[Any]) -> NDArray[Any]:
    """The numbers of a column; an error that names the row where one is not finite."""
    values = column.to_numpy(dtype=bool) if is_bool_dtype(column) else column.to_numpy()
    bad = np.flatnonzero(~(np.abs(values) <= LARGEST)) if values.dtype.kind == "f" else np.empty(0)
    if bad.size:
        raise DataError(
            f"column {column.name!r} has {bad.size:,} values that are infinite or beyond "
            f"{LARGEST:g}, the first in row {column.index[bad[0]]}; correct them or leave the "
            "column out"
        )
    return values


# 2024-01-31, 31.1.2024 or 1/31/24, with or without a time behind it.
_DATE = r"\s*\d{1,4}([-/.])\d{1,2}\1\d{1,4}([T ].*)?\s*"


def _dates_in_text(column: pd.Series[Any]) -> bool:
    """Whether nearly all of a text column reads as dates."""
    levels = pd.Series(pd.unique(column.dropna()), dtype=object).astype(str)
    return len(levels) > 2 and bool(levels.str.fullmatch(_DATE).mean() > 0.9)


def is_categories(column: pd.Series[Any]) -> bool:
    """Whether a column of text holds categories, and neither dates nor numbers."""
    try:
        _check_kind(column)
    except ValueError:
        return False
    return is_nominal(column)


def _check_kind(column: pd.Series[Any]) -> None:
    """Refuse dates, and numbers that some words turned into text: they would become categories."""
    if not is_nominal(column) or isinstance(column.dtype, pd.CategoricalDtype):
        return
    if is_dates(column) or _dates_in_text(column):
        raise DataError(
            f"{setting('features')}: column {column.name!r} holds dates or times; make a number of "
            f"it (an age, a duration), leave it out, or name it in {setting('nominal_columns')} "
            "if it is categories"
        )
    levels = pd.Series(pd.unique(column.dropna()), dtype=object).astype(str)
    bare = levels.str.replace(r"[\s,'$€£%]", "", regex=True)
    is_number = pd.to_numeric(bare, errors="coerce").notna()
    words = levels[~is_number]
    if not is_number.any() or (
        2 * len(words) >= len(levels) and not set(words.str.strip().str.lower()) <= GAPS
    ):
        return
    rows = column[column.astype(str).isin(words) & column.notna()]
    shown = ", ".join(repr(one) for one in words[:3])
    also = f", and in {len(rows):,} rows {shown} (first row {rows.index[0]})" if len(words) else ""
    raise DataError(
        f"{setting('features')}: column {column.name!r} holds numbers as text "
        f"({levels[is_number].iloc[0]!r}{also}); make it numbers, name what stands for a missing "
        f"value in {setting('missing_marks')} (CSV files), or name the column in "
        f"{setting('nominal_columns')} if it is categories"
    )


def told_of_constants(features: Sequence[Feature], intercept: bool, scaled: bool) -> list[Feature]:
    """Without the features that never change where they would break the fit; all are told of."""
    dropped: list[str] = []
    constant: list[str] = []
    for name, values, *_ in features:
        if np.all(values == values[0]) or (scaled and not values.std(dtype=np.float64) > 0.0):
            (dropped if intercept or scaled or not values[0] else constant).append(name)
    if dropped:
        tell(
            f"features: column {', '.join(dropped)} has the same value in every row and is left "
            "out: it can tell nothing"
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
    """The contexts, filled in one room column by column, and what they were scaled by."""
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
