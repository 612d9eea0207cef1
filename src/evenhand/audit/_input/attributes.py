"""Several group columns: the cells where their values meet, as one column of the log.

"sex" and "race" become a column "sex & race" with groups such as "F & black". From there on the
audit is by that column, and figures of a single attribute are sums over its cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from evenhand import _checks
from evenhand._columns.buckets import MOST_GROUPS
from evenhand._columns.missing import ERROR, OTHERS, Choice
from evenhand._columns.words import category, shown
from evenhand.audit._input.diagnosis import one_group
from evenhand.audit._input.expressions import as_number, is_missing
from evenhand.audit._input.references import CellCounts, find_references
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import AuditSettings
from evenhand.errors import DataError, InputError, setting
from evenhand.events.columns import find_roles

BETWEEN = (" & ", " && ", " | ", " || ")  # the first that keeps all cells apart
MOST_READ = 20_000  # combinations: more are not even counted


@dataclass(frozen=True, eq=False)
class Crossing:
    """Attributes, and the cells where their categories meet.

    Attributes:
        attributes: the group columns, as named.
        column: the column of the log that joins them.
        cells: the categories of each cell, a column per attribute; the name of a cell is its index.
        references: the category that was named for an attribute, "mean", or nothing.
        reference: the cell to compare cells with, where that follows from what was named.
    """

    attributes: tuple[str, ...]
    column: str
    cells: pd.DataFrame
    references: Mapping[str, str]
    reference: str | None


def split_groups(named: Mapping[str, Any]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Roles with one group column, and all of these if there are several.

    Example:
        >>> from evenhand.audit._input.attributes import split_groups
        >>> split_groups({"group": ["sex", "race"], "reward": "paid"})
        ({'group': 'sex', 'reward': 'paid'}, ('sex', 'race'))
    """
    given = named.get("group")
    if given is None:
        return dict(named), ()
    names = _checks.column_names("group", given, alone=True)
    if not names:
        raise InputError(
            f"{setting('group')} is {given!r}; allowed is a column or a list of columns",
            value=given,
        )
    return {**named, "group": names[0]}, names if len(names) > 1 else ()


def with_attributes(source: Source, settings: AuditSettings) -> AuditSettings:
    """The settings with all named group columns, "sex,race" split into two, each of them checked.

    If a column is called "sex,race", that column is meant.
    """
    names, known = settings.attributes, list(source.table.columns)
    group = settings.columns.get("group", "")
    if not names and "," in group and group not in known:
        names = tuple(name.strip() for name in group.split(","))
    if not names:
        return settings
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise InputError(
            f"{setting('group')} has {twice[0]!r} twice; allowed are different columns: name it "
            "once",
            value=twice[0],
        )
    others = {column: role for role, column in settings.columns.items() if role != "group"}
    for name in names:
        find_roles(known, {"group": name}, needed=())  # raises if it is not there
        for parameter in ("features", "leave_out"):
            if name in (getattr(settings, parameter) or ()):
                raise InputError(
                    f"{setting(parameter)} has {name!r}, which is a group; groups are compared "
                    "at the same features and cannot be one: take it out of one of them",
                    value=name,
                )
        if name in others:
            raise InputError(
                f"{setting('group')} has {name!r}, which is also named as the {others[name]}; take "
                "it out of one of them",
                value=name,
            )
    columns = {**settings.columns, "group": names[0]}
    return replace(settings, columns=columns, attributes=names)


def as_labels(settings: AuditSettings) -> AuditSettings:
    """The settings to clean a log by: all group columns hold names, whatever they look like."""
    rest = settings.attributes[1:]
    if not rest:
        return settings
    return replace(
        settings,
        attributes=(),
        nominal_columns=(*settings.nominal_columns, *rest),
        features=None if settings.features is None else (*settings.features, *rest),
    )


