"""Several group columns: the cells where their values meet, as one column of the log.

"sex" and "race" become a column "sex & race" with groups such as "F & black". From there on an
audit is one by that column, and what belongs to an attribute alone is a sum over its cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from evenhand._columns.missing import ERROR, OTHERS, Choice
from evenhand._columns.words import category, shown
from evenhand.audit._input.diagnosis import one_group
from evenhand.audit._input.engines import as_number, is_missing
from evenhand.audit._input.references import Cells, find_references
from evenhand.audit._input.scan import MOST_GROUPS
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import Settings
from evenhand.errors import DataError, InputError, setting
from evenhand.events.columns import find_roles

BETWEEN = (" & ", " && ", " | ", " || ")  # the first that keeps all cells apart
MOST_READ = 20_000  # combinations: more are not even counted


@dataclass(frozen=True, eq=False)
class Crossing:
    """Attributes, and the cells where their categories meet.

    Attributes:
        attributes: the group columns, as named.
        column: of the log, made of these.
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
    if given is None or isinstance(given, str):
        return dict(named), ()
    names = list(given) if isinstance(given, Sequence) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"{setting('group')} is {given!r}; allowed is a column or a list of columns",
            value=given,
        )
    return {**named, "group": names[0]}, tuple(names) if len(names) > 1 else ()


def with_attributes(source: Source, settings: Settings) -> Settings:
    """The settings with all group columns that are named, "sex,race" as two, each of them checked.

    A column that is called "sex,race" is that column.
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
            "once"
        )
    others = {column: role for role, column in settings.columns.items() if role != "group"}
    for name in names:
        find_roles(known, {"group": name}, needed=())  # is it there, or what is meant?
        for what in ("features", "leave_out"):
            if name in (getattr(settings, what) or ()):
                raise InputError(
                    f"{setting(what)} has {name!r}, which is a group; groups are compared at the "
                    "same features and are none: take it out of one of them"
                )
        if name in others:
            raise InputError(
                f"{setting('group')} has {name!r}, which is also named as the {others[name]}; take "
                "it out of one of them"
            )
    columns = {**settings.columns, "group": names[0]}
    return replace(settings, columns=columns, attributes=names)


def as_labels(settings: Settings) -> Settings:
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


def crossed(source: Source, settings: Settings) -> tuple[Source, Settings, Crossing | None]:
    """The log with a column for the cells of its group columns, if there are several of these."""
    names = tuple(settings.attributes)
    if not names:
        return source, settings, None
    each = _combinations(source, names, settings.columns.get("count"))
    for name in names:
        if each[name].nunique() < 2:
            raise one_group(name, [(str(category), 0) for category in each[name].unique()])
    if len(each) > MOST_GROUPS:
        many = f"{len(each):,}" if len(each) < MOST_READ else f"{MOST_READ:,} or more"
        parts = ", ".join(f"{name!r} {each[name].nunique():,}" for name in names)
        raise DataError(
            f"{setting('group')} has {len(names)} columns whose values meet in {many} combinations "
            f"({parts} values); allowed are up to {MOST_GROUPS}: name fewer columns, or merge "
            "values of them"
        )
    fronts = _fronts(each, names)
    between = next((mark for mark in BETWEEN if _labels(each, fronts, mark).is_unique), None)
    if between is None:
        raise DataError(
            f"{setting('group')} has columns with values such as {each[names[0]].iloc[0]!r} that "
            f"cannot be told apart when joined; allowed are values without {BETWEEN[0]!r}"
        )
    each = each.set_index(_labels(each, fronts, between)).sort_index()
    column = " & ".join(names)
    while column in source.table.columns:
        column = f"{column} (cell)"
    cells = Cells(each[list(names)], each["n"])
    references, reference = find_references(settings.reference, cells)
    crossing = Crossing(names, column, cells.categories, references, reference)
    settings = replace(
        settings,
        columns={**settings.columns, "group": column},
        reference=reference,
        missing=_for_cells(settings.missing, names, column),
    )
    return replace(source, table=_joined(source.table, fronts, between, column)), settings, crossing


def _for_cells(missing: Choice, names: Sequence[str], column: str) -> Choice:
    """What is done about rows without a cell, where it was said by group column: the strictest."""
    if isinstance(missing, str):
        return missing
    rest = {name: choice for name, choice in missing.items() if name not in names}
    own = {missing.get(name, missing.get(OTHERS, ERROR)) for name in names}
    return {**rest, column: ERROR if ERROR in own else min(own)}


def _combinations(source: Source, names: Sequence[str], count: str | None) -> pd.DataFrame:
    """The combinations of categories that occur, and how many people each has."""
    table = source.table.filter(~_lacks_any(source.table, names))
    keys = {f"a{i}": table[name].cast("string") for i, name in enumerate(names)}
    counted = count in table.columns and table.schema()[count].is_numeric()
    rows = table.select(**keys, **({"people": as_number(table[count])} if counted else {}))
    people = rows["people"].sum() if counted else rows.count()
    asked = rows.group_by(list(keys)).aggregate(n=people).limit(MOST_READ)
    cells = source.fetch(asked).rename(columns=dict(zip(keys, names, strict=True)))
    cells = cells[cells["n"].astype(float) > 0.0]  # rows that stand for nobody are nowhere
    if cells.empty:
        raise DataError(
            f"{setting('group')} has {shown(names)}, and no row has a value of all of them"
        )
    return cells.astype({**dict.fromkeys(names, object), "n": float}).reset_index(drop=True)


def _fronts(each: pd.DataFrame, names: Sequence[str]) -> dict[str, str]:
    """What stands before a category in the name of a cell, by attribute.

    "F & black" needs nothing. Of "yes & no" nobody knows what is what: "young=yes & rural=no".
    """
    values = [set(each[name]) for name in names]
    alike = sum(map(len, values)) > len(set.union(*values))
    return {name: category(name, "") if alike else "" for name in names}


def _labels(each: pd.DataFrame, fronts: Mapping[str, str], between: str) -> pd.Index:
    parts = [fronts[name] + each[name] for name in fronts]
    return pd.Index([between.join(row) for row in zip(*parts, strict=True)], dtype=object)


def _joined(table: Any, fronts: Mapping[str, str], between: str, column: str) -> Any:
    """The table with the cell of each row; nothing where a row lacks one of the values."""
    import ibis

    text = ibis.literal("")
    for i, (name, front) in enumerate(fronts.items()):
        text = text + ibis.literal((between if i else "") + front) + table[name].cast("string")
    lacking = _lacks_any(table, list(fronts))
    return table.mutate(**{column: lacking.ifelse(ibis.null("string"), text)})


def _lacks_any(table: Any, names: Sequence[str]) -> Any:
    flags = [is_missing(table[name]) for name in names]
    lacking = flags[0]
    for flag in flags[1:]:
        lacking = lacking | flag
    return lacking
