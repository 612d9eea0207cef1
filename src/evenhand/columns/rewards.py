"""The reward of every row: a column of numbers, or of words with a number for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand import _checks
from evenhand.columns.buckets import is_nominal, word
from evenhand.columns.encoding import finite
from evenhand.errors import DataError, InputError, blank, literal, setting

FEW_WORDS = 10  # a reward with more values is a number that went wrong, not a category


def numbers_for(values: Mapping[Any, float] | None) -> dict[str, float] | None:
    """What every category of a nominal reward is worth, checked."""
    if values is None:
        return None
    if not isinstance(values, Mapping) or not values:
        raise InputError(
            f"{setting('reward_values')} is {values!r}; allowed is a number for every value of the "
            f"reward, such as {literal({'paid': 1, 'default': 0})}",
            value=values,
        )
    return {
        word(name): _checks.number(f"reward_values[{name!r}]", number, -1e100, 1e100)
        for name, number in values.items()
    }


def rewards_of(column: pd.Series[Any], numbers: Mapping[str, float] | None) -> NDArray[np.float64]:
    """The reward of every row; `numbers` has one for each category of a nominal reward."""
    if numbers is not None:
        return _valued(column, numbers)
    if not is_nominal(column):
        return finite(column).astype(np.float64)
    text = column.astype(str)
    read = pd.to_numeric(text, errors="coerce")
    if read.notna().all():
        return finite(read).astype(np.float64)
    counts = text[read.isna()].value_counts()
    shown = ", ".join(f"{name!r} in {rows:,} rows" for name, rows in counts.head(4).items())
    more = f" and {len(counts) - 4:,} other values" if len(counts) > 4 else ""
    worth = {str(counts.index[0]): 1, blank("VALUE"): blank("NUMBER")}
    advice = (
        f"give numbers for its values, {setting('reward_values', worth)}, or "
        if text.nunique() <= FEW_WORDS
        else "make it numbers, or "
    )
    raise DataError(
        f"{setting('reward')}: column {column.name!r} is not a number: {shown}{more} (first row "
        f"{column.index[read.isna()][0]}); {advice}name what stands for a missing value in "
        f"{setting('missing_marks')} (CSV files)"
    )


def true_rewards_of(
    column: pd.Series[Any], numbers: Mapping[str, float] | None
) -> NDArray[np.float64]:
    """The true rewards: by the same numbers where they name all its values, else as they are."""
    named = numbers is not None and column.map(word).isin(list(numbers)).all()
    return rewards_of(column, numbers if named or is_nominal(column) else None)


def _valued(column: pd.Series[Any], numbers: Mapping[str, float]) -> NDArray[np.float64]:
    text = column.astype(object).map(word)
    unknown = text[~text.isin(list(numbers))]
    if len(unknown):
        raise DataError(
            f"{setting('reward')}: column {column.name!r} has {unknown.iloc[0]!r} in "
            f"{int((unknown == unknown.iloc[0]).sum()):,} rows (first row {unknown.index[0]}), "
            f"which {setting('reward_values')} does not name; it names {', '.join(numbers)}"
        )
    return np.asarray(text.map(dict(numbers)), dtype=np.float64)
