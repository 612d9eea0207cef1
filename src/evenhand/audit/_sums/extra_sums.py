"""Sums beside the products of features and reward: weights, propensities, true rewards and more.

Each is a number of every row, and how the numbers of a cell become one. So an engine can be asked
for them, and rows in batches can be summed up to the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from evenhand.audit._input.engines import is_missing, number


class Detail(NamedTuple):
    """A number of every row, as an expression, and how those of a cell become one.

    `how` is "sum", "squares" (their sum), "count", "min" or "max"; missing numbers are left out.
    """

    column: Any
    how: str = "sum"

    @property
    def asked(self) -> Any:
        """What to ask an engine for."""
        if self.how == "squares":
            return (self.column * self.column).sum()
        return getattr(self.column, self.how)()


def details(rows: Any) -> dict[str, Detail]:
    """What there is to sum up in rows that `prepared` made, besides attention."""
    y, have = rows["y"], set(rows.columns)
    asked = dict[str, Detail]()
    if "w" in have:
        w = rows["w"]
        asked |= {"y": Detail(y), "yy": Detail(y, "squares"), "ww": Detail(w, "squares")}
        asked |= {"least": Detail(w, "min"), "weighed": Detail(w, "count")}
        asked["broken"] = Detail((w != w.floor()).cast("int32"))
    if "p" in have:
        p = rows["p"]
        asked |= {"p": Detail(p), "pp": Detail(p, "squares")}
        asked |= {"surest": Detail(p, "min"), "chances": Detail(p, "count")}
    if "r" in have:
        r = rows["r"]
        asked |= {"r_n": Detail(r, "count"), "r": Detail(r), "rr": Detail(r, "squares")}
        known = r.notnull().ifelse(y, number(0.0))
        asked |= {"yr": Detail(y * r), "y_r": Detail(known), "yy_r": Detail(known, "squares")}
    if "o" in have:
        asked["o"] = Detail(rows["o"])
    if "c" in have:
        asked["clustered"] = Detail((~is_missing(rows["c"])).cast("int32"))
    return asked
