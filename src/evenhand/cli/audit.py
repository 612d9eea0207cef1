"""`evenhand audit LOG`: what the feedback in a log is biased on."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand._svg import start_beside
from evenhand.cli._columns_file import ColumnsFile, named
from evenhand.cli._log_options import HELP as LIVE
from evenhand.cli._log_options import add_reading, add_values, as_log, choice_of, marks_of, worth_of
from evenhand.cli._terminal import INTERRUPTED, check_file, needs, steps
from evenhand.errors import InputError

if TYPE_CHECKING:
    from evenhand.audit._report.result import Audit

NEEDED = ("ibis", "duckdb", "rich", "altair", "jinja2", "vl_convert")
ROLES = (
    "group", "reward", "arm", "propensity", "timestamp", "true-reward", "weight", "count",
    "cluster", "override", "position",
)  # fmt: skip
SEVERAL = ("group",)  # roles that more than one column may have
HELP = {
    "group": "may be repeated: compared by each column, and by their intersections",
    "weight": "how much a row counts, any number above 0",
    "count": "how many people a row stands for, a whole number, 0 included",
    "cluster": "rows with the same value belong together",
}
LISTS = {"feature": "features", "nominal_column": "nominal_columns", "leave_out": "leave_out"}
VALUES = ("reward_values", "missing_marks", "group_probability")
SETTINGS = (
    "reference", "level", "weighting", "missing", "errors", "windows", "categories", "title",
    "unfavourable", "logistic", "encoding", "decimal", "delimiter", "sheet",
)  # fmt: skip
ALLOWED = (*map(named, ROLES), *LISTS.values(), *VALUES, *SETTINGS)


def add(commands: Any) -> None:
    """Declare the command."""
    command = commands.add_parser(
        "audit",
        help="audit a log of decisions: bias by group and feature, metrics, drift",
        description="Summarise a log in place, and report what the feedback is biased on, with "
        "intervals, in words, as a page and JSON. Columns are found by the Open Bandit names, or "
        "named here or in a TOML file.",
    )
    command.add_argument(
        "log", metavar="LOG", help="a Parquet, CSV, JSON or Excel file, a folder, a glob, "
        "duckdb:///FILE::TABLE, postgresql://USER@HOST/DATABASE::TABLE, spark::TABLE, or "
        f"{LIVE}",
    )  # fmt: skip
    columns = command.add_argument_group("columns")
    for role in ROLES:
        again = {"action": "append"} if role in SEVERAL else {}
        columns.add_argument(f"--{role}", metavar="COLUMN", help=HELP.get(role), **again)
    columns.add_argument(
        "--feature", action="append", metavar="COLUMN", help="may be repeated (default: the rest)"
    )
    columns.add_argument(
        "--nominal-column", action="append", metavar="COLUMN",
        help="a feature of numbers that are really categories",
    )  # fmt: skip
    columns.add_argument(
        "--leave-out", action="append", metavar="COLUMN", help="neither a role nor a feature"
    )
    columns.add_argument(
        "--group-probability", action="append", metavar="GROUP=COLUMN",
        help="the column with the probability of a group; repeated, once for every group",
    )  # fmt: skip
    add_values(columns)
    columns.add_argument(
        "--columns", type=Path, metavar="FILE", help="a TOML file with these as its keys"
    )
    how = command.add_argument_group("how")
    how.add_argument(
        "--reference", action="append", metavar="GROUP",
        help="the group to compare with, or mean (default: the largest); COLUMN=GROUP for several",
    )  # fmt: skip
    how.add_argument("--level", type=float, metavar="P", help="default 0.95")
    how.add_argument("--weighting", metavar="auto|pulls|arms", help="default auto")
    how.add_argument(
        "--missing",
        metavar="error|drop|fill",
        help="what to do about missing values (default error); by column: COLUMN=fill,others=drop",
    )
    how.add_argument("--errors", metavar="auto|classical|robust", help="default auto")
    how.add_argument(
        "--weigh-by-propensity", action="store_true", help="weight rows by their inverse propensity"
    )
    how.add_argument(
        "--windows", type=int, metavar="N", help="time windows; 0 for none (default: up to 8)"
    )
    how.add_argument(
        "--categories", type=int, metavar="N",
        help="categories kept for each feature; the rest are merged (default 20)",
    )  # fmt: skip
    how.add_argument(
        "--unfavourable", action="store_const", const=True,
        help="a higher reward is worse for people, such as denied, default, arrest",
    )  # fmt: skip
    how.add_argument(
        "--no-logistic", dest="logistic", action="store_const", const=False,
        help="no logistic models beside straight lines where rewards are 0 and 1",
    )  # fmt: skip
    how.add_argument("--engine", metavar="duckdb|spark", help="for files (default duckdb)")
    files = command.add_argument_group("files")
    add_reading(files)
    out = command.add_argument_group("output")
    out.add_argument(
        "--out", type=Path, default=Path("audit.html"), metavar="FILE",
        help="the page, as HTML or PDF by its ending, with the JSON next to it; a name that ends "
        "in .json gives the JSON alone (default audit.html)",
    )  # fmt: skip
    out.add_argument("--title", metavar="WORDS", help="the title of the page")
    command.set_defaults(command=_audit)


def _audit(options: argparse.Namespace) -> int:
    needs("audit", NEEDED)
    if options.out.suffix not in (".html", ".pdf", ".json"):
        raise InputError(
            f"--out is {str(options.out)!r}; allowed is a name ending in .html, .pdf or .json"
        )
    if options.out.suffix == ".pdf":  # before the log is read
        needs("audit --out FILE.pdf", ["typst"], "pdf")
    _check_folder(options.out)
    check_file(options.out)
    check_file(options.out.with_suffix(".json"))
    if options.out.suffix != ".json":
        start_beside()
    file = None if options.columns is None else ColumnsFile(options.columns, ALLOWED, SETTINGS)
    try:
        report, paths = _report(options, _named(options, {} if file is None else file.given))
    except InputError as error:
        placed = None if file is None or _is_flag(options, error) else file.placed(error)
        if placed is None:
            raise
        raise placed from error
    except KeyboardInterrupt:
        sys.stderr.write("\nevenhand: stopped; no report was written\n")
        return INTERRUPTED
    or_json = f", or read {paths[1]}" if len(paths) > 1 else ""
    summary = f"{report.facts.label} in {report.facts.seconds:.1f} s"
    _say([*report.summary, "", f"{summary}; open {paths[0]}{or_json}"])
    return 0


def _is_flag(options: argparse.Namespace, error: InputError) -> bool:
    """Whether an error is about a setting that was given as a flag, which wins over the file."""
    name = (error.parameter or "").partition("[")[0]
    flags = {named(flag): value for flag, value in vars(options).items()}
    return bool(flags.get(name))


def _check_folder(out: Path) -> None:
    """One new folder may be made, but not several in a path: that is a typo."""
    folder = out.parent
    if folder.exists() and not folder.is_dir():
        raise InputError(
            f"--out is {str(out)!r}, and {str(folder)!r} is not a folder; name another"
        )
    if not folder.exists() and not folder.parent.is_dir():
        raise InputError(
            f"--out is {str(out)!r}, and there is no folder {str(folder.parent)!r}; make it, or "
            "correct the path"
        )


def _say(lines: list[str]) -> None:
    try:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
    except BrokenPipeError:
        # `| head` has read enough. At exit, Python would try to write the rest again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(options: argparse.Namespace, named: dict[str, Any]) -> tuple[Audit, list[Path]]:
    from evenhand.audit._input.passwords import without_password
    from evenhand.audit.api import audit

    with steps() as (tell, progress), as_log(options.log) as log:
        report = audit(
            log,
            **{"title": f"Audit of {Path(without_password(options.log)).name}", **named},
            weigh_by_propensity=options.weigh_by_propensity,
            engine=options.engine,
            tell=tell,
            progress=progress,
        )
        tell("writing the report")
        return report, report.save(options.out)


def _named(options: argparse.Namespace, given: dict[str, Any]) -> dict[str, Any]:
    """Roles, lists of columns, what values mean, and settings: flags win over the file."""
    roles = {named(role): given.get(named(role)) for role in ROLES}
    for role in roles:
        flag = getattr(options, role)
        single = flag[0] if isinstance(flag, list) and len(flag) == 1 else flag
        roles[role] = single or roles[role]
    lists = {name: getattr(options, flag) or given.get(name) for flag, name in LISTS.items()}
    group = roles["group"]
    several = isinstance(group, list) or "," in str(group)
    if options.reference is not None and len(options.reference) > 1 and not several:
        first, second = options.reference[:2]
        raise InputError(
            f"--reference is given twice, as {first!r} and {second!r}; keep one of them"
        )
    columns = {role: name for role, name in roles.items() if name is not None}
    rest = {name: () if value is None else value for name, value in lists.items()}
    rest["features"] = lists["features"]
    return {"columns": columns, **rest, **_values(options, given), **_settings(options, given)}


def _settings(options: argparse.Namespace, given: dict[str, Any]) -> dict[str, Any]:
    """The settings that are given; the others are left to `evenhand.audit`."""
    flags = {key: getattr(options, key) for key in SETTINGS}
    flags["reference"] = None if options.reference is None else ",".join(options.reference)
    flags["missing"] = None if options.missing is None else choice_of(options.missing)
    chosen = {key: given.get(key) if flag is None else flag for key, flag in flags.items()}
    return {key: value for key, value in chosen.items() if value is not None}


def _values(options: argparse.Namespace, given: dict[str, Any]) -> dict[str, Any]:
    """What the values of columns mean."""
    worth, marks = given.get("reward_values"), given.get("missing_marks")
    if options.reward_values is not None:
        worth = worth_of(options.reward_values)
    if options.missing_marks is not None:
        marks = marks_of(",".join(options.missing_marks))
    chances = given.get("group_probability")
    if options.group_probability is not None:
        chances = _probabilities(options.group_probability)
    return {
        "reward_values": worth,
        "missing_marks": () if marks is None else marks,
        "group_probability": chances,
    }


def _probabilities(given: list[str]) -> dict[str, str]:
    """The columns of groups, from GROUP=COLUMN,GROUP=COLUMN, or one of them at a time."""
    pairs = [part.partition("=") for text in given for part in text.split(",")]
    columns = {group.strip(): column.strip() for group, _, column in pairs}
    if len(columns) < len(pairs) or not all(group and column for group, column in columns.items()):
        raise InputError(
            f"--group-probability is {' '.join(given)!r}; allowed is GROUP=COLUMN, once for every "
            "group, such as black=p_black"
        )
    return columns
