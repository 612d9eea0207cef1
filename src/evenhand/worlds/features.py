"""Features from columns: numbers as they are or standardised, categories as codes or one-hot."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

MOST_LEVELS = 50  # of a nominal feature that is made one-hot
INTERCEPT = "intercept"


class Feature(NamedTuple):
    """One number of a context: its name and the value of every row."""

    name: str
    values: NDArray[np.float64]


def is_nominal(column: pd.Series[Any]) -> bool:
    """Whether a column holds categories, by its type."""
    return not pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def encode(
    column: pd.Series[Any], nominal: bool, one_hot: bool, leave_first_out: bool
) -> list[Feature]:
    """The features that a column becomes. It has no missing values any more.

    Codes count the categories in the order in which they first appear, or in their own order where
    they have one. One-hot features are named "column = category".
    """
    name = str(column.name)
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        raise ValueError(
            f"features: column {name!r} holds dates; make a number of it (an age, a duration), or "
            "leave it out"
        )
    if not nominal:
        return [Feature(name, finite(column))]
    codes, levels = _codes(column)
    if not one_hot:
        return [Feature(name, codes.astype(np.float64))]
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"features: column {name!r} has {len(levels):,} categories, and each would be a "
            f"feature (at most {MOST_LEVELS}); leave it out, merge rare ones, or use "
            'nominal="codes"'
        )
    return [
        Feature(f"{name} = {level}", (codes == code).astype(np.float64))
        for code, level in enumerate(levels)
        if code > 0 or not leave_first_out
    ]


def _codes(column: pd.Series[Any]) -> tuple[NDArray[np.int64], list[Any]]:
    if isinstance(column.dtype, pd.CategoricalDtype) and column.cat.ordered:
        kept = column.cat.remove_unused_categories()
        return np.asarray(kept.cat.codes, dtype=np.int64), list(kept.cat.categories)
    codes, levels = pd.factorize(column)
    return codes.astype(np.int64), list(levels)


def finite(column: pd.Series[Any]) -> NDArray[np.float64]:
    """The numbers of a column; an error that names the row where one is not finite."""
    values = column.to_numpy(dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(values) | (np.abs(values) > 1e100))
    if bad.size:
        raise ValueError(
            f"column {column.name!r} has {bad.size:,} values that are infinite or beyond 1e100, "
            f"the first in row {column.index[bad[0]]}; correct them or leave the column out"
        )
    return values


def numbers_in_text(frame: pd.DataFrame, columns: Collection[str], known: Collection[str]) -> None:
    """Refuse a column of numbers that some words turned into text: it would become categories."""
    for name in columns:
        column = frame[name]
        if name in known or not is_nominal(column) or pd.api.types.is_datetime64_any_dtype(column):
            continue
        levels = pd.Series(pd.unique(column.dropna())).astype(str)
        numbers = pd.to_numeric(levels, errors="coerce").notna()
        if 2 * numbers.sum() <= len(levels) or len(levels) < 3:
            continue
        words = levels[~numbers]
        rows = column[column.astype(str).isin(words)]
        what = ", ".join(repr(word) for word in words[:3])
        raise ValueError(
            f"column {name!r} holds numbers as text"
            + (
                f", and in {len(rows):,} rows {what} (first row {rows.index[0]})"
                if len(words)
                else ""
            )
            + "; name what stands for a missing value in missing_marks, make it numbers, or name "
            "the column in nominal_columns if it is categories"
        )


def told_of_constants(features: list[Feature], intercept: bool, scaled: bool) -> list[Feature]:
    """Without the features that never change where they would break the fit; all are told of."""
    kept: list[Feature] = []
    dropped: list[str] = []
    constant: list[str] = []
    for feature in features:
        first = feature.values[0]
        if np.all(feature.values == first):
            (dropped if intercept or scaled or first == 0.0 else constant).append(feature.name)
            if feature.name in dropped:
                continue
        kept.append(feature)
    if dropped:
        warnings.warn(
            f"features: column {', '.join(dropped)} has the same value in every row and is left "
            "out: it can tell nothing",
            UserWarning,
            stacklevel=3,
        )
    if constant:
        warnings.warn(
            f"features: column {', '.join(constant)} has the same value in every row: it acts as "
            "an intercept",
            UserWarning,
            stacklevel=3,
        )
    return kept
