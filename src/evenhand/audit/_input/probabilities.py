"""Groups that are known by probability: a column of the log for every group.

They sum to 1 in a row, up to rounding. A row without any of them is of the group "not stated":
nobody's group is guessed. In the log they become features of the rows, with names of their own, so
that all checks of columns cover them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from evenhand._columns.words import shown
from evenhand.audit._input.expressions import as_number, is_missing, number
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import AuditSettings
from evenhand.errors import DataError, InputError, setting
from evenhand.groups import NOT_STATED

ROUNDING = 0.01  # by how much the sum of a row may differ from 1
SURE = 1.0 - 1e-9


@dataclass(frozen=True)
class ProbableGroups:
    """Groups by probability, and the columns of the log that say how probable each is.

    Attributes:
        groups: their names.
        given: the columns that the user named; "" for those who did not say.
        columns: the same probabilities, summing to 1, as the rest of the audit finds them.
        rows: how many rows there are.
        uncertain: how many of them have no probability of 1.
    """

    groups: tuple[str, ...]
    given: tuple[str, ...]
    columns: tuple[str, ...]
    rows: int
    uncertain: int


def with_probabilities(
    source: Source, settings: AuditSettings
) -> tuple[Source, AuditSettings, ProbableGroups | None]:
    """The log with a column per group whose sum is 1, if groups are known by probability."""
    given = settings.group_probability
    if given is None:
        return source, settings, None
    _check(source, settings, given)
    table = source.table
    raw = {group: as_number(table[column]) for group, column in given.items()}
    lacking, wrong = _literal(True), _literal(False)
    total: Any = number(0.0)
    for group, column in given.items():
        value, missing = raw[group], is_missing(table[column])
        lacking = lacking & missing
        total = total + missing.ifelse(number(0.0), value)
        wrong = wrong | (~missing & ((value < number(0.0)) | (value > number(1.0 + ROUNDING))))
    off = ~lacking & (wrong | ((total - number(1.0)).abs() > number(ROUNDING)))
    safe = (lacking | (total <= number(0.0))).ifelse(number(1.0), total)
    shares = {
        group: is_missing(table[given[group]]).ifelse(number(0.0), value) / safe
        for group, value in raw.items()
    }
    counts = _counted(source, shares, lacking, off)
    _check_sums(given, counts)
    if counts["lacking"]:
        unstated = lacking.ifelse(number(1.0), number(0.0))
        shares[NOT_STATED] = unstated + shares.get(NOT_STATED, number(0.0))
    expected = counts["sums"] | ({NOT_STATED: 1.0} if counts["lacking"] else {})
    kept = [group for group in shares if expected[group] > 0.0]
    if len(kept) < 2:
        raise DataError(
            f"{setting('group_probability')} has {shown(list(shares))}, and only "
            f"{shown(kept)} ever has a probability above 0; an audit compares at least two groups"
        )
    names = {group: f"evenhand probability of {group}" for group in kept}
    replaced = list(dict.fromkeys(given.values()))
    probabilities = {names[g]: shares[g].cast("float64") for g in kept}
    table = table.mutate(**probabilities).drop(*replaced)
    settings = replace(
        settings,
        features=None if settings.features is None else [*settings.features, *names.values()],
        leave_out=[name for name in settings.leave_out if name not in replaced],
    )
    membership = ProbableGroups(
        tuple(kept),
        tuple(given.get(g, "") for g in kept),
        tuple(names.values()),
        int(counts["rows"]),
        int(counts["rows"] - counts["sure"] - counts["lacking"]),
    )
    return replace(source, table=table), settings, membership


def with_group_column(source: Source, settings: AuditSettings) -> tuple[Source, AuditSettings]:
    """The log with one column that stands for all groups, if these are known by probability."""
    if settings.group_probability is None:
        return source, settings
    if "group" in settings.columns:
        raise InputError(
            f"{setting('group_probability')} is given, and {setting('group')} is "
            f"{settings.columns['group']!r}; groups are known, or known by probability: leave one "
            "of them out"
        )
    name = settings.probability_of
    while name in source.table.columns:
        name = f"{name} (by probability)"
    table = source.table.mutate(**{name: _literal("all")})
    columns = {**settings.columns, "group": name}
    return replace(source, table=table), replace(settings, columns=columns)


def _literal(value: Any) -> Any:
    import ibis

    return ibis.literal(value)


def _check(source: Source, settings: AuditSettings, given: Mapping[str, str]) -> None:
    known = source.table.columns
    for group, column in given.items():
        if column not in known:
            raise InputError(
                f"{setting('group_probability')} has {column!r} for {group}, which is not a "
                f"column; allowed are {shown(known)}"
            )
        if not source.table.schema()[column].is_numeric():
            raise DataError(
                f"column {column!r} is the probability of {group}, and is not a number; allowed "
                "are numbers from 0 to 1"
            )
    for name, value in (("errors", "classical"), ("weighting", "arms")):
        if getattr(settings, name) == value:
            raise InputError(
                f"{setting(name)} is {value!r} with groups by probability; allowed is 'auto': "
                + (
                    "noise is not equal where groups are mixed"
                    if name == "errors"
                    else "arms are not compared then"
                )
            )
    if source.kind not in ("duckdb", "postgres", "pyspark"):
        raise InputError(
            f"{setting('group_probability')} is given for a log in {source.kind}; allowed are "
            "DuckDB, PostgreSQL and Spark"
        )


def _counted(source: Source, shares: Mapping[str, Any], lacking: Any, off: Any) -> dict[str, Any]:
    """The number of all rows, of those with no probability, of bad and sure ones; sums by group."""
    import ibis

    largest = ibis.greatest(*shares.values())
    aggregates = {
        "rows": source.table.count(),
        "lacking": lacking.cast("int32").sum(),
        "off": off.cast("int32").sum(),
        "sure": (~lacking & (largest >= number(SURE))).cast("int32").sum(),
        **{f"s{i}": share.sum() for i, share in enumerate(shares.values())},
    }
    counts: dict[Any, Any] = (
        source.fetch(source.table.aggregate(**aggregates)).iloc[0].fillna(0).to_dict()
    )
    counts["sums"] = {group: float(counts[f"s{i}"]) for i, group in enumerate(shares)}
    return counts


def _check_sums(given: Mapping[str, str], counts: Mapping[str, Any]) -> None:
    if counts["off"]:
        raise DataError(
            f"the probabilities {shown(list(given.values()))} do not sum to 1 in "
            f"{int(counts['off']):,} of {int(counts['rows']):,} rows, or are outside 0 to 1; name "
            "a column for every group, or make one for all others"
        )
