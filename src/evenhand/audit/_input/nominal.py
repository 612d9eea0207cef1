"""Categories that are not text: columns that are named as such, and pandas' own categories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evenhand.audit._input.expressions import as_number
from evenhand.audit._input.roles import columns_of
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import AuditSettings

EXACT = 2.0**53  # up to which all whole numbers are doubles


def with_categoricals(source: Source, settings: AuditSettings) -> AuditSettings:
    """The settings with the categorical columns of a frame among the nominal ones."""
    if not source.categoricals:
        return settings
    names = [name for name in columns_of(source, settings).features if name in source.categoricals]
    every = dict.fromkeys([*settings.nominal_columns, *names])
    return replace(settings, nominal_columns=tuple(every))


def spelled(source: Source, settings: AuditSettings) -> Source:
    """The log with categories in the words of worlds: 2.0 is "2", and true is "True".

    A CSV file spells its categories itself.
    """
    if source.files:
        return source
    schema, table = source.table.schema(), source.table
    changed = {}
    for name in settings.nominal_columns:
        if name in schema.names and schema[name].is_boolean():
            changed[name] = table[name].ifelse("True", "False")
        elif name in schema.names and (schema[name].is_floating() or schema[name].is_decimal()):
            changed[name] = _word(as_number(table[name]))
    named = [value.name(name) for name, value in changed.items()]
    return replace(source, table=table.mutate(named)) if named else source


def _word(number: Any) -> Any:
    whole = (number == number.floor()) & (number.abs() < EXACT)
    return whole.ifelse(number.cast("int64").cast("string"), number.cast("string"))
