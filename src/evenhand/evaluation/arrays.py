"""Arrays that come in from outside, checked once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Whole = NDArray[np.int64]


def numbers(
    name: str, values: Any, shape: tuple[int, ...] | None = None, *, missing: bool = False
) -> Array:
    """Finite numbers of this shape, or an error that names them.

    Args:
        name: what to call them in the error.
        values: the numbers.
        shape: what their shape must be; any, unless given.
        missing: whether NaN is allowed.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is not a table of numbers; allowed are finite numbers") from None
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; allowed is {shape}")
    bad = np.isinf(array) if missing else ~np.isfinite(array)
    if bad.any():
        what = "an infinity" if missing else "a NaN or an infinity"
        also = ", and NaN where it is missing" if missing else ""
        raise ValueError(f"{name} has {what}; allowed are finite numbers{also}")
    return array


def whole_numbers(name: str, values: Any, rows: int, below: int) -> Whole:
    """Numbers of arms or groups: whole, from 0 to `below` - 1, one for each row."""
    array = numbers(name, values, (rows,))
    wrong = (array != np.floor(array)) | (array < 0) | (array >= below)
    if wrong.any():
        raise ValueError(
            f"{name} has {array[wrong][0]:g}; allowed are whole numbers from 0 to {below - 1}"
        )
    return array.astype(np.int64)
