"""Numbers of groups over time windows, with their intervals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import pandas as pd

from evenhand.charts._style import HEIGHT, OF_GROUPS, WIDTH, altair, frame

if TYPE_CHECKING:
    import altair as alt

APART = 0.08  # of a window: how far groups stand beside each other


def windows_chart(
    table: pd.DataFrame,
    value: str,
    low: str,
    high: str,
    groups: Sequence[str],
    axis: str = "",
    leave_out: str | None = None,
) -> alt.TopLevelMixin:
    """A line per group over time windows, with an interval at every window.

    Args:
        table: `window` from 1, `from` (when it begins), `group` and the three columns below.
        value: the column to draw; rows without it are gaps.
        low: where its interval begins.
        high: where it ends.
        groups: all groups, in the order that gives them their colours.
        axis: the words on the vertical axis.
        leave_out: a group that is not drawn, such as the reference.
    """
    alt = altair()
    colours = dict(zip(groups, cycle(OF_GROUPS), strict=False))
    shown = [name for name in groups if name != leave_out]
    # Of all windows, also of those without a number, and even if two are called the same.
    order = table.drop_duplicates("window").sort_values("window")["from"].tolist()
    table = table[table["group"].isin(shown)]
    table = table[["window", "from", "group", value, low, high]].dropna(subset=value)
    shift = {name: (i - (len(shown) - 1) / 2) * APART for i, name in enumerate(shown)}
    place = table["window"].to_numpy(dtype=float) - 1.0
    table = table.assign(x=place + table["group"].map(shift).to_numpy(dtype=float))
    ticks = alt.Axis(
        values=list(range(len(order))),
        labelExpr=f"{json.dumps([str(one) for one in order])}[datum.value]",
        labelAngle=-40,
        labelOverlap="greedy",
        grid=False,
        title="window from",
    )
    across = alt.X("x:Q", axis=ticks, scale=alt.Scale(domain=[-0.4, len(order) - 0.6], nice=False))
    colour = alt.Color(
        "group:N",
        scale=alt.Scale(domain=shown, range=[colours[name] for name in shown]),
        legend=alt.Legend(title="group", symbolType="circle", symbolOpacity=1),
    )
    upright = alt.Scale(zero=False)
    base = alt.Chart(table).encode(across, color=colour)
    layers = [
        base.mark_rule(strokeWidth=1.5).encode(
            alt.Y(f"{low}:Q", title=axis, scale=upright), alt.Y2(high)
        ),
        base.mark_line(strokeWidth=1, opacity=0.5).encode(alt.Y(f"{value}:Q", scale=upright)),
        base.mark_point(filled=True, size=30, opacity=1).encode(
            alt.Y(f"{value}:Q", title=axis, scale=upright)
        ),
    ]
    whole = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    return frame(whole, alt.TitleParams(""))
