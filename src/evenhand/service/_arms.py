"""Arms and their groups, as a configuration has them.

Either every arm belongs to a fixed group, or to a fixed level of each of several attributes; or
candidates bring their groups with them, and the file says which levels there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand._toml import Kind, TomlFile
from evenhand.errors import EvenhandError
from evenhand.groups import Groups
from evenhand.service._ledger.membership import LABELS

BY_ARM, WITH_CANDIDATES = "by arm", "with each candidate"
MOST_GROUPS = 256  # that are counted separately, including those who did not say

_TEXT = Kind("a string", lambda value: isinstance(value, str))
_GROUPS = {
    "sensitive": _TEXT,
    "given": _TEXT,
    "attributes": Kind("a table", lambda value: isinstance(value, dict)),
}
_HOW = 'give it as "F", or as { sex = "F", age = "old" }'


def arms_and_groups(file: TomlFile, data: Mapping[str, Any]) -> tuple[tuple[str, ...], Groups]:
    """The names of the arms, and their groups; an error names the line and the key."""
    settings = file.checked("groups.", data.get("groups", {}), _GROUPS)
    given = settings.get("given", BY_ARM)
    if given not in (BY_ARM, WITH_CANDIDATES):
        file.refuse("groups.given", f"is {given!r}; allowed are {BY_ARM!r}, {WITH_CANDIDATES!r}")
    arms = data.get("arms", {})
    for name in arms:
        _check_name(file, f"arms.{name}" if isinstance(arms, dict) else "arms", name)
    if given == WITH_CANDIDATES:
        return _with_candidates(file, arms, settings)
    if isinstance(arms, list):
        file.refuse(
            "arms", "is a list; give the group of every arm, or groups.given = "
            f"{WITH_CANDIDATES!r}",
        )  # fmt: skip
    if "attributes" in settings:
        file.refuse("groups.attributes", f"is for given = {WITH_CANDIDATES!r}; leave it out")
    return _by_arm(file, arms, settings.get("sensitive"))


def _with_candidates(
    file: TomlFile, arms: Any, settings: Mapping[str, Any]
) -> tuple[tuple[str, ...], Groups]:
    if not isinstance(arms, list) or not arms:
        file.refuse(
            "arms", f'has groups, but groups.given is {WITH_CANDIDATES!r}; give a list of names, '
            'such as arms = ["north", "south"]',
        )  # fmt: skip
    if len(set(arms)) < len(arms):
        file.refuse("arms", "has a name twice")
    if "sensitive" in settings:
        file.refuse(
            "groups.sensitive", f"is for given = {BY_ARM!r}; say in policy.reference whose "
            "feedback is right",
        )  # fmt: skip
    attributes = settings.get("attributes", {})
    if not attributes:
        file.refuse("groups.attributes", 'is missing; give the levels, such as sex = ["F", "M"]')
    number = 1
    for name, levels in attributes.items():
        key = f"groups.attributes.{name}"
        _check_name(file, key, name)
        if not isinstance(levels, list) or not all(isinstance(level, str) for level in levels):
            file.refuse(key, f"is {levels!r}; allowed is a list of strings")
        for level in levels:
            _check_name(file, key, level)
            if level in LABELS:
                file.refuse(key, f"has {level!r}, which is reserved; rename it")
        number *= len(levels) + 1
    if number > MOST_GROUPS:
        file.refuse(
            "groups.attributes", f"has {number} intersections, counting those who did not say; "
            f"allowed are up to {MOST_GROUPS}: merge levels",
        )  # fmt: skip
    try:
        return tuple(arms), Groups.per_round(len(arms), attributes)
    except EvenhandError as error:
        file.refuse("groups.attributes", f": {error.told('file')}")


def _by_arm(
    file: TomlFile, arms: Mapping[str, Any], sensitive: str | None
) -> tuple[tuple[str, ...], Groups]:
    if not arms:
        file.refuse("arms", 'is missing; give a table with a line per arm, such as north = "F"')
    attributes: tuple[str, ...] | None = None
    for name, group in arms.items():
        key = f"arms.{name}"
        if isinstance(group, dict) and group and all(map(_is_name, group.values())):
            mine = tuple(group)
        elif _is_name(group):
            mine = ()
        else:
            file.refuse(key, f"has no group; {_HOW}")
        if attributes is not None and set(attributes) != set(mine):
            words = [", ".join(names) or "one group" for names in (mine, attributes)]
            file.refuse(key, f"has {words[0]}; others have {words[1]}")
        attributes = mine if attributes is None else attributes
    labels = [
        " & ".join(group[name] for name in attributes or ()) if isinstance(group, dict) else group
        for group in arms.values()
    ]
    if sensitive is not None and sensitive not in labels:
        names = ", ".join(dict.fromkeys(labels))
        file.refuse("groups.sensitive", f"is {sensitive!r}; allowed are {names}")
    if not attributes:
        return tuple(arms), Groups(labels, sensitive=sensitive)
    table = {name: [group[name] for group in arms.values()] for name in attributes}
    return tuple(arms), Groups.of_attributes(table, sensitive=sensitive)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _check_name(file: TomlFile, key: str, name: Any) -> None:
    """Refuse a name that pages and files could not show."""
    good = isinstance(name, str) and name.strip() and name.isprintable() and len(name) <= 200
    if not good:
        file.refuse(key, "has a name that is empty, too long or cannot be printed; rename it")