def crossed(
    source: Source, settings: AuditSettings
) -> tuple[Source, AuditSettings, Crossing | None]:
    """The log with a column for the cells of its group columns, if there are several of these."""
    names = tuple(settings.attributes)
    if not names:
        return source, settings, None
    combinations = _combinations(source, names, settings.columns.get("count"))
    for name in names:
        if combinations[name].nunique() < 2:
            raise one_group(name, [(str(category), 0) for category in combinations[name].unique()])
    if len(combinations) > MOST_GROUPS:
        many = (
            f"{len(combinations):,}" if len(combinations) < MOST_READ else f"{MOST_READ:,} or more"
        )
        parts = ", ".join(f"{name!r} {combinations[name].nunique():,}" for name in names)
        raise DataError(
            f"{setting('group')} has {len(names)} columns whose values meet in {many} combinations "
            f"({parts} values); allowed are up to {MOST_GROUPS}: name fewer columns, or merge "
            "values of them"
        )
    prefixes = _prefixes(combinations, names)
    between = next(
        (mark for mark in BETWEEN if _labels(combinations, prefixes, mark).is_unique), None
    )
    if between is None:
        raise DataError(
            f"{setting('group')} has columns with values such as "
            f"{combinations[names[0]].iloc[0]!r} that cannot be told apart when joined; allowed "
            f"are values without {BETWEEN[0]!r}"
        )
    combinations = combinations.set_index(_labels(combinations, prefixes, between)).sort_index()
    column = " & ".join(names)
    while column in source.table.columns:
        column = f"{column} (cell)"
    cells = CellCounts(combinations[list(names)], combinations["n"])
    references, reference = find_references(settings.reference, cells)
    crossing = Crossing(names, column, cells.categories, references, reference)
    settings = replace(
        settings,
        columns={**settings.columns, "group": column},
        reference=reference,
        missing=_for_cells(settings.missing, names, column),
    )
    table = _joined(source.table, prefixes, between, column)
    return replace(source, table=table), settings, crossing


def _for_cells(missing: Choice, names: Sequence[str], column: str) -> Choice:
    """The choice for rows without a cell: the strictest of those given for the group columns."""
    if isinstance(missing, str):
        return missing
    rest = {name: choice for name, choice in missing.items() if name not in names}
    choices = {missing.get(name, missing.get(OTHERS, ERROR)) for name in names}
    return {**rest, column: ERROR if ERROR in choices else min(choices)}


def _combinations(source: Source, names: Sequence[str], count: str | None) -> pd.DataFrame:
    """The combinations of categories that occur, and how many people each has."""
    table = source.table.filter(~_lacks_any(source.table, names))
    keys = {f"a{i}": table[name].cast("string") for i, name in enumerate(names)}
    counted = count in table.columns and table.schema()[count].is_numeric()
    rows = table.select(**keys, **({"people": as_number(table[count])} if counted else {}))
    people = rows["people"].sum() if counted else rows.count()
    query = rows.group_by(list(keys)).aggregate(n=people).limit(MOST_READ)
    cells = source.fetch(query).rename(columns=dict(zip(keys, names, strict=True)))
    cells = cells[cells["n"].astype(float) > 0.0]  # rows that stand for nobody do not count
    if cells.empty:
        raise DataError(
            f"{setting('group')} has {shown(names)}, and no row has a value in all of them"
        )
    return cells.astype({**dict.fromkeys(names, object), "n": float}).reset_index(drop=True)


def _prefixes(combinations: pd.DataFrame, names: Sequence[str]) -> dict[str, str]:
    """The prefix of a category in the name of a cell, by attribute.

    "F & black" needs none. "yes & no" is ambiguous, so it becomes "young=yes & rural=no".
    """
    values = [set(combinations[name]) for name in names]
    ambiguous = sum(map(len, values)) > len(set.union(*values))
    return {name: category(name, "") if ambiguous else "" for name in names}


def _labels(combinations: pd.DataFrame, prefixes: Mapping[str, str], between: str) -> pd.Index:
    parts = [prefixes[name] + combinations[name] for name in prefixes]
    return pd.Index([between.join(row) for row in zip(*parts, strict=True)], dtype=object)


def _joined(table: Any, prefixes: Mapping[str, str], between: str, column: str) -> Any:
    """The table with the cell of each row; null where a row lacks one of the values."""
    import ibis

    text = ibis.literal("")
    for i, (name, prefix) in enumerate(prefixes.items()):
        text = text + ibis.literal((between if i else "") + prefix) + table[name].cast("string")
    lacking = _lacks_any(table, list(prefixes))
    return table.mutate(**{column: lacking.ifelse(ibis.null("string"), text)})


def _lacks_any(table: Any, names: Sequence[str]) -> Any:
    flags = [is_missing(table[name]) for name in names]
    lacking = flags[0]
    for flag in flags[1:]:
        lacking = lacking | flag
    return lacking
