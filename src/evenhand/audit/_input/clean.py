"""A log as it is meant: marks become missing values, a reward in words becomes a number, and a
column without a name is ignored.

It is the same table with other expressions for some columns, so the engine does the work in the
queries that run anyway. Without marks and words the log is left as it is.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand._columns.conversion import DAMAGED
from evenhand._columns.missing_marks import GROUPED, LIKELY, tell_of_idle
from evenhand._columns.rewards import not_named
from evenhand._columns.words import NUMBER, as_written
from evenhand.audit._input.diagnosis import values_of
from evenhand.audit._input.expressions import equals, is_missing, number, without
from evenhand.audit._input.roles import columns_of, idle_names
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import AuditSettings
from evenhand.errors import DataError, InputWarning, setting
from evenhand.events.columns import Columns

NUMERIC = ("reward", "true_reward", "propensity", "weight")
OTHER_ROLES = (
    "group", "arm", "true_reward", "propensity", "timestamp", "override", "explored", "position",
    "cluster",
)  # fmt: skip
# Names that pandas makes up, for a header without one and for an index; blanks are no name.
MADE_UP = r"\s*|Unnamed: \d+|__index_level_\d+__"
FIRST = 100_000  # rows in which a mark is looked for before all are


def cleaned(source: Source, settings: AuditSettings) -> Source:
    """The log with nulls in place of marks, and numbers in place of a reward in words."""
    source = _named(source)
    _tell_names(source, settings)
    source = _as_written(source, settings)
    source = _without_nan(source, settings)
    if not settings.marks and settings.reward_values is None:
        return source
    columns = columns_of(source, settings)
    if settings.marks:
        _check_marks(source, columns, settings)
        source = _without_marks(source, columns, settings)
    if settings.reward_values is not None:
        source = _in_numbers(source, columns, settings.reward_values)
    return source


def _as_written(source: Source, settings: AuditSettings) -> Source:
    """The log with labels spelled as they are in a CSV file."""
    columns = columns_of(source, settings)
    labels = [columns.group, columns.arm, columns.cluster, *settings.nominal_columns]
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


def _named(source: Source) -> Source:
    """The source, knowing which columns have no name, or one that another column has."""
    names = source.table.columns
    if source.files:
        _check_apart(source, names)
    header = _header(source, names) if source.files else names
    pairs = list(zip(names, header, strict=True))
    return replace(
        source,
        unnamed=tuple(name for name, read in pairs if re.fullmatch(MADE_UP, read)),
        repeated={name: read for name, read in pairs if name != read and read.strip()},
    )


def _check_apart(source: Source, names: Sequence[str]) -> None:
    """An error if the whole first line of a CSV file was taken for one column."""
    header, path = names[0], source.files[0]
    called = source.called.get(path, path)
    between = [mark for mark in ",;\t|" if mark in header]
    if len(names) > 1 or not between:
        return
    said = f"{setting('log')} is {called!r}, whose columns cannot be told apart"
    said += f": the first line is {header!r}"
    if Path(path).suffix.lower() in (".csv", ".tsv"):
        with Path(path).open(encoding="utf-8", errors="replace", newline="") as lines:
            rows = csv.reader(lines, delimiter=max(between, key=header.count))
            count = len(next(rows))
            other = next((row for row in rows if len(row) not in (0, count)), None)
            if other is not None:
                said += f" with {count} values, and line {rows.line_num} has {len(other)}"
    raise DataError(f"{said}; allowed are lines with equally many values")


def _header(source: Source, names: Sequence[str]) -> Sequence[str]:
    """The names of columns as a CSV file has them: engines silently complete and number them."""
    path = source.files[0]
    engine_separator = source.reading.get("delim", source.reading.get("sep", ","))
    for separator in dict.fromkeys((engine_separator, ",", ";", "\t", "|")):
        try:
            first = pd.read_csv(
                path, sep=separator, header=None, nrows=1, dtype=str, keep_default_na=False
            )
        except (ValueError, ImportError, *DAMAGED):  # whatever it is, the engine has read it
            continue
        header = [str(cell) for cell in first.to_numpy(dtype=object).ravel()]
        # Some engines number every one of the columns that share a name.
        folded = [cell.casefold() for cell in header]
        odd = [cell for cell in header if cell.strip() and folded.count(cell.casefold()) == 1]
        if len(header) == len(names) and set(odd) <= set(names):
            return header
    return names


def _tell_names(source: Source, settings: AuditSettings) -> None:
    if settings.features is None:  # otherwise nobody expects other columns
        for name in idle_names(source, settings):
            warning = InputWarning(
                f"{source.label}: column {source.table.columns.index(name) + 1} has no name and is "
                "left out, because such a column usually numbers the rows; give it a name to use it"
            )
            warnings.warn(warning, stacklevel=4)
    used = _used(columns_of(source, settings))
    for name, read in source.repeated.items():
        if name in used:
            warning = InputWarning(
                f"{source.label}: column {read!r} occurs more than once, and column "
                f"{source.table.columns.index(name) + 1} is called {name!r} here; leave it out "
                f"with {setting('leave_out', [name])} if it holds the same"
            )
            warnings.warn(warning, stacklevel=4)


def _used(columns: Columns) -> list[str]:
    roles = [name for role, name in vars(columns).items() if role != "features" and name]
    return list(dict.fromkeys([*roles, *columns.features]))


def _check_marks(source: Source, columns: Columns, settings: AuditSettings) -> None:
    """Raise for marks of columns that are not there, and warn of marks that occur nowhere."""
    settings.marks.check_columns(source.table.columns)
    settings.marks.check_rewards(columns.reward, settings.reward_values)
    for mark, names in _idle_marks(source, _used(columns), settings):
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
    changed = {
        name: without(table[name], settings.marks.of_column(name)) for name in _used(columns)
    }
    asked = _may_be_numbers(source, columns, settings)
    for name in _numbers(source, asked, changed, settings):
        values = _with_point(source, changed[name]).cast("float64")
        changed[name] = without(values, settings.marks.of_column(name))
    return replace(source, table=table.mutate(_as_columns(changed)))


def _with_point(source: Source, text: Any) -> Any:
    """Text that may be a number, with a decimal point: `missing_marks.with_point` as SQL."""
    import ibis

    bare = text.strip()
    if source.decimal == ".":
        return bare
    other = bare.contains(".") & ~bare.re_search(f"^{GROUPED}$")  # such as a date
    return ibis.ifelse(other, bare, bare.replace(".", "").replace(source.decimal, "."))


def _may_be_numbers(source: Source, columns: Columns, settings: AuditSettings) -> list[str]:
    """Columns of text that may hold numbers and marks: nothing says that they hold words."""
    roles = [getattr(columns, role) for role in NUMERIC]
    if settings.reward_values is not None:
        roles = roles[2:]
    features = [name for name in columns.features if name not in settings.nominal_columns]
    schema = source.table.schema()
    return [name for name in [*roles, *features] if name and schema[name].is_string()]


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
        is_number = _with_point(source, changed[name]).re_search(NUMBER)
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
