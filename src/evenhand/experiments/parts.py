"""Running a sweep point by point. A finished point is a file, and is not computed again."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

import evenhand
from evenhand._compile import source_digest
from evenhand.conventions import Conventions
from evenhand.experiments.sweep import Point, Sweep
from evenhand.simulation import simulate

COLUMNS = [
    "policy",
    "replication",
    "horizon",
    "share",
    "perceived_regret",
    "true_regret",
    "explored",
]


def run_sweep(
    sweep: Sweep,
    conventions: Conventions,
    folder: Path,
    workers: int | None = None,
    client: object = None,
    tell: Callable[[int], None] = lambda *_: None,
) -> tuple[pd.DataFrame, float]:
    """All runs of a sweep, with their `sweep`, `conventions` and `x`, and the seconds they took.

    Points that were finished before, by the same code with the same seeds, are read from `folder`.
    `tell` hears of rounds as they are done.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tables, seconds = [], 0.0
    for point in sweep.points(conventions):
        path = folder / f"{sweep.name}-{conventions.name}-{point.x:g}-{_digest(sweep, point)}.csv"
        runs = len(sweep.policies) * sweep.replications
        table = _finished(path, runs)
        if table is None:
            started = time.perf_counter()
            table = _run_point(sweep, point, workers, client, tell)
            table = table.assign(seconds=(time.perf_counter() - started) / runs)
            part = path.with_suffix(f".{os.getpid()}.part")
            table.to_csv(part, index=False)
            part.replace(path)
        else:
            tell(runs * point.horizon)
        seconds += float(table["seconds"].sum())
        tables.append(table[COLUMNS].assign(x=point.x))
    whole = pd.concat(tables, ignore_index=True)
    return whole.assign(sweep=sweep.name, conventions=conventions.name), seconds


def _finished(path: Path, runs: int) -> pd.DataFrame | None:
    """The runs of a finished point; nothing if it is not there, or not whole."""
    try:
        table = pd.read_csv(path)
    except (FileNotFoundError, pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeError):
        return None
    whole = list(table.columns) == [*COLUMNS, "seconds"] and len(table) == runs
    return table if whole and table.notna().all(axis=None) else None


def _run_point(
    sweep: Sweep,
    point: Point,
    workers: int | None,
    client: object,
    tell: Callable[[int], None],
) -> pd.DataFrame:
    heard = 0

    def hear(done: int, total: int) -> None:  # noqa: ARG001
        nonlocal heard
        tell(done - heard)
        heard = done

    found = simulate(
        sweep.makers(),
        point.world,
        point.horizon,
        sweep.replications,
        sweep.seed,
        workers=workers,
        client=client,
        progress=hear,
        **point.settings,
    )
    return found.runs[COLUMNS]


def _digest(sweep: Sweep, point: Point) -> str:
    """What a finished point depends on: the code, the numbers of the point, seeds and policies."""
    world = {name: str(value) for name, value in vars(point.world).items()}
    settings = {name: str(value) for name, value in point.settings.items()}
    text = json.dumps(
        [
            evenhand.__version__,
            source_digest(everything=True),
            sweep.policies,
            sweep.replications,
            sweep.seed,
            point.horizon,
            world,
            settings,
        ]
    )
    return hashlib.sha256(text.encode()).hexdigest()[:12]
