"""Categories from columns: the labels of groups, and the buckets that make arms.

First, columns are converted to a few types: numbers, booleans, categories, text and dates.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from evenhand._columns.words import MISSING, category, tell, word
from evenhand._prose import number_of
from evenhand.errors import DataError, InputError, as_given, literal, setting

MOST_VALUES = 100  # of a column used as it is: with more, it is a quantity, not a category
MOST_GROUPS = 200
MOST_BUCKETS = 1000
NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")  # as pandas infers kinds
DATES = ("datetime64", "datetime", "date", "timedelta64", "timedelta", "time", "period")

Buckets = str | int | Sequence[float] | Mapping[str, int]
AS_IS = "as is"


def plain(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column in one of a few types: numbers (NaN if missing), booleans, categories, text, dates.

    Columns of objects get the type of what they hold, and nullable or Arrow types become plain.
    """
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype) or types.is_datetime64_any_dtype(kind):
        return column
    if types.is_bool_dtype(kind):
        return _boolean(column)
    if types.is_numeric_dtype(kind):
        exact = isinstance(kind, np.dtype) and (kind.kind in "iu" or kind == np.float64)
        return column if exact else _numbers(column)
    if types.is_string_dtype(kind) and not types.is_object_dtype(kind):
        return column
    objects = column.astype(object)
    content = types.infer_dtype(objects, skipna=True)
    if content in NUMBERS:
        return _numbers(objects)
    if content == "boolean":
        return _boolean(objects)
    if content in ("string", "empty", *DATES):
        return objects
    unfit = [row for row, value in objects.items() if not isinstance(value, Hashable)]
    if unfit:
        raise DataError(
            f"column {column.name!r} holds lists or similar values (row {unfit[0]}); turn it into "
            "numbers, text or several columns, or leave it out"
        )
    return objects.map(word, na_action="ignore")  # of several kinds: text


def _boolean(column: pd.Series[Any]) -> pd.Series[Any]:
    return column.astype("boolean") if column.isna().any() else column.astype(bool)


def _numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    whole = types.is_signed_integer_dtype(column.dtype) and not column.isna().any()
    try:
        if types.is_complex_dtype(column.dtype):
            raise TypeError
        values = column.to_numpy(dtype=np.int64 if whole else np.float64, na_value=np.nan)
    except (TypeError, OverflowError) as error:
        raise DataError(
            f"column {column.name!r} holds numbers that are complex or too large; turn it into "
            "real numbers, or leave it out"
        ) from error
    return pd.Series(values, index=column.index, name=column.name)


def is_nominal(column: pd.Series[Any]) -> bool:
    """Whether a column holds categories, by its type."""
    return isinstance(column.dtype, pd.CategoricalDtype) or not (
        types.is_numeric_dtype(column) or types.is_bool_dtype(column)
    )


def is_dates(column: pd.Series[Any]) -> bool:
    """Whether a column holds dates, times or durations."""
    return is_nominal(column) and types.infer_dtype(column, skipna=True) in DATES


def bucketed(column: pd.Series[Any], how: Buckets) -> pd.Series[Any]:
    """The bucket of every row, as an ordered category. Missing values stay missing.

    Args:
        column: the values.
        how: "as is"; a number of buckets of equal width, as in the paper; edges, each bucket from
            one edge to just below the next, the last one including its end; or {"quantiles": k}
            for k buckets with about equally many rows.

    Example:
        >>> import pandas as pd
        >>> from evenhand._columns.buckets import bucketed
        >>> bucketed(pd.Series([15, 16, 18, 22]), [15, 16, 18, 30]).astype(str).tolist()
        ['[15, 16)', '[16, 18)', '[18, 30]', '[18, 30]']
        >>> bucketed(pd.Series([9, 40, 99]), 5).astype(str).tolist()
        ['(8.91, 27.0]', '(27.0, 45.0]', '(81.0, 99.0]']
    """
    if isinstance(how, str) and how == AS_IS:
        return _as_is(column)
    quantiles = isinstance(how, Mapping) and set(how) == {"quantiles"}
    number: Any = how["quantiles"] if isinstance(how, Mapping) and quantiles else how
    if isinstance(number, (int, np.integer)) and 2 <= number <= MOST_BUCKETS:
        values = _cuttable(column, how)
        if np.isinf(values).any():
            row = column.index[np.flatnonzero(np.isinf(values))[0]]
            raise DataError(
                f"{setting('arms')}: column {column.name!r} is infinite in row {row}, so it cannot "
                f"be cut into {as_given(how)}; correct it, or give edges",
                value=column.name,
            )
        return _quantiles(values, int(number)) if quantiles else pd.cut(values, int(number))
    edges = None if quantiles else _edges(how)
    if edges is None:
        raise InputError(
            f"{setting('arms')}: column {column.name!r} is cut by {as_given(how)}; allowed are "
            f'"as is", a number of buckets from 2 to {MOST_BUCKETS}, edges such as '
            f"[0, 25, 45, 99], or {literal({'quantiles': 4})}",
            value=how,
        )
    return _between(_cuttable(column, how), edges)


