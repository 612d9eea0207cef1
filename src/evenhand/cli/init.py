"""`evenhand init`: an experiment file to start from."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from evenhand.cli._log_options import add_reading, reading_of
from evenhand.errors import InputError, setting


def add(commands: Any) -> None:
    """Declare the command."""
    command = commands.add_parser(
        "init",
        help="write a commented experiment file",
        description="Write an experiment file with a comment on every key. It runs as it is, on "
        "real lending data that needs no download.",
    )
    command.add_argument(
        "file", nargs="?", type=Path, default=Path("experiment.toml"), metavar="FILE",
        help="default experiment.toml",
    )  # fmt: skip
    command.add_argument(
        "--data",
        type=Path,
        metavar="TABLE",
        help="your table, such as a CSV file: lists its columns",
    )
    add_reading(command, start="with --data: ")
    command.add_argument("--like", metavar="NAME", help="copy a bundled one, such as compas")
    command.add_argument("--force", action="store_true", help="overwrite an existing file")
    command.set_defaults(command=_init)


def _init(options: argparse.Namespace) -> int:
    from evenhand._columns.table_files import a_folder
    from evenhand.experiments import bundled, template

    if options.file.exists() and not options.force:
        raise InputError(f"FILE {options.file} already exists; give another, or --force")
    if options.like and options.data:
        raise InputError("--like and --data are both given; keep one of them")
    if options.data and options.data.is_dir():
        raise a_folder("data", options.data)
    if options.data and not options.data.is_file():
        raise InputError(f"--data is {str(options.data)!r}, but there is no such file")
    reading = reading_of(options)
    if reading.chosen and not options.data:
        raise InputError(f"{setting(next(iter(reading.chosen)))} is for --data; give it as well")
    if options.like:
        text = bundled.copy_of(options.like)
    elif options.data:
        text = template.for_table(options.data, options.file, reading)
    else:
        text = template.example(options.file)
    options.file.parent.mkdir(parents=True, exist_ok=True)
    options.file.write_text(text, encoding="utf-8")
    first = "fill in the lines with a ?, then " if options.data else ""
    sys.stdout.write(f"wrote {options.file}; next: {first}evenhand run {options.file}\n")
    return 0
