"""Tables and numbers as plain data, for JSON and for whoever reads it in another language.

And numbers as plain text, for everybody.
"""

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
        {str(name): value(one) for name, one in row.items()}
        for row in table.to_dict(orient="records")
    ]


def value(one: Any) -> Any:
    """Text, true or false, whole numbers and finite numbers as they are; None for all else."""
    if one is None or one is pd.NA:
        return None
    if isinstance(one, (bool, np.bool_)):
        return bool(one)
    if isinstance(one, str):
        return one
    if isinstance(one, (int, np.integer)):
        return int(one)
    return float(one) if np.isfinite(one) else None


def in_digits(number: float, sign: str = "") -> str:
    """A number as people write it, whatever its size: no exponents, commas for thousands.

    Args:
        number: which.
        sign: "+" to have one in front of numbers above 0 as well.

    Example:
        >>> from evenhand._prose import in_digits
        >>> in_digits(1e9), in_digits(0.00001), in_digits(0.1 + 0.2), in_digits(250)
        ('1,000,000,000', '0.00001', '0.3', '250')
    """
    return f"{Decimal(f'{number + 0.0:.12g}').normalize():{sign},f}"  # -0 becomes 0


def quoted(name: str) -> str:
    """A name in a sentence: as it is, or in quotes where it would not read as one word.

    Example:
        >>> from evenhand._prose import quoted
        >>> quoted("F"), quoted("New York"), quoted("")
        ('F', "'New York'", "''")
    """
    plain = name.isprintable() and name and not set(name) & set(" \t,;:()'\"")
    return name if plain else repr(name)
