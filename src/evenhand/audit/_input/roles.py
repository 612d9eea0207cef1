"""Which column of a log has which role: those that are named, and those found by their names.

A column with the name of a role is taken for it, and a column without a role for a feature. Both
can go wrong: a decision that is called "action" determines the reward and is no arm, and a row
number is no feature. Such columns are left out, with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand._columns.diagnosis import LOOKED_AT, as_texts, group_as_feature
from evenhand._columns.identifiers import (
    is_categories,
    is_identifier,
    sounds_like_one,
    tell_of_identifiers,
)
from evenhand._columns.words import shown
from evenhand.audit._input.expressions import as_number, is_missing
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import AuditSettings
from evenhand.errors import InputError, InputWarning, setting
from evenhand.events.columns import NEEDED, Columns, find_columns

MOST_COUNTED = 20_000_000  # rows up to which distinct values are counted exactly


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
        raise group_as_feature(columns.group)
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
            raise InputError(
                f"{setting(parameter)} has {name!r}; allowed are {shown(known)}", value=name
            )


def with_guesses(source: Source, settings: AuditSettings) -> Source:
    """The log without the columns that were taken for a role or a feature and cannot be it."""
    source = source.with_sample(_looked_at(source, settings))
    source = _without_decisions(source, settings)
    return _without_identifiers(source, settings) if settings.features is None else source


def _looked_at(source: Source, settings: AuditSettings) -> list[str]:
    """The columns whose first rows are read: for the guesses, and to centre them."""
    columns = columns_of(source, settings)
    names = [columns.reward, *guessed_roles(columns, settings).values(), *columns.features]
    return [name for name in dict.fromkeys(names) if _plain(source, name)]


# Columns that determine the reward ----------------------------------------------------------------


def _without_decisions(source: Source, settings: AuditSettings) -> Source:
    columns = columns_of(source, settings)
    # A true reward under its own name may well determine the reward.
    names = {
        name: role
        for role, name in guessed_roles(columns, settings).items()
        if role not in (*NEEDED, "true_reward") and _plain(source, name)
    }
    if not names:
        return source
    sample = source.first_rows([columns.reward, *names])
    suspects = [name for name in names if _decides(sample[name], sample[columns.reward])]
    deciding = [name for name in suspects if _always_decides(source, name, columns.reward)]
    for name in deciding:
        warning = InputWarning(
            f"column {name!r} is left out, although its name is that of the {names[name]}: rows "
            f"with the same {name} never differ in {columns.reward}, so it is a form of the "
            f"reward; to use it nevertheless, set {setting(names[name], name)}"
        )
        warnings.warn(warning, stacklevel=5)
    return replace(source, idle=(*source.idle, *deciding))


def _plain(source: Source, name: str) -> bool:
    """Whether values of a column can be compared, which lists cannot everywhere."""
    kind = source.table.schema()[name]
    return bool(kind.is_string() or kind.is_numeric() or kind.is_boolean() or kind.is_temporal())


def _decides(column: pd.Series[Any], reward: pd.Series[Any]) -> bool:
    """Whether the reward varies, but never at the same value of a column whose values repeat."""
    pairs = pd.DataFrame({"c": column, "r": reward}).dropna()
    values = pairs["c"].nunique()
    if values < 2 or 2 * values > len(pairs) or pairs["r"].nunique() < 2:
        return False
    return len(pairs.drop_duplicates()) == values


def _always_decides(source: Source, name: str, reward: str) -> bool:
    """The same for all rows."""
    value = source.table[reward]
    value = as_number(value) if value.type().is_boolean() else value  # no min in PostgreSQL
    table = source.table.select(c=source.table[name], r=value)
    table = table.filter(~is_missing(table.c) & ~is_missing(table.r))
    by_value = table.group_by("c").aggregate(low=table.r.min(), high=table.r.max())
    apart = by_value.aggregate(apart=(by_value.low != by_value.high).cast("int32").sum())
    return not source.fetch(apart)["apart"].iloc[0]


# Columns that number rows -------------------------------------------------------------------------


def _without_identifiers(source: Source, settings: AuditSettings) -> Source:
    columns, schema = columns_of(source, settings), source.table.schema()
    named = settings.nominal_columns
    names = [
        name
        for name in columns.features
        if (schema[name].is_numeric() or schema[name].is_string()) and name not in named
    ]
    if not names:
        return source
    sample = source.first_rows(names)
    suspects = [
        name for name in names if _may_tell_apart(name, sample[name], schema[name].is_string())
    ]
    identifiers = _identifiers(source, suspects) if suspects else []
    if identifiers:
        tell_of_identifiers(identifiers)
    return replace(source, idle=(*source.idle, *identifiers))


def _may_tell_apart(name: str, values: pd.Series[Any], text: bool) -> bool:
    """Whether the first rows of a column could be numbers of rows, or identifiers."""
    values = values.dropna()
    if not text:
        numbers = values.to_numpy(dtype=np.float64)
        if not np.isfinite(numbers).all() or (numbers != np.floor(numbers)).any():
            return False
    if 2 * values.nunique() <= len(values):
        return False
    # Numbers and dates as text have errors of their own.
    return not text or sounds_like_one(name) or is_categories(as_texts(values)[:LOOKED_AT])


def _identifiers(source: Source, names: Sequence[str]) -> list[str]:
    """Those that identify the rows of the whole log."""
    schema, table = source.table.schema(), source.table
    aggregates = dict[str, Any]()
    for i, name in enumerate(names):
        column = table[name]
        aggregates |= {f"n{i}": column.approx_nunique(), f"all{i}": column.count()}
        if not schema[name].is_string():
            aggregates |= {f"low{i}": column.min(), f"high{i}": column.max()}
    counts = source.fetch(table.aggregate(**aggregates)).iloc[0]
    rows = {name: int(counts[f"all{i}"]) for i, name in enumerate(names)}
    rough = {name: int(counts[f"n{i}"]) for i, name in enumerate(names)}
    width = {
        name: float(counts[f"high{i}"]) - float(counts[f"low{i}"])
        for i, name in enumerate(names)
        if f"high{i}" in counts
    }
    # Rough counts err by some per cent: columns that may differ in every row are counted again.
    likely = [
        name for name in names if rough[name] > (0.4 if sounds_like_one(name) else 0.8) * rows[name]
    ]
    if likely and max(rows.values()) <= MOST_COUNTED:
        exact = {f"n{i}": table[name].nunique() for i, name in enumerate(likely)}
        exact_counts = source.fetch(table.aggregate(**exact)).iloc[0]
        rough |= {name: int(exact_counts[f"n{i}"]) for i, name in enumerate(likely)}
    elif likely:
        rough |= {name: rows[name] for name in likely}
    return [name for name in names if is_identifier(name, rows[name], rough[name], width.get(name))]
