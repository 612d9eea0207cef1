"""`evenhand data`: the real data sets, where they are and what to know about them."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

WIDEST = 80


def add(commands: Any) -> None:
    """Declare the command."""
    data = commands.add_parser(
        "data",
        help="list, fetch and describe the real data sets",
        description="The real data sets: where they are, and what to know before using them.",
    )
    tasks = data.add_subparsers(dest="task", required=True, metavar="TASK")
    listed = tasks.add_parser("list", help="the sets and where they are")
    fetched = tasks.add_parser("fetch", help="download sets, and print where they are")
    fetched.add_argument("names", nargs="+", metavar="NAME", help="the name of a set, or all")
    described = tasks.add_parser("describe", help="a set's data card, and its groups if fetched")
    described.add_argument("set", metavar="NAME", help="the name of a set")
    for task, command in ((listed, _list), (fetched, _fetch), (described, _describe)):
        task.add_argument(
            "--folder",
            type=Path,
            metavar="DIR",
            help="where files are kept (default: EVENHAND_DATA, or else the cache)",
        )
        task.set_defaults(command=command)


def _list(options: argparse.Namespace) -> int:
    from evenhand import datasets

    rows = [("name", "rows x columns", "sensitive")]
    for name in datasets.names():
        card = datasets.card(name)
        size = f"{card.rows:,} x {card.columns}"
        rows.append((name, size, f"{card.attribute} = {card.sensitive}"))
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    for name, size, sensitive in rows:
        sys.stdout.write(f"{name:<{widths[0]}}  {size:<{widths[1]}}  {sensitive}\n")
        if name in datasets.names():
            # On its own line: paths are long.
            sys.stdout.write(f"{'':<{widths[0]}}  {_where(name, options.folder)}\n")
    return 0


def _where(name: str, folder: Path | None) -> str:
    from evenhand.datasets import _checked_files as files
    from evenhand.datasets import find

    try:
        path = find(name, folder)
    except files.WrongFile:
        return f"the wrong file: evenhand data fetch {name} says more"
    if name == files.PACKAGED:
        return f"in the package {files.PACKAGE}" if path else files.MISSING
    return f"here: {path}" if path else "not fetched"


def _fetch(options: argparse.Namespace) -> int:
    from evenhand import _checks, datasets

    names = datasets.names()
    for name in options.names:
        _checks.one_of("NAME", name, (*names, "all"))
    wanted = names if "all" in options.names else dict.fromkeys(options.names)
    for name in wanted:
        path = datasets.fetch(name, options.folder, progress=True)
        sys.stdout.write(f"{path}\n")
    return 0


def _describe(options: argparse.Namespace) -> int:
    from evenhand import _checks, datasets

    name = _checks.one_of("NAME", options.set, datasets.names())
    card = datasets.card(name)
    width = min(WIDEST, shutil.get_terminal_size().columns)
    sys.stdout.write(card.to_text(width))
    if datasets.find(name, options.folder) is None:
        sys.stdout.write(f"\nNot fetched yet: evenhand data fetch {name}\n")
        return 0
    table = datasets.load(name, options.folder)
    groups = table.groupby(card.attribute)[card.reward].agg(["size", "mean"])
    label = max(len(str(group)) for group in [card.attribute, *groups.index])
    sys.stdout.write(f"\n{card.attribute:<{label}}  {'rows':>7}  mean {card.reward}\n")
    for row in groups.itertuples():
        sys.stdout.write(f"{row.Index:<{label}}  {row.size:>7,}  {row.mean:,.3f}\n")
    return 0
