"""`evenhand run FILE`: an experiment of your own."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from evenhand.cli._experiments import add_options, prepare, run
from evenhand.errors import InputError


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
