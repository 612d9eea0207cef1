"""Policies x worlds x replications, in parallel, with the same numbers for any number of workers.

Every replication has its own random numbers, which depend only on the seed and its number: one
stream for the world, the same for all policies, and one seed for the policies.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evenhand import _checks
from evenhand.errors import InputError, setting
from evenhand.policies.base import Policy
from evenhand.simulation._plain_rounds import Watch
from evenhand.simulation._replications import (
    Part,
    Piece,
    PolicyMaker,
    Runs,
    run_piece,
    trace_folder,
)
from evenhand.simulation.results import Simulation
from evenhand.worlds.base import World

Progress = Callable[[int, int], None]
Outcomes = Generator[Runs, None, None]

# Rounds in a piece of work: few enough to distribute, many enough that the overhead is small. With
# traces in files, every piece is a file, and there should not be too many. Starting a piece takes
# as long as thousands of rounds and holds the interpreter's lock, so a worker gets at most PIECES.
CHUNK, CHUNK_OF_FILE, PIECES = 20_000, 1_000_000, 60
# Preparing a policy holds the interpreter's lock for as long as some hundred rounds take. So
# replications shorter than this run in processes, if there are enough of them to pay for starting
# processes: two threads took longer than one at T = 100.
SHORT, MANY = 2_000, 50_000
PAUSE = 0.2  # seconds between two checks of the threads' progress


def simulate(
    policies: Sequence[PolicyMaker] | Mapping[str, PolicyMaker],
    worlds: World | Mapping[str, World],
    horizon: int,
    replications: int = 80,
    seed: int = 0,
    trace: bool | str | Path = False,
    workers: int | None = None,
    client: Any = None,
    progress: bool | Progress = False,
    **settings: Any,
) -> Simulation:
    """Run every policy in every world, `replications` times.

    Args:
        policies: classes of policies, or a mapping from names to classes; use
            `functools.partial(eh.NaiveFair, inside="thompson")` for a policy with its own settings.
        worlds: a world, or a mapping from names to worlds.
        horizon: the number of rounds.
        replications: the number of replications, each with its own random numbers.
        seed: the seed of all random numbers. The same seed gives the same results with any workers.
        trace: True to keep every round, not only sums, which takes 40 bytes of memory per round;
            or the name of a new folder, to write them to Parquet files there as they come.
        workers: the number of threads, by default all cores. Policies in plain Python, and tens of
            thousands of short replications, run in processes (joblib).
        client: a `dask.distributed` client, or the address of a scheduler, to run on a cluster.
        progress: True for a line in the terminal, or a function of (rounds done, rounds in all).
        settings: passed to every policy, such as delta=0.2 or conventions=eh.AUTHORS_CODE.

    Example:
        >>> import evenhand as eh
        >>> world = eh.SyntheticWorld(n_arms=10, n_sensitive=5, bias_mean=10)
        >>> policies = [eh.TopInterval, eh.GroupFairTopInterval]
        >>> runs = eh.simulate(policies, world, horizon=500, replications=8, seed=1).runs
        >>> runs.groupby("policy", sort=False)["share"].mean().round(1).tolist()
        [0.2, 0.5]
    """
    makers, places = named_policies(policies), named_worlds(worlds)
    horizon = _checks.whole("horizon", horizon)
    replications = _checks.whole("replications", replications)
    seed = _checks.whole("seed", seed, least=0, most=_checks.LARGEST_SEED)
    count = available_cores() if workers is None else _checks.whole("workers", workers)
    traces = trace_folder(trace)
    chunk = CHUNK if isinstance(traces, bool) else CHUNK_OF_FILE
    if isinstance(traces, bool) and client is None:
        rounds = len(makers) * len(places) * replications * horizon
        chunk = max(chunk, rounds // (PIECES * count))
    work = [
        (policy, world, make, place, part)
        for world, place in places.items()
        for policy, make in makers.items()
        for part in _parts(replications, max(1, chunk // horizon))
    ]
    pieces = [
        Piece(number, policy, world, make, place, settings, horizon, seed, part, traces)
        for number, (policy, world, make, place, part) in enumerate(work)
    ]
    for policy, make in makers.items():  # a wrong setting is refused before anything runs
        for place in places.values():
            try:
                make(place.groups, place.n_features, horizon=horizon, seed=0, **settings)
            except TypeError as error:
                raise InputError(f"policy {policy}: {error}") from error
    tell = _teller(progress, sum(piece.rounds for piece in pieces))
    with closing(run_pieces(pieces, count, client, tell)) as played:  # Ctrl-C may come meanwhile
        parts = [
            Part(piece.policy, piece.world, piece.replications, runs)
            for piece, runs in zip(pieces, played, strict=True)
        ]
    groups = {name: place.groups for name, place in places.items()}
    return Simulation(horizon, parts, groups, None if isinstance(traces, bool) else traces)


def run_pieces(
    pieces: Sequence[Piece], workers: int, client: Any, tell: Callable[[int], None]
) -> Outcomes:
    """The results of the pieces, in their order, as soon as they are ready.

    `tell` is called with the number of rounds done.
    """
    compiled = all(_is_compiled(piece.make) for piece in pieces)
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
    kinds = {kind for piece in pieces for kind in (_class_of(piece.make), type(piece.place))}
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
            "client needs dask: install it with pip install 'evenhand[cluster]'"
        ) from error
    try:
        return Client(address)  # Dask's own setting says how long it waits
    except (OSError, ValueError) as error:  # no answer, or not an address
        raise InputError(
            f"{setting('client')} is {address!r}, where no Dask scheduler answers; give the "
            "address that `dask scheduler` prints, or a client"
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


def named_policies(
    policies: Sequence[PolicyMaker] | Mapping[str, PolicyMaker],
) -> dict[str, PolicyMaker]:
    """Policies by name: the keys of the mapping, or the names of the classes."""
    if isinstance(policies, Mapping):
        makers = dict(policies)
        for make in makers.values():
            _class_of(make)
    elif isinstance(policies, Iterable):
        makers = {_class_of(make).__name__: make for make in policies}
    else:
        raise InputError(f"policies is {policies!r}; allowed is a list or mapping of classes")
    if not makers or len(makers) < len(policies):
        raise InputError(
            "policies are empty or name a class twice; "
            "give a mapping from names of your own to policies"
        )
    return makers


def named_worlds(worlds: World | Mapping[str, World]) -> dict[str, World]:
    """Worlds by name; a single one is called "world"."""
    named = {"world": worlds} if isinstance(worlds, World) else worlds
    if not isinstance(named, Mapping) or not named:
        raise InputError(f"worlds is {worlds!r}; allowed is a world, or a mapping from names")
    wrong = [place for place in named.values() if not isinstance(place, World)]
    if wrong:
        raise InputError(f"world is {wrong[0]!r}; allowed is an instance of World")
    return dict(named)


def _class_of(make: PolicyMaker) -> type[Policy]:
    kind = make.func if isinstance(make, partial) else make
    if not (isinstance(kind, type) and issubclass(kind, Policy)):
        raise InputError(
            f"policy {make!r} is not a class of policies; allowed are subclasses of Policy "
            "and functools.partial of them"
        )
    return kind


def _is_compiled(make: PolicyMaker) -> bool:
    return _class_of(make).is_compiled()


def _parts(number: int, size: int) -> list[range]:
    return [range(first, min(first + size, number)) for first in range(0, number, size)]


def available_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _teller(progress: bool | Progress, total: int) -> Callable[[int], None]:
    """A function of the rounds done, which reports them if there are new ones."""
    if not progress:
        return lambda _: None
    show, shown = _print_progress if progress is True else progress, 0

    def tell(done: int) -> None:
        nonlocal shown
        if done > shown:
            shown = done
            show(done, total)

    return tell


def _print_progress(done: int, total: int) -> None:
    """A line on the error stream that is overwritten."""
    end = "\n" if done == total else ""
    sys.stderr.write(f"\r{100 * done // total:3d} % of {total:,} rounds{end}")
    sys.stderr.flush()
