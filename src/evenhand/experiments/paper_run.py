"""The whole of the paper's synthetic half: run the sweeps, draw the figures, write the report."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

import evenhand
from evenhand import charts
from evenhand.conventions import BY_NAME, Conventions
from evenhand.experiments import report
from evenhand.experiments.parts import run_sweep
from evenhand.experiments.sweep import PAPER_FOLDER, Sweep, paper_sweeps
from evenhand.metrics import summarise
from evenhand.simulation import simulate
from evenhand.simulation.results import METRICS


class Figure(NamedTuple):
    """A drawn figure: its file's stem, and its SVG for the report."""

    name: str
    sweep: str
    conventions: str
    svg: str


class Done(NamedTuple):
    """What a run of the paper leaves behind."""

    report: Path
    rounds: int
    seconds: dict[str, float]


def chosen_sweeps(names: Sequence[str], seeds: int | None, seed: int | None) -> list[Sweep]:
    """The sweeps by name, all of them without one."""
    known = paper_sweeps()
    for name in names:
        if name not in known:
            raise ValueError(f"sweep is {name!r}; allowed are {', '.join(known)}")
    return [known[name].with_(seeds, seed) for name in dict.fromkeys(names or known)]


def run_paper(
    sweeps: Sequence[Sweep],
    out: Path,
    conventions: Sequence[Conventions] = tuple(BY_NAME.values()),
    workers: int | None = None,
    client: object = None,
    tell: Callable[[str, int], None] = lambda *_: None,
) -> Done:
    """Run the sweeps under each reading of the paper and write everything to `out`.

    `tell` hears what is going on, and of rounds as they are done.
    """
    seconds: dict[str, float] = {}
    tables, rounds = [], 0
    tell("compiling, for the first time only: about a minute", 0)
    warm_up(sweeps)
    for reading in conventions:
        for sweep in sweeps:
            if reading.name not in sweep.conventions:
                continue
            what = f"{reading.name}: {sweep.title}"
            tell(what, 0)
            table, took = run_sweep(
                sweep,
                reading,
                out / "parts",
                workers,
                client,
                lambda done, what=what: tell(what, done),  # type: ignore[misc]
            )
            tables.append(table)
            seconds[reading.name] = seconds.get(reading.name, 0.0) + took
            rounds += sweep.rounds(reading)
    if not tables:
        raise ValueError("nothing to run: these sweeps are not made under these conventions")
    started = time.perf_counter()
    runs = pd.concat(tables, ignore_index=True)
    write_tables(runs, out / "tables")
    figures = draw_figures(sweeps, runs, out / "figures", lambda what: tell(what, 0))
    seconds["tables and figures"] = time.perf_counter() - started
    facts = report.Facts(rounds, seconds, evenhand.__version__)
    path = report.write(out / "report.html", sweeps, runs, figures, facts)
    (out / "run.json").write_text(
        json.dumps({"rounds": rounds, "seconds": seconds, "version": evenhand.__version__})
    )
    return Done(path, rounds, seconds)


def warm_up(sweeps: Sequence[Sweep]) -> None:
    """Compile every policy of the sweeps on a round or two, apart from what is timed."""
    makers = {name: make for sweep in sweeps for name, make in sweep.makers().items()}
    if sweeps:
        world = next(sweeps[0].points(evenhand.PAPER)).world
        simulate(makers, world, horizon=2, replications=1, workers=1)


def write_tables(runs: pd.DataFrame, folder: Path) -> None:
    """Every run, and means with intervals, as CSV and Parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    long = runs.melt(
        id_vars=["sweep", "conventions", "x", "policy"],
        value_vars=list(METRICS),
        var_name="metric",
    )
    means = summarise(long, ["sweep", "conventions", "x", "policy", "metric"], "value")
    for name, table in (("runs", runs), ("means", means)):
        table.to_csv(folder / f"{name}.csv", index=False)
        table.to_parquet(folder / f"{name}.parquet", index=False)


def draw_figures(
    sweeps: Sequence[Sweep], runs: pd.DataFrame, folder: Path, tell: Callable[[str], None]
) -> list[Figure]:
    """Two figures per sweep and reading, in the paper's form; each as PDF, SVG and PNG."""
    published = pd.read_csv(PAPER_FOLDER / "published.csv", comment="#")
    figures = []
    for sweep in sweeps:
        for reading in sweep.conventions:
            mine = runs[(runs["sweep"] == sweep.name) & (runs["conventions"] == reading)]
            if mine.empty:
                continue
            overlay = published[published["sweep"] == sweep.name]
            if reading != "AUTHORS_CODE":
                overlay = overlay.iloc[:0]
            for kind, chart in _charts(sweep, mine, overlay).items():
                name = f"{sweep.name}-{kind}-{reading}"
                tell(f"drawing {name}")
                charts.save(chart, folder / name)
                svg = (folder / f"{name}.svg").read_text(encoding="utf-8")
                figures.append(Figure(name, sweep.name, reading, svg))
    return figures


def _charts(sweep: Sweep, runs: pd.DataFrame, overlay: pd.DataFrame) -> dict[str, object]:
    if sweep.name == "rate":
        return {"regret": charts.rate_chart(runs)}
    is_share = overlay["metric"] == "share"
    proportional = pd.DataFrame({"x": sweep.values, "share": _proportional(sweep)})
    return {
        "share": charts.share_chart(runs, "x", "", sweep.axis, overlay[is_share], proportional),
        "regret": charts.regret_chart(runs, "x", "", sweep.axis, overlay[~is_share]),
    }


def _proportional(sweep: Sweep) -> list[float]:
    worlds = [point.world for point in sweep.points(evenhand.PAPER)]
    return [world.groups.sizes[0] / world.n_arms for world in worlds]
