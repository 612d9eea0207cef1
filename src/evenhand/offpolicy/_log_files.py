"""Logs as files: those that evenhand wrote, and other logs with their own columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from evenhand import _checks
from evenhand._columns.file_formats import Reading
from evenhand._columns.missing_marks import Given, Marks, without_marks
from evenhand._columns.rewards import numbers_for, observed_rewards
from evenhand._columns.table_files import read_table
from evenhand.errors import DataError, InputError, blank, setting
from evenhand.events._candidates import CONTEXTS
from evenhand.events._formats import FORMATS
from evenhand.events._header import About
from evenhand.events._read import Whole, labelled, read_whole
from evenhand.events._schema import NAMES, checked
from evenhand.events._tables import beside, log_path
from evenhand.events.columns import find_roles
from evenhand.groups import Groups
from evenhand.offpolicy._seen_rows import Origin, rewards_by_arm
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


def read_logged(
    log: str | Path,
    target: Any = None,
    *,
    after: int | None = None,
    columns: Mapping[str, str] | None = None,
    features: Sequence[str] = (),
    shared: bool = False,
    groups: str | Path | None = None,
    reward_values: Mapping[Any, float] | None = None,
    missing_marks: Given = (),
    encoding: str | None = None,
    decimal: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
) -> Logged:
    """The decisions of a file, on which to evaluate a policy.

    Args:
        log: a Parquet, CSV, JSON (lines, or an array of objects) or Excel file. Logs that evenhand
            wrote are Parquet or CSV.
        target: the policy to evaluate, if it is a policy. It has the groups of arms that another
            log gives by their numbers.
        after: only decisions after this round.
        columns: for other logs, the columns of "arm", "reward", "propensity" and "group".
        features: for other logs, the columns of the context.
        shared: for other logs, whether these are the same for all arms of a round.
        groups: for other logs, a CSV file with the columns arm and group, in the policy's order.
            Unless given, they are the policy's, or else those in the log.
        reward_values: for other logs, numbers for a reward in words.
        missing_marks: for other logs, marks of missing values.
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
    named = dict(columns or {})
    prepare = _prepared(named.get("reward"), reward_values, missing_marks)
    reading = Reading(encoding, decimal, delimiter, sheet)
    if reading.chosen or Path(log).suffix not in FORMATS:
        whole: Whole | None = _read_other(Path(log), reading, named, prepare)
    else:
        whole = read_whole(log_path(log), named or None, prepare)
    if whole is None:
        raise InputError(f"{setting('log')} is {str(log)!r}, but there is no such log", value=log)
    about, frame = whole.about, whole.frame
    frame = later(frame, after)
    if about is None:
        return _of_others(frame, target, named, list(features), shared, groups)
    given: dict[str, Any] = {**named, "features": features, "shared": shared, "groups": groups}
    given |= {"reward_values": reward_values, "missing_marks": missing_marks}
    wrong = [name for name, value in given.items() if value]
    if wrong:
        raise InputError(
            f"{setting(wrong[0])} is for logs that evenhand did not write; {log} names its own "
            "columns"
        )
    return of_own(frame, about)


def _read_other(
    path: Path,
    reading: Reading,
    named: Mapping[str, str],
    prepare: Callable[[pd.DataFrame], pd.DataFrame],
) -> Whole:
    """A log that evenhand did not write, in any format and encoding that tables have."""
    if reading.chosen and beside(path).exists():
        raise InputError(
            f"{setting(next(iter(reading.chosen)))} is for logs that evenhand did not write; leave "
            "it out"
        )
    if not path.is_file():
        raise InputError(f"{setting('log')} is {str(path)!r}, but there is no such log", value=path)
    group = named.get("group", NAMES["group"])
    frame = prepare(read_table(path, reading=reading, text=(group,)))
    return Whole(None, checked(frame.reset_index(drop=True), given=named or None, first=2))


# Logs of others ---------------------------------------------------------------------------------


def _prepared(
    named: str | None, values: Mapping[Any, float] | None, missing_marks: Given
) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """A function that replaces marks, and a reward in words, in a frame."""
    marks, worth = Marks.of(missing_marks), numbers_for(values)
    given = {} if named is None else {"reward": named}

    def prepare(frame: pd.DataFrame) -> pd.DataFrame:
        frame = without_marks(frame, marks)
        names = [str(name) for name in frame]
        if named is not None and named not in names:
            return frame  # reported where columns are looked up
        reward = find_roles(names, given, needed=()).get("reward")
        if reward is None or (worth is None and is_numeric_dtype(frame[reward])):
            return frame
        marks.check_rewards(reward, worth)
        return frame.assign(**{reward: observed_rewards(frame[reward], worth, marks)})

    return prepare


