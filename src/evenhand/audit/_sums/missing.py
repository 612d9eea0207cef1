"""Missing values: counted by group and column, and never left out silently."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from evenhand._columns.missing import (
    ERROR,
    FILL,
    choices,
    not_chosen,
    nothing_left,
    nothing_to_fill,
)
from evenhand._columns.words import MISSING
from evenhand.audit._input.diagnosis import check_nan
from evenhand.audit._input.expressions import as_number, is_missing, number
from evenhand.audit._input.first_look import Look
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import AuditSettings
from evenhand.audit._sums.extra_sums import exposure_columns, exposure_details
from evenhand.events.columns import Columns

# What was done about a missing value.
FILLED, LEFT_OUT = "filled in", "rows left out"
NOT_FILLABLE = "rows left out, because it cannot be filled in"


@dataclass(frozen=True, eq=False)
class Gaps:
    """What is missing: a row per group and column, and what was done about it."""

    table: pd.DataFrame
    rows: int = 0
    left_out: int = 0
    filled: int = 0
    columns: dict[str, int] = field(default_factory=dict)
    by_group: dict[str, int] = field(default_factory=dict)  # all rows of each group
    sums: pd.DataFrame | None = None  # by group, of all rows: n, y and yy of rewards, and more
    centre: float = 0.0  # of the rewards in them
    fill: tuple[str, ...] = ()  # columns whose values are filled in

    @property
    def to_fill(self) -> dict[str, int]:
        """How many values each of the columns that are filled in lacks."""
        return {name: self.columns[name] for name in self.fill if name in self.columns}


NONE = Gaps(pd.DataFrame(columns=["group", "column", "missing", "rows", "done"]))


def used(columns: Columns, settings: AuditSettings, by_arm: bool) -> list[str]:
    """The columns of the log that the regression needs in every row."""
    roles = [columns.group, columns.reward, *columns.features]
    optional = [
        columns.arm if by_arm else None,
        columns.weight,
        columns.cluster,
        columns.propensity if settings.weigh_by_propensity else None,
    ]
    return list(dict.fromkeys([*roles, *(name for name in optional if name is not None)]))


def chosen(look: Look, settings: AuditSettings) -> dict[str, str]:
    """What is done about each column that is used."""
    return choices(used(look.columns, settings, look.by_arm), settings.missing)


def count_gaps(source: Source, look: Look, settings: AuditSettings) -> Gaps:
    """Count missing values and decide what to do; with missing="error" they are an error."""
    import ibis

    names = used(look.columns, settings, look.by_arm)
    table = source.table.mutate(evenhand_group=source.table[look.columns.group].cast("string"))
    how = chosen(look, settings)
    roles = needed(look, settings)
    fill = [name for name in names if how[name] == FILL and name not in roles]
    lacks = {name: is_missing(table[name]) for name in names}
    aggregates = {f"c{i}": flag.sum() for i, flag in enumerate(lacks.values())}
    kinds = source.table.schema()
    nan = [name for name in names if source.files and kinds[name].is_floating()]
    aggregates |= {f"nan{i}": table[name].isnan().sum() for i, name in enumerate(nan)}
    aggregates["rows"] = table.count()
    out = _any([lacks[name] for name in names if name not in fill])
    aggregates["left_out"] = out.sum()
    strict = [lacks[name] for name in names if how[name] == ERROR]
    aggregates["refused"] = _any(strict).sum() if strict else table.count() * 0
    aggregates["filled"] = (
        (_any([lacks[name] for name in fill]) & ~out).sum() if fill else table.count() * 0
    )
    reward = lacks[look.columns.reward].ifelse(
        ibis.null("float64"), as_number(table[look.columns.reward]) - number(look.reward_centre)
    )
    aggregates |= {"n": reward.count(), "y": reward.sum(), "yy": (reward * reward).sum()}
    exposure = exposure_details(exposure_columns(table, look.columns), reward)
    aggregates |= {name: detail.asked for name, detail in exposure.items()}
    counts = source.fetch(table.group_by("evenhand_group").aggregate(**aggregates))
    written = {name: int(counts[f"nan{i}"].sum()) for i, name in enumerate(nan)}
    check_nan(source, look.columns, written, settings.marks)
    known = counts["evenhand_group"].astype(object)
    no_group = MISSING if MISSING not in set(known) else f"({MISSING})"
    counts = counts.assign(evenhand_group=known.fillna(no_group)).sort_values("evenhand_group")
    totals = {name: int(counts[f"c{i}"].sum()) for i, name in enumerate(names)}
    concerned = {name: many for name, many in totals.items() if many}
    rows = int(counts["rows"].sum())
    left_out = int(counts["left_out"].sum())
    refused = {name: many for name, many in concerned.items() if how[name] == ERROR}
    if refused:
        raise not_chosen(int(counts["refused"].sum()), rows, refused)
    empty = [name for name in fill if totals[name] == rows]
    if empty:
        raise nothing_to_fill(empty[0])
    if left_out == rows:
        raise nothing_left(rows, {name: n for name, n in concerned.items() if name not in fill})
    records = [
        (group, name, int(counts[f"c{i}"].iloc[row]), int(counts["rows"].iloc[row]),
         FILLED if name in fill else NOT_FILLABLE if how[name] == FILL else LEFT_OUT)
        for row, group in enumerate(counts["evenhand_group"])
        for i, name in enumerate(names)
        if name in concerned
    ]  # fmt: skip
    return Gaps(
        pd.DataFrame(records, columns=NONE.table.columns),
        rows,
        left_out,
        int(counts["filled"].sum()),
        concerned,
        dict(zip(counts["evenhand_group"], counts["rows"].astype(int), strict=True)),
        counts.set_index("evenhand_group"),
        look.reward_centre,
        tuple(fill),
    )


def needed(look: Look, settings: AuditSettings) -> list[str]:
    """Columns that cannot be filled in: all but features."""
    roles = used(look.columns, settings, look.by_arm)
    return [name for name in roles if name not in look.columns.features]


def complete(table: Any, look: Look, settings: AuditSettings, gaps: Gaps) -> Any:
    """The rows of the table that are used."""
    if not gaps.left_out:
        return table
    names = used(look.columns, settings, look.by_arm)
    must = [name for name in names if name in gaps.columns and name not in gaps.fill]
    return table.filter(~_any([is_missing(table[name]) for name in must]))


def _any(flags: list[Any]) -> Any:
    result = flags[0]
    for flag in flags[1:]:
        result = result | flag
    return result


def finite(frame: pd.DataFrame) -> bool:
    """Whether every number of an answer is finite."""
    values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return bool(np.isfinite(values).all())
