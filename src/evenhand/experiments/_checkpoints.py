"""Running an experiment point by point. A finished point is kept in a file and not run again."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

import evenhand
from evenhand._atomic_files import write_whole
from evenhand._compile.disk_cache import source_digest
from evenhand.conventions import Conventions
from evenhand.experiments.model import Experiment, Point
from evenhand.simulation import simulate, simulate_floor

COLUMNS = [
    "policy",
    "replication",
    "horizon",
    "share",
    "perceived_regret",
    "true_regret",
    "explored",
]
# These may be missing in all rows: if no group is sensitive, or no true reward is known.
MAY_LACK = ["share", "true_regret"]


def run_experiment(
    experiment: Experiment,
    conventions: Conventions,
    folder: Path,
    workers: int | None = None,
    client: object = None,
    tell: Callable[[int], None] = lambda *_: None,
) -> tuple[pd.DataFrame, float]:
    """All runs, with their `experiment`, `conventions`, `panel` and `x`, and the seconds they took.

    Points that were finished before, by the same code on the same data with the same seeds, are
    read from `folder`. `tell` is called with the number of rounds finished since its last call.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tables, seconds = [], 0.0
    for point in experiment.points(conventions):
        digest = _digest(experiment, point)
        path = folder / f"{experiment.name}-{conventions.name}-{point.x:g}-{digest}.csv"
        runs = len(experiment.lines) * experiment.replications
        table = _finished(path, experiment, point)
        if table is None:
            started = time.perf_counter()
            table = _run_point(experiment, point, workers, client, tell)
            table = table.assign(seconds=(time.perf_counter() - started) / runs)
            write_whole(path, table.to_csv(index=False))
        else:
            tell(runs * point.horizon)
        seconds += float(table["seconds"].sum())
        tables.append(table[COLUMNS].assign(panel=point.panel, x=point.x))
    whole = pd.concat(tables, ignore_index=True)
    return whole.assign(experiment=experiment.name, conventions=conventions.name), seconds


def _finished(path: Path, experiment: Experiment, point: Point) -> pd.DataFrame | None:
    """The runs of a finished point; None if they are not there or not complete."""
    try:
        if not path.read_bytes().endswith(b"\n"):
            return None
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        if list(table.columns) != [*COLUMNS, "seconds"]:
            return None
        for name in table.columns[1:]:  # with Python's own float, which reads what it wrote
            kind = int if name in ("replication", "horizon") else float
            table[name] = [kind(text or "nan") for text in table[name]]
    except (OSError, ValueError):  # pandas' errors are ValueErrors
        return None
    pairs = [(label, i) for label in experiment.lines for i in range(experiment.replications)]
    complete = (
        list(zip(table["policy"], table["replication"], strict=True)) == pairs
        and bool((table["horizon"] == point.horizon).all())
        and bool(table.drop(columns=MAY_LACK).notna().all(axis=None))
        and all(table[name].isna().all() or table[name].notna().all() for name in MAY_LACK)
    )
    return table if complete else None


def _run_point(
    experiment: Experiment,
    point: Point,
    workers: int | None,
    client: object,
    tell: Callable[[int], None],
) -> pd.DataFrame:
    reported = 0

    def report(done: int, total: int) -> None:  # noqa: ARG001
        nonlocal reported
        tell(done - reported)
        reported = done

    simulated = simulate(
        experiment.policies,
        point.world,
        point.horizon,
        experiment.replications,
        experiment.seed,
        workers=workers,
        client=client,
        progress=report,
        **point.settings,
    )
    runs = simulated.runs[COLUMNS]
    if not experiment.floor:
        return runs
    floor = simulate_floor(point.world, point.horizon, experiment.replications, experiment.seed)
    tell(point.horizon * experiment.replications)
    return pd.concat([runs, floor.runs[COLUMNS]], ignore_index=True)


def _digest(experiment: Experiment, point: Point) -> str:
    """A hash of what a finished point depends on: code, world, settings, seeds and policies."""
    settings = {name: str(value) for name, value in point.settings.items()}
    text = json.dumps(
        [
            evenhand.__version__,
            source_digest(everything=True),
            [_described(label, make) for label, make in experiment.policies.items()],
            experiment.replications,
            experiment.seed,
            point.horizon,
            point.world.fingerprint(),
            settings,
        ]
    )
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _described(label: str, make: object) -> str:
    """A policy as text: its class, a hash of its file if it is the user's, and its settings."""
    kind, settings = (make.func, make.keywords) if isinstance(make, partial) else (make, {})
    name = f"{kind.__module__}.{kind.__qualname__}"  # type: ignore[attr-defined]
    code = "" if name.startswith("evenhand.") else _code_beside(Path(inspect.getfile(kind)))  # type: ignore[arg-type]
    return f"{label}: {name} {settings!r} {code}"


def _code_beside(path: Path) -> str:
    """A hash of a user's file and of everything imported from its folder, which it may use."""
    files = {path.resolve()}
    for name, module in list(sys.modules.items()):
        source = getattr(module, "__file__", None)
        if source and name != "__main__" and Path(source).resolve().parent == path.resolve().parent:
            files.add(Path(source).resolve())
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()
