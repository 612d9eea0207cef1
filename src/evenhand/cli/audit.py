"""`evenhand audit LOG`: what the feedback in a log is biased on."""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenhand.cli.progress import needs

NEEDED = ("ibis", "duckdb", "rich", "altair", "vl_convert")
ROLES = (
    "group", "reward", "arm", "propensity", "timestamp", "true-reward", "weight", "cluster",
    "override", "position",
)  # fmt: skip
LISTS = {"feature": "features", "nominal": "nominal", "leave-out": "leave_out"}


def add(commands: Any) -> None:
    """Declare the command."""
    command = commands.add_parser(
        "audit",
        help="audit a log of decisions: bias by group and feature, metrics, drift",
        description="Sum up a log where it is, and report what the feedback is biased on, with "
        "intervals, as words, a page and JSON. Columns are found by the Open Bandit names, or "
        "named here or in a TOML file.",
    )
    command.add_argument(
        "log", metavar="LOG", help="a Parquet or CSV file, a folder, a glob, "
        "duckdb:///FILE::TABLE, postgresql://USER@HOST/DATABASE::TABLE or spark::TABLE",
    )  # fmt: skip
    columns = command.add_argument_group("columns")
    for role in ROLES:
        columns.add_argument(f"--{role}", metavar="COLUMN")
    columns.add_argument(
        "--feature", action="append", metavar="COLUMN", help="may be repeated; default: the rest"
    )
    columns.add_argument(
        "--nominal", action="append", metavar="COLUMN", help="a feature whose numbers are names"
    )
    columns.add_argument(
        "--leave-out", action="append", metavar="COLUMN", help="neither a role nor a feature"
    )
    columns.add_argument(
        "--columns", type=Path, metavar="FILE", help="a TOML file with these as its keys"
    )
    how = command.add_argument_group("how")
    how.add_argument("--reference", metavar="GROUP", help="to compare with (default: the mean)")
    how.add_argument("--level", type=float, default=0.95, metavar="P", help="default 0.95")
    how.add_argument("--weighting", default="pulls", metavar="pulls|arms", help="default pulls")
    how.add_argument(
        "--missing", default="error", metavar="error|drop|fill", help="values (default error)"
    )
    how.add_argument(
        "--errors", default="auto", metavar="auto|classical|robust", help="default auto"
    )
    how.add_argument("--weigh-by-propensity", action="store_true", help="rows count by its inverse")
    how.add_argument("--windows", type=int, metavar="N", help="of time; 0 for none (default: to 8)")
    how.add_argument(
        "--categories", type=int, default=20, metavar="N",
        help="of a feature that are told apart, the rest is merged (default 20)",
    )  # fmt: skip
    how.add_argument("--engine", metavar="duckdb|spark", help="for files (default duckdb)")
    out = command.add_argument_group("output")
    out.add_argument(
        "--out", type=Path, default=Path("audit.html"), metavar="FILE",
        help="the page, with the JSON beside it; a name that ends in .json is the JSON alone "
        "(default audit.html)",
    )  # fmt: skip
    out.add_argument("--title", metavar="WORDS", help="of the page")
    command.set_defaults(command=_audit)


def _audit(options: argparse.Namespace) -> int:
    needs("audit", NEEDED)
    if options.out.suffix not in (".html", ".json"):
        raise ValueError(
            f"--out is {str(options.out)!r}; allowed is a name ending in .html or .json"
        )
    roles, lists = _columns(options)
    from evenhand.audit.running import audit

    with progress() as tell:
        found = audit(
            options.log,
            columns=roles,
            **lists,
            reference=options.reference,
            level=options.level,
            weighting=options.weighting,
            missing=options.missing,
            errors=options.errors,
            weigh_by_propensity=options.weigh_by_propensity,
            windows=options.windows,
            categories=options.categories,
            engine=options.engine,
            title=options.title or f"Audit of {Path(options.log).name}",
            tell=tell,
        )
        tell("writing the report")
        paths = found.save(options.out)
    for text in found.summary:
        sys.stdout.write(f"{text}\n")
    sys.stdout.write(f"\n{found.facts.seconds:.1f} s; open {paths[0]}")
    sys.stdout.write(f", or read {paths[1]}\n" if len(paths) > 1 else "\n")
    return 0


def _columns(options: argparse.Namespace) -> tuple[dict[str, str], dict[str, Any]]:
    """Roles and lists of columns: flags come before the file."""
    given = _read(options.columns) if options.columns is not None else {}
    roles = {role.replace("-", "_"): given.pop(role, None) for role in ROLES}
    lists = {name: given.pop(key, None) for key, name in LISTS.items()}
    if given:
        allowed = ", ".join([*ROLES, *LISTS])
        raise ValueError(
            f"{options.columns}: {next(iter(given))!r} is no key; allowed are {allowed}"
        )
    for role in roles:
        roles[role] = getattr(options, role) or roles[role]
        if roles[role] is not None and not isinstance(roles[role], str):
            raise ValueError(f"{options.columns}: {role} is {roles[role]!r}; allowed is a column")
    for key, name in LISTS.items():
        flag = getattr(options, key.replace("-", "_"))
        lists[name] = flag or lists[name]
        if lists[name] is not None and not isinstance(lists[name], list):
            raise ValueError(f"{options.columns}: {key} is {lists[name]!r}; allowed is a list")
    named = {role: name for role, name in roles.items() if name is not None}
    rest = {name: value or () for name, value in lists.items() if name != "features"}
    return named, {"features": lists["features"], **rest}


def _read(path: Path) -> dict[str, Any]:
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: {error}") from None
    inside = given.get("columns", given)
    keys = {"features": "feature"}
    return {keys.get(key, key.replace("_", "-")): value for key, value in inside.items()}


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """What is being done and for how long, on the error stream."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda words: bar.update(task, description=words)
