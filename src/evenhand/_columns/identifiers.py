"""Columns that identify rows and say nothing about people: identifiers, names, row numbers.

As features they would let a policy learn who somebody is, and a report mention "one more of id".
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from evenhand._columns.buckets import is_nominal
from evenhand._columns.diagnosis import as_texts, dates_in_text, numbers_in_text
from evenhand._columns.missing_marks import Marks
from evenhand._columns.words import shown, tell
from evenhand.errors import setting

FEW_ROWS = 20  # with fewer, values may all differ by chance
MANY = 50  # with more different texts, in most rows, a column does not hold categories
CHANCE = 0.05  # that whole numbers differ in all rows although they are not identifiers
# id, person_id, PersonID, applicant, row_number, Unnamed: 0, ... as whole words.
_WORDS = (
    "id|ids|uuid|guid|ssn|nr|no|num|number|key|index|idx|row|rows|rownames|rowname|rownum|line|obs|"
    "serial|seq|unnamed"
)
_WHO = (
    "account|applicant|application|candidate|case|client|customer|employee|household|loan|member|"
    "patient|person|record|respondent|row|student|subject|user"
)
_NAMED = re.compile(rf"(?<![a-z])(?:{_WORDS}|(?:{_WHO})(?:id|no|nr|num|key)?)(?![a-z])")


def is_identifier(name: str, rows: int, different: int, width: float | None = None) -> bool:
    """Whether a column of text or whole numbers identifies rows.

    It does if it has the name of an identifier, and different values in more than half of its
    rows. Without such a name: text that differs in every row, or in more than half of them and
    more than 50 times; whole numbers that differ in every row, where ties would be expected.

    Args:
        name: of the column.
        rows: that have a value.
        different: how many values there are.
        width: the largest number minus the smallest; None for text, which must be neither numbers
            nor dates.

    Example:
        >>> from evenhand._columns.identifiers import is_identifier
        >>> is_identifier("person_id", 1000, 700, 5e9), is_identifier("income", 1000, 999, 5e6)
        (True, False)
        >>> is_identifier("what", 1000, 1000, 999.0), is_identifier("income", 1000, 1000, 5e6)
        (True, False)
    """
    if rows < 2 or different <= rows / 2:
        return False
    if sounds_like_one(name):
        return True
    if rows < FEW_ROWS:
        return False
    if width is None:
        return different == rows or different > MANY
    # The chance that so many whole numbers from a range of this width all differ.
    return different == rows and math.exp(-(rows**2) / (2.0 * (width + 1.0))) < CHANCE


def sounds_like_one(name: str) -> bool:
    """Whether the name of a column is that of an identifier; camelCase is split into words."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return _NAMED.search(words) is not None


def tell_of_identifiers(names: Sequence[str]) -> None:
    """Warn that these columns are left out."""
    several = len(names) > 1
    tell(
        f"column{'s' if several else ''} {shown(names)} {'tell' if several else 'tells'} rows "
        f"apart, as identifiers and row numbers do, and {'are' if several else 'is'} left out; "
        f"list all columns that you want in {setting('features')}, or say "
        f"{setting('leave_out', list(names[:1]))}"
    )


def identifiers(frame: pd.DataFrame, names: Sequence[str]) -> tuple[str, ...]:
    """The columns of a frame that identify rows; a warning names them.

    Example:
        >>> import pandas as pd, warnings
        >>> from evenhand._columns.identifiers import identifiers
        >>> table = pd.DataFrame({"id": [7, 3, 9], "age": [31, 54, 28]})
        >>> with warnings.catch_warnings(action="ignore"):
        ...     identifiers(table, ["id", "age"])
        ('id',)
    """
    identifying = tuple(name for name in names if _tells_apart(frame[name]))
    if identifying:
        tell_of_identifiers(identifying)
    return identifying


def _tells_apart(column: pd.Series[Any]) -> bool:
    if isinstance(column.dtype, pd.CategoricalDtype) or types.is_bool_dtype(column):
        return False
    name, values = str(column.name), column.dropna()
    if not is_nominal(column):
        numbers = values.to_numpy(dtype=np.float64)
        whole = bool(np.all(np.isfinite(numbers) & (np.floor(numbers) == numbers)))
        if not whole or not len(numbers):
            return False
        return is_identifier(name, len(values), values.nunique(), float(np.ptp(numbers)))
    if types.infer_dtype(values, skipna=True) != "string":  # dates, lists and others
        return False
    if not is_identifier(name, len(values), values.nunique()):
        return False
    return sounds_like_one(name) or is_categories(as_texts(column))


def is_categories(values: Sequence[str]) -> bool:
    """Whether these values of a column of text are neither dates nor numbers."""
    return not dates_in_text(values) and numbers_in_text(values, Marks()) is None
