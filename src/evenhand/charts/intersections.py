"""Cells of several attributes: the gap of each, from its own rows and shrunk to its margins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from evenhand.charts._style import OF_GROUPS, WIDTH, altair, frame
from evenhand.errors import InputError, setting

if TYPE_CHECKING:
    import altair as alt

RAW, SHRUNK = "its own rows", "shrunk towards its margins"
NEEDED = ("cell", "estimate", "low", "high", "shrunk", "shrunk_low", "shrunk_high")


def cells_chart(
    cells: pd.DataFrame,
    reference: str | None = None,
    level: float = 0.95,
    title: str = "",
    axis: str = "gap at the average context, in units of reward",
) -> alt.TopLevelMixin:
    """The gap of every cell with its interval, raw and shrunk, the lowest first.

    Args:
        cells: as `Intersections.cells` has them.
        reference: a cell that is not drawn, for its gap is 0 by definition.
        level: of the intervals, for the words below the title.
        title: above the figure.
        axis: the words on the horizontal axis.

    Example:
        >>> import pandas as pd, evenhand as eh
        >>> row = ["F & B", -0.2, -0.3, -0.1, -0.15, -0.24, -0.06]
        >>> names = ["cell", "estimate", "low", "high", "shrunk", "shrunk_low", "shrunk_high"]
        >>> chart = eh.charts.cells_chart(pd.DataFrame([row], columns=names))
        >>> len(chart.to_dict()["layer"]) > 1
        True
    """
    alt = altair()
    missing = [name for name in NEEDED if name not in cells]
    if missing:
        raise InputError(
            f"{setting('cells')} has no column {missing[0]!r}; allowed is a table such as "
            "report.intersections.cells"
        )
    table = cells[cells["cell"] != reference].sort_values("shrunk", na_position="last")
    order = table["cell"].tolist()
    raw = table[["cell", "estimate", "low", "high"]].assign(what=RAW)
    shrunk = table[["cell", "shrunk", "shrunk_low", "shrunk_high"]].set_axis(
        ["cell", "estimate", "low", "high"], axis=1
    )
    intervals = pd.concat([raw, shrunk.assign(what=SHRUNK)]).dropna(subset="estimate")
    across = alt.Scale(domain=_reach(intervals), nice=False)
    base = alt.Chart(intervals).encode(
        alt.Y("cell:N", title=None, sort=order, axis=alt.Axis(labelLimit=300)),
        alt.YOffset("what:N", sort=[RAW, SHRUNK]),
        alt.Color(
            "what:N",
            scale=alt.Scale(domain=[RAW, SHRUNK], range=["#999999", OF_GROUPS[0]]),
            legend=alt.Legend(title=None, symbolType="circle", symbolOpacity=1),
        ),
        tooltip=["cell", "what", "estimate", "low", "high"],
    )
    zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(color="#444", strokeDash=[3, 3])
    layers = [
        zero.encode(alt.X("zero:Q", title=axis, scale=across, axis=alt.Axis(tickCount=6))),
        base.mark_rule(strokeWidth=2.5, opacity=0.6, clip=True).encode(
            alt.X("low:Q", scale=across), alt.X2("high")
        ),
        base.mark_point(filled=True, size=34, opacity=1).encode(alt.X("estimate:Q", scale=across)),
    ]
    below = f"{100 * level:.6g} % intervals, for each alone"
    heading = alt.TitleParams(title, subtitle=below, subtitleFontSize=11, subtitleColor="#555")
    if not title:
        heading = alt.TitleParams(below, fontSize=11, color="#555")
    rows = {"step": 12 if len(order) <= 40 else 8}
    return frame(alt.layer(*layers).properties(width=WIDTH, height=rows), heading, "bottom")


def _reach(intervals: pd.DataFrame) -> list[float]:
    """Where the axis begins and ends.

    Intervals of tiny cells would squeeze all others into a point, so they may be cut off.
    """
    if intervals.empty:
        return [-1.0, 1.0]
    shrunk = intervals[intervals["what"] == SHRUNK]
    room = 1.5 * float(intervals["estimate"].abs().max())
    low = max(float(intervals["low"].min()), min(float(shrunk["low"].min()), -room))
    high = min(float(intervals["high"].max()), max(float(shrunk["high"].max()), room))
    low, high = min(low, 0.0), max(high, 0.0)
    pad = 0.03 * max(high - low, 1e-12)
    return [low - pad, high + pad]
