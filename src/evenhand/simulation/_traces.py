"""Traces written to Parquet as they come: a file per piece of work, a row per round."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.simulation._loop import TRACE

NAME = "part-{number:06d}.parquet"


class TraceFile:
    """The file of a piece; none, and false, where traces are not written.

    It has its name once it is whole: a run that is stopped leaves no half of a file.
    """

    def __init__(self, folder: bool | Path, number: int, policy: str, world: str) -> None:
        self._path = None if isinstance(folder, bool) else folder / NAME.format(number=number)
        self._keys, self._writer = (policy, world), None

    def __bool__(self) -> bool:
        return self._path is not None

    def __enter__(self) -> TraceFile:
        if self._path is not None:
            import pyarrow.parquet as pq

            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self._unfinished(), _schema(), compression="zstd")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: Any, trace: TracebackType | None
    ) -> None:
        if self._writer is None or self._path is None:
            return
        self._writer.close()
        if kind is None:
            self._unfinished().rename(self._path)
        else:
            self._unfinished().unlink()

    def _unfinished(self) -> Path:
        assert self._path is not None
        return self._path.with_suffix(".unfinished")

    def writer_of(self, replication: int) -> Callable[[int, NDArray[np.float64]], None]:
        """A function that writes some rounds of a replication, from a first one on."""
        import pyarrow as pa

        def write(first: int, rows: NDArray[np.float64]) -> None:
            assert self._writer is not None
            number = len(rows)
            keys = [
                pa.DictionaryArray.from_arrays(np.zeros(number, dtype=np.int32), [key])
                for key in self._keys
            ]
            columns = [
                *keys,
                np.full(number, replication),
                np.arange(first, first + number),
                rows[:, 0].astype(np.int64),
                rows[:, 1] != 0.0,
                *(np.ascontiguousarray(rows[:, at]) for at in range(2, len(TRACE))),
            ]
            self._writer.write_table(pa.Table.from_arrays(columns, schema=_schema()))

        return write


def _schema() -> Any:
    import pyarrow as pa

    label = pa.dictionary(pa.int32(), pa.string())
    whole = [(name, pa.int64()) for name in ("replication", "round", "arm")]
    numbers = [(name, pa.float64()) for name in TRACE[2:]]
    return pa.schema(
        [("policy", label), ("world", label), *whole, ("explored", pa.bool_()), *numbers]
    )


def trace_folder(trace: Any) -> bool | Path:
    """What `simulate` was asked to do with traces; a folder that is there must be empty."""
    if isinstance(trace, bool):
        return trace
    if not isinstance(trace, (str, Path)):
        raise InputError(f"trace is {trace!r}; allowed are True, False, or a folder for Parquet")
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise InputError(
            "traces in Parquet need pyarrow: install it with pip install 'evenhand[data]'"
        ) from error
    folder = Path(trace)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"trace is {str(trace)!r}, which is not empty; take another folder")
    return folder


def read_traces(folder: Path) -> pd.DataFrame:
    """All rounds that were written, in the order of the pieces."""
    parts = [pd.read_parquet(path) for path in sorted(folder.glob("part-*.parquet"))]
    frame = pd.concat(parts, ignore_index=True)
    return frame.astype({"policy": str, "world": str})
