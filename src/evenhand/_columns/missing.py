"""Missing values: the user chooses what to do, and learns how many rows are affected.

Missing numbers get the mean of their column, and a 0/1 column says where. Missing categories become
a category of their own. Rows that lack what cannot be filled in, such as the reward, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand._columns.table_files import row_of
from evenhand._columns.words import MISSING, gap, shown, tell
from evenhand.errors import DataError, InputError, as_given, blank, setting

ERROR, DROP, FILL = "error", "drop", "fill"
CHOICES = (ERROR, DROP, FILL)
DEFAULT = ERROR  # of worlds and audits alike
OTHERS = "others"
MOST_LISTED = 6

Choice = str | Mapping[str, str]


def check_choice(choice: Any) -> None:
    """Raise an error unless this is "error", "drop" or "fill", or one of them by column."""
    by_name = dict(choice) if isinstance(choice, Mapping) else {"": choice}
    for name, action in by_name.items():
        if action not in CHOICES:
            about_column = f" for column {name!r}" if name else ""
            raise InputError(
                f"{setting('missing')} is {as_given(action)}{about_column}; allowed is one of "
                f"{', '.join(CHOICES)}, or one of them by column, such as "
                f"{setting('missing', {'age': FILL, OTHERS: DROP})}",
                value=action,
            )


def choices(columns: Sequence[str], choice: Choice) -> dict[str, str]:
    """What to do about each of the used columns, checked.

    Args:
        columns: those that are used.
        choice: "error", "drop" or "fill", or one of them by column, with "others" for the rest.

    Example:
        >>> from evenhand._columns.missing import choices
        >>> choices(["age", "debt"], {"age": "fill", "others": "drop"})
        {'age': 'fill', 'debt': 'drop'}
    """
    check_choice(choice)
    if not isinstance(choice, Mapping):
        return dict.fromkeys(columns, choice)
    by_name = {str(name): action for name, action in choice.items()}
    rest = by_name.pop(OTHERS, DEFAULT)
    unknown = [name for name in by_name if name not in columns]
    if unknown:
        raise InputError(
            f"{setting('missing')} names {unknown[0]!r}, which is not a used column; used are "
            f"{shown(columns)}",
            value=unknown[0],
        )
    return {name: by_name.get(name, rest) for name in columns}


def listed(rows: Mapping[str, int], names: Sequence[str] | None = None) -> str:
    """Columns and their numbers of missing values, in words.

    Example:
        >>> from evenhand._columns.missing import listed
        >>> listed({"age": 3, "home town": 1200})
        "'home town' 1,200, age 3"
    """
    most = sorted(rows if names is None else names, key=lambda name: -rows[name])
    text = ", ".join(f"{shown([name])} {rows[name]:,}" for name in most[:MOST_LISTED])
    left = len(most) - MOST_LISTED
    return text + (f" and {left} more columns" if left > 0 else "")


def not_chosen(lacking: int, rows: int, by_column: Mapping[str, int], where: str = "") -> DataError:
    """The error for missing values if nothing was chosen.

    Args:
        lacking: rows that lack a value.
        rows: all rows.
        by_column: how many values each column lacks.
        where: the first such row, if it is known.
    """
    return DataError(
        f"missing values in {lacking:,} of {rows:,} rows ({listed(by_column)}){where}; choose "
        f"{setting('missing', DROP)} to leave such rows out, or {setting('missing', FILL)} to fill "
        "in features (mean, or a category of their own) and leave out rows without what cannot be "
        f"filled in, such as the reward; or by column, {setting('missing', _example(by_column))}",
        parameter="missing",
    )


def _example(by_column: Mapping[str, int]) -> dict[str, str]:
    return {max(by_column, key=lambda name: by_column[name]): DROP, OTHERS: FILL}


def nothing_left(rows: int, by_column: Mapping[str, int]) -> DataError:
    """The error if every row lacks something."""
    return DataError(
        f"missing values in all {rows:,} rows ({listed(by_column)}), and no row remains; leave "
        f"such columns out with {setting('leave_out', [blank('COLUMN')])}, or choose "
        f"{setting('missing', FILL)}",
        parameter="missing",
    )


def nothing_to_fill(name: str) -> DataError:
    """The error for a column to be filled in that has no value at all."""
    return DataError(
        f"column {name!r} has no value in any row, so there is nothing to fill in; leave it out "
        f"with {setting('leave_out', [name])}",
        parameter="missing",
        value=name,
    )


def left_out_words(left_out: int, rows: int, lacks: Mapping[str, int], stuck: bool) -> str:
    """How many rows are left out, in the words of worlds and audits.

    Args:
        left_out: their number.
        rows: the number of all rows.
        lacks: how many values each column lacks, because of which they are left out.
        stuck: whether it is only because those values cannot be filled in.

    Example:
        >>> from evenhand._columns.missing import left_out_words
        >>> left_out_words(1, 40, {"sex": 1}, stuck=True)
        '1 of 40 rows is left out, because what it lacks cannot be filled in (missing: sex 1)'
    """
    single = left_out == 1
    why = f", because what {'it lacks' if single else 'they lack'} cannot be filled in"
    return (
        f"{left_out:,} of {rows:,} rows {'is' if single else 'are'} left out"
        f"{why if stuck else ''} (missing: {listed(lacks)})"
    )


def filled_words(filled_rows: int, lacks: Mapping[str, int]) -> str:
    """How many rows have values filled in, in the words of worlds and audits.

    Example:
        >>> from evenhand._columns.missing import filled_words
        >>> filled_words(2, {"age": 2})
        '2 rows have values filled in (missing: age 2)'
    """
    has = "row has" if filled_rows == 1 else "rows have"
    return f"{filled_rows:,} {has} values filled in (missing: {listed(lacks)})"


class Missing:
    """What is missing in the used columns of a table, and what is done about it.

    Args:
        frame: the table.
        columns: those that are used.
        choice: "error", "drop" or "fill", or one of them by column, with "others" for the rest.
        unfillable: columns whose values cannot be filled in, such as the reward: with "fill", rows
            that lack them are left out.
    """

    def __init__(
        self, frame: pd.DataFrame, columns: Sequence[str], choice: Choice, unfillable: Sequence[str]
    ) -> None:
        chosen = choices(columns, choice)
        self.rows = {name: int(frame[name].isna().sum()) for name in columns}
        concerned = [name for name in columns if self.rows[name]]
        self._forced = [name for name in concerned if chosen[name] == FILL and name in unfillable]
        chosen |= dict.fromkeys(self._forced, DROP)
        self.done = {name: chosen[name] for name in concerned}
        refused = {name: self.rows[name] for name in concerned if chosen[name] == ERROR}
        if refused:
            lacking = frame[list(refused)].isna().any(axis=1)
            where = f", the first in {row_of(frame, lacking)}"
            raise not_chosen(int(lacking.sum()), len(frame), refused, where)
        self._drop = [name for name in concerned if chosen[name] == DROP]
        self._fill = [name for name in concerned if chosen[name] == FILL]
        self.dropped_rows = self.filled_rows = 0

    def settle(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows to keep. Warns how many are left out, and how many have values filled in."""
        notices = []
        if self._drop:
            keep = frame[self._drop].notna().all(axis=1)
            self.dropped_rows = int((~keep).sum())
            lacks = {name: self.rows[name] for name in self._drop}
            stuck = set(self._forced) == set(self._drop)
            left_out = left_out_words(self.dropped_rows, len(frame), lacks, stuck)
            if not keep.any():
                raise nothing_left(len(frame), {name: self.rows[name] for name in self._drop})
            notices.append(left_out)
            frame = frame[keep]
        if self._fill:
            empty = [name for name in self._fill if frame[name].isna().all()]
            if empty:
                raise nothing_to_fill(empty[0])
            self.filled_rows = int(frame[self._fill].isna().any(axis=1).sum())
            lacks = {name: self.rows[name] for name in self._fill}
            notices.append(filled_words(self.filled_rows, lacks))
        if notices:
            tell("; ".join(notices))
        return frame

    def table(self) -> pd.DataFrame:
        """A row per column that lacks values: how many, and what was done."""
        rows = [(name, self.rows[name], done) for name, done in self.done.items()]
        return pd.DataFrame(rows, columns=["column", "rows", "done"])