def _of_others(
    frame: pd.DataFrame,
    target: Any,
    named: Mapping[str, str],
    features: list[str],
    shared: bool,
    groups: str | Path | None,
) -> Logged:
    roles = find_roles([str(name) for name in frame], named, NEEDED)
    frame = _decisions(frame, roles["propensity"])
    if target is not None and CONTEXTS in frame and not features:
        raise InputError(
            f"{setting('target')} cannot be evaluated on rows without the header of their log, "
            "which is all that an erasure leaves of a ledger; all arms equally often (uniform) can"
        )
    names, known = _arms(frame, target, roles, groups)
    if target is not None:
        if not (features and shared):
            raise InputError(
                f"{setting('target')} needs the context of the round: give "
                f"{setting('features', [COLUMN])} for each of its {target.n_features} features, "
                f"and {setting('shared', True)}, if all arms have the same"
            )
        check_fit(target, known, len(features))
    log = Logged.from_frame(
        frame,
        known,
        features=features,
        shared=shared,
        arm=roles["arm"],
        reward=roles["reward"],
        propensity=roles["propensity"],
        arm_names=names,
    )
    if "group" in roles:
        _check_groups(log, frame[roles["group"]])
    learned = rewards_by_arm(log.arms, log.rewards, known.n_arms)
    return replace(log, origin=Origin(None, learned, rounds="round" in frame))


def _decisions(frame: pd.DataFrame, propensity: str) -> pd.DataFrame:
    """The rows of decisions, where rows of ours have lost their header.

    A human's choice has a row of its own after the decision, with its reward and without a
    propensity, and so has history. Neither is a choice of the policy.
    """
    if not {"decision_id", NAMES["override"]} <= set(frame):
        return frame
    ids = frame["decision_id"]
    others = ids.isna() | ids.isin(ids[frame[NAMES["override"]].notna()])
    return frame[~(others & frame[propensity].isna())].reset_index(drop=True)


def _check_groups(log: Logged, column: pd.Series) -> None:
    for row, (arm, group) in enumerate(zip(log.arms, column, strict=True)):
        if log.groups.labels[arm] != str(group):
            raise DataError(
                f"{column.name} is {str(group)!r} in decision {row + 1}, of an arm in group "
                f"{log.groups.labels[arm]!r}; allowed is the group of the arm: name another column "
                f"with {setting('group', COLUMN)}, or give {setting('groups', FILE)}"
            )


def _arms(
    frame: pd.DataFrame, target: Any, roles: Mapping[str, str], groups: str | Path | None
) -> tuple[list[str] | None, Groups]:
    """The names of the arms, None if they have numbers, and their groups."""
    if groups is not None:
        return _arms_of_file(Path(groups))
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
            f"{setting('groups', FILE)}"
        )
    return _read_off(frame, roles["arm"], roles["group"])


def _arms_of_file(path: Path) -> tuple[list[str], Groups]:
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except ValueError as error:  # pandas' errors, and text that is not UTF-8
        raise DataError(
            f"{setting('groups')} is {str(path)!r}, which cannot be read: {error}", value=path
        ) from error
    if not {"arm", "group"} <= set(table.columns):
        raise DataError(
            f"{setting('groups')} is {str(path)!r}, which has {', '.join(map(str, table))}; "
            "allowed is a CSV file with the columns arm and group",
            value=path,
        )
    return table["arm"].to_list(), Groups(table["group"].to_list())


def _read_off(frame: pd.DataFrame, arm: str, group: str) -> tuple[list[str], Groups]:
    """The groups of the arms in a log, if each arm has one group."""
    pairs = frame[[arm, group]].drop_duplicates().sort_values(arm, kind="stable")
    twice = pairs[arm].duplicated()
    if twice.any():
        name = pairs[arm][twice].iloc[0]
        names = ", ".join(map(str, pairs[group][pairs[arm] == name]))
        raise DataError(
            f"arm {name} is in groups {names}; allowed is one group per arm: name another column "
            f"with {setting('arm', COLUMN)} or {setting('group', COLUMN)}, or give "
            f"{setting('groups', FILE)}"
        )
    return [str(name) for name in pairs[arm]], Groups(pairs[group].to_list())
