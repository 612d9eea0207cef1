"""The pictures of an audit, as SVG that goes into a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand import charts
from evenhand.columns.words import INTERCEPT
from evenhand.html import drawn

if TYPE_CHECKING:
    from markupsafe import Markup

    from evenhand.audit.report.result import Audit
    from evenhand.bias import BiasReport

MOST_ROWS = 240  # of group and feature: more would not be read


def gap_picture(bias: BiasReport) -> Markup | None:
    """The gap within each category and at values of each number."""
    table = bias.gaps()
    if table.empty:
        return None
    sign = {column.name: " = " if column.categories else " at " for column in bias._columns}
    labels = [
        f"{name}{sign[str(name)]}{at}"
        for name, at in zip(table["column"], table["at"], strict=True)
    ]
    axis = f"feedback compared with {bias.against}, in units of reward"
    return _intervals(bias, table.assign(feature=labels), {}, axis)


def bias_picture(bias: BiasReport) -> Markup | None:
    """How the gap changes with each feature, without the intercept: that is no change."""
    table = bias.to_frame()
    table = table[table["feature"] != INTERCEPT]
    units = dict(zip(bias.features, bias.units, strict=True))
    return _intervals(bias, table, units, bias.change)


def _intervals(
    bias: BiasReport, table: pd.DataFrame, units: dict[str, float], axis: str
) -> Markup | None:
    """Estimates with their intervals, as SVG; the clearest, where they are too many to be read."""
    if table.empty:
        return None
    if len(table) > MOST_ROWS:
        size = (table["estimate"] / table["standard_error"]).abs().fillna(0.0)
        best = size.groupby(table["feature"], sort=False).max().sort_values(ascending=False)
        keep = best.index[: max(MOST_ROWS // len(bias.groups), 1)]
        table = table[table["feature"].isin(keep)]
    chart: Any = charts.bias_chart(table, units, axis, "", bias.level)
    return drawn(charts.to_svg(chart.configure_axisX(labelFlush=False, labelOverlap="greedy")))


def drift_pictures(audit: Audit) -> list[tuple[Markup, str]]:
    """Mean reward by group and, where it is known, bias by group: over the time windows."""
    if audit.drift is None:
        return []
    at = f"{100 * audit.bias.level:.6g} % intervals"
    means = ("mean_reward", "mean_low", "mean_high")
    asked = [(f"mean reward by time window, {at}", means)]
    if audit.changes is not None and len(audit.changes):
        asked.append((f"bias at the average context, {at}", ("estimate", "low", "high")))
    pictures = []
    for words, (value, low, high) in asked:
        is_bias = value == "estimate"
        chart = charts.windows_chart(
            audit.drift,
            value,
            low,
            high,
            audit.bias.groups,
            "feedback compared, in units of reward" if is_bias else "mean reward",
            audit.bias.reference if is_bias else None,
        )
        pictures.append((drawn(charts.to_svg(chart)), words))
    return pictures
