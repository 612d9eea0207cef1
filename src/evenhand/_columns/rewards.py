"""The reward of every row: a column of numbers, or of words with a number for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._columns.buckets import is_nominal, plain
from evenhand._columns.diagnosis import counted, no_number
from evenhand._columns.features import finite
from evenhand._columns.missing_marks import Marks
from evenhand._columns.words import shown, written
from evenhand.errors import DataError, InputError, as_given, setting


def numbers_for(values: Any) -> dict[str, float] | None:
    """The number for every value of a reward in words, checked.

    Example:
        >>> from evenhand._columns.rewards import numbers_for
        >>> numbers_for({"paid": 1, "default ": 0, 2.0: 0.5})
        {'paid': 1.0, 'default': 0.0, '2': 0.5}
    """
    if values is None:
        return None
    if not isinstance(values, Mapping) or not values:
        raise InputError(
            f"{setting('reward_values')} is {as_given(values)}; allowed is a number for every "
            "value of the reward, such as "
            f"{setting('reward_values', {'approved': 1, 'denied': 0})}",
            value=values,
        )
    largest = _checks.LARGEST
    numbers = {
        written(name): _checks.number(f"reward_values[{name!r}]", worth, -largest, largest)
        for name, worth in values.items()
    }
    if len(numbers) < len(values):
        raise InputError(
            f"{setting('reward_values')} is {as_given(values)}; it has the same value twice: "
            "remove one",
            value=values,
        )
    return numbers


def not_named(
    role: str,
    name: str,
    values: Sequence[tuple[str, int]],
    numbers: Mapping[str, float],
    where: str = "",
) -> DataError:
    """The error for values of a reward in words that have no number.

    Args:
        role: "reward" or "true_reward".
        name: the column.
        values: those values, and their numbers of rows.
        numbers: the numbers of the others.
        where: the row of the first, if it is known.
    """
    return DataError(
        f"{setting(role)} {name!r} has {counted(values)}{where}, which {setting('reward_values')} "
        f"does not name; it names {shown(numbers)}: name all values, and list marks of missing "
        f"ones in {setting('missing_marks')}",
        value=name,
    )


def rewards_of(
    column: pd.Series[Any],
    numbers: Mapping[str, float] | None,
    role: str = "reward",
    marks: Marks | None = None,
    decimal: str = ".",
) -> NDArray[np.float64]:
    """The reward of every row.

    Args:
        column: without missing values.
        numbers: the number for each value of a reward in words.
        role: its name in errors, "reward" or "true_reward".
        marks: those that are known, to be repeated with the new ones.
        decimal: what its text has in place of a decimal point.

    Example:
        >>> import pandas as pd
        >>> from evenhand._columns.rewards import rewards_of
        >>> rewards_of(pd.Series(["paid", "default"]), {"paid": 1.0, "default": 0.0}).tolist()
        [1.0, 0.0]
    """
    if numbers is not None:
        return _valued(column, numbers, role)
    if not is_nominal(column):
        return finite(column, role).astype(np.float64)
    text = column.astype(str)
    read = pd.to_numeric(text, errors="coerce")
    if read.notna().all():
        return finite(read, role).astype(np.float64)
    where = f" (first row {column.index[read.isna()][0]})"
    name, counts = str(column.name), _counts(text)
    raise no_number(role, name, "text", counts, marks or Marks(), where, decimal)


def observed_rewards(
    column: pd.Series[Any],
    numbers: Mapping[str, float] | None,
    marks: Marks | None = None,
    decimal: str = ".",
) -> NDArray[np.float64]:
    """The reward of every row of a log, NaN where it is missing.

    Args:
        column: the rewards.
        numbers: the number for each value of a reward in words.
        marks: those that are known, to be repeated with the new ones.
        decimal: what its text has in place of a decimal point.

    Example:
        >>> import pandas as pd
        >>> from evenhand._columns.rewards import observed_rewards
        >>> observed_rewards(pd.Series(["paid", None]), {"paid": 1.0}).tolist()
        [1.0, nan]
    """
    known = column.notna().to_numpy(dtype=np.bool_)
    rewards = np.full(len(column), np.nan)
    rewards[known] = rewards_of(plain(column[known]), numbers, marks=marks, decimal=decimal)
    return rewards


def true_rewards_of(
    column: pd.Series[Any], numbers: Mapping[str, float] | None
) -> NDArray[np.float64]:
    """The true rewards: by the same numbers if these name all values, otherwise as they are."""
    named = numbers is not None and column.map(written).isin(list(numbers)).all()
    return rewards_of(column, numbers if named or is_nominal(column) else None, "true_reward")


def _valued(column: pd.Series[Any], numbers: Mapping[str, float], role: str) -> NDArray[np.float64]:
    text = column.astype(object).map(written)
    # TOML and SQL write true and false.
    if text.isin(["True", "False"]).all() and not {"True", "False"} & set(numbers):
        text = text.str.lower()
    unknown = text[~text.isin(list(numbers))]
    if len(unknown):
        where = f" (first row {unknown.index[0]})"
        raise not_named(role, str(column.name), _counts(unknown), numbers, where)
    return np.asarray(text.map(dict(numbers)), dtype=np.float64)


def _counts(text: pd.Series[str]) -> list[tuple[str, int]]:
    counts = text.value_counts().rename_axis("value").reset_index(name="n")
    counts = counts.sort_values(["n", "value"], ascending=[False, True], kind="stable")
    return [(str(value), int(n)) for value, n in zip(counts["value"], counts["n"], strict=True)]
