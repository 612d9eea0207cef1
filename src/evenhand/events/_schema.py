"""The schema of a log: its columns and their values. See docs/reference/log-format.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._checks import LARGEST
from evenhand._columns.table_files import IN_FILE
from evenhand.errors import DataError
from evenhand.events.columns import ORDER, ROLES, find_roles

FIRST_YEAR, LAST_YEAR = 1, 9999


class LogColumn(NamedTuple):
    """The values that a column may have, and whether they may be missing."""

    kind: str
    may_miss: bool
    least: float = -LARGEST
    most: float = LARGEST
    words: str = "a finite number up to 1e100, or nothing"


SCHEMA: dict[str, LogColumn] = {
    "timestamp": LogColumn(
        "time", True, words="a time such as 2026-01-31T12:00:00Z in the years 1 to 9999, or nothing"
    ),
    "round": LogColumn("whole", True, 1, 2**53, "a whole number of at least 1, or nothing"),
    "arm": LogColumn("label", False, words="the number or name of an arm"),
    "position": LogColumn("whole", True, 0, 2**31, "a whole number of at least 0, or nothing"),
    "reward": LogColumn("number", True),
    # The probability of the only available arm may be computed as 1 + 1e-9.
    "propensity": LogColumn("number", True, 5e-324, 1 + 1e-6, "a number above 0 and up to 1"),
    "group": LogColumn("name", False, words="the name of a group"),
    "true_reward": LogColumn("number", True),
    "override": LogColumn("label", True, words="the number or name of an arm, or nothing"),
    "explored": LogColumn("flag", True, words="true, false or nothing"),
    "learned": LogColumn("whole", True, 1, 2**53, "a whole number of at least 1, or nothing"),
}
_NUMBER = LogColumn("whole", True, 1, 2**53, "a whole number of at least 1, or nothing")
_TIME = SCHEMA["timestamp"]
_ID = LogColumn("name", True, words="the id of a decision, or nothing")
ORDER_SCHEMA = dict(zip(ORDER, (_ID, _NUMBER, _NUMBER, _TIME, _NUMBER, _TIME), strict=True))
NAMES = {role: ROLES[role][0] for role in SCHEMA}
"""The schema's own name for every role."""


def checked(
    frame: pd.DataFrame,
    features: Sequence[str] = (),
    given: Mapping[str, str] | None = None,
    first: int = 0,
    order: bool = False,
) -> pd.DataFrame:
    """The frame with the types of the schema; a DataError names the column and row of bad values.

    Columns that the schema does not know are left unchanged.

    Args:
        frame: a log.
        features: columns of the context, which must be finite numbers.
        given: roles of columns with other names.
        first: the number of the first row in messages; in a CSV file it is 2. Not used where the
            index of the frame numbers the rows of a file.
        order: whether evenhand wrote the log, so that it has the columns that order events.
    """
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise DataError(f"the log has a column twice; its columns are {', '.join(names)}")
    roles = find_roles(names, given, needed=("arm", "reward"))
    new: dict[str, Any] = {name: frame[name] for name in frame.columns}
    for role, column in SCHEMA.items():
        if role in roles:
            new[roles[role]] = _typed(frame[roles[role]], column, first)
    for name, column in ORDER_SCHEMA.items() if order else ():
        new[name] = _typed(frame[name], column, first)
    for name in features:
        if name not in new:
            raise DataError(f"the log has no column {name!r}, which is a feature")
        new[name] = _typed(
            frame[name], LogColumn("number", False, words="a finite number up to 1e100"), first
        )
    result = pd.DataFrame(new, index=frame.index)
    _hangs_together(result, roles, first)
    return result


def _hangs_together(frame: pd.DataFrame, roles: dict[str, str], first: int) -> None:
    """Check that no reward is learned twice or missing, and that no decision occurs twice."""
    if "learned" in roles:
        learned = frame[roles["learned"]]
        _stop(learned.notna() & learned.duplicated(), learned, first, "which another row has")
        missing = learned.notna() & frame[roles["reward"]].isna()
        _stop(missing, learned, first, "but the row has no reward")
    if "round" in roles and "propensity" in roles:
        rounds = frame[roles["round"]].where(frame[roles["propensity"]].notna())
        _stop(rounds.notna() & rounds.duplicated(), rounds, first, "which another decision has")


def _stop(wrong: pd.Series, column: pd.Series, first: int, words: str) -> None:
    bad = np.flatnonzero(wrong.to_numpy(dtype=bool, na_value=False))
    if bad.size:
        row = int(bad[0])
        where = _place(column.index, row, first)
        raise DataError(f"{column.name} in row {where} is {column.iloc[row]}, {words}")


