"""The rows of a log as a table of the schema, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand.events.candidates import CHANCES, CONTEXTS
from evenhand.events.columns import ORDER
from evenhand.events.header import About
from evenhand.events.schema import NAMES

# What a row has, in this order; `context` and all arms of a decision are lists.
FIELDS = (
    *("timestamp", "round", "arm", "propensity", "reward", "true_reward", "override", "explored"),
    *("learned", "context", "contexts", "propensities", *ORDER),
)
TIME, ROUND, ARM, PROPENSITY, REWARD, TRUE, OVERRIDE, EXPLORED = range(8)
LEARNED, CONTEXT, ARMS, PROPENSITIES, ID, SEQ, REWARD_SEQ, REWARD_AT, TRUE_SEQ, TRUE_AT = range(
    8, 18
)
_NOWHERE = np.iinfo(np.int64).min


def frame_of(about: About, columns: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Columns, by the names of `FIELDS`, as a table in the schema's order and types.

    None is missing. Those of all arms are looked at only if the log keeps candidates.
    """
    arms, labels = columns["arm"], about.labels
    typed: dict[str, Any] = {
        "timestamp": _times(columns["timestamp"]),
        "round": _whole(columns["round"]),
        "arm": np.array(arms, dtype=np.int64),
        "position": pd.array(np.zeros(len(arms), dtype=np.int64), dtype="Int64"),
        "reward": np.array(columns["reward"], dtype=np.float64),
        "propensity": np.array(columns["propensity"], dtype=np.float64),
        "group": pd.array([labels[arm] for arm in arms], dtype="str"),
        "true_reward": np.array(columns["true_reward"], dtype=np.float64),
        "override": _whole(columns["override"]),
        "explored": pd.array(list(columns["explored"]), dtype="boolean"),
        "learned": _whole(columns["learned"]),
    }
    named = {NAMES[role]: values for role, values in typed.items()}
    for name in ORDER:
        if name == ORDER[0]:
            named[name] = pd.array(list(columns[name]), dtype="str")
        else:
            named[name] = (_times if name.endswith("_at") else _whole)(columns[name])
    table = np.array(columns["context"], dtype=np.float64).reshape(len(arms), len(about.features))
    named |= dict(zip(about.features, table.T, strict=True))
    if about.candidates:
        for name, values in ((CONTEXTS, "contexts"), (CHANCES, "propensities")):
            named[name] = pd.Series(list(columns[values]), dtype=object)
    return pd.DataFrame(named)


def _times(values: Sequence[int | None]) -> pd.Series:
    stamps = np.array([_NOWHERE if t is None else t for t in values], dtype="datetime64[us]")
    return pd.Series(stamps).dt.tz_localize("UTC")


def _whole(values: Sequence[int | None]) -> Any:
    return pd.array(list(values), dtype="Int64")


def rows_of(about: About, table: pd.DataFrame) -> list[list[Any]]:
    """What `frame_of` was given, row by row."""
    return [list(row) for row in zip(*columns_of(about, table), strict=True)]


def columns_of(about: About, table: pd.DataFrame) -> list[list[Any]]:
    """What `frame_of` was given. A table of an older version has no order of events."""
    columns: list[list[Any]] = []
    for field in FIELDS:
        name = NAMES.get(field, field)
        if field == "context":
            contexts = table[list(about.features)].to_numpy(dtype=np.float64)
            columns.append(contexts.tolist())
        elif field in ("contexts", "propensities"):
            named = CONTEXTS if field == "contexts" else CHANCES
            columns.append(table[named].to_list() if about.candidates else [None] * len(table))
        elif name not in table or name in about.features:
            columns.append([None] * len(table))
        else:
            columns.append(_plain(table[name]))
    return columns


def _plain(column: pd.Series) -> list[Any]:
    there = column.notna()
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert(None).astype("int64")
    found: list[Any] = column.astype("object").where(there, None).tolist()
    return found
