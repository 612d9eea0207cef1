"""Sums beside the products of features and reward: weights, propensities, true rewards and more.

Each is a number of every row, and how the numbers of a cell are combined. So an engine can compute
them in SQL, and a pass over batches of rows gives the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from evenhand.audit._input.expressions import is_missing, number


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
