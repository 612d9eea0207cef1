"""Sums beside the products of features and reward: weights, propensities, true rewards and more.

Explored rows and positions are summed up for the metrics of exploration and exposure.

Each is a number of every row, and how the numbers of a cell are combined. So an engine can compute
them in SQL, and a pass over batches of rows gives the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd

from evenhand.audit._input.expressions import as_number, is_missing, number
from evenhand.bias.statistics import Array
from evenhand.events.columns import Columns

Sums = dict[str, Array]
# All of them may be missing in a row, and so may their sums.
OPTIONAL = (
    "q_n",
    "q",
    "qq",
    "qy_n",
    "qy",
    "qyy",
    "s_n",
    "s_low",
    "s_high",
    "s0",
    "ss0",
    "s1",
    "ss1",
)


class Detail(NamedTuple):
    """A number of every row, as an expression, and how those of a cell are combined.

    `how` is "sum", "squares" (their sum), "count", "min" or "max"; missing numbers are left out.
    """

    column: Any
    how: str = "sum"

    @property
    def asked(self) -> Any:
        """The expression to ask an engine for."""
        if self.how == "squares":
            return (self.column * self.column).sum()
        return getattr(self.column, self.how)()


def details(rows: Any) -> dict[str, Detail]:
    """What to sum up in rows that `prepared` made, besides exposure."""
    y, have = rows["y"], set(rows.columns)
    wanted = dict[str, Detail]()
    if "w" in have:
        w = rows["w"]
        wanted |= {"y": Detail(y), "yy": Detail(y, "squares"), "ww": Detail(w, "squares")}
        wanted |= {"least": Detail(w, "min"), "weighed": Detail(w, "count")}
        # How many weights are not whole.
        wanted["broken"] = Detail((w != w.floor()).cast("int32"))
    if "p" in have:
        p = rows["p"]
        wanted |= {"p": Detail(p), "pp": Detail(p, "squares")}
        wanted |= {"surest": Detail(p, "min"), "chances": Detail(p, "count")}
    if "r" in have:
        r = rows["r"]
        wanted |= {"r_n": Detail(r, "count"), "r": Detail(r), "rr": Detail(r, "squares")}
        known = r.notnull().ifelse(y, number(0.0))
        wanted |= {"yr": Detail(y * r), "y_r": Detail(known), "yy_r": Detail(known, "squares")}
    if "o" in have:
        wanted["o"] = Detail(rows["o"])
    if "c" in have:
        wanted["clustered"] = Detail((~is_missing(rows["c"])).cast("int32"))
    return wanted


def exposure_columns(table: Any, columns: Columns) -> dict[str, Any]:
    """The columns of a log that are needed, with short names: q explored, s position."""
    picked = {}
    if columns.explored is not None and _is_flag(table[columns.explored]):
        picked["q"] = as_number(table[columns.explored])
    if columns.position is not None and table[columns.position].type().is_numeric():
        picked["s"] = table[columns.position].cast("float64")
    return picked


def exposure_details(have: dict[str, Any], y: Any) -> dict[str, Detail]:
    """What to sum up.

    The exposure at rank k, from 1, is 1 / log2(k + 1). Positions begin at 0 or at 1, which shows
    only in the end: exposure is summed up for both.

    Args:
        have: what `exposure_columns` picked.
        y: the reward, NULL where it is missing.
    """
    details: dict[str, Detail] = {}
    if "q" in have:
        q = have["q"]
        details |= {"q_n": Detail(q, "count"), "q": Detail(q), "qq": Detail(q, "squares")}
        rewarded = y.notnull().ifelse(q, number(0.0))
        details |= {"qy_n": Detail(rewarded), "qy": Detail(q * y), "qyy": Detail(q * y * y)}
    if "s" in have:
        s = have["s"]
        details |= {"s_n": Detail(s, "count")}
        details |= {"s_low": Detail(s, "min"), "s_high": Detail(s, "max")}
        for first in (0, 1):
            place = s + number(2.0 - first)
            # Below the first position there is no exposure: there may be no logarithm.
            seen = (place > number(1.0)).ifelse(number(1.0) / place.log2(), number(0.0))
            details |= {f"s{first}": Detail(seen), f"ss{first}": Detail(seen, "squares")}
    return details


def exposure_sums(
    frame: pd.DataFrame, groups: pd.Series[str], every: pd.Series[float], centre: float
) -> Sums:
    """Columns of the sums per group, of what is known of every row of the log.

    Args:
        frame: sums, a row per cell.
        groups: the group of each cell.
        every: all rows of each group, by its name.
        centre: what was subtracted from the rewards.
    """
    names = [name for name in OPTIONAL if name in frame]
    numbers = frame[names].astype(float)
    total = numbers.fillna(0.0).groupby(groups.to_numpy()).sum().loc[list(every.index)]
    sums: Sums = {}
    if "q" in total and (total["q_n"] == every).all() and (total["q"] == total["qq"]).all():
        n, y = total["qy_n"], total["qy"]
        sums |= {
            "explored": total["q"].to_numpy(),
            "n_explored_reward": n.to_numpy(),
            "sum_explored_reward": (y + n * centre).to_numpy(),
            "square_explored_reward": (total["qyy"] + 2.0 * centre * y + n * centre**2).to_numpy(),
        }
    if "s_n" in total and (total["s_n"] == every).all():
        low, high = numbers["s_low"].min(), numbers["s_high"].max()
        if 0.0 <= low < high:  # at a single position nobody has more exposure than others
            first = 0 if low < 1.0 else 1
            sums |= {
                "n_exposure": total["s_n"].to_numpy(),
                "sum_exposure": total[f"s{first}"].to_numpy(),
                "square_exposure": total[f"ss{first}"].to_numpy(),
            }
    return sums


def _is_flag(column: Any) -> bool:
    kind = column.type()
    return bool(kind.is_boolean() or kind.is_numeric())
