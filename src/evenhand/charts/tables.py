"""Whether a table has what a chart needs."""

from __future__ import annotations

from typing import Any

import pandas as pd


def need(table: Any, x: str, *columns: str) -> None:
    """An error that says which column is missing, and how to add it."""
    if not isinstance(table, pd.DataFrame):
        raise ValueError(
            f"runs is a {type(table).__name__}; allowed is a table, such as found.runs"
        )
    missing = [name for name in ("policy", x, *columns) if name not in table]
    if missing or not pd.api.types.is_numeric_dtype(table[x]):
        raise ValueError(
            f"x is {x!r}; the table has to have a column of numbers of that name, and policy, "
            f"{', '.join(columns)}: add one with runs.assign({x}=...)"
        )
