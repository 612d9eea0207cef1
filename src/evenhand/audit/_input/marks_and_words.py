"""A log as it is meant: marks become missing values, and a reward in words becomes a number.

It is the same table with other expressions for some columns, so the engine does the work in the
queries that run anyway. Without marks and words the log is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evenhand._columns.kinds_of_text import CODE, GROUPED
from evenhand._columns.missing_marks import LIKELY, tell_of_idle
from evenhand._columns.rewards import not_named
from evenhand._columns.words import NUMBER, as_written
from evenhand.audit._input.column_names import tell_of_names, with_names
from evenhand.audit._input.diagnosis import values_of
from evenhand.audit._input.expressions import equals, is_missing, number, without
from evenhand.audit._input.roles import columns_of
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import AuditSettings
from evenhand.events.columns import Columns

NUMERIC = ("reward", "true_reward", "propensity", "weight")
OTHER_ROLES = (
    "group", "arm", "true_reward", "propensity", "timestamp", "override", "explored", "position",
    "cluster",
)  # fmt: skip
FIRST = 100_000  # rows in which a mark is looked for before all are


def cleaned(source: Source, settings: AuditSettings) -> Source:
    """The log with nulls in place of marks, and numbers in place of a reward in words."""
    source = with_names(source)
    tell_of_names(source, settings)
    source = _as_written(source, settings)
    source = _without_nan(source, settings)
    columns = columns_of(source, settings)
    if settings.marks:
        _check_marks(source, columns, settings)
        source = _without_marks(source, columns, settings)
    if settings.reward_values is not None:
        source = _in_numbers(source, columns, settings.reward_values)
    return _read_off(source, columns, settings)


def _as_written(source: Source, settings: AuditSettings) -> Source:
    """The log with labels spelled as they are in a CSV file."""
    columns = columns_of(source, settings)
    labels = [columns.group, columns.arm, columns.cluster]
    labels += settings.nominal_columns if source.json is None else ()
    return source.with_labels([name for name in labels if name is not None])


def _as_columns(values: dict[str, Any]) -> list[Any]:
    """Expressions with their columns' names, as a list: a column may be called `self`."""
    return [value.name(name) for name, value in values.items()]


def _without_nan(source: Source, settings: AuditSettings) -> Source:
    """The log with NULL for NaN where a NaN would be taken for a value, such as a group "nan".

    In features and rewards it makes a sum NaN, and is found by that.
    """
    import ibis

    columns, schema = columns_of(source, settings), source.table.schema()
    roles = [getattr(columns, role) for role in OTHER_ROLES]
    names = [name for name in (*roles, *settings.nominal_columns) if name in schema.names]
    table = source.table
    null = {
        name: table[name].isnan().ifelse(ibis.null(schema[name]), table[name])
        for name in dict.fromkeys(names)
        if schema[name].is_floating()
    }
    return replace(source, table=table.mutate(_as_columns(null))) if null else source


def _check_marks(source: Source, columns: Columns, settings: AuditSettings) -> None:
    """Raise for marks of columns that are not there, and warn of marks that occur nowhere."""
    settings.marks.check_columns(source.table.columns)
    settings.marks.check_rewards(columns.reward, settings.reward_values)
    for mark, names in _idle_marks(source, columns.used, settings):
        tell_of_idle(mark, "any column" if len(names) > 1 else f"column {names[0]!r}")


def _idle_marks(
    source: Source, used: Sequence[str], settings: AuditSettings
) -> list[tuple[str, list[str]]]:
    """Marks that occur nowhere, and the columns where they were expected.

    Common ones, such as "?", are no typos: the same list of them serves many logs.
    """
    rare = [mark for mark in settings.marks.every if mark.lower() not in LIKELY]
    places = [(mark, list(used)) for mark in rare]
    places += [
        (mark, [name])
        for name, marks in settings.marks.own.items()
        for mark in marks
        if mark and name in used
    ]
    idle = [
        (mark, names) for mark, names in places if not source.taken & {(n, mark) for n in names}
    ]
    written = source.as_text()  # in the table itself they are nulls already
    text = written is not None and set(used) <= set(written.columns)
    table: Any = written if text else source.table
    for rows in (table.limit(FIRST), table):
        aggregates = {f"m{i}": _is_there(rows, *place, text) for i, place in enumerate(idle)}
        aggregates = {key: flag for key, flag in aggregates.items() if flag is not None}
        if aggregates:
            occurs = source.fetch(rows.aggregate(**aggregates)).iloc[0].fillna(False)
            idle = [place for i, place in enumerate(idle) if not occurs.get(f"m{i}", False)]
    return idle


