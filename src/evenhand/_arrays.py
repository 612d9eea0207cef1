"""Arrays that come in from outside, checked once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def numbers(
    name: str, values: Any, shape: tuple[int, ...] | None = None, *, missing: bool = False
) -> NDArray[np.float64]:
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
