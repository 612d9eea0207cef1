"""Running a sweep point by point. A finished point is a file, and is not computed again."""

from __future__ import annotations

import hashlib
import json
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
) -> pd.DataFrame:
    """All runs of a sweep, with their `sweep`, `conventions` and `x`.

    Points that were finished before, by the same code with the same seeds, are read from `folder`.
    `tell` hears of rounds as they are done.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tables = []
    for point in sweep.points(conventions):
        path = folder / f"{sweep.name}-{conventions.name}-{point.x:g}-{_digest(sweep, point)}.csv"
        runs = len(sweep.policies) * sweep.replications
        if path.exists():
            table = pd.read_csv(path)
            tell(runs * point.horizon)
        else:
            table = _run_point(sweep, point, workers, client, tell)
            part = path.with_suffix(".part")
            table.to_csv(part, index=False)
            part.replace(path)
        tables.append(table.assign(x=point.x))
    whole = pd.concat(tables, ignore_index=True)
    return whole.assign(sweep=sweep.name, conventions=conventions.name)


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
            source_digest(),
            sweep.policies,
            sweep.replications,
            sweep.seed,
            point.horizon,
            world,
            settings,
        ]
    )
    return hashlib.sha256(text.encode()).hexdigest()[:12]
