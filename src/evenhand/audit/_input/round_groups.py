"""Groups that came with each round: the group of a row is that of the candidate who was chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evenhand._columns.missing import DROP
from evenhand.audit._input.expressions import as_number, number
from evenhand.audit._input.probabilities import with_group_column
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import AuditSettings
from evenhand.errors import DataError, setting
from evenhand.events.columns import CERTAIN, ORDER, ROLES, membership_columns
from evenhand.groups import PER_ROUND


def with_round_groups(source: Source, settings: AuditSettings) -> tuple[Source, AuditSettings]:
    """The log with a column per attribute in place of those of its levels, if it is such a log.

    Candidates who did not say are a group of their own, "not stated". Groups of one attribute that
    are given as probabilities stay probabilities (`_input.probabilities`), unless rows with missing
    values are to be dropped: then rows without a certain group are dropped.
    """
    group = next((name for name in ROLES["group"] if name in source.table.columns), None)
    attributes = membership_columns(source.table.columns)
    if "group" in settings.columns or group is None or not attributes:
        return source, settings
    table, ours = source.table, {*ORDER} <= {*source.table.columns}
    if not ours and not table.schema()[group].is_string():
        return source, settings
    aggregates = {"rows": table.count()}
    if not ours:  # an older log has a word there, and other files may have such columns
        aggregates["other"] = (table[group] != PER_ROUND).cast("int32").sum()
    for i, levels in enumerate(attributes.values()):
        aggregates[f"u{i}"] = (_largest(table, levels) < number(CERTAIN)).cast("int32").sum()
    counted = source.fetch(table.aggregate(**aggregates)).iloc[0].fillna(0)
    if counted.get("other"):
        return source, settings
    uncertain = [name for i, name in enumerate(attributes) if counted[f"u{i}"]]
    if uncertain and settings.missing != DROP:
        if len(attributes) == 1:
            return _by_probability(source, settings, uncertain[0], attributes[uncertain[0]], group)
        number_of = int(counted[f"u{list(attributes).index(uncertain[0])}"])
        raise DataError(
            f"{uncertain[0]} is given as probabilities in {number_of:,} of "
            f"{int(counted['rows']):,} rows, and with several attributes an audit compares groups "
            f"that are known: leave these rows out with {setting('missing', DROP)}, or replay the "
            "log and ask the policy's bias(), which takes probabilities as they are"
        )
    return _labelled(source, settings, attributes, group)


def _by_probability(
    source: Source, settings: AuditSettings, attribute: str, levels: dict[str, str], group: str
) -> tuple[Source, AuditSettings]:
    """The log as one whose groups are known by probability, by the columns of the levels."""
    table = source.table.drop(group)
    name = attribute if attribute not in table.columns else f"{attribute} (group)"
    gone = (*levels.values(), group)
    settings = replace(
        settings,
        group_probability=levels,
        probability_of=name,
        leave_out=[column for column in settings.leave_out if column not in gone],
    )
    return with_group_column(replace(source, table=table), settings)


def _largest(table: Any, levels: dict[str, str]) -> Any:
    import ibis

    return ibis.greatest(*(as_number(table[column]) for column in levels.values()))


def _labelled(
    source: Source, settings: AuditSettings, attributes: dict[str, dict[str, str]], group: str
) -> tuple[Source, AuditSettings]:
    import ibis

    table, taken = source.table, set(source.table.columns) - {group}
    names = {name: name if name not in taken else f"{name} (group)" for name in attributes}
    labels = {
        names[attribute]: ibis.cases(
            *(
                (as_number(table[column]) >= number(CERTAIN), level)
                for level, column in levels.items()
            )
        )
        for attribute, levels in attributes.items()
    }
    replaced = [column for levels in attributes.values() for column in levels.values()]
    table = table.mutate(**labels).drop(*replaced, *([] if group in labels else [group]))
    columns = tuple(names.values())
    settings = replace(
        settings,
        columns={**settings.columns, "group": columns[0]},
        attributes=columns if len(columns) > 1 else (),
        leave_out=[name for name in settings.leave_out if name not in (*replaced, group)],
    )
    return replace(source, table=table), settings