def _cuttable(column: pd.Series[Any], how: Buckets) -> pd.Series[Any]:
    if is_nominal(column) or types.is_bool_dtype(column):
        unfit = column[pd.to_numeric(column.astype(str), errors="coerce").isna() & column.notna()]
        shown = "text or categories"
        if len(unfit):
            shown = f"{str(unfit.iloc[0])[:40]!r} in row {unfit.index[0]}"
        raise DataError(
            f"{setting('arms')}: column {column.name!r} is not numeric ({shown}), so it cannot be "
            f"cut into {as_given(how)}; turn it into numbers, or use it as it is",
            value=column.name,
        )
    return column.astype(np.float64)


def _edges(how: Any) -> list[float] | None:
    if isinstance(how, str) or not isinstance(how, (Sequence, np.ndarray)) or len(how) < 2:
        return None
    try:
        return [float(edge) for edge in how]
    except (TypeError, ValueError):
        return None


def _quantiles(values: pd.Series[Any], number: int) -> pd.Series[Any]:
    if values.nunique() == 1:
        raise DataError(
            f"{setting('arms')}: column {values.name!r} has the same value in every row, so it has "
            "no quantiles; use another column",
            value=values.name,
        )
    buckets = pd.Series(pd.qcut(values, number, duplicates="drop"))
    n_buckets = len(buckets.cat.categories)
    if n_buckets < number:
        tell(
            f"arms: column {values.name!r} has so many equal values that {number} quantiles make "
            f"{n_buckets} buckets; give edges to choose them yourself"
        )
    return buckets


def _as_is(column: pd.Series[Any]) -> pd.Series[Any]:
    values = pd.unique(column.dropna())
    if len(values) > MOST_VALUES:
        raise DataError(
            f"{setting('arms')}: column {column.name!r} has {len(values):,} values, and each would "
            f"be an arm; cut it into buckets, such as "
            f"{literal({str(column.name): 5})}",
            value=column.name,
        )
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.remove_unused_categories().cat.as_ordered()
    return column.astype(pd.CategoricalDtype(sorted(values), ordered=True))


def _between(column: pd.Series[Any], edges: list[float]) -> pd.Series[Any]:
    if any(not low < high for low, high in pairwise(edges)):
        raise InputError(
            f"{setting('arms')}: edges of column {column.name!r} are {edges}; give them in "
            "increasing order",
            value=edges,
        )
    values = column.to_numpy()
    outside = np.flatnonzero((values < edges[0]) | (values > edges[-1]))
    if outside.size:
        raise DataError(
            f"{setting('arms')}: column {column.name!r} has "
            f"{number_of(outside.size, 'value')} outside the edges {edges[0]:g} to "
            f"{edges[-1]:g}, the first {values[outside[0]]:g} in row "
            f"{column.index[outside[0]]}; widen the edges (-inf and inf are allowed)",
            value=float(values[outside[0]]),
        )
    last = len(edges) - 2
    names = [f"[{word(low)}, {word(high)})" for low, high in pairwise(edges)]
    names[last] = names[last][:-1] + "]"
    place = np.minimum(np.searchsorted(edges, values, side="right") - 1, last)
    place[np.isnan(values)] = -1
    buckets = pd.Categorical.from_codes(place.astype(np.int64), pd.Index(names), ordered=True)
    return pd.Series(buckets, index=column.index, name=column.name)


def group_labels(frame: pd.DataFrame, columns: Sequence[str]) -> pd.Series[str]:
    """The group of every row in words: "F", or "sex=1" where the column holds numbers.

    Several columns make intersections, such as "F & black". Missing values are called "missing".

    Example:
        >>> import pandas as pd
        >>> from evenhand._columns.buckets import group_labels
        >>> group_labels(pd.DataFrame({"black": [0, 1]}), ["black"]).tolist()
        ['black=0', 'black=1']
    """
    parts = pd.DataFrame({name: labels_of(frame[name]) for name in columns})
    whole = parts.iloc[:, 0]
    for name in columns[1:]:
        whole = whole + " & " + parts[name]
    n_labels = whole.nunique()
    if n_labels > MOST_GROUPS:
        raise DataError(
            f"{setting('group')}: column {', '.join(columns)} has {n_labels:,} values, too many "
            "for groups; name a column of categories, or cut it into buckets first"
        )
    if n_labels < len(parts.drop_duplicates()):
        raise DataError(
            f"{setting('group')}: different values of {', '.join(columns)} make the same label, "
            'because some have " & " in them; rename these values'
        )
    return whole


def labels_of(column: pd.Series[Any]) -> pd.Series[Any]:
    """The group of every row in words, by one column; "missing" where it has no value.

    Example:
        >>> import pandas as pd
        >>> from evenhand._columns.buckets import labels_of
        >>> labels_of(pd.Series(["F", "M", None])).tolist()
        ['F', 'M', 'missing']
    """
    values = plain(column)
    name, nominal = str(column.name), is_nominal(values)
    return (
        values.astype(object)
        .map(lambda value: word(value) if nominal else category(name, value), na_action="ignore")
        .fillna(MISSING)
    )
