"""The pictures of an audit, as SVG."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

from evenhand import charts
from evenhand.audit.design import INTERCEPT
from evenhand.charts import _OF_GROUPS, HEIGHT, WIDTH, _altair, _frame

if TYPE_CHECKING:
    from evenhand.audit.result import Audit

MOST_ROWS = 240  # of group and feature: more would not be read


def bias_picture(audit: Audit) -> str:
    """The bias by feature and group, without the intercept: that is about contexts of zeros."""
    bias = audit.bias
    table = bias.to_frame()
    table = table[table["feature"] != INTERCEPT]
    if table.empty:
        return ""
    if len(table) > MOST_ROWS:
        size = (table["estimate"] / table["standard_error"]).abs().fillna(0.0)
        best = size.groupby(table["feature"], sort=False).max().sort_values(ascending=False)
        keep = best.index[: max(MOST_ROWS // len(bias.groups), 1)]
        table = table[table["feature"].isin(keep)]
    against = "the mean of the groups" if bias.reference is None else f"group {bias.reference}"
    axis = f"bias against {against}, in units of reward"
    units = dict(zip(bias.features, bias.units, strict=True))
    chart: Any = charts.bias_chart(table, units, axis, "", bias.level)
    return charts.to_svg(chart.configure_axisX(labelFlush=False, labelOverlap="greedy"))


def drift_pictures(audit: Audit) -> list[tuple[str, str]]:
    """Mean reward by group and, where it is known, bias by group: over the time windows."""
    if audit.drift is None:
        return []
    drawn = [
        ("mean reward by time window, 95 % intervals", ("mean_reward", "mean_low", "mean_high"))
    ]
    if audit.changes is not None and len(audit.changes):
        words = f"bias at the average context, {100 * audit.bias.level:.6g} % intervals"
        drawn.append((words, ("estimate", "low", "high")))
    return [(_lines(audit, *columns), words) for words, columns in drawn]


def _lines(audit: Audit, middle: str, low: str, high: str) -> str:
    alt: Any = _altair()
    groups = list(audit.bias.groups)
    colours = dict(zip(groups, cycle(_OF_GROUPS), strict=False))
    table = audit.drift
    assert table is not None
    order = list(dict.fromkeys(table["from"]))  # of all windows, also of those without a number
    if middle == "estimate":
        groups = [name for name in groups if name != audit.bias.reference]
    table = table[table["group"].isin(groups)]
    table = table[["window", "from", "group", middle, low, high]].dropna(subset=middle)
    spread = (table["window"] - 1 + 0.0).to_numpy()
    shift = {name: (i - (len(groups) - 1) / 2) * 0.08 for i, name in enumerate(groups)}
    table = table.assign(x=spread + table["group"].map(shift).to_numpy(dtype=float))
    ticks = alt.Axis(
        values=list(range(len(order))),
        labelExpr="[" + ",".join(f"'{one}'" for one in order) + "][datum.value]",
        labelAngle=-40,
        labelOverlap="greedy",
        grid=False,
        title="window from",
    )
    across = alt.X("x:Q", axis=ticks, scale=alt.Scale(domain=[-0.4, len(order) - 0.6], nice=False))
    colour = alt.Color(
        "group:N",
        scale=alt.Scale(domain=groups, range=[colours[name] for name in groups]),
        legend=alt.Legend(title="group", symbolType="circle", symbolOpacity=1),
    )
    upright = alt.Scale(zero=False)
    base = alt.Chart(table).encode(across, color=colour)
    title = "mean reward" if middle == "mean_reward" else "bias, in units of reward"
    layers = [
        base.mark_rule(strokeWidth=1.5).encode(
            alt.Y(f"{low}:Q", title=title, scale=upright), alt.Y2(high)
        ),
        base.mark_line(strokeWidth=1, opacity=0.5).encode(alt.Y(f"{middle}:Q", scale=upright)),
        base.mark_point(filled=True, size=30, opacity=1).encode(
            alt.Y(f"{middle}:Q", title=title, scale=upright)
        ),
    ]
    return charts.to_svg(
        _frame(alt.layer(*layers).properties(width=WIDTH, height=HEIGHT), alt.TitleParams(""))
    )
