"""`evenhand serve`: the decision service."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.cli._log_options import add_reading, reading_of
from evenhand.errors import InputError, setting

if TYPE_CHECKING:
    from evenhand._columns.file_formats import Reading


def add(commands: Any) -> None:
    """Declare the command."""
    command = commands.add_parser(
        "serve",
        help="run the decision service",
        description="Decide over HTTP, record everything in a ledger, and show pages to the people "
        "in charge. Needs the extra serve.",
    )
    command.add_argument(
        "config", nargs="?", type=Path, metavar="CONFIG", help="a TOML file; see --init"
    )
    command.add_argument(
        "--demo", action="store_true",
        help="run on mortgage applications and what the lender decided; nothing is kept",
    )  # fmt: skip
    command.add_argument(
        "--init", type=Path, metavar="TABLE",
        help="write a commented CONFIG from your table, such as a CSV file, and exit",
    )  # fmt: skip
    for name, words in (
        ("group", "the column of groups, or several: sex,age"),
        ("arm", "the column of arms (default: every group is an arm)"),
        ("reward", "the column of rewards, which is not a feature"),
    ):
        command.add_argument(f"--{name}", metavar="COLUMN", help=f"with --init: {words}")
    command.add_argument(
        "--given", action="store_true",
        help="with --init: groups are given with each candidate, so arms have none",
    )  # fmt: skip
    add_reading(command, start="with --init: ")
    command.add_argument("--port", type=int, metavar="N", help="instead of the one in the file")
    command.add_argument(
        "--key", action="append", metavar="NAME=ROLE,ROLE",
        help="make a key, print it and exit; roles: decide, reward, review, read, admin",
    )  # fmt: skip
    command.set_defaults(command=_serve)


def _serve(options: argparse.Namespace) -> int:
    from evenhand import service  # noqa: F401  # says what to install
    from evenhand.service._operator_commands import make_keys, serve

    reading = reading_of(options)
    if reading.chosen and options.init is None:
        raise InputError(f"{setting(next(iter(reading.chosen)))} is for --init; give it as well")
    if options.port is not None:
        from evenhand.service.config import check_port

        check_port("port", options.port)
    if options.demo:
        from evenhand.service._demo import serve_demo

        if options.config is not None or options.init is not None:
            raise InputError("--demo has its own configuration; leave out CONFIG and --init")
        serve_demo(options.port or 8321)
        return 0
    if options.init is not None:
        return _init(options, reading)
    if options.config is None:
        raise InputError("CONFIG is missing; give a TOML file, or try --demo")
    if options.key:
        for line in make_keys(options.config, options.key):
            sys.stdout.write(f"{line}\n")
        return 0
    serve(options.config, options.port)
    return 0


def _init(options: argparse.Namespace, reading: Reading) -> int:
    from evenhand._columns.table_files import a_folder
    from evenhand.service.template import for_table

    path = options.config or Path("service.toml")
    if path.exists():
        raise InputError(f"CONFIG {path} already exists; give another name")
    if options.init.is_dir():
        raise a_folder("init", options.init)
    if not options.init.is_file():
        raise InputError(f"--init is {str(options.init)!r}, but there is no such file")
    columns = (options.group, options.arm, options.reward)
    text = for_table(options.init, path, *columns, given=options.given, reading=reading)
    path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"wrote {path}; check it, then: evenhand serve {path}\n")
    return 0
