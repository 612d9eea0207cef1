"""The tables and figures that a run leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from evenhand import charts
from evenhand._atomic_files import write_whole
from evenhand.experiments._pooled_in_paper import shown
from evenhand.experiments.model import Experiment
from evenhand.metrics import summarise
from evenhand.simulation.results import METRICS


class Figure(NamedTuple):
    """A drawn figure: the stem of its file, what it shows, and its SVG for the report."""

    name: str
    experiment: str
    conventions: str
    shows: str
    published: bool
    svg: str


def write_tables(runs: pd.DataFrame, folder: Path, forms: Sequence[str]) -> None:
    """Write every run, and means with intervals, as CSV and Parquet."""
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
    """Draw two figures per experiment and reading, as in the paper; in PDF, SVG and PNG."""
    figures = []
    for experiment in experiments:
        for reading in experiment.conventions:
            own = shown(experiment, runs)
            own = own[own["conventions"] == reading]
            overlay = _published(experiment, reading)
            for shows, chart in _charts(experiment, own, overlay).items():
                name = f"{experiment.name}-{shows}-{reading}"
                tell("drawing figures")
                paths = charts.save(chart, folder / name, experiment.output.figures)
                drawn = [path for path in paths if path.suffix == ".svg"]
                svg = drawn[0].read_text(encoding="utf-8") if drawn else charts.to_svg(chart)
                figures.append(Figure(name, experiment.name, reading, shows, len(overlay) > 0, svg))
    return figures


def _published(experiment: Experiment, reading: str) -> pd.DataFrame:
    """Published values for this reading; an empty table if there are none."""
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
    if experiment.chart == "share and true regret":
        drawn["regret"] = charts.true_regret_chart(runs, "x", "", experiment.axis)
    else:
        drawn["regret"] = charts.regret_chart(runs, "x", "", experiment.axis, overlay[~is_share])
    return drawn


def _proportional(experiment: Experiment) -> pd.DataFrame:
    """The share at proportional parity, by x."""
    rows = []
    for point in experiment.points(next(iter(experiment.readings().values()))):
        groups = point.world.groups
        size = groups.sizes[groups.index(groups.sensitive)]
        rows.append((point.panel, point.x, size / groups.n_arms))
    return pd.DataFrame(rows, columns=["panel", "x", "share"])
