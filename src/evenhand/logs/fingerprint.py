"""The fingerprint of a log's rows: how many there are, and a checksum of every value.

It is of values, not of bytes, so that CSV and Parquet have the same one, and that a file which
another program wrote again without changing a value is still the log.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.logs.about import About
from evenhand.logs.candidates import CHANCES, CONTEXTS
from evenhand.logs.schema import NAMES

_LENGTHS = "\0lengths"  # of lists; a name that no column has


def fingerprint(about: About, frames: Iterable[pd.DataFrame]) -> dict[str, Any]:
    """The fingerprint of rows with the types of the schema, in one frame or in several.

    Each column has a checksum of its own, so that rows can be added part by part.
    """
    names = [*NAMES.values(), *about.features]
    if about.candidates:
        names += [name + part for name in (CONTEXTS, CHANCES) for part in ("", _LENGTHS)]
    sums = {name: hashlib.sha256() for name in names}
    number = 0
    for frame in frames:
        number += len(frame)
        for name, added in sums.items():
            added.update(_bytes(frame, name, about))
    whole = json.dumps([[name, added.hexdigest()] for name, added in sums.items()])
    return {"number": number, "sha256": hashlib.sha256(whole.encode()).hexdigest()}


def _bytes(frame: pd.DataFrame, name: str, about: About) -> bytes:
    """Doubles, the little end first, and NaN for what is missing; with three exceptions."""
    if name == NAMES["timestamp"]:
        times: NDArray[Any] = frame[name].dt.tz_convert(None).to_numpy(dtype="datetime64[us]")
        return times.astype("<i8").tobytes()
    if name == NAMES["group"]:  # its text follows from the arm
        expected = np.array(about.labels, dtype=object)[frame[NAMES["arm"]].to_numpy()]
        same: NDArray[np.bool_] = np.asarray(frame[name].to_numpy(dtype=object) == expected)
        return same.tobytes()
    if name in (CONTEXTS + _LENGTHS, CHANCES + _LENGTHS):
        lists = frame[name.removesuffix(_LENGTHS)]
        return np.array([-1 if one is None else len(one) for one in lists], "<i8").tobytes()
    if name in (CONTEXTS, CHANCES):
        there = [np.asarray(one, dtype=np.float64) for one in frame[name] if one is not None]
        return _doubles(np.concatenate([np.empty(0), *there]))
    return _doubles(frame[name].to_numpy(dtype=np.float64, na_value=np.nan))


def _doubles(values: NDArray[np.float64]) -> bytes:
    return np.where(np.isnan(values), np.nan, values).astype("<f8").tobytes()
