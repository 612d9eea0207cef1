"""`evenhand value LOG`: what another policy would have earned in the rounds of a log."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from evenhand.cli._log_options import HELP as LIVE
from evenhand.cli._log_options import add_reading, add_values, as_log, choice_of, marks_of, worth_of
from evenhand.cli._terminal import check_file
from evenhand.errors import InputError

ROLES = ("arm", "reward", "propensity", "group")


def add(commands: Any) -> None:
    """Declare the command."""
    command = commands.add_parser(
        "value",
        help="what another policy would have earned in the rounds of a log",
        description="Estimate from a log of decisions with propensities what another policy would "
        "have earned, overall and per group, with intervals, in words and as JSON. The policy "
        "must not have learned from the same rows.",
    )
    command.add_argument(
        "log", type=Path, metavar="LOG", help=f"a Parquet, CSV, JSON or Excel file, or {LIVE}"
    )
    target = command.add_argument_group("the policy to evaluate, one of these")
    target.add_argument("--policy", type=Path, metavar="FILE", help="a saved policy")
    target.add_argument("--uniform", action="store_true", help="all available arms equally often")
    how = command.add_argument_group("how")
    how.add_argument(
        "--correct",
        action="store_true",
        help="also for rewards minus the bias that --policy learned",
    )
    how.add_argument(
        "--bias-from", type=Path, metavar="FILE", help="the bias that this saved policy learned"
    )
    how.add_argument("--reference", metavar="GROUP", help="for the bias (default: the mean)")
    how.add_argument("--weighting", metavar="auto|pulls|arms", help="for the bias (default auto)")
    how.add_argument("--after", type=int, metavar="ROUND", help="only decisions after this round")
    how.add_argument("--level", type=float, default=0.95, metavar="P", help="default 0.95")
    how.add_argument(
        "--interval", default="normal", metavar="normal|bootstrap", help="default normal"
    )
    others = command.add_argument_group("logs that evenhand did not write")
    for role in ROLES:
        others.add_argument(f"--{role}", metavar="COLUMN")
    others.add_argument(
        "--feature", action="append", metavar="COLUMN", help="a feature; may be repeated"
    )
    others.add_argument(
        "--shared", action="store_true", help="features are those of the round, not of the arm"
    )
    others.add_argument(
        "--groups", type=Path, metavar="FILE",
        help="a table with the columns arm and group, in the policy's order (default: the "
        "policy's groups for arms 0, 1, ..., or else those in the log)",
    )  # fmt: skip
    others.add_argument(
        "--nominal-column",
        action="append",
        metavar="COLUMN",
        help="a feature of numbers that are really categories",
    )
    others.add_argument(
        "--categories", type=int, metavar="N", default=20,
        help="categories kept for each feature; the rest are merged (default 20)",
    )  # fmt: skip
    others.add_argument(
        "--missing", metavar="error|drop|fill", default="error",
        help="what to do about missing values other than rewards (default error); by column: "
        "COLUMN=fill,others=drop",
    )  # fmt: skip
    add_values(others)
    add_reading(others)
    command.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the report as JSON, to a name that ends in .json",
    )
    command.set_defaults(command=_value)


def _value(options: argparse.Namespace) -> int:
    _check(options)
    from evenhand.offpolicy import evaluate, read_logged
    from evenhand.policies import load

    policy = None if options.policy is None else load(options.policy)
    teacher = policy if options.bias_from is None else load(options.bias_from)
    bias = None
    if teacher is not None and (options.correct or options.bias_from is not None):
        bias = _bias_of(teacher, options)
    worth = None if options.reward_values is None else worth_of(options.reward_values)
    marks = marks_of(",".join(options.missing_marks)) if options.missing_marks else ()
    with as_log(options.log) as path:
        log = read_logged(
            path,
            policy,
            after=options.after,
            columns={role: name for role in ROLES if (name := getattr(options, role)) is not None},
            features=options.feature or (),
            shared=options.shared,
            groups=options.groups,
            nominal_columns=options.nominal_column or (),
            categories=options.categories,
            missing=choice_of(options.missing),
            missing_marks=marks,
            reward_values=worth,
            encoding=options.encoding,
            decimal=options.decimal,
            delimiter=options.delimiter,
            sheet=options.sheet,
        )
    report = evaluate(
        log,
        "uniform" if policy is None else policy,
        after=options.after,
        bias=bias,
        level=options.level,
        interval=options.interval,
    )
    if options.out is not None:
        options.out.write_text(report.to_json() + "\n", encoding="utf-8")
    sys.stdout.write(f"{report.to_words()}\n")
    if options.out is not None:
        sys.stdout.write(f"\nread {options.out}\n")
    return 0


def _bias_of(teacher: Any, options: argparse.Namespace) -> Any:
    """The bias that a policy learned.

    It is relative to the mean of the groups unless a reference is given: then a correction moves
    the values of groups relative to each other, and not all of them up or down.
    """
    from evenhand.policies import Policy, PooledGroupFair

    reference = options.reference or "mean"
    if not teacher.groups.changes:
        # The report of `Policy` for all of them: a policy may have one of its own kind.
        weighting = {} if options.weighting is None else {"weighting": options.weighting}
        return Policy.bias(teacher, reference, options.level, **weighting)
    if not isinstance(teacher, PooledGroupFair):
        raise InputError(
            f"{type(teacher).__name__} learns no bias of groups that come with each round; give "
            "--bias-from with a PooledGroupFair"
        )
    if options.weighting is not None:
        raise InputError(
            "--weighting is for groups of arms, and these come with each round; leave it out"
        )
    return teacher.bias(reference, options.level)


def _check(options: argparse.Namespace) -> None:
    """Check the options, as far as possible before anything is loaded."""
    from evenhand import _checks

    if (options.policy is not None) == options.uniform:
        raise InputError("give either --policy FILE or --uniform, the policy to evaluate")
    if options.correct and (options.policy is None or options.bias_from is not None):
        raise InputError("--correct needs --policy, and cannot be combined with --bias-from")
    if not options.correct and options.bias_from is None:
        for flag in ("reference", "weighting"):
            if getattr(options, flag) is not None:
                raise InputError(f"--{flag} is for a bias; give --correct or --bias-from as well")
    _checks.one_of("interval", options.interval, ("normal", "bootstrap"))
    if options.out is not None and options.out.suffix != ".json":
        raise InputError(f"--out is {str(options.out)!r}; allowed is a name that ends in .json")
    if options.out is not None:
        check_file(options.out)
    if options.after is not None:
        _checks.whole("after", options.after, least=0)
