"""What `evenhand paper` and `evenhand run` share: options of a run, and the run itself."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.progress import needs, progress

if TYPE_CHECKING:
    from evenhand.experiments.experiment import Experiment

NEEDED = ("rich", "altair", "vl_convert", "pyarrow")  # they are extras


def add_options(command: argparse.ArgumentParser, out: str) -> None:
    """The options of every run."""
    command.add_argument(
        "--seeds", type=int, metavar="N", help="replications per point, in place of the file's"
    )
    command.add_argument("--seed", type=int, metavar="S", help="of all random numbers")
    command.add_argument("--out", type=Path, metavar="DIR", help=f"default {out}")
    command.add_argument("--data", type=Path, metavar="DIR", help="where the data sets are")
    command.add_argument("--workers", type=int, metavar="N", help="threads (default: all cores)")
    command.add_argument("--dask", metavar="ADDRESS", help="run on the cluster of this scheduler")


def prepare(name: str, options: argparse.Namespace) -> None:
    """Check the options of a run before anything is loaded."""
    from evenhand import _checks

    if options.seeds is not None:
        _checks.whole("--seeds", options.seeds)
    if options.seed is not None:
        _checks.whole("--seed", options.seed, least=0, most=_checks.LARGEST_SEED)
    if options.workers is not None:
        _checks.whole("--workers", options.workers)
    if options.data is not None:
        if not options.data.is_dir():
            raise ValueError(f"--data is {str(options.data)!r}, which is no folder")
        os.environ["EVENHAND_DATA"] = str(options.data)
    needs(name, NEEDED)


def run(
    experiments: Sequence[Experiment], out: Path, title: str, options: argparse.Namespace
) -> int:
    """Run the experiments with a bar, and say where the report is."""
    from evenhand.experiments.running import run_all

    total = sum(
        experiment.rounds(reading)
        for experiment in experiments
        for reading in experiment.readings().values()
    )
    with progress(total) as tell:
        done = run_all(experiments, out, title, options.workers, options.dask, tell)
    for name, seconds in done.seconds.items():
        sys.stdout.write(f"{name}: {seconds:.1f} s\n")
    sys.stdout.write(f"{done.rounds:,} rounds; open {done.report}\n")
    return 0
