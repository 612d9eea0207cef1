"""Logs as files: those that evenhand wrote, and those of others with columns of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from evenhand import _checks
from evenhand._columns.marks import Given, Marks, without_marks
from evenhand._columns.rewards import numbers_for, observed_rewards
from evenhand.errors import DataError, InputError, blank, setting
from evenhand.events._header import About
from evenhand.events._read import labelled, read_whole
from evenhand.events._schema import NAMES
from evenhand.events._tables import log_path
from evenhand.events.columns import find_roles
from evenhand.groups import Groups
from evenhand.offpolicy._leakage import Origin, rewards_by_arm
from evenhand.offpolicy.logged import Logged
from evenhand.offpolicy.targets import check_fit

NEEDED = ("arm", "reward", "propensity")
FILE, COLUMN = blank("FILE"), blank("COLUMN")


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
) -> Logged:
    """The decisions of a file, to be asked what a policy would have earned in them.

    Args:
        log: a Parquet or CSV file.
        target: the policy to ask about, if it is one. It knows the groups of arms that a log of
            others has by their numbers.
        after: only decisions after this round.
        columns: in logs of others, the columns of "arm", "reward", "propensity" and "group".
        features: in logs of others, the columns of the context.
        shared: in logs of others, whether these are the same for all arms of a round.
        groups: in logs of others, a CSV file with the columns arm and group, in the policy's
            order. Without, they are the policy's, or else read off the log.
        reward_values: in logs of others, numbers for a reward in words.
        missing_marks: in logs of others, what stands for a missing value.

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
    found = read_whole(log_path(log), named or None, prepare)
    if found is None:
        raise InputError(f"{setting('log')} is {str(log)!r}, where there is no log", value=log)
    about, frame = found.about, found.frame
    frame = later(frame, after)
    if about is None:
        return _of_others(frame, target, named, list(features), shared, groups)
    given: dict[str, Any] = {**named, "features": features, "shared": shared, "groups": groups}
    given |= {"reward_values": reward_values, "missing_marks": missing_marks}
    wrong = [name for name, value in given.items() if value]
    if wrong:
        raise InputError(
            f"{setting(wrong[0])} is for logs of others; {log} says of itself what its columns are"
        )
    return _of_own(frame, about)


def read_own(path: str | Path, after: int | None) -> Logged:
    """The decisions of a file that evenhand wrote, and no other."""
    found = read_whole(log_path(path))
    if found is None or found.about is None:
        return Logged.from_log(path)  # which says what is wrong
    return _of_own(later(found.frame, after), found.about)


def _of_own(frame: pd.DataFrame, about: About) -> Logged:
    """The decisions of a log that evenhand wrote, with what it says of itself."""
    log = Logged.from_log(labelled(frame, about))
    n_arms = log.groups.n_arms
    learned = rewards_by_arm(frame[NAMES["arm"]], frame[NAMES["reward"]], n_arms)
    return log.of_origin(Origin(about, learned, rounds=True))


def later(frame: pd.DataFrame, after: int | None) -> pd.DataFrame:
    """The rows after a round; all, if none is given."""
    if after is None:
        return frame
    after = _checks.whole("after", after, least=0)
    if "round" not in frame:
        raise InputError(f"{setting('after')} is {after}, and the log has no column round")
    kept = frame[(frame["round"] > after).fillna(False).astype(bool)]
    if kept.empty:
        raise InputError(
            f"{setting('after')} is {after}; the log has rounds up to {frame['round'].max()}",
            value=after,
        )
    return kept


# Logs of others ---------------------------------------------------------------------------------


def _prepared(
    named: str | None, values: Mapping[Any, float] | None, missing_marks: Given
) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Marks and a reward in words as they are meant."""
    marks, worth = Marks.of(missing_marks), numbers_for(values)
    given = {} if named is None else {"reward": named}

    def prepare(frame: pd.DataFrame) -> pd.DataFrame:
        frame = without_marks(frame, marks)
        names = [str(name) for name in frame]
        if named is not None and named not in names:
            return frame  # which is told where columns are looked for
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
    return log.of_origin(Origin(None, learned, rounds="round" in frame))


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
    """What the arms are called, None if by their numbers, and their groups."""
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
            f"no column is the group; name it with {setting('group', COLUMN)}, or give "
            f"{setting('groups', FILE)}"
        )
    return _read_off(frame, roles["arm"], roles["group"])


def _arms_of_file(path: Path) -> tuple[list[str], Groups]:
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except ValueError as error:  # pandas' errors are ValueErrors, and so is text that is no UTF-8
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
    """The groups of the arms in a log, if each has one."""
    pairs = frame[[arm, group]].drop_duplicates().sort_values(arm, kind="stable")
    twice = pairs[arm].duplicated()
    if twice.any():
        name = pairs[arm][twice].iloc[0]
        both = ", ".join(map(str, pairs[group][pairs[arm] == name]))
        raise DataError(
            f"arm {name} is in groups {both}; allowed is one group per arm: name another column "
            f"with {setting('arm', COLUMN)} or {setting('group', COLUMN)}, or give "
            f"{setting('groups', FILE)}"
        )
    return [str(name) for name in pairs[arm]], Groups(pairs[group].to_list())
