"""Which column of a log has which role: those that are named, and those found by their names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evenhand._columns.words import shown
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import AuditSettings
from evenhand.errors import InputError, setting
from evenhand.events.columns import NEEDED, Columns, find_columns


def columns_of(source: Source, settings: AuditSettings) -> Columns:
    """The columns of a log by role. Those left out, or without a name, are ignored."""
    names = list(source.table.schema().names)
    check_named("leave_out", settings.leave_out, tuple(names))
    out = {*settings.leave_out, *settings.attributes, *idle_names(source, settings), *source.idle}
    left = [name for name in names if name not in out]
    columns = find_columns(left, settings.columns, settings.features)
    if settings.features is not None:  # who names features names the roles as well
        guessed = [role for role in guessed_roles(columns, settings) if role not in NEEDED]
        columns = replace(columns, **dict.fromkeys(guessed))  # type: ignore[arg-type]
    if columns.group in columns.features:
        raise InputError(
            f"{setting('features')}: {columns.group!r} is the group; a group cannot be a feature, "
            "for groups are compared at the same features"
        )
    return columns


def guessed_roles(columns: Columns, settings: AuditSettings) -> dict[str, str]:
    """The roles that columns have by their names alone.

    Example:
        >>> from evenhand.audit._input.roles import guessed_roles
        >>> from evenhand.audit._settings import AuditSettings
        >>> from evenhand.events import find_columns
        >>> named = {"group": "sex"}
        >>> columns = find_columns(["sex", "reward", "arm", "age"], named)
        >>> guessed_roles(columns, AuditSettings(columns=named))
        {'reward': 'reward', 'arm': 'arm'}
    """
    roles = {role: name for role, name in vars(columns).items() if isinstance(name, str)}
    return {role: name for role, name in roles.items() if role not in settings.columns}


def idle_names(source: Source, settings: AuditSettings) -> list[str]:
    """Columns without a name that no setting mentions: most often they number the rows."""
    mentioned = {*settings.columns.values(), *(settings.features or ()), *settings.leave_out}
    mentioned |= {*settings.attributes}
    return [name for name in source.unnamed if name not in mentioned]


def check_named(parameter: str, names: Any, known: tuple[str, ...]) -> None:
    """Raise for a name that is none of the known columns."""
    for name in names:
        if name not in known:
            raise InputError(f"{setting(parameter)} has {name!r}; allowed are {shown(known)}")
