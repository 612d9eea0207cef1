"""`evenhand paper`: the paper's experiments and a report."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.cli.run import add_options, prepare, run
from evenhand.errors import InputError

if TYPE_CHECKING:
    from evenhand.experiments.model import Experiment

TITLE = "Group fairness in bandits with biased feedback"


def add(commands: Any) -> None:
    """Declare the command."""
    paper = commands.add_parser(
        "paper",
        help="run the paper's experiments and write a report",
        description="Run the paper's synthetic sweeps, draw every figure with the published "
        "curves and check the paper's claims. PooledGroupFair, which is not in the paper, is "
        "shown beside them. Finished parts are kept: run it again to continue.",
    )
    paper.add_argument("--real", action="store_true", help="also the experiments on real data")
    paper.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="NAME",
        help="only this experiment; may be repeated",
    )
    paper.add_argument(
        "--conventions",
        choices=["AUTHORS_CODE", "PAPER", "both"],
        default="both",
        help="which reading of the paper (default both)",
    )
    add_options(paper, "paper-report")
    paper.set_defaults(command=_paper)


def _paper(options: argparse.Namespace) -> int:
    prepare("paper", options)
    chosen = [experiment.with_(options.seeds, options.seed) for experiment in _chosen(options)]
    if options.conventions != "both":
        chosen = [
            replace(experiment, conventions=(options.conventions,))
            for experiment in chosen
            if options.conventions in experiment.conventions
        ]
    if not chosen:
        raise InputError(f"nothing to run: none of these is run under {options.conventions}")
    from evenhand.experiments._pooled_in_paper import beside

    experiments = [*chosen, *beside(chosen)]
    return run(experiments, options.out or Path("paper-report"), TITLE, options)


def _chosen(options: argparse.Namespace) -> list[Experiment]:
    from evenhand.experiments import bundled
    from evenhand.experiments.file import read_experiment

    if options.sweep:
        paths = [bundled.path_of(name) for name in dict.fromkeys(options.sweep)]
        return [read_experiment(path) for path in paths]
    synthetic = list(bundled.paper_experiments().values())
    return synthetic + (list(bundled.paper_experiments(real=True).values()) if options.real else [])
