"""The roles of a log's columns: those with Open Bandit names are recognised, others are given.

The schema is that of the Open Bandit data (timestamp, item_id, position, click, propensity_score)
with more columns: group, true_reward and override; round, explored and learned, which say how a
decision came about; and the candidates, the arms that it was made among. `reward` is any reward;
a click is one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from evenhand._checks import column_name
from evenhand._columns.words import shown
from evenhand.errors import DataError, InputError, as_given, blank, setting
from evenhand.groups import NOT_STATED

# The names by which a role is recognised, the schema's own first.
ROLES: dict[str, tuple[str, ...]] = {
    "timestamp": ("timestamp", "time"),
    "arm": ("item_id", "arm", "action"),
    "position": ("position",),
    "reward": ("reward", "click"),
    "propensity": ("propensity_score", "propensity", "pscore"),
    "group": ("group",),
    "true_reward": ("true_reward",),
    "override": ("override",),
    "round": ("round",),
    "explored": ("explored",),
    "learned": ("learned",),
    "candidate_contexts": ("candidate_contexts",),
    "candidate_propensities": ("candidate_propensities",),
    "weight": (),
    "count": (),
    "cluster": (),
}
NEEDED = ("group", "reward")
ORDER = ("decision_id", "seq", "reward_seq", "reward_at", "true_seq", "true_at")
"""Columns of evenhand's own logs about the order of events: neither roles nor features."""
CERTAIN = 1.0 - 1e-6  # with at least this probability, a group that came with a round is known


@dataclass(frozen=True)
class Columns:
    """The column of each role, or None, and the columns of the features.

    Example:
        >>> from evenhand.events import Columns
        >>> columns = Columns(group="sex", reward="paid", features=("age",))
        >>> columns.reward, columns.arm
        ('paid', None)
    """

    group: str
    reward: str
    features: tuple[str, ...]
    arm: str | None = None
    propensity: str | None = None
    timestamp: str | None = None
    true_reward: str | None = None
    override: str | None = None
    position: str | None = None
    round: str | None = None
    explored: str | None = None
    learned: str | None = None
    candidate_contexts: str | None = None
    candidate_propensities: str | None = None
    weight: str | None = None
    count: str | None = None
    cluster: str | None = None

    @property
    def used(self) -> list[str]:
        """The columns that have a role, and then the features."""
        roles = [name for role, name in vars(self).items() if role != "features" and name]
        return list(dict.fromkeys([*roles, *self.features]))


def find_columns(
    names: Sequence[str],
    given: Mapping[str, str] | None = None,
    features: Sequence[str] | None = None,
    leave_out: Collection[str] = (),
) -> Columns:
    """The roles of a log's columns.

    Args:
        names: the columns of the log.
        given: roles that the user gives, {"group": "sex", "reward": "paid"}; they take precedence
            over roles recognised by name.
        features: the columns of the context; by default all that have no role.
        leave_out: columns that are neither roles nor features.

    Example:
        >>> from evenhand.events import find_columns
        >>> columns = find_columns(["item_id", "click", "sex", "age"], {"group": "sex"})
        >>> columns.arm, columns.reward, columns.group, columns.features
        ('item_id', 'click', 'sex', ('age',))
    """
    roles = find_roles(names, given)
    if features is None:
        ours = _ours(names)
        listed = [name for name in names if name not in {*roles.values(), *leave_out, *ours}]
    else:
        listed = list(dict.fromkeys(features))
        for name in listed:
            _there(name, names, "features")
    if roles["reward"] in listed:
        raise reward_as_feature(roles["reward"])
    return Columns(features=tuple(listed), **roles)


def _ours(names: Sequence[str]) -> list[str]:
    """The columns of our logs that are not features; another log may use one of these names."""
    if not {*ORDER} <= {*names}:
        return []
    return [
        *ORDER,
        *(column for by in membership_columns(names).values() for column in by.values()),
    ]


def named_roles(columns: Any, roles: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The columns that a caller names by role, checked; the group may be several.

    Args:
        columns: by role, or None.
        roles: more of them; these win.

    Example:
        >>> from evenhand.events.columns import named_roles
        >>> named_roles({"reward": "paid", "arm": None}, {"group": ["sex", "race"]})
        {'reward': 'paid', 'group': ['sex', 'race']}
    """
    if columns is not None and not isinstance(columns, Mapping):
        raise InputError(
            f"{setting('columns')} is {as_given(columns)}; allowed is a mapping from roles to "
            f"columns, such as {setting('columns', {'reward': 'paid'})}",
            value=columns,
        )
    named = {**(columns or {}), **(roles or {})}
    return {
        role: column_name(role, name) if role in ROLES and role != "group" else name
        for role, name in named.items()
        if name is not None
    }


def find_roles(
    names: Sequence[str],
    given: Mapping[str, str] | None = None,
    needed: Sequence[str] = NEEDED,
) -> dict[str, str]:
    """The column of every role that has one: those given, and those recognised by name.

    Args:
        names: the columns of the log.
        given: roles that the user gives.
        needed: roles that must have a column.

    Example:
        >>> from evenhand.events import find_roles
        >>> find_roles(["action", "click"], needed=["arm", "reward"])
        {'arm': 'action', 'reward': 'click'}
    """
    roles = dict(given or {})
    for role, name in roles.items():
        if role not in ROLES:
            raise DataError(
                f"role {role!r} is unknown; allowed are {', '.join(ROLES)}",
                parameter=role,
                value=name,
            )
        _there(name, names, role)
    for role, known in ROLES.items():
        taken = set(roles.values())
        free = [name for name in known if name in names and name not in taken]
        if role not in roles and free:
            roles[role] = free[0]
    for role in needed:
        if role not in roles:
            raise DataError(
                f"no column is the {role}; name it, such as {setting(role, blank('COLUMN'))}: the "
                f"log has {shown(names)}",
                parameter=role,
            )
    return roles


def reward_as_feature(name: str) -> DataError:
    """The error for a reward that is named as a feature.

    Example:
        >>> from evenhand.events.columns import reward_as_feature
        >>> print(reward_as_feature("paid"))
        features: 'paid' is the reward; a reward cannot be a feature
    """
    return DataError(
        f"{setting('features')}: {name!r} is the reward; a reward cannot be a feature", value=name
    )


def _there(name: str, names: Sequence[str], role: str) -> None:
    if name not in names:
        near = get_close_matches(name, list(names), n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise DataError(
            f"{setting(role)} is {name!r}, which is not a column; {hint}the log has {shown(names)}",
            value=name,
        )


def membership_columns(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """By attribute, the column of every level; empty where groups are those of the arms.

    A log whose membership came with each round has a column such as "sex: F" for every level of an
    attribute, and one for "not stated". In a row, they are those of the candidate that was chosen.

    Example:
        >>> from evenhand.events.columns import membership_columns
        >>> membership_columns(["age", "sex: F", "sex: M", "sex: not stated"])["sex"]["F"]
        'sex: F'
    """
    end = f": {NOT_STATED}"
    attributes = [name.removesuffix(end) for name in names if name.endswith(end)]
    return {
        attribute: {
            name.removeprefix(f"{attribute}: "): name
            for name in names
            if name.startswith(f"{attribute}: ")
        }
        for attribute in attributes
    }
