"""A commented configuration made from a user's table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from evenhand._columns.buckets import plain
from evenhand._columns.diagnosis import read_with_likely_marks
from evenhand._columns.features import most_frequent_first
from evenhand._columns.file_formats import Reading
from evenhand._columns.words import written
from evenhand._prose import number_of
from evenhand.errors import InputError, setting
from evenhand.service._arms import WITH_CANDIDATES
from evenhand.service._features import CATEGORY, NUMBER, WHOLE, YES_NO

MOST_CATEGORIES, MOST_ARMS = 12, 200

_HEAD = """\
# The configuration of a decision service. Start it with: evenhand serve {name}
# Made from {table}; check it, because the ranges are those of the table.

title = {title}
{arms}store = "sqlite:{stem}.db"        # or "postgresql://USER@HOST/DATABASE", for several replicas
wait = "30 days"                  # how long a decision waits for its reward
learn = "on arrival"              # or "after wait": on arrival favours groups that answer early
# use = "confirmed"               # decisions wait for a reward only after PUT use
# default_reward = 0.0            # for rewards that never come; a silent zero is a bias of its own
retention = "25 months"           # people cannot be erased earlier, unless forced
# intercept = true                # a feature that is always 1

"""
_TAIL = """
[policy]
name = "PooledGroupFair"          # the one that we recommend
# reference = "mean"              # or a group or level whose feedback is known to be right

[review]
share = 0.1                       # of the decisions that humans look at
claim = "15 minutes"              # how long a claim lasts

