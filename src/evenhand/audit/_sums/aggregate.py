"""The one aggregation: all sums that the report needs, by group, arm and time window.

DuckDB gives its rows, which `streamed` sums up; other engines run elsewhere, and a query of sums
transfers less from there than its rows.

`group_sums` and the functions below it compute the sums of the fairness metrics from the same
answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evenhand.audit._input.expressions import as_number, number
from evenhand.audit._input.first_look import MOST_SUMS, Look, Times, seconds
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import AuditSettings
from evenhand.audit._sums.batches import NUMBER_OF
from evenhand.audit._sums.cells import Cells
from evenhand.audit._sums.design import Design
from evenhand.audit._sums.extra_sums import (
    OPTIONAL,
    Detail,
    details,
    exposure_columns,
    exposure_details,
    exposure_sums,
)
from evenhand.audit._sums.missing import Gaps, complete, finite
from evenhand.audit._sums.streamed import streamed
from evenhand.errors import DataError

KEYS = ("g", "a", "t")
ROWS = "evenhand_rows"  # in every answer to a part of a query


def prepared(
    source: Source, look: Look, settings: AuditSettings, design: Design, gaps: Gaps
) -> Any:
    """The rows that are used, with short names: g group, a arm, t window, y reward, z features.

    Features and reward have their centres subtracted, so that sums of products keep their digits.
    """
    columns = look.columns
    table = complete(source.table, look, settings, gaps)
    picked = {
        "g": table[columns.group].cast("string"),
        "y": as_number(table[columns.reward]) - number(design.reward_centre),
        **{f"z{i}": design.expression(table, feature) for i, feature in enumerate(design.features)},
    }
    if look.by_arm:
        picked["a"] = table[columns.arm].cast("string")
        if table[columns.arm].type().is_signed_integer():
            picked[NUMBER_OF["a"]] = table[columns.arm]
    if look.times is not None:
        kind = source.table.schema()[columns.timestamp]
        picked["t"] = window(seconds(table[columns.timestamp], kind), look.times)
    weight = weights(table, look, settings)
    if weight is not None:
        picked["w"] = weight
    if columns.propensity is not None:
        picked["p"] = _inverse(table[columns.propensity])
    if columns.true_reward is not None:
        picked["r"] = as_number(table[columns.true_reward])
    if columns.override is not None:
        picked["o"] = table[columns.override].notnull().cast("int32")
    if columns.cluster is not None:
        picked["c"] = table[columns.cluster]
    picked |= exposure_columns(table, columns)
    return table.select(**picked)


def weights(table: Any, look: Look, settings: AuditSettings) -> Any | None:
    """The weight of each row, if rows have any."""
    columns, weight = look.columns, None
    if columns.weight is not None:
        weight = table[columns.weight].cast("float64")
    if settings.weigh_by_propensity:
        inverse = _inverse(table[columns.propensity])
        weight = inverse if weight is None else weight * inverse
    return weight


def _inverse(propensity: Any) -> Any:
    """1 over it, and null where it is 0: engines disagree on what that would be."""
    return number(1.0) / propensity.cast("float64").nullif(number(0.0))


def window(when: Any, times: Times) -> Any:
    """The number of the window of a time."""
    import ibis

    position, last = (when - number(times.start)) / number(times.width), times.count - 1
    # Cheaper than `least` and `greatest`, which Ibis guards against NULL.
    return ibis.cases(
        (position < number(1.0), ibis.literal(0, "int64")),
        (position >= number(float(last)), ibis.literal(last, "int64")),
        else_=position.floor().cast("int64"),
    )


def sums(rows: Any, p: int) -> dict[str, Any]:
    """The sums of products of features and reward, by name, of rows with p features, for SQL.

    With x the intercept and the features z, they are sum w x x', sum w x y and sum w y^2; w is 1
    without weights.
    """
    names, weighted = [f"z{i}" for i in range(p)], "w" in rows.columns
    y, z = rows["y"], [rows[name] for name in names]
    heavy = [rows["w"] * feature for feature in z] if weighted else z
    heavy_y = rows["w"] * y if weighted else y
    # A sum is NULL if any of its terms is, so one count finds all incomplete rows.
    whole = sum(z, y)
    totals = {"n": rows.count(), "complete": whole.count(), "low": y.min(), "high": y.max()}
    if weighted:
        totals |= {"w": rows["w"].sum(), "wy": heavy_y.sum(), "wyy": (heavy_y * y).sum()}
    else:
        totals |= {"y": y.sum(), "yy": (y * y).sum()}
    totals |= {f"z{i}": feature.sum() for i, feature in enumerate(heavy)}
    totals |= {f"least{i}": feature.min() for i, feature in enumerate(z)}
    totals |= {f"most{i}": feature.max() for i, feature in enumerate(z)}
    totals |= {f"zy{i}": (feature * y).sum() for i, feature in enumerate(heavy)}
    return totals | {f"z{i}_{j}": (heavy[i] * z[j]).sum() for i in range(p) for j in range(i, p)}


@dataclass(frozen=True, eq=False)
class LogSums:
    """The sums of a log, a row per cell. They may hold NaN: see `spoiled`.

    Attributes:
        frame: the sums.
        by_window: whether windows are cells.
        beyond: by group the rows, and those above and below the median reward; None where that
            takes a query of its own.
    """

    frame: pd.DataFrame
    by_window: bool
    beyond: pd.DataFrame | None = None


def aggregated(
    source: Source, look: Look, settings: AuditSettings, design: Design, gaps: Gaps
) -> LogSums:
    """Sum up the rows of a log by cell."""
    rows, p = prepared(source, look, settings, design, gaps), len(design.features)
    exposure = {name: rows[name] for name in ("q", "s") if name in rows.columns}
    more = details(rows) | exposure_details(exposure, rows["y"])
    windows = look.times.count if look.times is not None else 1
    cells = max(look.arms if look.by_arm else 1, 1) * windows
    # An upper triangle of products with the intercept and the reward, and ends of every feature.
    many = (p + 1) * (p + 2) // 2 + 3 * p + len(more)
    by_window = look.times is not None and cells * many <= MOST_SUMS
    keys = [key for key in KEYS if key in rows.columns and (key != "t" or by_window)]
    if source.kind == "duckdb":
        span = None
        if look.middle is not None and not {"w", "c"} & set(rows.columns):
            span = look.middle[0] - design.reward_centre, look.middle[1] - design.reward_centre
        frame, beyond = streamed(source, rows, keys, p, windows, more, look.labels, span)
        return LogSums(frame, by_window, beyond)
    return LogSums(queried(source, rows, keys, p, more), by_window)


def queried(
    source: Source, rows: Any, keys: list[str], p: int, more: dict[str, Detail]
) -> pd.DataFrame:
    """The sums by SQL, as `streamed` computes them from the rows themselves."""
    aggregates = sums(rows, p) | {name: detail.asked for name, detail in more.items()}
    return fetch_by(source, rows, keys, aggregates)


def fetch_by(
    source: Source, rows: Any, keys: list[str], aggregates: dict[str, Any]
) -> pd.DataFrame:
    """One query, or several where an engine does not allow so many columns in an answer.

    Every query counts the rows of every cell as well. If these counts differ, the log changed in
    between, and its sums do not belong together.
    """
    names, most = list(aggregates), source.widest or len(aggregates)
    parts = [names[i : i + most] for i in range(0, len(names), most)]
    frames = []
    for part in parts:
        part_aggregates = {name: aggregates[name] for name in part}
        answer = source.fetch(
            rows.group_by(keys).aggregate(**part_aggregates, **{ROWS: rows.count()})
        )
        answer = answer.astype({"g": object} if "g" in keys else {})
        answer = answer.sort_values(keys, ignore_index=True)
        frames.append(answer)
        # Also where a cell has appeared or vanished.
        if not answer[[*keys, ROWS]].equals(frames[0][[*keys, ROWS]]):
            raise DataError(
                f"{source.label} changed while it was read, so its sums are inconsistent; "
                "audit it again when nothing writes to it"
            )
    first, *rest = [frame.drop(columns=ROWS) for frame in frames]
    return pd.concat([first, *(frame.drop(columns=keys) for frame in rest)], axis=1)


def by_window_only(
    source: Source, look: Look, settings: AuditSettings, design: Design, gaps: Gaps
) -> pd.DataFrame:
    """Counts and rewards by group and window, where full sums would be too many."""
    rows = prepared(source, look, settings, design, gaps)
    y = rows["y"]
    aggregates = {"n": rows.count(), "y": y.sum(), "yy": (y * y).sum()}
    return fetch_by(source, rows, ["g", "t"], aggregates)


def spoiled(frame: pd.DataFrame, weighted: bool) -> bool:
    """Whether rows lack a value: then a sum is NaN, or a count is short, or a group has no name."""
    keys = [key for key in ("g", "a") if key in frame]
    optional = ["r", "rr", "yr", "p", "pp", "surest", "t", *OPTIONAL]
    numbers = frame.drop(columns=[*keys, *(name for name in optional if name in frame)])
    short = (frame["complete"] != frame["n"]).any()
    if weighted:
        short |= bool((frame["weighed"] != frame["n"]).any())
    if "clustered" in frame:
        short |= bool((frame["clustered"] != frame["n"]).any())
    return bool(short or frame[keys].isna().any(axis=None) or not finite(numbers))


def is_binary(frame: pd.DataFrame, reward_centre: float) -> bool:
    """Whether all rewards are 0 or 1: from 0 to 1, only then is the sum of y^2 that of y."""
    if reward_centre != 0.0 or frame["low"].min() < 0.0 or frame["high"].max() > 1.0:
        return False
    return bool(frame["yy"].sum() == frame["y"].sum())


def group_sums(cells: Cells, gaps: Gaps, reward_centre: float, binary: bool) -> pd.DataFrame:
    """A row per group as `fairness_report` reads it; weights are not used here."""
    frame, centre, groups = cells.frame, reward_centre, list(cells.groups())
    names = [name for name in ("n", "y", "yy", "r_n", "r", "rr") if name in frame]
    total = frame[names].astype(float).fillna(0.0).groupby(frame["g"].astype(str)).sum().loc[groups]
    every, exposure = total["n"], exposure_sums(frame, frame["g"].astype(str), total["n"], centre)
    if gaps.sums is not None:  # rows that only lack a feature have a reward all the same
        centre, every = gaps.centre, pd.Series(gaps.by_group).astype(float).loc[groups]
        total[["n", "y", "yy"]] = gaps.sums.loc[groups, ["n", "y", "yy"]].astype(float).fillna(0.0)
        whole = gaps.sums.loc[groups].rename_axis("g").reset_index()
        exposure = exposure_sums(whole, whole["g"].astype(str), every, centre)
        binary = binary and bool((total["y"] == total["yy"]).all())
    n = total["n"].to_numpy()
    # From sums about the centre to sums about zero: (y + c)^2 = y^2 + 2 c y + c^2.
    square = total["yy"] + 2.0 * centre * total["y"] + n * centre**2
    columns = {
        "group": list(total.index),
        "n": every.to_numpy(),
        "n_reward": n,
        "sum_reward": (total["y"] + n * centre).to_numpy(),
        "square_reward": square.to_numpy(),
        **exposure,
    }
    if binary:
        columns["positives"] = total["y"].round().to_numpy()
        columns["sum_reward"] = columns["square_reward"] = columns["positives"]
    if "r" in total and (total["r_n"] > 0.0).any():
        columns |= {
            "n_true_reward": total["r_n"].to_numpy(),
            "sum_true_reward": total["r"].to_numpy(),
            "square_true_reward": total["rr"].to_numpy(),
        }
    if "a" in frame:
        pairs = frame[["g", "a"]].astype(str).drop_duplicates()
        if not pairs["a"].duplicated().any():  # arms that serve several groups have no share
            counts = pairs.groupby("g").size()
            columns["arms"] = np.array([float(counts[name]) for name in total.index])
    return pd.DataFrame(columns)


def extra_sums(cells: Cells) -> pd.DataFrame:
    """A row per group with the other sums: weights, inverse propensities, overrides."""
    names = {
        "w": "sum_weight",
        "ww": "square_weight",
        "chances": "n_propensity",
        "p": "sum_inverse_propensity",
        "pp": "square_inverse_propensity",
        "o": "overrides",
    }
    have = {short: name for short, name in names.items() if short in cells.frame}
    numbers = cells.frame[list(have)].astype(float).fillna(0.0).rename(columns=have)
    total = numbers.groupby(cells.frame["g"].astype(str)).sum()
    return total.loc[list(cells.groups())].rename_axis("group").reset_index()


def by_arm(cells: Cells, reward_centre: float) -> pd.DataFrame | None:
    """A row per group and arm: pulls and mean reward; None without arms."""
    if "a" not in cells.frame:
        return None
    named = cells.frame[["g", "a"]].astype(str).set_axis(["group", "arm"], axis=1)
    named = named.assign(n=cells.frame["n"], y=cells.frame["y"])
    total = named.groupby(["group", "arm"]).sum().astype(float).reset_index()
    total["mean_reward"] = total["y"] / total["n"] + reward_centre
    total["n"] = total["n"].astype(np.int64)
    return total.drop(columns="y")
