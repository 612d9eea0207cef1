"""The reward of every row: a column of numbers, or of words with a number for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand import _checks
from evenhand.worlds.features import finite, is_nominal


def rewards_of(column: pd.Series[Any], values: Mapping[str, float] | None) -> NDArray[np.float64]:
    """The reward of every row; `values` has a number for each category of a nominal one."""
    if values is not None:
        return _valued(column, values)
    if is_nominal(column):
        counts = column.astype(str).value_counts()
        text = pd.to_numeric(column.astype(str), errors="coerce")
        if text.notna().all():
            return finite(text)
        shown = ", ".join(f"{name!r} in {rows:,} rows" for name, rows in counts.head(4).items())
        more = f" and {len(counts) - 4:,} other values" if len(counts) > 4 else ""
        first = column.index[text.isna()][0]
        raise ValueError(
            f"reward: column {column.name!r} is not a number: {shown}{more} (first row {first}); "
            'give numbers for its values, such as reward_values={"'
            + f'{counts.index[0]}": 1, ...}}, or name what stands for a missing value in '
            "missing_marks"
        )
    return finite(column)


def _valued(column: pd.Series[Any], values: Mapping[str, float]) -> NDArray[np.float64]:
    numbers = {
        str(name): _checks.number(f"reward_values[{name!r}]", number, -np.inf, np.inf)
        for name, number in values.items()
    }
    text = column.map(str)
    unknown = text[~text.isin(list(numbers))]
    if len(unknown):
        raise ValueError(
            f"reward: column {column.name!r} has {unknown.iloc[0]!r} in "
            f"{int((unknown == unknown.iloc[0]).sum()):,} rows (first row {unknown.index[0]}), "
            f"which reward_values does not name; it names {', '.join(numbers)}"
        )
    return np.asarray(text.map(numbers), dtype=np.float64)