def _place(index: pd.Index, row: int, first: int) -> Any:
    """The number of a row in messages: that of the file, if the index has it."""
    return index[row] if index.name == IN_FILE else row + first


def _typed(values: pd.Series, column: LogColumn, first: int) -> pd.Series:
    # Logs are closed and read back in small parts, so calls take the time, not rows: arrays are
    # compared here, not Series.
    present = values.notna().to_numpy(dtype=bool)
    result: Any
    if column.kind == "time":
        result, good = _times(values, present)
    elif column.kind == "flag":
        result, good = _flags(values, present)
    elif column.kind == "name":
        result, good = values.astype("str").where(present, None), present
    elif column.kind == "label":
        result, good = _labels(values, column.may_miss), present
    else:
        numbers = _numbers(values)
        good = (numbers >= column.least) & (numbers <= column.most)
        result = numbers
        if column.kind == "whole":
            good &= numbers == np.round(numbers)
            result = _whole(numbers, good)
    bad = np.flatnonzero(~good & present if column.may_miss else ~(good & present))
    if bad.size:
        row = int(bad[0])
        raise DataError(
            f"{values.name} in row {_place(values.index, row, first)} is "
            f"{_shown(values.iloc[row])}; allowed is {column.words}"
        )
    return pd.Series(result, values.index, name=values.name)


def _whole(numbers: NDArray[np.float64], known: NDArray[np.bool_]) -> Any:
    """Whole numbers of pandas, missing where they are not known."""
    return pd.arrays.IntegerArray(np.where(known, numbers, 1.0).astype(np.int64), ~known)


def _shown(value: Any) -> str:
    if np.ndim(value) == 0 and pd.isna(value):
        return "missing"
    if isinstance(value, pd.Timestamp) and not FIRST_YEAR <= value.year <= LAST_YEAR:
        return f"in the year {value.year}"  # which pandas cannot print
    return repr(value.item() if isinstance(value, np.generic) else value)


def _numbers(values: pd.Series) -> NDArray[np.float64]:
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iuf":
        return values.to_numpy(dtype=np.float64)
    if values.dtype.kind in "mMc":  # times and complex numbers are not allowed
        return np.full(len(values), np.nan)
    try:
        numbers: Any = pd.to_numeric(values, errors="coerce").astype("Float64")
        return np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, OverflowError):  # integers of hundreds of digits, and other objects
        return values.map(_number).to_numpy(dtype=np.float64)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _times(values: pd.Series, present: NDArray[np.bool_]) -> tuple[pd.Series, NDArray[np.bool_]]:
    if pd.api.types.is_numeric_dtype(values.dtype) and present.any():
        return values, ~present  # it is not known whether these are seconds or milliseconds
    if not present.any():
        times = pd.Series(pd.NaT, index=values.index).astype("datetime64[us]")
        return times.dt.tz_localize("UTC"), present
    if not pd.api.types.is_datetime64_any_dtype(values.dtype):
        values = pd.to_datetime(values, utc=True, errors="coerce", format="ISO8601")
    zoned = values if values.dt.tz is not None else values.dt.tz_localize("UTC")
    zoned = zoned.dt.tz_convert("UTC")
    # Other years cannot be written as dates that every reader understands.
    times = zoned.where(zoned.dt.year.between(FIRST_YEAR, LAST_YEAR)).dt.as_unit("us")
    return times, times.notna().to_numpy(dtype=bool)


def _flags(values: pd.Series, present: NDArray[np.bool_]) -> tuple[pd.Series, NDArray[np.bool_]]:
    known = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}
    if pd.api.types.is_bool_dtype(values.dtype):
        return values.astype("boolean"), present
    words = values.astype("object").where(present, None)
    flags = pd.array([known.get(str(word).lower()) for word in words], dtype="boolean")
    return pd.Series(flags, values.index), ~np.asarray(flags.isna())


def _labels(values: pd.Series, may_miss: bool) -> pd.Series:
    """Numbers of arms as whole numbers; names unchanged."""
    if values.dtype.kind == "c":
        return values
    if not pd.api.types.is_numeric_dtype(values.dtype) and values.notna().any():
        return values
    numbers = _numbers(values)
    known = ~np.isnan(numbers)
    whole = (numbers[known] == np.round(numbers[known])) & (np.abs(numbers[known]) <= 2**53)
    if not whole.all():
        return values
    labels = _whole(numbers, known) if may_miss or not known.all() else numbers.astype(np.int64)
    return pd.Series(labels, values.index)
