"""`evenhand value LOG`: what another policy would have earned in the rounds of a log."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.cli._terminal import check_file

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.events.header import About
    from evenhand.groups import Groups
    from evenhand.offpolicy import Logged
    from evenhand.policies import Policy

ROLES = ("arm", "reward", "propensity", "group")
OF_OTHERS = (*ROLES, "feature", "shared", "groups")
ASK_LATER = "ask about later ones with --after ROUND, or give --after 0 if it has seen none"


def add(commands: Any) -> None:
    """Declare the command."""
    command = commands.add_parser(
        "value",
        help="what another policy would have earned in the rounds of a log",
        description="Ask a log of decisions with propensities what another policy would have "
        "earned in its place, overall and per group, with intervals, in words and as JSON. The "
        "policy must not have learned from the same rows.",
    )
    command.add_argument("log", type=Path, metavar="LOG", help="a Parquet or CSV file")
    target = command.add_argument_group("the policy to ask about, one of these")
    target.add_argument("--policy", type=Path, metavar="FILE", help="a saved policy")
    target.add_argument("--uniform", action="store_true", help="all available arms alike")
    how = command.add_argument_group("how")
    how.add_argument(
        "--correct", action="store_true", help="also in reward less the bias that --policy learned"
    )
    how.add_argument(
        "--bias-from", type=Path, metavar="FILE", help="the bias that this saved policy learned"
    )
    how.add_argument("--reference", metavar="GROUP", help="of the bias (default: the mean)")
    how.add_argument("--weighting", metavar="auto|pulls|arms", help="of the bias (default auto)")
    how.add_argument("--after", type=int, metavar="ROUND", help="only decisions after this round")
    how.add_argument("--level", type=float, default=0.95, metavar="P", help="default 0.95")
    how.add_argument(
        "--interval", default="normal", metavar="normal|bootstrap", help="default normal"
    )
    others = command.add_argument_group("logs that evenhand did not write")
    for role in ROLES:
        others.add_argument(f"--{role}", metavar="COLUMN")
    others.add_argument(
        "--feature", action="append", metavar="COLUMN", help="of the context; may be repeated"
    )
    others.add_argument(
        "--shared", action="store_true", help="features are those of the round, not of the arm"
    )
    others.add_argument(
        "--groups", type=Path, metavar="FILE",
        help="a CSV file with the columns arm and group, in the policy's order (default: the "
        "policy's groups for arms 0, 1, ..., or else read off the log)",
    )  # fmt: skip
    command.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the report as JSON, to a name that ends in .json",
    )
    command.set_defaults(command=_value)


def _value(options: argparse.Namespace) -> int:
    _check(options)
    from evenhand.offpolicy import evaluate
    from evenhand.policies import load

    policy = None if options.policy is None else load(options.policy)
    teacher = policy if options.bias_from is None else load(options.bias_from)
    bias = None
    if teacher is not None and (options.correct or options.bias_from is not None):
        weighting = {} if options.weighting is None else {"weighting": options.weighting}
        # About the mean of the groups, unless said: then a correction moves the values of groups
        # against each other, and not all of them up or down.
        bias = teacher.bias(options.reference or "mean", options.level, **weighting)
    report = evaluate(
        _read(options, policy),
        "uniform" if policy is None else policy,
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


def _check(options: argparse.Namespace) -> None:
    """What can be told before anything is loaded."""
    from evenhand import _checks

    if (options.policy is not None) == options.uniform:
        raise ValueError("give --policy FILE or --uniform, the policy to ask about; one of them")
    if options.correct and (options.policy is None or options.bias_from is not None):
        raise ValueError("--correct is for --policy and without --bias-from; give one of them")
    if not options.correct and options.bias_from is None:
        for flag in ("reference", "weighting"):
            if getattr(options, flag) is not None:
                raise ValueError(f"--{flag} is for a bias; give --correct or --bias-from as well")
    _checks.one_of("--interval", options.interval, ("normal", "bootstrap"))
    if options.out is not None and options.out.suffix != ".json":
        raise ValueError(f"--out is {str(options.out)!r}; allowed is a name that ends in .json")
    if options.out is not None:
        check_file(options.out)
    if options.after is not None:
        _checks.whole("--after", options.after, least=0)


def _read(options: argparse.Namespace, policy: Policy | None) -> Logged:
    """The decisions of the log."""
    from evenhand.events.read import labelled, read_whole
    from evenhand.events.schema import NAMES
    from evenhand.events.tables import log_path
    from evenhand.offpolicy import Logged
    from evenhand.policies.saving import to_dict

    named = {role: getattr(options, role) for role in ROLES if getattr(options, role) is not None}
    found = read_whole(log_path(options.log), named or None)
    if found is None:
        raise ValueError(f"LOG is {str(options.log)!r}, where there is no log")
    about, frame = found.about, _later(found.frame, options.after)
    if about is None:
        return _of_others(options, policy, frame, named)
    wrong = [flag for flag in OF_OTHERS if getattr(options, flag)]
    if wrong:
        raise ValueError(
            f"--{wrong[0]} is for logs of others; {options.log} says of itself what its columns are"
        )
    if policy is not None:
        _fits(policy, about.labels, len(about.features), about.candidates)
        # As the log found it, a policy has seen none of its rows.
        first = to_dict(policy)["arms"] == about.policy["arms"]
        if not (_warn_if_it_ended_here(about, policy) or first or options.after is not None):
            learned = frame[NAMES["reward"]].notna()  # also what humans chose, and history
            _warn_if_it_may_have_seen(policy, frame[NAMES["arm"]][learned], ASK_LATER)
    return Logged.from_log(labelled(frame, about))


def _later(frame: pd.DataFrame, after: int | None) -> pd.DataFrame:
    if after is None:
        return frame
    if "round" not in frame:
        raise ValueError(f"--after is {after}, and the log has no column round")
    kept = frame[(frame["round"] > after).fillna(False).astype(bool)]
    if kept.empty:
        raise ValueError(f"--after is {after}; the log has rounds up to {frame['round'].max()}")
    return kept


def _fits(policy: Policy, labels: list[str], n_features: int, candidates: bool) -> None:
    if list(policy.groups.labels) != list(labels):
        raise ValueError(
            f"--policy has {policy.n_arms} arms in groups {', '.join(policy.groups.labels)}; the "
            f"log has {len(labels)} in {', '.join(labels)}: allowed is a policy over the same arms"
        )
    if policy.n_features != n_features:
        raise ValueError(f"--policy has {policy.n_features} features; the log has {n_features}")
    if not candidates:
        raise ValueError(
            "the log has the contexts of chosen arms only, so a policy cannot say what it would "
            "do; log with eh.log_to(..., candidates=True), or ask about --uniform"
        )


def _warn_if_it_ended_here(about: About, policy: Policy) -> bool:
    """The policy as it was when the log was closed has learned from all of its rows."""
    from evenhand.recording._replay import checksum

    ended = about.state and about.state["learned"] and about.state["sha256"] == checksum(policy)
    if ended:
        warnings.warn(
            "--policy is in the state in which this log ended: it has learned from the rows that "
            "judge it, which flatters it; ask rows that it has not seen",
            stacklevel=2,
        )
    return bool(ended)


def _warn_if_it_may_have_seen(policy: Policy, arms: Any, remedy: str) -> None:
    """Warn if the log has enough rewards of every arm to be all that the policy learned from.

    A policy does not remember rows, only how many there were of each arm.
    """
    import numpy as np

    counts = policy.counts
    there = np.bincount(np.asarray(arms, dtype=np.int64), minlength=policy.n_arms)
    if counts.any() and (counts <= there).all():
        warnings.warn(
            "--policy may have learned from rows of this log: of every arm the log has at least as "
            f"many rewards as the policy has observations ({counts.sum():,} in all); rows that it "
            f"has seen flatter it: {remedy}",
            stacklevel=2,
        )


# Logs of others ---------------------------------------------------------------------------------


def _of_others(
    options: argparse.Namespace, policy: Policy | None, frame: pd.DataFrame, named: dict[str, str]
) -> Logged:
    import pandas as pd

    from evenhand.events.columns import find_roles
    from evenhand.offpolicy import Logged

    roles = find_roles([str(name) for name in frame], named, ("arm", "reward", "propensity"))
    arms, groups = _arms(options, policy, frame, roles)
    features = options.feature or []
    if policy is not None:
        if not (features and options.shared):
            raise ValueError(
                f"--policy needs the context of the round: give --feature COLUMN for each of its "
                f"{policy.n_features} features, and --shared, if all arms have the same"
            )
        _fits(policy, list(groups.labels), len(features), candidates=True)
    log = Logged.from_frame(
        frame,
        groups,
        features=features,
        shared=options.shared,
        arm=roles["arm"],
        reward=roles["reward"],
        propensity=roles["propensity"],
        arm_names=arms,
    )
    if "group" in roles:
        _same_groups(log, frame[roles["group"]])
    if policy is not None and options.after is None:
        remedy = ASK_LATER if "round" in frame else "ask rows that it has not seen"
        _warn_if_it_may_have_seen(policy, log.arms[~pd.isna(log.rewards)], remedy)
    return log


def _same_groups(log: Logged, column: pd.Series) -> None:
    for row, (arm, group) in enumerate(zip(log.arms, column, strict=True)):
        if log.groups.labels[arm] != str(group):
            raise ValueError(
                f"{column.name} is {str(group)!r} in decision {row + 1}, of an arm in group "
                f"{log.groups.labels[arm]!r}; allowed is the group of the arm: name another column "
                "with --group, or give --groups FILE"
            )


def _arms(
    options: argparse.Namespace, policy: Policy | None, frame: pd.DataFrame, roles: dict[str, str]
) -> tuple[list[str] | None, Groups]:
    """What the arms are called, None if by their numbers, and their groups."""
    import pandas as pd

    from evenhand.groups import Groups

    if options.groups is not None:
        table = pd.read_csv(options.groups, dtype=str, keep_default_na=False)
        if not {"arm", "group"} <= set(table.columns):
            raise ValueError(
                f"--groups is {str(options.groups)!r}, which has {', '.join(map(str, table))}; "
                "allowed is a CSV file with the columns arm and group"
            )
        return table["arm"].to_list(), Groups(table["group"].to_list())
    if policy is not None:
        if not pd.api.types.is_integer_dtype(frame[roles["arm"]].dtype):
            raise ValueError(
                f"{roles['arm']} has names; give --groups FILE with the arms in the policy's order"
            )
        return None, policy.groups
    if "group" not in roles:
        raise ValueError("no column is the group; name it with --group COLUMN, or give --groups")
    return _read_off(frame, roles["arm"], roles["group"])


def _read_off(frame: pd.DataFrame, arm: str, group: str) -> tuple[list[str], Groups]:
    """The groups of the arms in a log, if each has one."""
    from evenhand.groups import Groups

    pairs = frame[[arm, group]].drop_duplicates().sort_values(arm, kind="stable")
    twice = pairs[arm].duplicated()
    if twice.any():
        name = pairs[arm][twice].iloc[0]
        both = ", ".join(map(str, pairs[group][pairs[arm] == name]))
        raise ValueError(
            f"arm {name} is in groups {both}; allowed is one group per arm: name another column "
            "with --arm or --group, or give --groups FILE"
        )
    return [str(name) for name in pairs[arm]], Groups(pairs[group].to_list())
