"""Tables and numbers as plain data for JSON, and numbers and names as plain text."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A dict per row.

    Example:
        >>> import pandas as pd
        >>> from evenhand._prose import records
        >>> records(pd.DataFrame({"group": ["F"], "share": [float("nan")], "n": [3]}))
        [{'group': 'F', 'share': None, 'n': 3}]
    """
    return [
        {str(name): value(cell) for name, cell in row.items()}
        for row in table.to_dict(orient="records")
    ]


def value(cell: Any) -> Any:
    """Text, True, False, whole and finite numbers as they are; None for anything else."""
    if cell is None or cell is pd.NA:
        return None
    if isinstance(cell, (bool, np.bool_)):
        return bool(cell)
    if isinstance(cell, str):
        return cell
    if isinstance(cell, (int, np.integer)):
        return int(cell)
    return float(cell) if np.isfinite(cell) else None


def in_digits(number: float, sign: str = "") -> str:
    """A number as people write it, whatever its size: no exponents, commas for thousands.

    Args:
        number: the number.
        sign: "+" for a sign in front of numbers above 0 as well.

    Example:
        >>> from evenhand._prose import in_digits
        >>> in_digits(1e9), in_digits(0.00001), in_digits(0.1 + 0.2), in_digits(250)
        ('1,000,000,000', '0.00001', '0.3', '250')
    """
    return f"{Decimal(f'{number + 0.0:.12g}').normalize():{sign},f}"  # -0 becomes 0


def number_of(n: int, noun: str) -> str:
    """A number of things, such as rows.

    Example:
        >>> from evenhand._prose import number_of
        >>> number_of(1, "row"), number_of(1200, "row")
        ('1 row', '1,200 rows')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def quoted(name: str) -> str:
    """A name in a sentence: as it is, or in quotes if it would not read as one word.

    Example:
        >>> from evenhand._prose import quoted
        >>> quoted("F"), quoted("New York"), quoted("")
        ('F', "'New York'", "''")
    """
    plain = name.isprintable() and name and not set(name) & set(" \t,;:()'\"")
    return name if plain else repr(name)
