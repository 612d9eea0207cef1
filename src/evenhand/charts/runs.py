"""Shares and regrets over a setting, as in the paper; true regret and the rate of Theorem 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand.charts._style import PANEL_HEIGHT, PANEL_WIDTH, altair, colour_of, fitted, frame, need
from evenhand.metrics import summarise
from evenhand.theory import rate_through

if TYPE_CHECKING:
    import altair as alt


CROSS = "M-0.7,-0.7L0.7,0.7M-0.7,0.7L0.7,-0.7"  # Vega's own is an outline, a diamond when small


def share_chart(
    runs: pd.DataFrame,
    x: str,
    title: str = "",
    axis: str | None = None,
    published: pd.DataFrame | None = None,
    proportional: pd.DataFrame | None = None,
) -> alt.TopLevelMixin:
    """The share of pulls of sensitive arms, with 95 % bands, as in the paper's Figure 1.

    Args:
        runs: a row per run with `policy`, `share` and the column `x`. With a column `panel`, there
            is a panel for each of its values.
        x: the column on the horizontal axis. If it has a single value, the axis shows policies,
            each with a dot and its interval.
        title: above the figure.
        axis: the words on the horizontal axis.
        published: values to draw as crosses, except beside dots: `policy`, `x`, `value`.
        proportional: `x` and `share`, the share at proportional parity: a dotted line.

    Example:
        >>> import pandas as pd, evenhand as eh
        >>> runs = pd.DataFrame({"policy": "TopInterval", "horizon": [100, 100, 200, 200],
        ...     "share": [0.2, 0.3, 0.3, 0.4]})
        >>> chart = eh.charts.share_chart(runs, "horizon", axis="number of rounds")
        >>> "number of rounds" in eh.charts.to_svg(chart)
        True
    """
    alt = altair()
    need(runs, x, "share")
    return _panels(
        alt, runs, title, lambda part: _share(alt, part, x, axis, published, proportional)
    )


def _share(
    alt: Any,
    runs: pd.DataFrame,
    x: str,
    axis: str | None,
    published: pd.DataFrame | None,
    proportional: pd.DataFrame | None,
) -> Any:
    table = summarise(runs, ["policy", x], "share")
    colour = colour_of(alt, table["policy"])
    vertical = alt.Y("mean:Q", title="share of sensitive pulls", scale=alt.Scale(zero=True))
    own = None if proportional is None else _of_panel(proportional, runs)
    dotted = {"color": "#444", "strokeDash": [2, 3], "strokeWidth": 1}
    if table[x].nunique() == 1:
        dots = _dots(alt, table, vertical)
        if own is None:
            return dots
        rule = alt.Chart(own.head(1)).mark_rule(**dotted).encode(alt.Y("share:Q", title=""))
        return alt.layer(rule, dots)
    across = _across(alt, x, axis, table[x])
    base = alt.Chart(_ours_on_top(table)).encode(across, color=colour)
    layers: list[Any] = [
        base.mark_area(opacity=0.18).encode(alt.Y("low:Q", title=""), alt.Y2("high:Q")),
        base.mark_line(strokeWidth=1.8).encode(vertical),
    ]
    if own is not None:
        rule = alt.Chart(own).mark_line(**dotted)
        layers.insert(0, rule.encode(across, alt.Y("share:Q", title="")))
    if published is not None and len(published):
        layers.append(_crosses(alt, published.rename(columns={"x": x}), across, colour))
    return alt.layer(*layers)


def regret_chart(
    runs: pd.DataFrame,
    x: str,
    title: str = "",
    axis: str | None = None,
    published: pd.DataFrame | None = None,
) -> alt.TopLevelMixin:
    """Perceived regret solid and true regret dashed, per round, as in the paper's Figure 2.

    Args:
        runs: a row per run with `policy`, `perceived_regret`, `true_regret` and the column `x`.
            True regret is left out where it is missing; a column `panel` makes panels.
        x: the column on the horizontal axis. If it has a single value, the axis shows policies,
            each with a dot for perceived and a square for true regret, and their intervals.
        title: above the figure.
        axis: the words on the horizontal axis.
        published: values to draw as crosses, except beside dots: `policy`, `x`, `metric`, `value`.

    Example:
        >>> import pandas as pd, evenhand as eh
        >>> runs = pd.DataFrame({"policy": "TopInterval", "horizon": [100, 100, 200, 200],
        ...     "perceived_regret": [2.0, 3.0, 1.0, 2.0], "true_regret": [4.0, 5.0, 3.0, 4.0]})
        >>> "regret per round" in eh.charts.to_svg(eh.charts.regret_chart(runs, "horizon"))
        True
    """
    alt = altair()
    need(runs, x, "perceived_regret", "true_regret")
    return _panels(alt, runs, title, lambda part: _regret(alt, part, x, axis, published))


def _regret(
    alt: Any, runs: pd.DataFrame, x: str, axis: str | None, published: pd.DataFrame | None
) -> Any:
    kinds = {"perceived_regret": "perceived", "true_regret": "true"}
    long = runs.melt(id_vars=["policy", x], value_vars=list(kinds), var_name="metric")
    table = summarise(long.dropna(subset="value"), ["policy", "metric", x], "value")
    table["regret"] = table["metric"].map(kinds)
    colour = colour_of(alt, table["policy"])
    known = [kind for kind in kinds.values() if (table["regret"] == kind).any()]
    words = "regret per round" if len(known) == 2 else f"{known[0]} regret per round"
    vertical = alt.Y("mean:Q", title=words)
    if table[x].nunique() == 1:
        return _dots(alt, table, vertical, "regret" if len(known) == 2 else None)
    dash = alt.StrokeDash(
        "regret:N",
        scale=alt.Scale(domain=["perceived", "true"], range=[[1, 0], [5, 3]]),
        legend=alt.Legend(title="regret", symbolStrokeColor="#444") if len(known) == 2 else None,
    )
    across = _across(alt, x, axis, table[x])
    base = alt.Chart(_ours_on_top(table)).encode(across, color=colour, detail="regret:N")
    layers: list[Any] = [
        base.mark_area(opacity=0.15).encode(alt.Y("low:Q", title=""), alt.Y2("high:Q")),
        base.mark_line(strokeWidth=1.8).encode(vertical, strokeDash=dash),
    ]
    if published is not None and len(published):
        layers.append(_crosses(alt, published.rename(columns={"x": x}), across, colour))
    return alt.layer(*layers)


def _dots(alt: Any, table: pd.DataFrame, vertical: Any, apart: str | None = None) -> Any:
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


def _panels(alt: Any, runs: pd.DataFrame, title: str, draw: Any) -> alt.TopLevelMixin:
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


def _of_panel(table: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    if "panel" not in table or "panel" not in runs:
        return table
    own: pd.DataFrame = table[table["panel"] == runs["panel"].iloc[0]]
    return own


def _ours_on_top(table: pd.DataFrame) -> pd.DataFrame:
    """GroupFairTopInterval last, so that no other line hides it."""
    return table.sort_values("policy", key=lambda names: names.str.startswith("GroupFair"))


def _across(alt: Any, x: str, axis: str | None, values: pd.Series[float]) -> Any:
    different = np.unique(values)
    few = {"values": different.tolist()} if different.size <= 10 else {"tickCount": 6}
    ticks = alt.Axis(**few, labelOverlap="greedy", labelSeparation=8)
    scale = alt.Scale(domain=[float(different[0]), float(different[-1])], nice=False)
    return alt.X(f"{x}:Q", title=x if axis is None else axis, scale=scale, axis=ticks)


def _crosses(alt: Any, published: pd.DataFrame, across: Any, colour: Any) -> Any:
    """Published values as crosses, with a legend of their own."""
    name = "published"
    legend = alt.Legend(title="", symbolStrokeColor="#444", symbolSize=60, symbolStrokeWidth=1.5)
    shape = alt.Shape("what:N", scale=alt.Scale(domain=[name], range=[CROSS]), legend=legend)
    marks = alt.Chart(published.assign(what=name)).mark_point(size=45, opacity=1, strokeWidth=1.5)
    return marks.encode(across, alt.Y("value:Q", title=""), shape=shape, color=colour)


def rate_chart(measured: pd.DataFrame, title: str = "") -> alt.TopLevelMixin:
    """Measured true regret over T and the rate T^(2/3) of Theorem 1, on logarithmic axes.

    The grey lines have slope 2/3 and pass through each policy's first point. A curve below its
    line grows no faster than the theorem allows.

    Args:
        measured: a row per run with `policy`, `horizon` and `true_regret` per round.
        title: above the figure.

    Example:
        >>> import pandas as pd, evenhand as eh
        >>> runs = pd.DataFrame({"policy": "GroupFairTopInterval", "horizon": [100, 100, 200, 200],
        ...     "true_regret": [0.9, 1.1, 0.7, 0.8]})
        >>> "number of rounds T" in eh.charts.to_svg(eh.charts.rate_chart(runs))
        True
    """
    alt = altair()
    need(measured, "horizon", "true_regret")
    total = measured.assign(total=measured["true_regret"] * measured["horizon"])
    table = summarise(total, ["policy", "horizon"], "total")
    for _, mine in table.groupby("policy", sort=False):
        start = mine.iloc[0]
        line = rate_through(mine["horizon"], start["horizon"], start["mean"])
        table.loc[mine.index, "rate"] = line
    colour = colour_of(alt, table["policy"])
    horizons = np.unique(table["horizon"])
    across = alt.X(
        "horizon:Q",
        scale=alt.Scale(type="log", domain=[int(horizons[0]), int(horizons[-1])], nice=False),
        axis=alt.Axis(values=horizons.tolist(), labelOverlap="greedy", labelSeparation=8),
        title="number of rounds T",
    )
    lowest = float(min(table["mean"].min(), table["rate"].min()))
    highest = float(np.nanmax([table["high"].max(), table["mean"].max(), table["rate"].max()]))
    log = alt.Scale(type="log", domain=[0.8 * lowest, 1.25 * highest], nice=False)
    base = alt.Chart(table).encode(across)
    layers = alt.layer(
        base.mark_line(color="#999", strokeDash=[4, 3]).encode(
            alt.Y("rate:Q", scale=log, title=""), detail="policy:N"
        ),
        base.mark_area(opacity=0.18, clip=True).encode(
            alt.Y("low:Q", scale=log, title=""), alt.Y2("high:Q"), color=colour
        ),
        base.mark_line(strokeWidth=1.8, point=True).encode(
            alt.Y(
                "mean:Q",
                scale=log,
                axis=alt.Axis(tickCount=5),
                title="true regret in all T rounds",
            ),
            color=colour,
        ),
    )
    return frame(fitted(alt, layers), title)
