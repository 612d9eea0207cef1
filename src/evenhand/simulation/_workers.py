"""Where replications run: in threads, in processes, or on a Dask cluster."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evenhand.errors import InputError, in_python, setting
from evenhand.policies._settings import plays_in_python
from evenhand.simulation._plain_rounds import Watch
from evenhand.simulation._replications import Piece, Runs, class_of, run_piece
from evenhand.worlds.base import World

Outcomes = Generator[Runs, None, None]

# Preparing a policy holds the interpreter's lock for as long as some hundred rounds take. So
# replications shorter than this run in processes, if there are enough of them to pay for starting
# processes: two threads took longer than one at T = 100.
SHORT, MANY = 2_000, 50_000
PAUSE = 0.2  # seconds between two checks of the threads' progress


def run_pieces(
    pieces: Sequence[Piece], workers: int, client: Any, tell: Callable[[int], None]
) -> Outcomes:
    """The results of the pieces, in their order, as soon as they are ready.

    `tell` is called with the number of rounds done.
    """
    compiled = not any(plays_in_python(class_of(piece.make)) for piece in pieces)
    if client is None and compiled and not (workers > 1 and _are_short(pieces)):
        yield from _in_threads(pieces, workers, tell)
        return
    done = 0
    played = _in_processes(pieces, workers) if client is None else _on_dask(pieces, client)
    with closing(played):
        for piece, runs in zip(pieces, played, strict=True):
            done += piece.rounds
            tell(done)
            yield runs


def _are_short(pieces: Sequence[Piece]) -> bool:
    """Whether processes are available and faster than threads; only for evenhand's own classes."""
    number = sum(len(piece.replications) for piece in pieces)
    kinds = {kind for piece in pieces for kind in (class_of(piece.make), type(piece.place))}
    return (
        pieces[0].horizon < SHORT
        and number >= MANY
        and all(kind.__module__.startswith("evenhand.") for kind in kinds)
        and find_spec("joblib") is not None
    )


def _in_threads(pieces: Sequence[Piece], workers: int, tell: Callable[[int], None]) -> Outcomes:
    """The compiled loop releases the interpreter's lock, so threads are enough."""
    watch = Watch()
    with ThreadPoolExecutor(workers) as pool:
        try:
            futures = [pool.submit(run_piece, piece, watch) for piece in pieces]
            for future in futures:
                while not wait([future], timeout=PAUSE).done:
                    tell(watch.done)
                tell(watch.done)
                yield future.result()
        except BaseException:
            watch.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _in_processes(pieces: Sequence[Piece], workers: int) -> Outcomes:
    """Plain Python holds the lock, so it needs processes (joblib)."""
    if workers > 1:
        try:
            import cloudpickle
            from joblib import Parallel, delayed
        except ImportError:
            workers = 1  # joblib is in evenhand[cluster]; one core does the same, slower
    if workers == 1:
        yield from (run_piece(piece) for piece in pieces)
        return
    with (
        TemporaryDirectory() as folder
    ):  # a world may be a large table: written once, not per piece
        files: dict[int, str] = {}
        for piece in pieces:
            if id(piece.place) not in files:
                files[id(piece.place)] = str(Path(folder) / str(len(files)))
                Path(files[id(piece.place)]).write_bytes(cloudpickle.dumps(piece.place))
        yield from Parallel(n_jobs=workers, return_as="generator")(
            delayed(_run_pickled)(
                sys.path, cloudpickle.dumps(piece._replace(place=None)), files[id(piece.place)]
            )
            for piece in pieces
        )


def _run_pickled(path: list[str], piece: bytes, place: str) -> Runs:
    """Run a piece in a worker, which needs the path of the user's modules first."""
    sys.path[:] = path
    return _run_in(pickle.loads(piece), _world_from(place))


@lru_cache(maxsize=4)
def _world_from(file: str) -> World:
    """A process reads a world once for all its pieces."""
    world: World = pickle.loads(Path(file).read_bytes())
    return world


def _run_in(piece: Piece, place: World) -> Runs:
    return run_piece(piece._replace(place=place))


def connect(address: str) -> Any:
    """A client of the Dask scheduler at this address."""
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError(
            f"{setting('client')} needs dask: install it with pip install 'evenhand[cluster]'"
        ) from error
    try:
        return Client(address)  # Dask's own setting says how long it waits
    except (OSError, ValueError) as error:  # no answer, or not an address
        raise InputError(
            f"{setting('client')} is {address!r}, where no Dask scheduler answers; give the "
            f"address that Dask's scheduler prints{in_python(', or a client')}",
            value=address,
        ) from error


def _on_dask(pieces: Sequence[Piece], client: Any) -> Outcomes:
    owned = isinstance(client, str)
    connected = connect(client) if owned else client
    sent = {id(piece.place): piece.place for piece in pieces}
    places = {key: connected.scatter(place, broadcast=True) for key, place in sent.items()}
    futures = connected.map(
        _run_in,
        [piece._replace(place=None) for piece in pieces],
        [places[id(piece.place)] for piece in pieces],
        pure=False,
    )
    try:
        for future in futures:
            yield future.result()
    except BaseException:
        connected.cancel(futures)
        raise
    finally:
        if owned:
            connected.close()


def available_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
