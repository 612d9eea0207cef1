"""`evenhand serve`: the decision service."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from evenhand.errors import InputError


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
    command.add_argument("--port", type=int, metavar="N", help="instead of that of the file")
    command.add_argument(
        "--key", action="append", metavar="NAME=ROLE,ROLE",
        help="make a key, print it and end; roles: decide, reward, review, read, admin",
    )  # fmt: skip
    command.set_defaults(command=_serve)


def _serve(options: argparse.Namespace) -> int:
    from evenhand import service  # noqa: F401  # says what to install
    from evenhand.service._starting import make_keys, serve

    if options.config is None:
        raise InputError("CONFIG is missing; give a TOML file")
    if options.key:
        for line in make_keys(options.config, options.key):
            sys.stdout.write(f"{line}\n")
        return 0
    serve(options.config, options.port)
    return 0
