"""Run experiments, draw their figures, write tables and the report."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

import evenhand
from evenhand import charts
from evenhand._files import write_whole
from evenhand.errors import InputError
from evenhand.experiments import _report
from evenhand.experiments._checkpoints import run_experiment
from evenhand.experiments._introduction import Facts
from evenhand.experiments.model import Experiment
from evenhand.metrics import summarise
from evenhand.simulation import simulate
from evenhand.simulation.results import METRICS


class Figure(NamedTuple):
    """A drawn figure: its file's stem, what it shows, and its SVG for the report."""

    name: str
    experiment: str
    conventions: str
    shows: str
    published: bool
    svg: str


class Done(NamedTuple):
    """What a run leaves behind."""

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

    `tell` hears what is going on, and of rounds as they are done.
    """
    seconds: dict[str, float] = {}
    tables, rounds = [], 0
    tell("getting the policies ready", 0)
    warm_up(experiments)
    all_names = (name for experiment in experiments for name in experiment.conventions)
    for name in dict.fromkeys(all_names):
        for experiment in experiments:
            if name not in experiment.conventions:
                continue
            reading = experiment.readings()[name]
            what = f"{name}: {experiment.title}"
            tell(what, 0)
            table, took = run_experiment(
                experiment,
                reading,
                out / "parts",
                workers,
                client,
                lambda done, what=what: tell(what, done),  # type: ignore[misc]
            )
            tables.append(table)
            kind = f"{name}, real data" if experiment.is_table else name
            seconds[kind] = seconds.get(kind, 0.0) + took
            rounds += experiment.rounds(reading)
    if not tables:
        raise InputError("nothing to run: these experiments are not made under these conventions")
    started = time.perf_counter()
    runs = pd.concat(tables, ignore_index=True)
    tell("writing tables", 0)
    write_tables(runs, out / "tables", experiments[0].output.tables)
    figures = draw_figures(experiments, runs, out / "figures", lambda what: tell(what, 0))
    seconds["tables and figures"] = time.perf_counter() - started
    facts = Facts(title, rounds, seconds, evenhand.__version__)
    tell("writing the report", 0)
    path = _report.write(out / "report.html", experiments, runs, figures, facts)
    about = {"rounds": rounds, "seconds": seconds, "version": evenhand.__version__}
    write_whole(out / "run.json", json.dumps(about))
    return Done(path, rounds, seconds)


def warm_up(experiments: Sequence[Experiment]) -> None:
    """Compile every policy on a round or two, apart from what is timed."""
    seen = set()
    for experiment in experiments:
        point = next(iter(experiment.points(next(iter(experiment.readings().values())))))
        for label, make in experiment.policies.items():
            kind = (getattr(make, "func", make), type(point.world), str(point.settings))
            if kind not in seen:
                seen.add(kind)
                simulate({label: make}, point.world, 2, 1, workers=1, **point.settings)


def write_tables(runs: pd.DataFrame, folder: Path, forms: Sequence[str]) -> None:
    """Every run, and means with intervals, as CSV and Parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    by = ["experiment", "conventions", "panel", "x", "policy"]
    long = runs.melt(id_vars=by, value_vars=list(METRICS), var_name="metric")
    means = summarise(long.dropna(subset="value"), [*by, "metric"], "value")
    for name, table in (("runs", runs), ("means", means)):
        if "csv" in forms:
            write_whole(folder / f"{name}.csv", table.to_csv(index=False))
        if "parquet" in forms:
            write_whole(folder / f"{name}.parquet", table.to_parquet(index=False))


def draw_figures(
    experiments: Sequence[Experiment],
    runs: pd.DataFrame,
    folder: Path,
    tell: Callable[[str], None],
) -> list[Figure]:
    """Two figures per experiment and reading, in the paper's form; as PDF, SVG and PNG."""
    figures = []
    for experiment in experiments:
        for reading in experiment.conventions:
            mine = runs[(runs["experiment"] == experiment.name) & (runs["conventions"] == reading)]
            overlay = _published(experiment, reading)
            for shows, chart in _charts(experiment, mine, overlay).items():
                name = f"{experiment.name}-{shows}-{reading}"
                tell("drawing figures")
                paths = charts.save(chart, folder / name, experiment.output.figures)
                drawn = [path for path in paths if path.suffix == ".svg"]
                svg = drawn[0].read_text(encoding="utf-8") if drawn else charts.to_svg(chart)
                figures.append(Figure(name, experiment.name, reading, shows, len(overlay) > 0, svg))
    return figures


def _published(experiment: Experiment, reading: str) -> pd.DataFrame:
    """Values to overlay; none where there are none for this reading."""
    columns = ["experiment", "x", "policy", "metric", "value"]
    if experiment.published is None or experiment.published.under != reading:
        return pd.DataFrame(columns=columns)
    table = pd.read_csv(experiment.folder / experiment.published.file, comment="#")
    return table[table["experiment"] == experiment.name]


def _charts(experiment: Experiment, runs: pd.DataFrame, overlay: pd.DataFrame) -> dict[str, Any]:
    if experiment.chart == "rate":
        return {"regret": charts.rate_chart(runs)}
    is_share = overlay["metric"] == "share"
    drawn: dict[str, Any] = {}
    if runs["share"].notna().any():
        drawn["share"] = charts.share_chart(
            runs, "x", "", experiment.axis, overlay[is_share], _proportional(experiment)
        )
    drawn["regret"] = charts.regret_chart(runs, "x", "", experiment.axis, overlay[~is_share])
    return drawn


def _proportional(experiment: Experiment) -> pd.DataFrame:
    """The share that proportional parity asks for, by x."""
    rows = []
    for point in experiment.points(next(iter(experiment.readings().values()))):
        groups = point.world.groups
        size = groups.sizes[groups.index(groups.sensitive)]
        rows.append((point.panel, point.x, size / groups.n_arms))
    return pd.DataFrame(rows, columns=["panel", "x", "share"])
