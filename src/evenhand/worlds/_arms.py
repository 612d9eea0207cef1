"""From columns to arms: which group a row belongs to, and the rows sorted by arm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._columns.buckets import Buckets, bucketed
from evenhand._columns.missing import with_category
from evenhand._columns.words import category, tell, word
from evenhand.errors import DataError, InputError, setting

FEW_ROWS = 30  # an arm with fewer is drawn from the same few people over and over
OWN = ("arm", "group", "rows", "mean_reward")  # columns of the table of arms


def grouped(
    labels: pd.Series[str], sensitive: object, others: str, columns: Sequence[str]
) -> pd.Series[str]:
    """The group of every row; with "together", all groups that are not sensitive are one."""
    if others == "apart":
        return labels
    if sensitive is None:
        raise InputError(
            f'{setting("others")} is "together"; name the sensitive group, which is kept apart'
        )
    own = sensitive_label(sensitive, columns, labels)
    rest = sorted(set(labels) - {own})
    together = rest[0] if len(rest) == 1 else f"not {own}"
    return labels.where(labels == own, together)


def sensitive_label(
    sensitive: object, columns: Sequence[str], labels: pd.Series[str]
) -> str | None:
    """The label of the sensitive group.

    1 stands for "black=1" in a column of numbers, and ("F", 1) for "F & black=1".
    """
    if sensitive is None:
        return None
    known = sorted(set(labels))
    several = isinstance(sensitive, (list, tuple)) and len(sensitive) == len(columns)
    values = list(sensitive) if several else [sensitive]  # type: ignore[call-overload]
    possible = [""]
    for value, column in zip(values, columns, strict=False):
        forms = [form for text in _words(value) for form in (text, category(column, text))]
        possible = [f"{front} & {form}" if front else form for front in possible for form in forms]
    for label in possible:
        if label in known:
            return label
    shown = ", ".join(known[:10]) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
    raise InputError(
        f"{setting('sensitive')} is {sensitive!r}, which is not a value of {' & '.join(columns)}; "
        f"allowed is one of {shown}",
        value=sensitive,
    )


def _words(value: object) -> list[str]:
    """The texts that a value may have in labels; 1 may also be True."""
    if isinstance(value, (bool, int, float, np.bool_, np.number)) and value in (0, 1):
        return [word(value), str(int(value)), str(bool(value))]
    return [word(value)]


def sorted_by_arm(
    frame: pd.DataFrame, labels: pd.Series[str], cuts: Mapping[str, Buckets]
) -> tuple[NDArray[np.int64], NDArray[np.int64], pd.DataFrame]:
    """The rows in the order of their arms, where each arm begins, and a table of the arms.

    Arms are sorted by their columns and then by group, as in the authors' code.
    """
    keys = {}
    for name, how in cuts.items():
        bucket = bucketed(frame[name], how)
        key = f"{name} (column)" if name in OWN else name
        keys[key] = with_category(bucket) if bucket.isna().any() else bucket
    keys["group"] = labels.astype("category")
    parts = pd.DataFrame(keys)
    number = parts.groupby(list(parts.columns), observed=True, sort=True).ngroup().to_numpy()
    order = np.argsort(number, kind="stable")
    rows = np.bincount(number)
    first = np.concatenate([[0], np.cumsum(rows)])
    table = parts.iloc[order[first[:-1]]].astype(object).map(word).reset_index(drop=True)
    table.insert(0, "arm", table.agg(" & ".join, axis=1))
    duplicates = table["arm"][table["arm"].duplicated()]
    if len(duplicates):
        raise DataError(
            f"{setting('arms')}: two would be called {duplicates.iloc[0]!r}; rename values of "
            f'{", ".join(cuts)} that look alike or have " & " in them'
        )
    return order, first, table.assign(rows=rows)


def tell_of_few(arms: pd.DataFrame) -> None:
    """Warn of arms with few rows, of groups with a single arm, and of a single group."""
    few = arms[arms["rows"] < FEW_ROWS]
    if len(few):
        tell(
            f"arms: fewer than {FEW_ROWS} rows in {_counted(few['arm'], few['rows'])}: the same "
            "people are drawn over and over; use fewer or wider buckets"
        )
    by_group = arms.groupby("group")["rows"].agg(["size", "sum"])
    single = by_group[by_group["size"] == 1]
    if len(single):
        tell(
            f"group: a single arm in {_counted(single.index, single['sum'])}: its bias cannot be "
            "told apart from that arm's worth; cut the arms columns more finely, or merge groups"
        )
    if len(by_group) == 1:
        tell(
            f"group: all rows are of {by_group.index[0]}: there is no other group to compare it "
            "with; name another column"
        )


def _counted(names: Iterable[str], rows: Iterable[int]) -> str:
    """Names with their numbers of rows, at most five."""
    texts = [f"{name} ({number:,})" for name, number in zip(names, rows, strict=True)]
    return ", ".join(texts[:5]) + (f" and {len(texts) - 5} more" if len(texts) > 5 else "")
