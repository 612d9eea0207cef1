"""A first look at a log: which column is what, how many groups, arms and categories, and when.

It reads few columns, and a sample of the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd

from evenhand._columns.buckets import MOST_GROUPS
from evenhand._columns.diagnosis import dates
from evenhand._columns.features import MOST_CATEGORIES, most_frequent_first
from evenhand._columns.words import shown
from evenhand.audit._input.diagnosis import (
    aside,
    check_categories,
    no_number,
    one_group,
    too_many,
    values_of,
)
from evenhand.audit._input.expressions import in_words
from evenhand.audit._input.roles import check_named, columns_of
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import AuditSettings
from evenhand.bias.statistics import Array
from evenhand.errors import DataError, blank, setting
from evenhand.events.columns import NEEDED, Columns

NANOSECONDS = "TIMESTAMPTZ_NS"  # of DuckDB, which Ibis does not know
MOST_ARMS = 200
ASIDE = 0.05  # of a sample, on each side of its median: the range to look for that of all rows
MOST_LABELS = 50_000  # groups, or arms of groups, up to which all are counted exactly
MOST_SUMS = 500_000  # of all cells together, if windows are cells of their own
WINDOWS = 8
RARE, SMALL_GROUP = 0.01, 30  # a part of all rows, and rows of a group
PER_WINDOW = 20  # rows that a window must have for every coefficient


@dataclass(frozen=True)
class Times:
    """Time windows of equal length, from `start` on, in seconds or in the column's own numbers."""

    start: float
    width: float
    count: int
    dates: bool

    def label(self, window: int) -> str:
        """When a window begins."""
        value = self.start + window * self.width
        if not self.dates:
            return f"{value:.12g}"
        when = datetime.fromtimestamp(value, UTC)
        if self.width < 1.0:
            return when.isoformat(sep=" ", timespec="microseconds").removesuffix("+00:00")
        return when.strftime("%Y-%m-%d" if self.width >= 86_400 else "%Y-%m-%d %H:%M:%S")


@dataclass(frozen=True, eq=False)
class Look:
    """The results of the first look."""

    columns: Columns
    rows: int  # 0 where they were not counted
    numbers: tuple[str, ...]
    categories: dict[str, list[str]]  # by nominal feature: those kept, the most frequent first
    merged: dict[str, int]  # by nominal feature: how many categories were merged into "other"
    rare: dict[str, list[str]]  # by nominal feature: those that count as the most frequent one
    unseen: bool  # whether a feature with a single category lacks values, which no sum shows
    centres: dict[str, float]
    reward_centre: float
    arms: int  # about how many; 0 without a column of them
    by_arm: bool
    times: Times | None
    middle: tuple[float, float] | None = None  # where the median reward should be, by a sample
    labels: list[tuple[object, ...]] | None = None  # the groups, and their arms, that there are


def check_rows(source: Source) -> None:
    """An error if there is no row: without one nothing is known of the columns either."""
    first = source.table.select(source.table.columns[0])
    if source.fetch(first.limit(1)).empty:
        raise DataError(f"{source.label} has no rows; an audit needs some")


def look(source: Source, settings: AuditSettings, by_probability: bool = False) -> Look:
    """Look at a log, or say which column is wrong and what to do about it.

    Args:
        source: the log.
        settings: of the audit.
        by_probability: whether groups are known by probability; then one column stands for all.
    """
    schema = source.table.schema()
    columns = columns_of(source, settings)
    check_named("nominal_columns", settings.nominal_columns, columns.features)
    if not columns.features and not settings.attributes:  # cells differ without any as well
        raise DataError(
            "no column is left as a feature; name some, such as "
            f"{setting('features', [blank('COLUMN')])}: the log has {shown(schema.names)}"
        )
    columns = _numeric(source, schema, columns, settings)
    nominal, numbers = _kinds(schema, columns.features, settings.nominal_columns)
    counted = _count(source, schema, columns, nominal, settings)
    rows, arms = int(counted["rows"]), int(counted.get("arms", 0))
    if not by_probability:
        _check_groups(source, counted, columns)
    categories, merged, rare, unseen = _categories(
        source, nominal, counted, columns.group, settings
    )
    width = 1 + len(numbers) + sum(len(kept) for kept in categories.values())
    times = _times(counted, schema, columns, settings, width)
    sample = _sampled(source, (*numbers, columns.reward))
    rewards = sample[columns.reward]
    return Look(
        columns=columns,
        rows=rows,
        numbers=numbers,
        categories=categories,
        merged=merged,
        rare=rare,
        unseen=unseen,
        centres={name: _centre(sample[name]) for name in numbers},
        reward_centre=_centre(rewards),
        middle=_middle(rewards),
        arms=arms,
        by_arm=0 < arms <= MOST_ARMS,
        times=times,
        labels=counted.get("labels"),
    )


