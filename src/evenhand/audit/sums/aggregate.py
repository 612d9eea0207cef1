"""The one aggregation: all sums that the report needs, by group, arm and time window."""

from __future__ import annotations

from typing import Any

import pandas as pd

from evenhand.audit.input.expressions import as_number, is_missing, number
from evenhand.audit.input.scan import MOST_SUMS, Look, Times, seconds
from evenhand.audit.input.sources import Source
from evenhand.audit.settings import Settings
from evenhand.audit.sums.design import Design
from evenhand.audit.sums.exposure import OPTIONAL, attention_of, attention_sums
from evenhand.audit.sums.missing import Gaps, complete, finite
from evenhand.errors import DataError

KEYS = ("g", "a", "t")
ROWS = "evenhand_rows"  # in every answer to a part of a question


def prepared(source: Source, look: Look, settings: Settings, design: Design, gaps: Gaps) -> Any:
    """The rows that are used, with short names: g group, a arm, t window, y reward, z features.

    Features and reward have their centres subtracted, so that sums of products keep their digits.
    """
    columns = look.columns
    table = complete(source.table, look, settings, gaps)
    picked = {
        "g": table[columns.group].cast("string"),
        "y": as_number(table[columns.reward]) - number(design.reward_centre),
        **{f"z{i}": design.expression(table, one) for i, one in enumerate(design.features)},
    }
    if look.by_arm:
        picked["a"] = table[columns.arm].cast("string")
    if look.times is not None:
        kind = source.table.schema()[columns.timestamp]
        picked["t"] = window(seconds(table[columns.timestamp], kind, ""), look.times)
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
    picked |= attention_of(table, columns)
    return table.select(**picked)


def weights(table: Any, look: Look, settings: Settings) -> Any | None:
    """The weight of each row, if rows have any."""
    columns, found = look.columns, None
    if columns.weight is not None:
        found = table[columns.weight].cast("float64")
    if settings.weigh_by_propensity:
        inverse = _inverse(table[columns.propensity])
        found = inverse if found is None else found * inverse
    return found


def _inverse(propensity: Any) -> Any:
    """1 over it, and nothing where it is 0: engines differ in what that would be."""
    return number(1.0) / propensity.cast("float64").nullif(number(0.0))


def window(when: Any, times: Times) -> Any:
    """The number of the window of a time."""
    position = ((when - number(times.start)) / number(times.width)).floor().cast("int64")
    return position.clip(0, times.count - 1)


def sums(rows: Any, p: int) -> dict[str, Any]:
    """All sums, by name, of rows that `prepared` made with p features."""
    names, have = [f"z{i}" for i in range(p)], set(rows.columns)
    weighted = "w" in have
    y, z = rows["y"], [rows[name] for name in names]
    heavy = [rows["w"] * one for one in z] if weighted else z
    heavy_y = rows["w"] * y if weighted else y
    whole = sum(z, y)
    asked = {"n": rows.count(), "complete": whole.count(), "low": y.min(), "high": y.max()}
    asked |= {"y": y.sum(), "yy": (y * y).sum()}
    if weighted:
        w = rows["w"]
        asked |= {"w": w.sum(), "ww": (w * w).sum(), "least": w.min(), "weighed": w.count()}
        asked["broken"] = (w != w.floor()).cast("int32").sum()
        asked |= {"wy": heavy_y.sum(), "wyy": (heavy_y * y).sum()}
    asked |= {f"z{i}": one.sum() for i, one in enumerate(heavy)}
    asked |= {f"least{i}": one.min() for i, one in enumerate(z)}
    asked |= {f"most{i}": one.max() for i, one in enumerate(z)}
    asked |= {f"zy{i}": (one * y).sum() for i, one in enumerate(heavy)}
    asked |= {f"z{i}_{j}": (heavy[i] * z[j]).sum() for i in range(p) for j in range(i, p)}
    if "p" in have:
        asked |= {"p": rows["p"].sum(), "pp": (rows["p"] * rows["p"]).sum()}
        asked |= {
            "surest": rows["p"].min(),
            "chances": rows["p"].count(),
        }
    if "r" in have:
        r = rows["r"]
        asked |= {"r_n": r.count(), "r": r.sum(), "rr": (r * r).sum(), "yr": (y * r).sum()}
        known = r.notnull().ifelse(y, number(0.0))
        asked |= {"y_r": known.sum(), "yy_r": (known * known).sum()}
    if "o" in have:
        asked["o"] = rows["o"].sum()
    if "c" in have:
        asked["clustered"] = rows.count() - is_missing(rows["c"]).cast("int32").sum()
    return asked | attention_sums({name: rows[name] for name in ("q", "s") if name in have}, y)


def aggregated(
    source: Source, look: Look, settings: Settings, design: Design, gaps: Gaps
) -> tuple[pd.DataFrame, bool]:
    """The sums, a row per cell, and whether windows are cells. May hold NaN: see `spoiled`."""
    rows = prepared(source, look, settings, design, gaps)
    asked = sums(rows, len(design.features))
    cells = max(look.arms if look.by_arm else 1, 1) * (look.times.count if look.times else 1)
    by_window = look.times is not None and cells * len(asked) <= MOST_SUMS
    keys = [key for key in KEYS if key in rows.columns and (key != "t" or by_window)]
    return fetch_by(source, rows, keys, asked), by_window


def fetch_by(source: Source, rows: Any, keys: list[str], asked: dict[str, Any]) -> pd.DataFrame:
    """One query; several where an engine does not do with so many columns in an answer.

    Every query counts the rows of every cell as well. If these are not the same, the log changed
    in between, and its sums do not belong together.
    """
    names, most = list(asked), source.widest or len(asked)
    parts = [names[i : i + most] for i in range(0, len(names), most)]
    frames = []
    for part in parts:
        wanted = {name: asked[name] for name in part}
        found = source.fetch(rows.group_by(keys).aggregate(**wanted, **{ROWS: rows.count()}))
        found = found.astype({"g": object} if "g" in keys else {})
        found = found.sort_values(keys, ignore_index=True)
        frames.append(found)
        if not found[[*keys, ROWS]].equals(frames[0][[*keys, ROWS]]):
            raise DataError(
                f"{source.label} changed while it was read, so its sums do not belong together; "
                "audit it again when nothing writes to it"
            )
    first, *rest = [frame.drop(columns=ROWS) for frame in frames]
    return pd.concat([first, *(frame.drop(columns=keys) for frame in rest)], axis=1)


def by_window_only(
    source: Source, look: Look, settings: Settings, design: Design, gaps: Gaps
) -> pd.DataFrame:
    """Counts and rewards by group and window, where full sums would be too many."""
    rows = prepared(source, look, settings, design, gaps)
    y = rows["y"]
    asked = {"n": rows.count(), "y": y.sum(), "yy": (y * y).sum()}
    return fetch_by(source, rows, ["g", "t"], asked)


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
