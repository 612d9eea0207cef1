"""Arrays that come in from outside, checked once."""

from __future__ import annotations

import sys
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
    unmasked(name, values)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is not a table of numbers; allowed are finite numbers") from None
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; allowed is {shape}")
    bad = np.isinf(array) if missing else ~np.isfinite(array)
    if bad.any():
        what = "an infinity" if missing else "a NaN or an infinity"
        also = ", and NaN where it is missing" if missing else ""
        raise ValueError(f"{name} has {what}; allowed are finite numbers{also}")
    return array


def unmasked(name: str, values: Any) -> None:
    """Refuse values of a masked array that are masked: NumPy would hand on what is below the mask.

    Args:
        name: what to call them in the error.
        values: anything; also lists that hold masked arrays or masked values.

    Example:
        >>> import numpy as np
        >>> from evenhand._arrays import unmasked
        >>> unmasked("rewards", np.ma.array([1.0, 99.0], mask=[False, True]))
        Traceback (most recent call last):
        ValueError: rewards has masked values; allowed are numbers: leave these rows out
    """
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values):
            raise ValueError(f"{name} has masked values; allowed are numbers: leave these rows out")
    elif isinstance(values, (list, tuple)):
        for value in values:
            if isinstance(value, (np.ma.MaskedArray, list, tuple)):
                unmasked(name, value)


def is_missing(label: object) -> bool:
    """Whether a label is none at all: None, NaN, or what pandas has for them.

    Example:
        >>> import pandas as pd
        >>> from evenhand._arrays import is_missing
        >>> [is_missing(label) for label in (None, float("nan"), pd.NA, pd.NaT, "F", 0)]
        [True, True, True, True, False, False]
    """
    # A live policy has no other need of pandas, which takes a third of its start to import.
    absent = getattr(sys.modules.get("pandas"), "NA", None)
    return label is None or label is absent or bool(label != label)
