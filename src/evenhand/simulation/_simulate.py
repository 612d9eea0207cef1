"""Policies x worlds x replications, in parallel, with the same numbers for any number of workers.

Every replication has its own random numbers, which depend only on the seed and its number: one
stream for the world, the same for all policies, and one seed for the policies.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from evenhand import _checks
from evenhand.errors import InputError
from evenhand.policies._settings import constructed
from evenhand.simulation._replications import (
    Part,
    Piece,
    PolicyMaker,
    class_of,
    trace_folder,
)
from evenhand.simulation._workers import available_cores, run_pieces
from evenhand.simulation.results import Simulation
from evenhand.worlds.base import World

Progress = Callable[[int, int], None]

# Rounds in a piece of work: few enough to distribute, many enough that the overhead is small. With
# traces in files, every piece is a file, and there should not be too many. Starting a piece takes
# as long as thousands of rounds and holds the interpreter's lock, so a worker gets at most PIECES.
CHUNK, CHUNK_OF_FILE, PIECES = 20_000, 1_000_000, 60


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
        workers: the number of threads, by default all cores. Policies in plain Python, also
            with only a `select` or `update` of their own, and tens of thousands of short
            replications run in processes (joblib).
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
            given = (place.groups, place.n_features)
            constructed(policy, make, *given, horizon=horizon, seed=0, **settings)
    tell = _teller(progress, sum(piece.rounds for piece in pieces))
    with closing(run_pieces(pieces, count, client, tell)) as played:  # Ctrl-C may come meanwhile
        parts = [
            Part(piece.policy, piece.world, piece.replications, runs)
            for piece, runs in zip(pieces, played, strict=True)
        ]
    groups = {name: place.groups for name, place in places.items()}
    return Simulation(horizon, parts, groups, None if isinstance(traces, bool) else traces)


def named_policies(
    policies: Sequence[PolicyMaker] | Mapping[str, PolicyMaker],
) -> dict[str, PolicyMaker]:
    """Policies by name: the keys of the mapping, or the names of the classes."""
    if isinstance(policies, Mapping):
        makers = dict(policies)
        for make in makers.values():
            class_of(make)
    elif isinstance(policies, Iterable):
        makers = {class_of(make).__name__: make for make in policies}
    else:
        raise InputError(
            f"policies is {policies!r}; allowed is a list or mapping of classes", value=policies
        )
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
        raise InputError(
            f"worlds is {worlds!r}; allowed is a world, or a mapping from names", value=worlds
        )
    wrong = [place for place in named.values() if not isinstance(place, World)]
    if wrong:
        raise InputError(f"world is {wrong[0]!r}; allowed is an instance of World")
    return dict(named)


def _parts(number: int, size: int) -> list[range]:
    return [range(first, min(first + size, number)) for first in range(0, number, size)]


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
