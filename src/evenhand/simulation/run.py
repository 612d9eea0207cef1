"""Policies x worlds x replications, in parallel, with the same numbers for any number of workers.

Every replication has random numbers of its own, made from the seed and its number alone: one
stream for the world, which all policies meet alike, and one seed for the policies.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from evenhand import _checks
from evenhand.policies.base import Policy
from evenhand.simulation.loop import Run, run
from evenhand.simulation.results import Key, Simulation
from evenhand.worlds.base import World

PolicyMaker = Callable[..., Policy]
Progress = Callable[[int, int], None]
Outcomes = Generator[list[Run], None, None]

CHUNK = 20_000  # rounds in a piece of work: short enough to share out, long enough not to matter


class Piece(NamedTuple):
    """Some replications of one policy in one world: what a worker gets."""

    policy: str
    world: str
    make: PolicyMaker
    place: World | None  # sent on its own where a piece travels
    settings: dict[str, Any]
    horizon: int
    seed: int
    replications: range
    trace: bool


def simulate(
    policies: Sequence[PolicyMaker] | Mapping[str, PolicyMaker],
    worlds: World | Mapping[str, World],
    horizon: int,
    replications: int = 80,
    seed: int = 0,
    trace: bool = False,
    workers: int | None = None,
    client: Any = None,
    progress: bool | Progress = False,
    **settings: Any,
) -> Simulation:
    """Run every policy in every world, `replications` times.

    Args:
        policies: classes of policies, or a mapping from names to classes; use
            `functools.partial(eh.NaiveFair, inside="thompson")` for one with settings of its own.
        worlds: a world, or a mapping from names to worlds.
        horizon: the number of rounds.
        replications: how often; each with random numbers of its own.
        seed: of everything. The same seed gives the same numbers, whatever the workers.
        trace: keep every round, and not only sums. Costs 40 bytes a round.
        workers: threads; all cores without it. Policies in plain Python run in processes (joblib).
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
    makers, places = named_policies(policies), _named_worlds(worlds)
    horizon = _checks.whole("horizon", horizon)
    replications = _checks.whole("replications", replications)
    seed = _checks.whole("seed", seed, least=0, most=_checks.LARGEST_SEED)
    count = available_cores() if workers is None else _checks.whole("workers", workers)
    pieces = [
        Piece(policy, world, make, place, settings, horizon, seed, part, trace)
        for world, place in places.items()
        for policy, make in makers.items()
        for part in _parts(replications, max(1, CHUNK // horizon))
    ]
    for policy, make in makers.items():  # a wrong setting is told before anything runs
        for place in places.values():
            try:
                make(place.groups, place.n_features, horizon=horizon, seed=0, **settings)
            except TypeError as error:
                raise ValueError(f"policy {policy}: {error}") from error
    with closing(run_pieces(pieces, count, client)) as played:  # Ctrl-C may come while we tell
        outcomes = list(_with_progress(played, pieces, progress))
    keys = [Key(p.policy, p.world, number) for p in pieces for number in p.replications]
    runs = [one for outcome in outcomes for one in outcome]
    return Simulation(horizon, keys, runs, {name: place.groups for name, place in places.items()})


def run_piece(piece: Piece, stop: Event | None = None) -> list[Run]:
    """The work of a worker: some replications of one policy in one world."""
    place = piece.place
    assert place is not None
    runs = []
    for number in piece.replications:
        stream = np.random.SeedSequence(piece.seed, spawn_key=(number,))
        of_world, of_policy = stream.spawn(2)
        policy = piece.make(
            place.groups,
            place.n_features,
            horizon=piece.horizon,
            seed=int(of_policy.generate_state(1, np.uint64)[0]),
            **piece.settings,
        )
        runs.append(run(policy, place, piece.horizon, of_world, piece.trace, stop))
    return runs


def run_pieces(pieces: Sequence[Piece], workers: int, client: Any = None) -> Outcomes:
    """The outcomes of the pieces, in their order, as soon as they are there."""
    if client is not None:
        return _on_dask(pieces, client)
    if all(_is_compiled(piece.make) for piece in pieces):
        return _in_threads(pieces, workers)
    return _in_processes(pieces, workers)


def _in_threads(pieces: Sequence[Piece], workers: int) -> Outcomes:
    """The compiled loop lets go of the interpreter's lock, so threads are enough."""
    stop = Event()
    with ThreadPoolExecutor(workers) as pool:
        try:
            futures = [pool.submit(run_piece, piece, stop) for piece in pieces]
            for future in futures:
                yield future.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _in_processes(pieces: Sequence[Piece], workers: int) -> Outcomes:
    """Plain Python holds the lock; joblib's own processes do not share it."""
    if workers > 1:
        try:
            from joblib import Parallel, delayed
            from joblib.externals import cloudpickle
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


def _run_pickled(path: list[str], piece: bytes, place: str) -> list[Run]:
    """In a process that may be older than the module of the user's policy: find it first."""
    sys.path[:] = path
    return _run_in(pickle.loads(piece), _world_from(place))


@lru_cache(maxsize=4)
def _world_from(file: str) -> World:
    """A process reads a world once, however many pieces it gets."""
    world: World = pickle.loads(Path(file).read_bytes())
    return world


def _run_in(piece: Piece, place: World) -> list[Run]:
    return run_piece(piece._replace(place=place))


def connect(address: str) -> Any:
    """A client of the Dask scheduler at this address."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError(
            "client needs dask: install it with pip install 'evenhand[cluster]'"
        ) from error
    try:
        return Client(address)  # Dask's own setting says how long it waits
    except (OSError, ValueError) as error:  # nobody answers, or it is no address
        raise ValueError(
            f"client is {address!r}, where no Dask scheduler answers; give the address that "
            "`dask scheduler` prints, or a client"
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
    """Names for policies: the mapping's own, or those of the classes."""
    if isinstance(policies, Mapping):
        makers = dict(policies)
        for make in makers.values():
            _class_of(make)
    elif isinstance(policies, Iterable):
        makers = {_class_of(make).__name__: make for make in policies}
    else:
        raise ValueError(f"policies is {policies!r}; allowed is a list or mapping of classes")
    if not makers or len(makers) < len(policies):
        raise ValueError(
            "policies are empty or name a class twice; "
            "give a mapping from names of your own to policies"
        )
    return makers


def _named_worlds(worlds: World | Mapping[str, World]) -> dict[str, World]:
    found = {"world": worlds} if isinstance(worlds, World) else worlds
    if not isinstance(found, Mapping) or not found:
        raise ValueError(f"worlds is {worlds!r}; allowed is a world, or a mapping from names")
    wrong = [place for place in found.values() if not isinstance(place, World)]
    if wrong:
        raise ValueError(f"world is {wrong[0]!r}; allowed is an instance of World")
    return dict(found)


def _class_of(make: PolicyMaker) -> type[Policy]:
    kind = make.func if isinstance(make, partial) else make
    if not (isinstance(kind, type) and issubclass(kind, Policy)):
        raise ValueError(
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


def _with_progress(
    outcomes: Iterator[list[Run]], pieces: Sequence[Piece], progress: bool | Progress
) -> Iterator[list[Run]]:
    if not progress:
        yield from outcomes
        return
    tell = _print_progress if progress is True else progress
    total = sum(len(piece.replications) * piece.horizon for piece in pieces)
    done = 0
    for piece, outcome in zip(pieces, outcomes, strict=True):
        done += len(piece.replications) * piece.horizon
        tell(done, total)
        yield outcome


def _print_progress(done: int, total: int) -> None:
    """A line on the error stream that writes over itself."""
    end = "\n" if done == total else ""
    sys.stderr.write(f"\r{100 * done // total:3d} % of {total:,} rounds{end}")
    sys.stderr.flush()
