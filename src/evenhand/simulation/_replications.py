"""Some replications of one policy in one world: what a worker does, and where its results go."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.policies._kernels import rule_sources
from evenhand.policies._settings import plays_in_python
from evenhand.policies._state import blank_of, wipe
from evenhand.policies.base import Policy
from evenhand.simulation._compiled_rounds import N_TOTALS, SEGMENT, TRACE, Run, SharedLoops, play
from evenhand.simulation._plain_rounds import Watch
from evenhand.worlds.base import World

PolicyMaker = Callable[..., Policy]


def class_of(make: PolicyMaker) -> type[Policy]:
    """The class that a policy is made of, also where some of its settings are fixed."""
    kind = make.func if isinstance(make, partial) else make
    if not (isinstance(kind, type) and issubclass(kind, Policy)):
        raise InputError(
            f"policy {make!r} is not a class of policies; allowed are subclasses of Policy "
            "and functools.partial of them"
        )
    return kind


class Piece(NamedTuple):
    """Some replications of one policy in one world: what a worker gets."""

    number: int  # of all pieces of the simulation
    policy: str
    world: str
    make: PolicyMaker
    place: World | None  # sent on its own where a piece travels
    settings: dict[str, Any]
    horizon: int
    seed: int
    replications: range
    trace: bool | Path  # a folder, for a file of its own there

    @property
    def rounds(self) -> int:
        """How many rounds there are to play."""
        return len(self.replications) * self.horizon


class Runs(NamedTuple):
    """The results of a piece: a row per replication, and traces one after the other, or none."""

    totals: NDArray[np.float64]
    pulls: NDArray[np.int64]
    trace: NDArray[np.float64]


class Part(NamedTuple):
    """Some replications of one policy in one world."""

    policy: str
    world: str
    replications: range
    runs: Runs


def run_piece(piece: Piece, watch: Watch | None = None) -> Runs:
    """Play all replications of a piece."""
    place, number, shared = piece.place, len(piece.replications), SharedLoops()
    assert place is not None
    room = piece.rounds if piece.trace is True else 0
    runs = Runs(
        np.zeros((number, N_TOTALS)),
        np.zeros((number, place.n_arms), dtype=np.int64),
        np.empty((room, len(TRACE))),
    )
    policies = _Policies(piece, place)
    buffer = np.empty((min(SEGMENT, piece.horizon), len(TRACE)))
    with TraceFile(piece.trace, piece.number, piece.policy, piece.world) as file:
        for row, replication in enumerate(piece.replications):
            of_world, of_policy = streams_of(piece.seed, replication)
            policy = policies.new(int(of_policy.generate_state(1, np.uint64)[0]))
            trace = buffer if file else runs.trace[row * piece.horizon : (row + 1) * piece.horizon]
            out = Run(runs.totals[row], runs.pulls[row], trace)
            flush = file.writer_of(replication) if file else None
            play(policy, place, piece.horizon, of_world, out, watch or Watch(), shared, flush)
    return runs


def streams_of(
    seed: int, replication: int
) -> tuple[np.random.SeedSequence, np.random.SeedSequence]:
    """The random numbers of a replication: of its world, and of its policies.

    They are what `SeedSequence(seed, spawn_key=(replication,)).spawn(2)` gives.
    """
    return (
        np.random.SeedSequence(seed, spawn_key=(replication, 0)),
        np.random.SeedSequence(seed, spawn_key=(replication, 1)),
    )


class _Policies:
    """New policies for one replication after the other.

    One of evenhand's policies is made once and then wiped, which takes a tenth of the time: all
    that it learns is in its state. A user's rule, or a policy in plain Python, may keep something
    elsewhere, so it is made again each time.
    """

    def __init__(self, piece: Piece, place: World) -> None:
        self._piece, self._place = piece, place
        self._reused: tuple[Policy, Any] | None = None

    def new(self, seed: int) -> Policy:
        if self._reused is None:
            piece, place = self._piece, self._place
            policy = piece.make(
                place.groups, place.n_features, horizon=piece.horizon, seed=seed, **piece.settings
            )
            if not plays_in_python(type(policy)) and rule_sources(type(policy._rule)) == ():
                self._reused = policy, blank_of(policy._state)
            return policy
        policy, blank = self._reused
        wipe(policy._state, blank)
        policy._restart(seed)
        return policy


NAME = "part-{number:06d}.parquet"


class TraceFile:
    """The trace file of a piece; false if traces are not written.

    It gets its name once it is complete: a run that is stopped leaves no partial file.
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
        """A function that writes some rounds of a replication, from a first round on."""
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
    """The setting `trace` of `simulate`, checked; an existing folder must be empty."""
    if isinstance(trace, bool):
        return trace
    if not isinstance(trace, (str, Path)):
        raise InputError(
            f"trace is {trace!r}; allowed are True, False, or a folder for Parquet", value=trace
        )
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise InputError(
            "traces in Parquet need pyarrow: install it with pip install 'evenhand[data]'"
        ) from error
    folder = Path(trace)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"trace is {str(trace)!r}, which is not empty; use another folder")
    return folder


def read_traces(folder: Path) -> pd.DataFrame:
    """All rounds that were written, in the order of the pieces."""
    parts = [pd.read_parquet(path) for path in sorted(folder.glob("part-*.parquet"))]
    frame = pd.concat(parts, ignore_index=True)
    return frame.astype({"policy": str, "world": str})
