"""Missing values: the user chooses what is done, and is told how many rows it concerns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand.columns.buckets import MISSING
from evenhand.columns.files import row_of, tell
from evenhand.errors import DataError, InputError, setting

ERROR, DROP, FILL = "error", "drop", "fill"
CHOICES = (ERROR, DROP, FILL)
OTHERS = "others"

Choice = str | Mapping[str, str]


class Missing:
    """What is missing in the used columns of a table, and what is done about it.

    Args:
        frame: the table.
        columns: those that are used.
        choice: "error", "drop" or "fill", or one of them by column, with "others" for the rest.
        unfillable: columns whose values cannot be made up, such as the reward.
    """

    def __init__(
        self, frame: pd.DataFrame, columns: Sequence[str], choice: Choice, unfillable: Sequence[str]
    ) -> None:
        chosen = _by_column(columns, choice)
        self.rows = {name: int(frame[name].isna().sum()) for name in columns}
        concerned = [name for name in columns if self.rows[name]]
        self.done = {name: chosen[name] for name in concerned}
        wrong = [name for name in concerned if chosen[name] == FILL and name in unfillable]
        if wrong:
            raise DataError(
                f"{setting('missing')}: column {wrong[0]!r} lacks {self.rows[wrong[0]]:,} values, "
                f"and a reward cannot be filled in; choose "
                f"{setting('missing', {wrong[0]: DROP, OTHERS: FILL})}"
            )
        refused = [name for name in concerned if chosen[name] == ERROR]
        if refused:
            lacking = frame[refused].isna().any(axis=1)
            sole = "drop" if refused[0] in unfillable else FILL
            raise DataError(
                f"missing values in {int(lacking.sum()):,} of {len(frame):,} rows "
                f"({_counted(self.rows, refused)}), the first in "
                f"{row_of(frame, lacking)}; choose {setting('missing', DROP)} to leave such rows "
                f"out or {setting('missing', FILL)} to fill them in (median or a category of their "
                "own, not rewards), for all columns or by column: "
                f"{setting('missing', {refused[0]: sole})}",
                parameter="missing",
            )
        self._drop = [name for name in concerned if chosen[name] == DROP]
        self._fill = [name for name in concerned if chosen[name] == FILL]
        self.dropped_rows = self.filled_rows = 0

    def settle(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows to keep; says how many were left out, and how many have values filled in."""
        told = []
        if self._drop:
            keep = frame[self._drop].notna().all(axis=1)
            self.dropped_rows = int((~keep).sum())
            left_out = (
                f"{self.dropped_rows:,} of {len(frame):,} rows "
                f"{'is' if self.dropped_rows == 1 else 'are'} left out "
                f"(missing: {_counted(self.rows, self._drop)})"
            )
            if not keep.any():
                raise DataError(
                    f'{setting("missing")}: {left_out}, and no row remains; choose "fill" for '
                    "some of these columns, or do not use them"
                )
            told.append(left_out)
            frame = frame[keep]
        if self._fill:
            empty = [name for name in self._fill if frame[name].isna().all()]
            if empty:
                raise DataError(
                    f"{setting('missing')}: column {empty[0]!r} has no value in any row, so there "
                    "is nothing to fill in; leave it out"
                )
            self.filled_rows = int(frame[self._fill].isna().any(axis=1).sum())
            told.append(
                f"{self.filled_rows:,} {'row has' if self.filled_rows == 1 else 'rows have'} "
                f"values filled in (missing: {_counted(self.rows, self._fill)})"
            )
        if told:
            tell("; ".join(told))
        return frame

    def table(self) -> pd.DataFrame:
        """A row per column that lacks values: how many, and what was done."""
        rows = [(name, self.rows[name], done) for name, done in self.done.items()]
        return pd.DataFrame(rows, columns=["column", "rows", "done"])


def filled(column: pd.Series[Any], nominal: bool) -> tuple[pd.Series[Any], pd.Series[Any] | None]:
    """A feature without gaps, and a 0/1 column that says where they were.

    Numbers get their median, and the flag lets a policy learn that the median is not a value.
    Categories get one of their own, which needs no flag.
    """
    gaps = column.isna()
    if not gaps.any():
        return column, None
    if nominal:
        return with_category(column), None
    numbers = pd.Series(
        column.to_numpy(dtype=np.float64, na_value=np.nan), index=column.index, name=column.name
    )
    return numbers.fillna(numbers.median()), gaps.rename(f"{column.name} is {MISSING}")


def with_category(column: pd.Series[Any]) -> pd.Series[Any]:
    """Categories in which "missing" is one more."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        known = MISSING in column.cat.categories
        return (column if known else column.cat.add_categories(MISSING)).fillna(MISSING)
    return column.astype(object).where(column.notna(), MISSING)


def _by_column(columns: Sequence[str], choice: Choice) -> dict[str, str]:
    if isinstance(choice, Mapping):
        rest = choice.get(OTHERS, ERROR)
        by_name = {str(name): what for name, what in choice.items()}
        unknown = [name for name in by_name if name not in columns and name != OTHERS]
        if unknown:
            raise InputError(
                f"{setting('missing')} names {unknown[0]!r}, which is no used column; used are "
                f"{', '.join(columns)}"
            )
        chosen = {name: by_name.get(name, rest) for name in columns}
    else:
        chosen = dict.fromkeys(columns, choice)
    for name, what in chosen.items():
        if what not in CHOICES:
            raise InputError(
                f"{setting('missing')} is {what!r} for column {name!r}; allowed are "
                f"{', '.join(CHOICES)}",
                value=what,
            )
    return chosen


def _counted(rows: Mapping[str, int], names: Sequence[str]) -> str:
    most = sorted(names, key=lambda name: -rows[name])
    text = ", ".join(f"{name} {rows[name]:,}" for name in most[:6])
    return text + (f" and {len(most) - 6} more columns" if len(most) > 6 else "")