[server]
host = "127.0.0.1"                # only this machine; put a proxy with TLS in front of it
port = 8321
# hosts = ["loans.example.org"]   # the names under which it is reached
# https = true                    # behind a proxy with TLS: cookies are sent over TLS only
# rate = 1000                     # requests per second and key; 0 for no limit
# max_body = 1000000              # bytes
# max_candidates = 1000
"""


def for_table(
    table: Path,
    config: Path,
    group: str | None,
    arm: str | None,
    reward: str | None,
    given: bool = False,
    reading: Reading | None = None,
) -> str:
    """The text of a configuration.

    Args:
        table: a CSV, Parquet, JSON or Excel file.
        config: the file that it is for.
        group: the column of groups, or several with commas between them.
        arm: the column of arms; by default each group is an arm.
        reward: the column of rewards, which is not a feature.
        given: whether candidates bring their groups, so that arms have none.
        reading: how the table is read, where it does not say so itself.

    Example:
        >>> import tempfile, pathlib
        >>> from evenhand.service.template import for_table
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> rows = "sex,branch,income,paid\\nF,a,30,1\\nM,b,40.5,0\\n"
        >>> _ = (folder / "past.csv").write_text(rows)
        >>> text = for_table(folder / "past.csv", folder / "loans.toml", "sex", "branch", "paid")
        >>> "[features.income]" in text, "[features.paid]" in text
        (True, False)
    """
    several = [] if group is None else group.split(",")
    labels = [name for name in (group, *several, arm) if name is not None]
    frame, _ = read_with_likely_marks(table, reading or Reading(), labels)
    groups = [group] if group is None or group in frame else several
    named = [*(("group", column) for column in groups), ("arm", arm), ("reward", reward)]
    for name, column in named:
        if column is not None and column not in frame:
            raise InputError(
                f"{setting(name)} is {column!r}, which is not a column of {table.name}; "
                f"it has {', '.join(map(str, frame.columns))}"
            )
    _check_roles(named)
    if group is None:
        raise InputError(
            f"{setting('group')} is missing; give the column of {table.name} that says which group "
            f"a row belongs to: {', '.join(map(str, frame.columns))}"
        )
    if given and arm is None:
        raise InputError(
            f"{setting('arm')} is missing; candidates bring their groups, so give the column of "
            f"{table.name} that says what can be chosen: {', '.join(map(str, frame.columns))}"
        )
    columns = [str(column) for column in groups]
    listed, tables = "", _arms(frame, columns, arm) if not given else _levels(frame, columns)
    if given:
        names = _checked(frame[arm].dropna().map(written).unique(), arm)
        listed = f"arms = {json.dumps(names, ensure_ascii=False)}\n"
    head = _HEAD.format(
        name=config.name, table=table.name, title=json.dumps(config.stem), stem=config.stem,
        arms=listed,
    )  # fmt: skip
    excluded = {*columns, arm, reward}
    parts = [_feature(plain(frame[name])) for name in frame.columns if name not in excluded]
    features = "\n".join(part for part in parts if part)
    return f"{head}{features}\n{tables}{_TAIL}"


def _check_roles(named: Sequence[tuple[str, str | None]]) -> None:
    """Raise if a column has two roles."""
    roles = dict[str, str]()
    for role, column in named:
        if column is not None and roles.setdefault(column, role) != role:
            raise InputError(
                f"{setting(roles[column])} and {setting(role)} are both {column!r}; give each "
                "column one role"
            )


def _feature(column: pd.Series) -> str:
    """A feature, or a comment that says why the column is not one."""
    name = _key(str(column.name))
    values = column.dropna()
    lines = [f"[features.{name}]"]
    if pd.api.types.is_bool_dtype(column) or (
        pd.api.types.is_numeric_dtype(column) and set(values.unique()) <= {0, 1}
    ):
        lines.append(f'type = "{YES_NO}"')
    elif pd.api.types.is_numeric_dtype(column) and len(values):
        low, high = float(values.min()), float(values.max())
        if low == high:
            return f"# {name} is always {low:g}, so it is not a feature\n"
        whole = bool((values == values.round()).all())
        lines.append(f'type = "{WHOLE if whole else NUMBER}"')
        lines.append(f"low = {_number(low)}")
        lines.append(f"high = {_number(high)}")
        lines.append('# unit = "of what"')
    else:
        texts = most_frequent_first(values.map(written).value_counts())
        if not 2 <= len(texts) <= MOST_CATEGORIES:
            return f"# {name} has {len(texts)} different texts, so it is not a feature\n"
        lines.append(f'type = "{CATEGORY}"')
        lines.append(f"values = {json.dumps(texts, ensure_ascii=False)}  # the first is the base")
    missing = int(column.isna().sum())
    if missing:
        lines.append(f"# missing in {number_of(missing, 'row')}; callers must give it")
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else repr(value)


def _arms(frame: pd.DataFrame, groups: list[str], arm: str | None) -> str:
    named = groups if arm is None else [*groups, arm]
    rows = frame[named].dropna().map(written)
    pairs = rows[groups].assign(label=rows[groups].agg(" & ".join, axis=1))
    pairs["arm"] = pairs["label"] if arm is None else rows[arm]
    pairs = pairs.drop_duplicates()
    if arm is not None and pairs["arm"].duplicated().any():
        pairs["arm"] = pairs["label"] + "-" + pairs["arm"]  # the same arm in several groups
    _checked(pairs["arm"], arm)
    lines = ["[arms]                            # name = group"]
    for _, row in pairs.sort_values(["label", "arm"]).iterrows():
        levels = ", ".join(f"{_key(name)} = {_text(row[name])}" for name in groups)
        group = f"{{ {levels} }}" if len(groups) > 1 else _text(row["label"])
        lines.append(f"{_text(row['arm'])} = {group}")
    first = sorted(pairs["label"].unique())[0]
    lines += [
        "",
        "[groups]",
        f"# sensitive = {_text(first)}    # whose feedback may be distorted",
    ]
    return "\n".join(lines) + "\n"


def _levels(frame: pd.DataFrame, groups: list[str]) -> str:
    """The groups that candidates bring."""
    lines = [
        "[groups]",
        f'given = "{WITH_CANDIDATES}"       # a level, probabilities, or null if not stated',
        "[groups.attributes]",
    ]
    for name in groups:
        levels = sorted(frame[name].dropna().map(written).unique())
        lines.append(f"{_key(name)} = {json.dumps(levels, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"


def _checked(given: Iterable[str], arm: str | None) -> list[str]:
    names = sorted(given)
    if len(names) > MOST_ARMS:
        raise InputError(
            f"{setting('arm')} is {arm!r}, which has {len(names)} values; allowed are up to "
            f"{MOST_ARMS} arms"
        )
    return names


def _key(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else _text(name)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
