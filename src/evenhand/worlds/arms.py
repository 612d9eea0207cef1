"""From columns to arms: which group a row belongs to, and the rows sorted by arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.worlds.buckets import MISSING, Buckets, bucketed
from evenhand.worlds.missing import with_category


def grouped(
    labels: pd.Series[str], sensitive: object, others: str, columns: Sequence[str]
) -> pd.Series[str]:
    """The group of every row, with the groups that are not sensitive as one if so asked."""
    labels = labels.fillna(MISSING)
    if others == "apart":
        return labels
    if sensitive is None:
        raise ValueError('others is "together", but sensitive names no group to keep apart')
    own = sensitive_label(sensitive, columns, labels)
    rest = sorted(set(labels) - {own})
    together = rest[0] if len(rest) == 1 else f"not {own}"
    return labels.where(labels == own, together)


def sensitive_label(
    sensitive: object, columns: Sequence[str], labels: pd.Series[str]
) -> str | None:
    """The label of the sensitive group; 1 stands for "black = 1" in a column of numbers."""
    if sensitive is None:
        return None
    known = sorted(set(labels))
    for label in (str(sensitive), f"{columns[0]} = {sensitive}"):
        if label in known:
            return label
    raise ValueError(
        f"sensitive is {sensitive!r}, which is no value of {' & '.join(columns)}; allowed is one "
        f"of {', '.join(known)}"
    )


def sorted_by_arm(
    frame: pd.DataFrame, labels: pd.Series[str], cuts: Mapping[str, Buckets]
) -> tuple[NDArray[np.int64], NDArray[np.int64], pd.DataFrame]:
    """The rows in the order of their arms, where each arm begins, and a table of the arms.

    Arms are sorted by their columns and then by group, as the authors' code has them.
    """
    keys = {}
    for name, how in cuts.items():
        bucket = bucketed(frame[name], how)
        keys[name] = with_category(bucket) if bucket.isna().any() else bucket
    keys["group"] = labels.astype("category")
    parts = pd.DataFrame(keys)
    number = parts.groupby(list(parts.columns), observed=True, sort=True).ngroup().to_numpy()
    order = np.argsort(number, kind="stable")
    rows = np.bincount(number)
    first = np.concatenate([[0], np.cumsum(rows)])
    table = parts.iloc[order[first[:-1]]].astype(str).reset_index(drop=True)
    table.insert(0, "arm", table.agg(" & ".join, axis=1))
    return order, first, table.assign(rows=rows)