def _check_groups(source: Source, counted: dict[Any, Any], columns: Columns) -> None:
    """Groups to compare: at least two, and not as many as an identifier has."""
    rough = counted.get("labels") is None
    if counted["groups"] > (1.3 if rough else 1.0) * MOST_GROUPS:
        raise DataError(
            f"group is {columns.group!r}, with about {counted['groups']:,} values; allowed are up "
            f"to {MOST_GROUPS} groups: name another column, or merge some of them"
        )
    # The count is a rough one, and too low by chance where values share a hash.
    if counted["groups"] < 2 and len(few := values_of(source, source.table[columns.group])) < 2:
        raise one_group(columns.group, few)


def alike_groups(groups: Sequence[str]) -> list[str]:
    """A sentence for groups that differ only by case or blanks, as one that is misspelt does.

    Example:
        >>> from evenhand.audit._input.first_look import alike_groups
        >>> alike_groups(["Alba", "Brel"])
        []
        >>> alike_groups(["Alba", "Brel", "alba "])[0].split(":")[0]
        "Groups 'Alba' and 'alba ' differ only by case or blanks"
    """
    folded: dict[str, list[str]] = {}
    for name in groups:
        folded.setdefault(" ".join(name.casefold().split()), []).append(name)
    return [
        f"Groups {' and '.join(map(repr, names))} differ only by case or blanks: they are compared "
        "as different groups; if they are the same, spell them alike in the log and audit again."
        for names in folded.values()
        if len(names) > 1
    ]


def _is_number(kind: Any) -> bool:
    return bool(kind.is_numeric() or kind.is_boolean())


def _numeric(source: Source, schema: Any, columns: Columns, settings: AuditSettings) -> Columns:
    """The columns, without those that were found by their names and hold nothing at all."""
    for role in ("reward", "true_reward", "propensity", "weight"):
        name = getattr(columns, role)
        if name is None or _is_number(schema[name]):
            continue
        if role not in (*NEEDED, *settings.columns) and not values_of(source, source.table[name]):
            columns = replace(columns, **{role: None})  # type: ignore[arg-type]
            continue
        raise no_number(source, role, name, settings.marks)
    return columns


