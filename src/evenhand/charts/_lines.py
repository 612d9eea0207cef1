"""What charts of runs share: panels, dots for a single point, the order of lines, the axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand.charts._style import PANEL_HEIGHT, PANEL_WIDTH, colour_of, fitted, frame

if TYPE_CHECKING:
    import altair as alt


def dots_of(alt: Any, table: pd.DataFrame, vertical: Any, apart: str | None = None) -> Any:
    """One value of x: a dot with its interval for every policy, named on the axis."""
    names = alt.Axis(labelAngle=-25, labelLimit=170, labelOverlap=False, grid=False)
    by = alt.X("policy:N", title="", axis=names, sort=None)
    base = alt.Chart(table).encode(by, color=colour_of(alt, table["policy"], legend=False))
    if apart:
        base = base.encode(alt.XOffset(f"{apart}:N"))
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(vertical)
    if apart:  # of the dots alone: a rule with a shape is drawn as a point
        legend = alt.Legend(title=apart, symbolFillColor="#444", symbolStrokeColor="#444")
        dots = dots.encode(shape=alt.Shape(f"{apart}:N", legend=legend))
    reach = base.mark_rule(strokeWidth=2).encode(alt.Y("low:Q", title=""), alt.Y2("high:Q"))
    return alt.layer(reach, dots)


def in_panels(
    alt: Any, runs: pd.DataFrame, title: str, draw: Callable[[pd.DataFrame], Any]
) -> alt.TopLevelMixin:
    """One panel, or one for every value of `panel`, side by side on the same scales."""
    names = list(dict.fromkeys(runs["panel"])) if "panel" in runs else [""]
    if len(names) < 2:
        return frame(fitted(alt, draw(runs)), title)
    parts = [
        draw(runs[runs["panel"] == name]).properties(
            width=PANEL_WIDTH, height=PANEL_HEIGHT, title=name
        )
        for name in names
    ]
    whole = alt.concat(*parts, columns=5).resolve_scale(y="shared", x="shared")
    return frame(whole, title, legend="bottom")


def ours_on_top(table: pd.DataFrame) -> pd.DataFrame:
    """GroupFairTopInterval and then PooledGroupFair last, so that no other line hides them."""
    last = {"Group": 1, "Poole": 2}
    return table.sort_values(
        "policy", key=lambda names: names.str[:5].map(last).fillna(0), kind="stable"
    )


def across_of(alt: Any, x: str, axis: str | None, values: pd.Series[float]) -> Any:
    different = np.unique(values)
    few = {"values": different.tolist()} if different.size <= 10 else {"tickCount": 6}
    ticks = alt.Axis(**few, labelOverlap="greedy", labelSeparation=8)
    first, last = float(different[0]), float(different[-1])
    kind = "log" if 1.0 <= first <= last / 100.0 else "linear"  # of counts, such as rounds
    scale = alt.Scale(type=kind, domain=[first, last], nice=False)
    return alt.X(f"{x}:Q", title=x if axis is None else axis, scale=scale, axis=ticks)
