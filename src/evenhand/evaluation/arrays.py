"""Arrays that come in from outside, checked once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._arrays import numbers

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Whole = NDArray[np.int64]


def whole_numbers(name: str, values: Any, rows: int, below: int) -> Whole:
    """Numbers of arms or groups: whole, from 0 to `below` - 1, one for each row."""
    array = numbers(name, values, (rows,))
    wrong = (array != np.floor(array)) | (array < 0) | (array >= below)
    if wrong.any():
        raise ValueError(
            f"{name} has {array[wrong][0]:g}; allowed are whole numbers from 0 to {below - 1}"
        )
    return array.astype(np.int64)
