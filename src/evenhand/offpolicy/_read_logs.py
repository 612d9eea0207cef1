"""Logs as files: those that evenhand wrote, and other logs with their own columns."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand import _checks
from evenhand._columns.buckets import group_labels
from evenhand._columns.features import CATEGORIES
from evenhand._columns.file_formats import Reading, form_of
from evenhand._columns.missing import DEFAULT, Choice
from evenhand._columns.missing_marks import Given, Marks
from evenhand._columns.rewards import numbers_for, observed_rewards
from evenhand._columns.table_files import a_folder, read_table
from evenhand._columns.words import shown, word
from evenhand.errors import DataError, InputError, blank, entries_of, in_python, setting
from evenhand.events._candidates import CONTEXTS
from evenhand.events._formats import FORMATS
from evenhand.events._header import About
from evenhand.events._read import Whole, labelled, read_whole, refuse_for_own
from evenhand.events._schema import NAMES, checked
from evenhand.events._tables import log_path
from evenhand.events.columns import ROLES, find_roles, named_roles
from evenhand.groups import Groups
from evenhand.offpolicy._features import with_contexts
from evenhand.offpolicy._seen_warning import Origin, rewards_by_arm
from evenhand.offpolicy._targets import check_fit
from evenhand.offpolicy.logged import Logged

NEEDED = ("arm", "reward", "propensity")
FILE, COLUMN = blank("FILE"), blank("COLUMN")


def read_own(path: str | Path, after: int | None) -> Logged:
    """The decisions of a file that evenhand wrote; other files are refused."""
    whole = read_whole(log_path(path))
    if whole is None or whole.about is None:
        return Logged.from_log(path)  # which says what is wrong
    return of_own(later(whole.frame, after), whole.about)


def of_own(frame: pd.DataFrame, about: About) -> Logged:
    """The decisions of a log that evenhand wrote, with the header of the log."""
    log = Logged.from_log(labelled(frame, about))
    n_arms = log.groups.n_arms
    learned = rewards_by_arm(frame[NAMES["arm"]], frame[NAMES["reward"]], n_arms)
    return replace(log, origin=Origin(about, learned, rounds=True))


def later(frame: pd.DataFrame, after: int | None) -> pd.DataFrame:
    """The rows after a round; all rows if None."""
    if after is None:
        return frame
    after = _checks.whole("after", after, least=0)
    if "round" not in frame:
        raise InputError(f"{setting('after')} is {after}, and the log has no column round")
    rows = frame[(frame["round"] > after).fillna(False).astype(bool)]
    if rows.empty:
        raise InputError(
            f"{setting('after')} is {after}; the log has rounds up to {frame['round'].max()}",
            value=after,
        )
    return rows


@entries_of("columns", ROLES)  # which are flags of their own on the command line
def read_logged(
    log: str | Path,
    target: Any = None,
    *,
    after: int | None = None,
    columns: Mapping[str, str] | None = None,
    features: Sequence[str] = (),
    shared: bool = False,
    groups: str | Path | None = None,
    nominal_columns: Collection[str] = (),
    categories: int = CATEGORIES,
    missing: Choice = DEFAULT,
    missing_marks: Given = (),
    reward_values: Mapping[Any, float] | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
) -> Logged:
    """The decisions of a file, on which to evaluate a policy.

    Args:
        log: a Parquet, CSV, JSON (lines, or an array of objects) or Excel file. Logs that evenhand
            wrote are Parquet or CSV; other logs are read like any table, as by `TableWorld`.
        target: the policy to evaluate, if it is a policy. It has the groups of arms that another
            log gives by their numbers.
        after: only decisions after this round.
        columns: for other logs, the columns of "arm", "reward", "propensity" and "group".
        features: for other logs, the columns of the context. Categories become features as in
            `TableWorld`; with a policy all must be numbers, as it was trained on.
        shared: for other logs, whether these are the same for all arms of a round.
        groups: for other logs, a table with the columns arm and group, in the policy's order.
            Unless given, they are the policy's, or else those in the log.
        nominal_columns: for other logs, columns of numbers that are really categories.
        categories: for other logs, how many categories of a column get a feature.
        missing: for other logs, what to do about missing values other than rewards: "error", "drop"
            or "fill", or one of them by column, as in `Logged.from_frame`.
        missing_marks: for other logs, marks of missing values.
        reward_values: for other logs, numbers for a reward in words.
        encoding: of other logs in CSV, such as "latin-1"; UTF-8 unless given.
        decimal: "," for other logs in CSV that write 1,5 for one and a half.
        delimiter: between the columns of other logs in CSV; detected unless given.
        sheet: of an Excel file; the only one that holds anything unless given.

    Example:
        >>> import pathlib, tempfile, pandas as pd, evenhand as eh
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
        >>> rows = {"arm": ["a", "b"], "reward": [1, 0], "propensity": [0.5, 0.5]}
        >>> pd.DataFrame({**rows, "group": ["F", "M"]}).to_csv(path, index=False)
        >>> eh.offpolicy.read_logged(path).groups.labels
        ('F', 'M')
    """
    if not isinstance(log, (str, os.PathLike)):
        raise InputError(
            f"{setting('log')} is {_checks.kind(log)}; allowed is the path of a Parquet, CSV, JSON "
            f"or Excel file{in_python(': a frame is for Logged.from_frame')}",
            value=log,
        )
    named, features = named_roles(columns), list(_checks.column_names("features", features))
    nominal_columns = _checks.column_names("nominal_columns", nominal_columns)
    if "group" in named:
        named["group"] = _checks.column_name("group", named["group"])
    reading = Reading(encoding, decimal, delimiter, sheet)
    given: dict[str, Any] = {**named, "features": features, "shared": shared, "groups": groups}
    given |= {"nominal_columns": nominal_columns, "categories": categories != CATEGORIES}
    given |= {"reward_values": reward_values, "missing_marks": missing_marks}
    given |= {"missing": missing != DEFAULT, **reading.chosen}
    marks, worth = Marks.of(missing_marks), numbers_for(reward_values)

    def of_others(path: Path) -> pd.DataFrame:
        return _read_table(path, reading, named, marks, worth, list(nominal_columns))

    path = Path(log)
    if path.is_dir():
        raise a_folder("log", path)
    if path.suffix in FORMATS:
        whole = read_whole(log_path(path, "log"), others=of_others)
    else:
        whole = Whole(None, of_others(path)) if path.is_file() else None
    if whole is None:
        raise InputError(f"{setting('log')} is {str(log)!r}, but there is no such log", value=log)
    refuse_for_own(whole, log, **given)
    if whole.about is not None:
        return of_own(later(whole.frame, after), whole.about)
    frame = whole.frame
    roles = find_roles([str(name) for name in frame], named, NEEDED)
    frame = _decisions(frame, roles["propensity"])
    if target is not None and CONTEXTS in frame and not features:
        raise InputError(
            f"{setting('target')} cannot be evaluated on rows without the header of their log, "
            "such as an export after an erasure; all arms equally often can, "
            f"{setting('target', 'uniform')}"
        )
    needed = [roles[role] for role in ("arm", "propensity", "group") if role in roles]
    frame, contexts = with_contexts(
        frame,
        needed,
        roles["reward"],
        features,
        nominal_columns,
        categories,
        missing,
        marks,
        reading.decimal or ".",
    )
    if "group" in roles:
        frame[roles["group"]] = group_labels(frame, [roles["group"]])
    frame = later(checked(frame, given=named), after)
    names, known = _arms(frame, target, roles, _read_groups(groups, path, reading, roles))
    if target is not None:
        _check_features(target, list(features), contexts, shared)
        check_fit(target, known, len(contexts))
    logged = Logged.from_frame(
        frame,
        known,
        features=contexts,
        shared=shared,
        arm=roles["arm"],
        reward=roles["reward"],
        propensity=roles["propensity"],
        arm_names=names,
    )
    if "group" in roles:
        _check_groups(logged, frame[roles["group"]])
    learned = rewards_by_arm(logged.arms, logged.rewards, known.n_arms)
    return replace(logged, origin=Origin(None, learned, rounds="round" in frame))


# Logs of others ---------------------------------------------------------------------------------


def _read_table(
    path: Path,
    reading: Reading,
    named: Mapping[str, str],
    marks: Marks,
    worth: Mapping[str, float] | None,
    nominal: Sequence[str],
) -> pd.DataFrame:
    """A log that evenhand did not write, read like any table, with rewards as numbers."""
    group = named.get("group", NAMES["group"])
    frame = read_table(path, marks, reading=reading, labels=(group,), nominal=nominal)
    reward = find_roles([str(name) for name in frame], named, ("arm", "reward"))["reward"]
    marks.check_rewards(reward, worth)
    rewards = observed_rewards(frame[reward], worth, marks, reading.decimal or ".")
    return frame.assign(**{reward: rewards})


def _decisions(frame: pd.DataFrame, propensity: str) -> pd.DataFrame:
    """The rows of decisions, where rows of ours have lost their header.

    A human's choice has a row of its own after the decision, with its reward and without a
    propensity, and so has history. Neither is a choice of the policy.
    """
    if not {"decision_id", NAMES["override"]} <= set(frame):
        return frame
    ids = frame["decision_id"]
    others = ids.isna() | ids.isin(ids[frame[NAMES["override"]].notna()])
    return frame[~(others & frame[propensity].isna())]


def _check_features(target: Any, features: list[str], contexts: list[str], shared: bool) -> None:
    """Refuse a policy whose features cannot be those that it was trained with.

    It knows them by their order only. Which category is the baseline, which are merged and what
    fills gaps comes from the table at hand, which is not the one that it was trained on.
    """
    if not (features and shared):
        raise InputError(
            f"{setting('target')} needs the context of the round: give "
            f"{setting('features', [COLUMN])} for each of its {target.n_features} features, "
            f"and {setting('shared', True)}, if all arms have the same"
        )
    new = [name for name in contexts if name not in features]
    if new:
        raise InputError(
            f"{setting('target')} knows its features by their order, and these columns would "
            f"become {shown(contexts)}, which depends on this log; give a column of numbers for "
            "each feature, as in training: write categories as 0 and 1, and leave out rows with "
            f"gaps by {setting('missing', 'drop')}"
        )


def _check_groups(log: Logged, column: pd.Series) -> None:
    for row, arm, group in zip(column.index, log.arms, column, strict=True):
        if log.groups.labels[arm] not in (group, group.removeprefix(f"{column.name}=")):
            raise DataError(
                f"{column.name} is {group!r} in row {row}, of an arm in group "
                f"{log.groups.labels[arm]!r}; allowed is the group of the arm: name another column "
                f"with {setting('group', COLUMN)}, or give {setting('groups', FILE)}"
            )


def _arms(
    frame: pd.DataFrame,
    target: Any,
    roles: Mapping[str, str],
    given: tuple[list[str], Groups] | None,
) -> tuple[list[str] | None, Groups]:
    """The names of the arms, None if they have numbers, and their groups."""
    if given is not None:
        names, groups = given
        bare = [label.removeprefix(f"{roles.get('group', 'group')}=") for label in groups.labels]
        # A policy may call them as they are written, "1" and not "black=1".
        own = target is not None and bare == list(target.groups.labels)
        return names, target.groups if own else groups
    if target is not None:
        if not pd.api.types.is_integer_dtype(frame[roles["arm"]].dtype):
            raise DataError(
                f"{roles['arm']} has names; give {setting('groups', FILE)} with the arms in the "
                "policy's order"
            )
        return None, target.groups
    if "group" not in roles:
        raise InputError(
            f"no column holds the group; name it with {setting('group', COLUMN)}, or give "
            f"{setting('groups', FILE)}",
            parameter="group",
        )
    return _read_off(frame, roles["arm"], roles["group"])


def _read_groups(
    given: str | Path | None, log: Path, reading: Reading, roles: Mapping[str, str]
) -> tuple[list[str], Groups] | None:
    """The names and groups of the arms in a file, read like the log if it is of the same kind.

    Groups that are numbers are called like those in the log.
    """
    if given is None:
        return None
    path = Path(given)
    if path.is_dir():
        raise a_folder("groups", path)
    if not path.is_file():
        raise InputError(
            f"{setting('groups')} is {str(path)!r}, but there is no such file", value=path
        )
    how = reading if form_of(path) == form_of(log) else None
    try:
        table = read_table(path, reading=how, labels=("arm", "group"))
    except DataError as error:
        raise error.reworded(lambda text: f"{setting('groups')}: {text}") from error
    if not {"arm", "group"} <= set(table.columns):
        raise DataError(
            f"{setting('groups')} is {str(path)!r}, which has {', '.join(map(str, table))}; "
            "allowed is a table with the columns arm and group",
            value=path,
        )
    called = table.rename(columns={"group": roles.get("group", "group")})
    labels = group_labels(called, [roles.get("group", "group")])
    return [word(name) for name in table["arm"]], Groups(labels.to_list())


def _read_off(frame: pd.DataFrame, arm: str, group: str) -> tuple[list[str], Groups]:
    """The groups of the arms in a log, if each arm has one group."""
    # Every group may be its own arm: then both are the same column.
    pairs = pd.DataFrame({"arm": frame[arm], "group": frame[group]})
    pairs = pairs.drop_duplicates().sort_values("arm", kind="stable")
    twice = pairs["arm"].duplicated()
    if twice.any():
        name = pairs["arm"][twice].iloc[0]
        names = ", ".join(map(str, pairs["group"][pairs["arm"] == name]))
        raise DataError(
            f"arm {name} is in groups {names}; allowed is one group per arm: name another column "
            f"with {setting('arm', COLUMN)} or {setting('group', COLUMN)}, or give "
            f"{setting('groups', FILE)}"
        )
    return [str(name) for name in pairs["arm"]], Groups(pairs["group"].to_list())
