"""`evenhand run FILE`: an experiment of your own; and the parts shared with `evenhand paper`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.cli._terminal import check_folder, needs, progress
from evenhand.errors import InputError

if TYPE_CHECKING:
    from evenhand.experiments.model import Experiment

NEEDED = ("rich", "altair", "jinja2", "vl_convert", "pyarrow")  # they are extras
FOLDERS, FILES = ("parts", "tables", "figures"), ("report.html", "run.json")


def add(commands: Any) -> None:
    """Declare the command."""
    command = commands.add_parser(
        "run",
        help="run an experiment from a file and write a report",
        description="Run the experiment that a TOML file describes, draw its figures and write a "
        "report. Finished parts are kept: run it again to continue. `evenhand init` writes a file "
        "to start from. A file can name policies of your own, which are Python code from any path: "
        "such code is run only with --allow-code.",
    )
    command.add_argument("file", metavar="FILE", help="a TOML file, or a name such as compas")
    command.add_argument(
        "--allow-code", action="store_true",
        help="run Python files that FILE names as policies; only if you trust them",
    )  # fmt: skip
    add_options(command, "the file's [output] folder, or NAME-report")
    command.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    prepare("run", options)
    from evenhand.experiments import bundled
    from evenhand.experiments.file import read_experiment

    path = Path(options.file)
    if path.suffix != ".toml" and options.file in bundled.names():
        path = bundled.path_of(options.file)
    elif not path.is_file():
        raise InputError(
            f"FILE is {options.file!r}, but there is no such file; give a TOML file (evenhand "
            f"init writes one) or one of {', '.join(bundled.names())}"
        )
    experiment = read_experiment(path, options.allow_code).with_(options.seeds, options.seed)
    out = options.out or Path(experiment.output.folder or f"{experiment.name}-report")
    return run([experiment], out, experiment.title, options)


def add_options(command: argparse.ArgumentParser, out: str) -> None:
    """Declare the options of every run. Runs can be stopped and resumed."""
    command.set_defaults(resumed=True)
    command.add_argument(
        "--seeds", type=int, metavar="N", help="replications per point, instead of the file's"
    )
    command.add_argument("--seed", type=int, metavar="S", help="the seed of all random numbers")
    command.add_argument("--out", type=Path, metavar="DIR", help=f"default {out}")
    command.add_argument("--data", type=Path, metavar="DIR", help="where the data sets are")
    command.add_argument("--workers", type=int, metavar="N", help="threads (default: all cores)")
    command.add_argument("--dask", metavar="ADDRESS", help="run on the cluster of this scheduler")


def prepare(name: str, options: argparse.Namespace) -> None:
    """Check the options of a run before anything is loaded."""
    from evenhand import _checks

    limits = {"seeds": (1, 10**9), "seed": (0, _checks.LARGEST_SEED), "workers": (1, 10**4)}
    for flag, (least, most) in limits.items():
        value = getattr(options, flag)
        if value is not None:
            _checks.whole(flag, value, least, most)
    if options.data is not None:
        if not options.data.is_dir():
            raise InputError(f"--data is {str(options.data)!r}, which is not a folder")
        os.environ["EVENHAND_DATA"] = str(options.data)
    needs(name, NEEDED)


def run(
    experiments: Sequence[Experiment], out: Path, title: str, options: argparse.Namespace
) -> int:
    """Run the experiments with a progress bar, and print where the report is.

    Errors about the folder or the cluster are reported before anything is compiled.
    """
    check_folder(out, FOLDERS, FILES)
    from evenhand.experiments.run import run_all

    total = sum(
        experiment.rounds(reading)
        for experiment in experiments
        for reading in experiment.readings().values()
    )
    with _cluster(options.dask) as client, progress(total) as tell:
        done = run_all(experiments, out, title, options.workers, client, tell)
    for name, seconds in done.seconds.items():
        sys.stdout.write(f"{name}: {seconds:.1f} s\n")
    sys.stdout.write(f"{done.rounds:,} rounds; open {done.report}\n")
    return 0


@contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """A client of the cluster, connected once for the whole run; None without an address."""
    if address is None:
        yield None
        return
    from evenhand.simulation._workers import connect

    client = connect(address)
    try:
        yield client
    finally:
        client.close()
