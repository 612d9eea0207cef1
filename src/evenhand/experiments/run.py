"""Run experiments, draw their figures, write tables and the report."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

import evenhand
from evenhand._atomic_files import write_whole
from evenhand.errors import InputError
from evenhand.experiments import _report
from evenhand.experiments._checkpoints import run_experiment
from evenhand.experiments._figures import draw_figures, write_tables
from evenhand.experiments._introduction import RunFacts
from evenhand.experiments.model import Experiment
from evenhand.simulation import simulate


class Done(NamedTuple):
    """The outcome of a run: the path of the report, rounds played, seconds by kind of work.

    Example:
        >>> from pathlib import Path
        >>> from evenhand.experiments.run import Done
        >>> done = Done(Path("out/report.html"), 20_000, {"PAPER": 0.1})
        >>> done.report.name, done.rounds
        ('report.html', 20000)
    """

    report: Path
    rounds: int
    seconds: dict[str, float]


def run_all(
    experiments: Sequence[Experiment],
    out: Path,
    title: str,
    workers: int | None = None,
    client: object = None,
    tell: Callable[[str, int], None] = lambda *_: None,
) -> Done:
    """Run the experiments under each of their readings and write everything to `out`.

    Args:
        experiments: what to run; those of one report.
        out: the folder to write to. Points finished by an earlier run there are not run again.
        title: of the report.
        workers: the number of threads or processes; all cores unless given.
        client: of a Dask cluster to run on.
        tell: called with what is being done, and with the number of rounds finished since the
            last call.

    Example:
        >>> import pathlib, tempfile
        >>> from evenhand.experiments.file import read_experiment
        >>> from evenhand.experiments.run import run_all
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "small.toml").write_text('''
        ... policies = ["UniformRandom"]
        ... replications = 2
        ... run.horizon = 10
        ... output = { figures = ["svg"], tables = ["csv"] }
        ... ''')
        >>> done = run_all([read_experiment(folder / "small.toml")], folder / "out", "Small")
        >>> done.rounds, done.report.name
        (20, 'report.html')
    """
    seconds: dict[str, float] = {}
    tables, rounds = [], 0
    tell("getting the policies ready", 0)
    _warm_up(experiments)
    all_names = (name for experiment in experiments for name in experiment.conventions)
    for name in dict.fromkeys(all_names):
        for experiment in experiments:
            if name not in experiment.conventions:
                continue
            reading = experiment.readings()[name]
            step = f"{name}: {experiment.title}"
            tell(step, 0)
            table, took = run_experiment(
                experiment,
                reading,
                out / "parts",
                workers,
                client,
                lambda done, step=step: tell(step, done),  # type: ignore[misc]
            )
            tables.append(table)
            kind = f"{name}, real data" if experiment.is_table else name
            kind += ", beyond the paper" if experiment.beside else ""
            seconds[kind] = seconds.get(kind, 0.0) + took
            rounds += experiment.rounds(reading)
    if not tables:
        raise InputError("nothing to run: these experiments are not run under these conventions")
    started = time.perf_counter()
    runs = pd.concat(tables, ignore_index=True)
    tell("writing tables", 0)
    write_tables(runs, out / "tables", experiments[0].output.tables)
    figures = draw_figures(experiments, runs, out / "figures", lambda step: tell(step, 0))
    seconds["tables and figures"] = time.perf_counter() - started
    facts = RunFacts(title, rounds, seconds, evenhand.__version__)
    tell("writing the report", 0)
    path = _report.write(out / "report.html", experiments, runs, figures, facts)
    about = {"rounds": rounds, "seconds": seconds, "version": evenhand.__version__}
    write_whole(out / "run.json", json.dumps(about))
    return Done(path, rounds, seconds)


def _warm_up(experiments: Sequence[Experiment]) -> None:
    """Compile every policy on a round or two, before anything is timed."""
    seen = set()
    for experiment in experiments:
        point = next(iter(experiment.points(next(iter(experiment.readings().values())))))
        for label, make in experiment.policies.items():
            kind = (getattr(make, "func", make), type(point.world), str(point.settings))
            if kind not in seen:
                seen.add(kind)
                simulate({label: make}, point.world, 2, 1, workers=1, **point.settings)
