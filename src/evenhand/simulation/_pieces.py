"""Pieces of work: some replications of one policy in one world, and what comes out of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.policies.base import Policy
from evenhand.policies.kernels import rule_sources
from evenhand.policies.state import blank_of, wipe
from evenhand.simulation._loop import N_TOTALS, SEGMENT, TRACE, Found, Run, play
from evenhand.simulation._traces import TraceFile
from evenhand.simulation._watch import Watch
from evenhand.worlds.base import World

PolicyMaker = Callable[..., Policy]


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
        """How many there are to play."""
        return len(self.replications) * self.horizon


class Runs(NamedTuple):
    """What is kept of a piece: a row per replication; traces one after the other, or nothing."""

    totals: NDArray[np.float64]
    pulls: NDArray[np.int64]
    trace: NDArray[np.float64]


def run_piece(piece: Piece, watch: Watch | None = None) -> Runs:
    """The work of a worker."""
    place, number, found = piece.place, len(piece.replications), Found()
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
            play(policy, place, piece.horizon, of_world, out, watch or Watch(), found, flush)
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

    A policy of this package is made once and emptied again, which takes a tenth of the time: all
    that it learns is in its memory. A rule of the user's might keep something of its own, and
    plain Python as well: they are made anew.
    """

    def __init__(self, piece: Piece, place: World) -> None:
        self._piece, self._place = piece, place
        self._kept: tuple[Policy, Any] | None = None

    def new(self, seed: int) -> Policy:
        if self._kept is None:
            piece, place = self._piece, self._place
            policy = piece.make(
                place.groups, place.n_features, horizon=piece.horizon, seed=seed, **piece.settings
            )
            if policy._is_compiled and rule_sources(type(policy._rule)) == ():
                self._kept = policy, blank_of(policy._state)
            return policy
        policy, blank = self._kept
        wipe(policy._state, blank)
        policy._restart(seed)
        return policy
