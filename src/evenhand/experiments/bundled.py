"""The experiments that come with evenhand: the paper's, synthetic and real, and our own."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from evenhand.errors import InputError, setting
from evenhand.experiments.file import read_experiment
from evenhand.experiments.model import Experiment

FOLDER = Path(str(files("evenhand") / "experiments" / "paper"))
BEYOND = Path(str(files("evenhand") / "experiments" / "beyond"))


def names() -> list[str]:
    """The names of the bundled experiments, which are those of their files.

    Example:
        >>> from evenhand.experiments.bundled import names
        >>> "compas" in names()
        True
    """
    return sorted(_paths())


def _paths() -> dict[str, Path]:
    return {path.stem: path for folder in (FOLDER, BEYOND) for path in folder.glob("*.toml")}


def path_of(name: str) -> Path:
    """The file of a bundled experiment.

    Example:
        >>> from evenhand.experiments.bundled import path_of
        >>> path_of("compas").name
        'compas.toml'
    """
    paths = _paths()
    if name not in paths:
        raise InputError(
            f"{setting('experiment')} is {name!r}; allowed are {', '.join(names())}", value=name
        )
    return paths[name]


def copy_of(name: str) -> str:
    """The text of a bundled experiment, to start a file of your own from.

    What ties it to the paper is left out: its place there, and the published values.

    Example:
        >>> from evenhand.experiments.bundled import copy_of
        >>> copy_of("T").splitlines()[0]
        'title = "Increasing the number of rounds T"'
    """
    text = path_of(name).read_text(encoding="utf-8").partition("\n[published]")[0]
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(("in_paper = ", "order = ")))


class InPaper(NamedTuple):
    """An experiment of the paper: its name here, its place in the paper, and whether data are real.

    Example:
        >>> from evenhand.experiments.bundled import in_paper
        >>> in_paper()[0]
        InPaper(name='T', where='Figures 1a and 2a', real=False)
    """

    name: str
    where: str
    real: bool


def in_paper() -> list[InPaper]:
    """The experiments of the paper, in its order; none of them is read in full.

    Example:
        >>> from evenhand.experiments.bundled import in_paper
        >>> [experiment.name for experiment in in_paper() if experiment.real]
        ['family-income', 'compas']
    """
    contents = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in FOLDER.glob("*.toml")}
    known = sorted(contents.items(), key=lambda item: item[1].get("order", 0))
    return [
        InPaper(name, data["in_paper"], "data" in data)
        for name, data in known
        if "in_paper" in data
    ]


def paper_experiments(real: bool = False) -> dict[str, Experiment]:
    """The seven synthetic sweeps of the paper, in its order, and one for the rate of its theorem.

    Args:
        real: whether to give those on real data instead, which need the data sets.

    Example:
        >>> from evenhand.experiments.bundled import paper_experiments
        >>> list(paper_experiments())
        ['T', 'arms', 'error', 'ratio', 'c', 'd', 'delta', 'rate']
    """
    experiments = [
        read_experiment(path)
        for path in FOLDER.glob("*.toml")
        if ("[data]" in path.read_text(encoding="utf-8")) == real
    ]
    experiments.sort(key=lambda experiment: experiment.order)
    return {experiment.name: experiment for experiment in experiments}


def beyond_experiments() -> dict[str, Experiment]:
    """Experiments beyond the paper: its policy repaired piece by piece, and other worlds.

    Example:
        >>> from evenhand.experiments.bundled import beyond_experiments
        >>> next(iter(beyond_experiments()))
        'ablation'
    """
    experiments = [read_experiment(path) for path in BEYOND.glob("*.toml")]
    experiments.sort(key=lambda experiment: experiment.order)
    return {experiment.name: experiment for experiment in experiments}