def _kinds(
    schema: Any, features: tuple[str, ...], named: Any
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    nominal, numbers = [], []
    for name in features:
        kind = schema[name]
        if kind.is_string() or name in named:
            nominal.append(name)
        elif _is_number(kind):
            numbers.append(name)
        elif kind.is_temporal():
            raise dates(name, role="timestamp")
        else:
            raise DataError(
                f"feature {name!r} is a column of {in_words(kind)}; allowed are numbers and text: "
                f"leave it out with {setting('leave_out', [name])}, or turn it into one of these",
                parameter="features",
                value=name,
            )
    return tuple(nominal), tuple(numbers)


def _count(
    source: Source,
    schema: Any,
    columns: Columns,
    nominal: tuple[str, ...],
    settings: AuditSettings,
) -> dict[Any, Any]:
    """How many rows, groups, arms and categories there are, the first time and the last."""
    table = source.table
    labels = _labels(source, columns)
    aggregates = dict[str, Any]()
    if labels is None:
        aggregates |= {"rows": table.count(), "groups": table[columns.group].approx_nunique()}
        if columns.arm is not None:
            aggregates["arms"] = table[columns.arm].approx_nunique()
    aggregates |= {f"n{i}": table[name].approx_nunique() for i, name in enumerate(nominal)}
    row: dict[Any, Any] = {}
    if aggregates:
        row = source.fetch(table.aggregate(**aggregates)).iloc[0].to_dict()
        row |= {("categories", name): row.pop(f"n{i}") for i, name in enumerate(nominal)}
    if labels is not None:
        row |= {"rows": labels["n"].sum(), "groups": labels["g"].nunique()}
        row |= {"arms": labels["a"].nunique()} if "a" in labels else {}
        names = labels.drop(columns="n").astype(object)
        row["labels"] = list(names.where(names.notna(), None).itertuples(index=False, name=None))
    if columns.timestamp is not None:
        # In a query of their own, which Parquet answers without reading rows.
        kind, column = schema[columns.timestamp], table[columns.timestamp]
        if not (kind.is_temporal() or kind.is_numeric() or NANOSECONDS in str(kind)):
            raise _no_time(columns.timestamp, kind, settings)
        ends = [seconds(end, kind) for end in (column.min(), column.max())]
        row |= source.fetch(table.aggregate(first=ends[0], last=ends[1])).iloc[0].to_dict()
    return row


def _labels(source: Source, columns: Columns) -> pd.DataFrame | None:
    """The groups, and their arms, that there are, with their rows; None if they are too many."""
    table = source.table
    picked = {"g": table[columns.group].cast("string")}
    if columns.arm is not None:
        picked["a"] = table[columns.arm].cast("string")
    pairs = table.select(**picked)
    sizes = pairs.group_by(list(picked)).aggregate(n=pairs.count())
    labels = source.fetch(sizes.limit(MOST_LABELS + 1))
    return labels if len(labels) <= MOST_LABELS else None


def _no_time(name: str, kind: Any, settings: AuditSettings) -> DataError:
    return DataError(
        f"{setting('timestamp')} is {name!r}, a column of {in_words(kind)}; allowed are times, "
        f"dates and numbers: convert it, or {aside('timestamp', name, settings.columns)}",
        value=name,
    )


def seconds(column: Any, kind: Any) -> Any:
    """A time as a number: seconds since 1970, or the number that it is."""
    if kind.is_timestamp():
        return column.epoch_seconds().cast("float64")
    if NANOSECONDS in str(kind):
        return column.cast("string").cast("timestamp('UTC')").epoch_seconds().cast("float64")
    if kind.is_date():
        return column.cast("timestamp").epoch_seconds().cast("float64")
    return column.cast("float64")


def _categories(
    source: Source,
    nominal: tuple[str, ...],
    counted: dict[Any, Any],
    group: str,
    settings: AuditSettings,
) -> tuple[dict[str, list[str]], dict[str, int], dict[str, list[str]], bool]:
    most = settings.categories
    kept, merged, rare, unseen = {}, {}, {}, False
    for name in nominal:
        count = int(counted["categories", name])
        if count > 1.3 * MOST_CATEGORIES:
            raise too_many(source, name, count, name in settings.nominal_columns, settings.marks)
        table = source.table.select(
            category=source.table[name].cast("string"), group=source.table[group].cast("string")
        )
        table = table.filter(table.category.notnull())
        counts = source.fetch(table.group_by(["category", "group"]).aggregate(n=table.count()))
        # The order of equal counts must not depend on an engine's idea of the alphabet.
        totals = counts.groupby("category")["n"].sum()
        names = most_frequent_first(totals)
        if name not in settings.nominal_columns or not names:
            check_categories(name, names, settings.marks, source.decimal)
        unseen |= len(names) == 1 and int(totals.sum()) < counted["rows"]
        few = _rare(counts, names[0])
        names = [name for name in names if name not in few]
        kept[name] = names[:most]
        merged[name] = max(len(names) - most, 0)
        rare[name] = few
    return kept, merged, rare, unseen


def _rare(counts: pd.DataFrame, baseline: str) -> list[str]:
    """Categories with hardly any rows that a group lacks: nothing can be said of them.

    As categories of their own they would leave no average context to compare all groups at.
    """
    table = counts.dropna(subset="group").pivot_table(
        index="category", columns="group", values="n", aggfunc="sum", fill_value=0
    )
    large = table.loc[:, table.sum() >= SMALL_GROUP]
    total = table.sum(axis=1)
    is_rare = (large == 0).any(axis=1) & (total < RARE * total.sum())
    return [str(name) for name in table.index[is_rare] if str(name) != baseline]


def _times(
    counted: dict[Any, Any], schema: Any, columns: Columns, settings: AuditSettings, width: int
) -> Times | None:
    if columns.timestamp is None or pd.isna(counted["first"]) or settings.windows == 0:
        return None
    first, last = float(counted["first"]), float(counted["last"])
    count = settings.windows
    if count is None:
        fits = int(counted["rows"] // (PER_WINDOW * width * max(counted["groups"], 1)))
        count = min(WINDOWS, fits)
    if count < 2 or not last > first:
        return None
    kind = schema[columns.timestamp]
    return Times(first, (last - first) / count, count, not kind.is_numeric())


def _sampled(source: Source, names: tuple[str, ...]) -> dict[str, Array]:
    """The finite numbers of each column in the first rows."""
    sample, numbers = source.first_rows(names), {}
    for name in names:
        values = sample[name].to_numpy(dtype=np.float64, na_value=np.nan)
        numbers[name] = values[np.isfinite(values)]
    return numbers


def _is_plain(values: Array) -> bool:
    return not values.size or bool(np.isin(values, (0.0, 1.0)).all())


def _centre(values: Array) -> float:
    """A number near the mean of a column, by its sample; 0 for columns of 0 and 1.

    It has few digits, so that it is the same number in SQL as here.
    """
    return 0.0 if _is_plain(values) else float(f"{values.mean():.6g}")


def _middle(rewards: Array) -> tuple[float, float] | None:
    """Where the median of all rewards should be, by a sample; None where they are 0 and 1."""
    if _is_plain(rewards):
        return None
    low, high = np.quantile(rewards, [0.5 - ASIDE, 0.5 + ASIDE])
    return float(low), float(high)
