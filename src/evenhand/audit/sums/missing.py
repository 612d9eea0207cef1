"""Missing values: counted by group and column, and never left out without a word."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from evenhand.audit.input.expressions import as_number, is_missing, number, shown
from evenhand.audit.input.scan import Look
from evenhand.audit.input.sources import Source
from evenhand.audit.settings import Settings
from evenhand.audit.sums.exposure import attention_of, attention_sums
from evenhand.errors import DataError, InputError, setting
from evenhand.events.columns import Columns

NO_GROUP = "missing"
# What was done about it.
FILLED, LEFT_OUT = "filled in", "rows left out"
NOT_FILLABLE = "rows left out, for it cannot be filled in"


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


NONE = Gaps(pd.DataFrame(columns=["group", "column", "missing", "rows", "done"]))


def used(columns: Columns, settings: Settings, by_arm: bool) -> list[str]:
    """The columns of the log that the regression needs in every row."""
    roles = [columns.group, columns.reward, *columns.features]
    optional = [
        columns.arm if by_arm else None,
        columns.weight,
        columns.cluster,
        columns.propensity if settings.weigh_by_propensity else None,
    ]
    return list(dict.fromkeys([*roles, *(name for name in optional if name is not None)]))


def count_gaps(source: Source, look: Look, settings: Settings) -> Gaps:
    """Count what is missing, and settle what is done; with missing="error" that is an error."""
    import ibis

    names = used(look.columns, settings, look.by_arm)
    table = source.table.mutate(evenhand_group=source.table[look.columns.group].cast("string"))
    fillable = [name for name in look.columns.features if name not in needed(look, settings)]
    fill = fillable if settings.missing == "fill" else []
    gone = {name: is_missing(table[name]) for name in names}
    asked = {f"c{i}": flag.sum() for i, flag in enumerate(gone.values())}
    asked["rows"] = table.count()
    out = _any([gone[name] for name in names if name not in fill])
    asked["left_out"] = out.sum()
    asked["filled"] = (
        (_any([gone[name] for name in fill]) & ~out).sum() if fill else table.count() * 0
    )
    reward = gone[look.columns.reward].ifelse(
        ibis.null("float64"), as_number(table[look.columns.reward]) - number(look.reward_centre)
    )
    asked |= {"n": reward.count(), "y": reward.sum(), "yy": (reward * reward).sum()}
    asked |= attention_sums(attention_of(table, look.columns), reward)
    counts = source.fetch(table.group_by("evenhand_group").aggregate(**asked))
    known = counts["evenhand_group"].astype(object)
    nobody = NO_GROUP if NO_GROUP not in set(known) else f"({NO_GROUP})"
    counts = counts.assign(evenhand_group=known.fillna(nobody)).sort_values("evenhand_group")
    totals = {name: int(counts[f"c{i}"].sum()) for i, name in enumerate(names)}
    concerned = {name: many for name, many in totals.items() if many}
    rows = int(counts["rows"].sum())
    if settings.missing == "error" and concerned:
        raise DataError(
            f"missing values in {listed(concerned)}, of {rows:,} rows; choose "
            f"{setting('missing', 'drop')} to leave such rows out, or {setting('missing', 'fill')} "
            "to fill in features (mean, or a category of their own) and leave out rows without "
            "what cannot be filled in, such as the reward"
        )
    empty = [name for name in fill if totals[name] == rows]
    if empty:
        raise InputError(
            f"{setting('missing')}: feature {empty[0]!r} has no value in any row, so there is "
            f"nothing to fill in; leave it out with {setting('leave_out', [empty[0]])}"
        )
    left_out = int(counts["left_out"].sum())
    if left_out == rows:
        raise DataError(
            f"missing values in {listed(concerned)}: no row is left without; leave such columns "
            f"out with {setting('leave_out')}, or choose {setting('missing', 'fill')}"
        )
    records = [
        (group, name, int(counts[f"c{i}"].iloc[row]), int(counts["rows"].iloc[row]),
         FILLED if name in fill else NOT_FILLABLE if settings.missing == "fill" else LEFT_OUT)
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
    )


def needed(look: Look, settings: Settings) -> list[str]:
    """Columns that cannot be filled in: all but features."""
    roles = used(look.columns, settings, look.by_arm)
    return [name for name in roles if name not in look.columns.features]


def complete(table: Any, look: Look, settings: Settings, gaps: Gaps) -> Any:
    """The rows of the table that are used."""
    if not gaps.left_out:
        return table
    names = used(look.columns, settings, look.by_arm)
    fill = settings.missing == "fill"
    must = [
        name
        for name in names
        if name in gaps.columns and (not fill or name in needed(look, settings))
    ]
    return table.filter(~_any([is_missing(table[name]) for name in must]))


def listed(columns: dict[str, int], most: int = 6) -> str:
    """Columns and how many values they lack."""
    names = sorted(columns, key=lambda name: -columns[name])
    text = ", ".join(f"{shown([name])} {columns[name]:,}" for name in names[:most])
    return text + (f" and {len(names) - most} more columns" if len(names) > most else "")


def _any(flags: list[Any]) -> Any:
    result = flags[0]
    for flag in flags[1:]:
        result = result | flag
    return result


def finite(frame: pd.DataFrame) -> bool:
    """Whether every number of an answer is one."""
    values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return bool(np.isfinite(values).all())