def filled(column: pd.Series[Any], nominal: bool) -> tuple[pd.Series[Any], pd.Series[Any] | None]:
    """A feature without gaps, and a 0/1 column that says where they were.

    Missing numbers get the mean (0 where all are 0 or 1), and the flag lets a policy learn that it
    was not observed. Missing categories become a category of their own, which needs no flag.

    Example:
        >>> import pandas as pd
        >>> from evenhand._columns.missing import filled
        >>> column, flag = filled(pd.Series([1.0, None, 5.0], name="debt"), nominal=False)
        >>> column.tolist(), flag.name, flag.tolist()
        ([1.0, 3.0, 5.0], 'debt is missing', [False, True, False])
    """
    gaps = column.isna()
    if not gaps.any():
        return column, None
    if nominal:
        return with_category(column), None
    numbers = pd.Series(
        column.to_numpy(dtype=np.float64, na_value=np.nan), index=column.index, name=column.name
    )
    # A column of 0 and 1 stays one; the coefficient of its flag absorbs the difference.
    filler = 0.0 if numbers.dropna().isin((0.0, 1.0)).all() else numbers.mean()
    return numbers.fillna(filler), gaps.rename(gap(str(column.name)))


def with_category(column: pd.Series[Any]) -> pd.Series[Any]:
    """Categories with "missing" as one of them."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        has_missing_category = MISSING in column.cat.categories
        return (column if has_missing_category else column.cat.add_categories(MISSING)).fillna(
            MISSING
        )
    return column.astype(object).where(column.notna(), MISSING)
