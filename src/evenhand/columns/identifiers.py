"""Columns that tell rows apart and say nothing of people: their numbers, names, numbers of rows.

As features they would let a policy learn who somebody is, and a report speak of "one more of id".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from evenhand.columns.buckets import is_dates, is_nominal
from evenhand.columns.encoding import MOST_LEVELS, is_categories
from evenhand.columns.files import tell

FEW_ROWS = 20  # with fewer, values may all differ by chance
# id, person_id, PersonID, applicant, row_number, Unnamed: 0, ... as whole words.
_WORDS = (
    "id|ids|uuid|guid|ssn|nr|no|num|number|key|index|idx|row|rows|rownames|rownum|line|obs|serial|"
    "seq|unnamed"
)
_WHO = (
    "account|applicant|application|candidate|case|client|customer|employee|household|loan|member|"
    "patient|person|record|respondent|row|student|subject|user"
)
_NAMED = re.compile(rf"(?<![a-z])(?:{_WORDS}|(?:{_WHO})(?:id|no|nr|num|key)?)(?![a-z])")


def identifiers(frame: pd.DataFrame, names: Sequence[str]) -> tuple[str, ...]:
    """Those columns that number or name the rows; a warning says so.

    That is: whole numbers that count the rows; whole numbers or text with a name like that of an
    identifier, and different values in more than half of the rows; other text that differs in
    every row, or in more than half of them and more than 50 times.

    Example:
        >>> import pandas as pd, warnings
        >>> from evenhand.columns.identifiers import identifiers
        >>> table = pd.DataFrame({"id": [7, 3, 9], "age": [31, 54, 28]})
        >>> with warnings.catch_warnings(action="ignore"):
        ...     identifiers(table, ["id", "age"])
        ('id',)
    """
    found = tuple(name for name in names if _is_identifier(frame[name]))
    if found:
        several = len(found) > 1
        tell(
            f"features: column{'s' if several else ''} {', '.join(found)} "
            f"{'tell' if several else 'tells'} rows apart, as identifiers and row numbers do, and "
            f"{'are' if several else 'is'} left out; name all columns that you want in features, "
            f"or {'these' if several else 'this one'} in leave_out"
        )
    return found


def _is_identifier(column: pd.Series[Any]) -> bool:
    values = column.dropna()
    if isinstance(column.dtype, pd.CategoricalDtype) or types.is_bool_dtype(column):
        return False
    rows, different = len(values), values.nunique()
    mostly = rows > 1 and different > rows / 2
    if not mostly:
        return False
    # camelCase has its words apart as well.
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(column.name)).lower()
    named = _NAMED.search(words) is not None
    if not is_nominal(column):
        numbers = values.to_numpy()
        whole = bool(np.all(np.isfinite(numbers) & (np.floor(numbers) == numbers)))
        return whole and (named or _counts_rows(numbers))
    if is_dates(column):
        return False
    many = different > MOST_LEVELS or (rows >= FEW_ROWS and different == rows)
    return named or (many and is_categories(column))


def _counts_rows(numbers: np.ndarray[Any, Any]) -> bool:
    steps = np.diff(numbers)
    return len(numbers) >= FEW_ROWS and bool(np.all(steps == 1))
