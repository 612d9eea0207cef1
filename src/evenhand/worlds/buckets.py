"""Categories from columns: the labels of groups, and the buckets that arms are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

MOST_VALUES = 100  # of a column that is used as it is: beyond, it is a quantity, not a category
MISSING = "missing"

Buckets = str | int | Sequence[float] | Mapping[str, int]
AS_IS = "as is"


def bucketed(column: pd.Series[Any], how: Buckets) -> pd.Series[Any]:
    """The bucket of every row, as an ordered category. Missing values stay missing.

    Args:
        column: the values.
        how: "as is"; a number of buckets of equal width, as in the paper; edges, each bucket from
            one edge to just below the next, the last one with its end; or {"quantiles": k} for k
            buckets with about as many rows each.

    Example:
        >>> import pandas as pd
        >>> from evenhand.worlds.buckets import bucketed
        >>> bucketed(pd.Series([15, 16, 18, 22]), [15, 16, 18, 30]).astype(str).tolist()
        ['[15, 16)', '[16, 18)', '[18, 30]', '[18, 30]']
        >>> bucketed(pd.Series([9, 40, 99]), 5).astype(str).tolist()
        ['(8.91, 27.0]', '(27.0, 45.0]', '(81.0, 99.0]']
    """
    name = column.name
    if isinstance(how, str) and how == AS_IS:
        return _as_is(column)
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        raise ValueError(
            f"arms: column {name!r} is not a number, so it cannot be cut into {how!r}; "
            "use it as it is"
        )
    if isinstance(how, (bool, str)):
        raise ValueError(f"arms: column {name!r} is to be cut by {how!r}; {_ALLOWED}")
    if isinstance(how, int) and how >= 2:
        return pd.Series(pd.cut(column, how), name=name)
    if isinstance(how, Mapping) and set(how) == {"quantiles"}:
        number = how["quantiles"]
        if isinstance(number, int) and number >= 2:
            return pd.Series(pd.qcut(column, number, duplicates="drop"), name=name)
    if isinstance(how, Sequence) and len(how) >= 2:
        return _between(column, [float(edge) for edge in how])
    raise ValueError(f"arms: column {name!r} is to be cut by {how!r}; {_ALLOWED}")


_ALLOWED = (
    'allowed are "as is", a number of buckets from 2 on, edges such as [0, 25, 45, 99], '
    'or {"quantiles": 4}'
)


def _as_is(column: pd.Series[Any]) -> pd.Series[Any]:
    found = pd.unique(column.dropna())
    if len(found) > MOST_VALUES:
        raise ValueError(
            f"arms: column {column.name!r} has {len(found):,} values, and each would be an arm; "
            f"cut it into buckets, such as {{{column.name!r}: 5}}"
        )
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.remove_unused_categories().cat.as_ordered()
    return column.astype(pd.CategoricalDtype(sorted(found), ordered=True))


def _between(column: pd.Series[Any], edges: list[float]) -> pd.Series[Any]:
    if any(not low < high for low, high in pairwise(edges)):
        raise ValueError(f"arms: edges of column {column.name!r} are {edges}; give them rising")
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    outside = np.flatnonzero((values < edges[0]) | (values > edges[-1]))
    if outside.size:
        raise ValueError(
            f"arms: column {column.name!r} has {outside.size:,} values outside of the edges "
            f"{edges[0]:g} to {edges[-1]:g}, the first {values[outside[0]]:g} in row "
            f"{column.index[outside[0]]}; widen the edges (-inf and inf are allowed)"
        )
    last = len(edges) - 2
    names = [f"[{low:g}, {high:g})" for low, high in pairwise(edges)]
    names[last] = names[last][:-1] + "]"
    place = np.minimum(np.searchsorted(edges, values, side="right") - 1, last)
    place[np.isnan(values)] = -1
    buckets = pd.Categorical.from_codes(place.astype(np.int64), pd.Index(names), ordered=True)
    return pd.Series(buckets, index=column.index, name=column.name)


def group_labels(frame: pd.DataFrame, columns: Sequence[str]) -> pd.Series[str]:
    """The group of every row in words: "F", or "sex = 1" where the column holds numbers.

    Several columns make intersections, such as "F & black". Missing values stay missing.

    Example:
        >>> import pandas as pd
        >>> from evenhand.worlds.buckets import group_labels
        >>> group_labels(pd.DataFrame({"black": [0, 1]}), ["black"]).tolist()
        ['black = 0', 'black = 1']
    """
    parts = [_labels(frame[name]) for name in columns]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + " & " + part
    if whole.nunique() > MOST_VALUES:
        raise ValueError(
            f"group: column {', '.join(columns)} has {whole.nunique():,} values; groups are few: "
            "name a column of categories, or cut it into some first"
        )
    return whole


def _labels(column: pd.Series[Any]) -> pd.Series[str]:
    if pd.api.types.is_numeric_dtype(column):  # bool as well
        words = column.map(lambda value: f"{column.name} = {_plain(value)}", na_action="ignore")
    else:
        words = column.map(str, na_action="ignore")
    return words.astype(object)


def _plain(value: Any) -> str:
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return str(int(value)) if whole else str(value)