def _is_there(rows: Any, mark: str, names: Sequence[str], text: bool) -> Any | None:
    value = as_written(mark)
    flags: list[Any] = [equals(rows[name], [mark]) for name in names]
    if text and value is not None:
        flags += [rows[name].try_cast("float64") == number(value) for name in names]
    flags = [flag.coalesce(False) for flag in flags if flag is not None]
    if not flags:
        return None
    is_mark = flags[0]
    for flag in flags[1:]:
        is_mark = is_mark | flag
    return is_mark.any()


def _without_marks(source: Source, columns: Columns, settings: AuditSettings) -> Source:
    table = source.table
    changed = {name: without(table[name], settings.marks.of_column(name)) for name in columns.used}
    asked = _may_be_numbers(source, columns, settings)
    for name in _numbers(source, asked, changed, settings):
        values = _with_point(source, changed[name]).cast("float64")
        changed[name] = without(values, settings.marks.of_column(name))
    return replace(source, table=table.mutate(_as_columns(changed)))


def _with_point(source: Source, text: Any) -> Any:
    """Text that may be a number, with a decimal point: `kinds_of_text.with_point` as SQL."""
    import ibis

    bare = text.strip()
    if source.decimal == ".":
        return bare
    other = bare.contains(".") & ~bare.re_search(f"^{GROUPED}$")  # such as a date
    return ibis.ifelse(other, bare, bare.replace(".", "").replace(source.decimal, "."))


def _may_be_numbers(source: Source, columns: Columns, settings: AuditSettings) -> list[str]:
    """Columns of text that may hold numbers and marks: nothing says that they hold words."""
    features = [name for name in columns.features if name not in settings.nominal_columns]
    schema = source.table.schema()
    texts = [name for name in features if schema[name].is_string()]
    return [*_roles_in_text(source, columns, settings), *texts]


def _roles_in_text(source: Source, columns: Columns, settings: AuditSettings) -> list[str]:
    """The columns of text whose roles are numbers."""
    roles = NUMERIC if settings.reward_values is None else NUMERIC[2:]
    names, schema = [getattr(columns, role) for role in roles], source.table.schema()
    return [name for name in names if name and schema[name].is_string()]


def _read_off(source: Source, columns: Columns, settings: AuditSettings) -> Source:
    """The log with numbers in place of text that holds nothing else, where they are needed.

    Whether "01" is a code is no question there.
    """
    names = _roles_in_text(source, columns, settings)
    if not names:
        return source
    texts = {name: _with_point(source, source.table[name]) for name in names}
    aggregates = {f"c{i}": text.re_search(NUMBER).all() for i, text in enumerate(texts.values())}
    numbers = source.fetch(source.table.aggregate(**aggregates)).iloc[0].fillna(False)
    read = {name: texts[name].cast("float64") for i, name in enumerate(names) if numbers[f"c{i}"]}
    return replace(source, table=source.table.mutate(_as_columns(read))) if read else source


def _numbers(
    source: Source, names: Sequence[str], changed: Mapping[str, Any], settings: AuditSettings
) -> list[str]:
    """Those that hold marks and otherwise nothing but numbers.

    Text without marks is left alone: "01" may be a code, and only its owner can tell. A column
    with marks of its own is taken to have some.
    """
    if not names:
        return []
    aggregates = dict[str, Any]()
    for i, name in enumerate(names):
        text = _with_point(source, changed[name])
        is_number = text.re_search(NUMBER) & ~text.re_search(CODE)
        aggregates |= {
            f"all{i}": source.table[name].count(),
            f"left{i}": changed[name].count(),
            f"numbers{i}": is_number.cast("int32").sum(),
        }
    counts = source.fetch(source.table.aggregate(**aggregates)).iloc[0].fillna(0)
    return [
        name
        for i, name in enumerate(names)
        if counts[f"all{i}"] + (name in settings.marks.own) > counts[f"left{i}"] > 0
        and counts[f"numbers{i}"] == counts[f"left{i}"]
    ]


def _in_numbers(source: Source, columns: Columns, worth: Mapping[str, float]) -> Source:
    """Numbers for the reward, and for the true reward where it is in the same words."""
    changed = {}
    for role, name in (("reward", columns.reward), ("true_reward", columns.true_reward)):
        if name is None:
            continue
        mapped = _mapped(source.table[name], worth)
        column = source.table[name]
        rest = replace(source, table=source.table.filter(~is_missing(column) & mapped.isnull()))
        values = values_of(rest, rest.table[name])
        if values and role == "true_reward" and source.table.schema()[name].is_numeric():
            continue  # its numbers are meant as such
        if values:
            raise not_named(role, name, values, worth)
        changed[name] = mapped
    return replace(source, table=source.table.mutate(_as_columns(changed)))


def _mapped(column: Any, worth: Mapping[str, float]) -> Any:
    import ibis

    nothing = ibis.null("float64")
    branches = [(equals(column, [name]), number(value)) for name, value in worth.items()]
    branches = [(here, value) for here, value in branches if here is not None]
    return ibis.cases(*branches, else_=nothing) if branches else nothing
