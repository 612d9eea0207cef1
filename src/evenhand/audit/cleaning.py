"""A log as it is meant: marks are missing values, and a reward in words is a number.

It is the same table with other expressions for some columns, so the engine does the work in the
queries that are made anyway. Without marks and words the log is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evenhand.audit.marks import NUMBER, equals, without
from evenhand.audit.refusing import counted, values_of
from evenhand.audit.settings import Settings
from evenhand.audit.sources import Source
from evenhand.audit.values import is_missing, number
from evenhand.logs.columns import Columns, find_columns

NUMERIC = ("reward", "true_reward", "propensity", "weight")


def cleaned(source: Source, settings: Settings) -> Source:
    """The log with nothing in place of marks, and numbers in place of a reward in words."""
    if not settings.missing_marks and settings.reward_values is None:
        return source
    columns = find_columns(
        list(source.table.schema().names), settings.columns, settings.features, settings.leave_out
    )
    if settings.missing_marks:
        source = _without_marks(source, columns, settings)
    if settings.reward_values is not None:
        source = _in_numbers(source, columns, settings.reward_values)
    return source


def _without_marks(source: Source, columns: Columns, settings: Settings) -> Source:
    table, marks = source.table, settings.missing_marks
    roles = [name for role, name in vars(columns).items() if role != "features" and name]
    names = list(dict.fromkeys([*roles, *columns.features]))
    changed = {name: without(table[name], marks) for name in names}
    for name in _numbers(source, _may_be_numbers(source, columns, settings), changed):
        values = changed[name].strip().cast("float64")
        changed[name] = without(values, marks)
    return replace(source, table=table.mutate(**changed))


def _may_be_numbers(source: Source, columns: Columns, settings: Settings) -> list[str]:
    """Columns of text that would be numbers but for marks: no words are expected of them."""
    roles = [getattr(columns, role) for role in NUMERIC]
    if settings.reward_values is not None:
        roles = roles[2:]
    features = [name for name in columns.features if name not in settings.nominal]
    schema = source.table.schema()
    return [name for name in [*roles, *features] if name and schema[name].is_string()]


def _numbers(source: Source, names: Sequence[str], changed: Mapping[str, Any]) -> list[str]:
    """Those that hold marks and otherwise nothing but numbers.

    Text without marks is left alone: "01" may be a code, and only its owner can tell.
    """
    if not names:
        return []
    asked = dict[str, Any]()
    for i, name in enumerate(names):
        is_number = changed[name].strip().re_search(NUMBER)
        asked |= {
            f"all{i}": source.table[name].count(),
            f"left{i}": changed[name].count(),
            f"numbers{i}": is_number.cast("int32").sum(),
        }
    found = source.fetch(source.table.aggregate(**asked)).iloc[0].fillna(0)
    return [
        name
        for i, name in enumerate(names)
        if found[f"all{i}"] > found[f"left{i}"] > 0 and found[f"numbers{i}"] == found[f"left{i}"]
    ]


def _in_numbers(source: Source, columns: Columns, worth: Mapping[str, float]) -> Source:
    """With numbers for the reward, and for the true reward where it is in the same words."""
    changed = {}
    for role, name in (("reward", columns.reward), ("true_reward", columns.true_reward)):
        if name is None:
            continue
        mapped = _mapped(source.table[name], worth)
        unknown = source.table[name]
        rest = replace(source, table=source.table.filter(~is_missing(unknown) & mapped.isnull()))
        values = values_of(rest, rest.table[name])
        if values and role == "true_reward" and source.table.schema()[name].is_numeric():
            continue  # numbers that are meant as such
        if values:
            raise ValueError(
                f"{role} {name!r} has {counted(values)}, which --reward-values does not name; it "
                f"names {', '.join(worth)}: name all values, and those that stand for a missing "
                "one in --missing-marks"
            )
        changed[name] = mapped
    return replace(source, table=source.table.mutate(**changed))


def _mapped(column: Any, worth: Mapping[str, float]) -> Any:
    import ibis

    nothing = ibis.null("float64")
    branches = [(equals(column, [name]), number(value)) for name, value in worth.items()]
    branches = [(here, value) for here, value in branches if here is not None]
    return ibis.cases(*branches, else_=nothing) if branches else nothing
