"""Shares and regrets over a setting, as in the paper, and shares of the choices over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand.charts._style import (
    OF_GROUPS,
    across_of,
    altair,
    colour_of,
    dots_of,
    in_panels,
    need,
    ours_on_top,
)
from evenhand.errors import InputError, setting
from evenhand.metrics import summarise

if TYPE_CHECKING:
    import altair as alt

CROSS = "M-0.7,-0.7L0.7,0.7M-0.7,0.7L0.7,-0.7"  # Vega's own is an outline, a diamond when small
NEEDED = ("at", "group", "kind", "share")
KINDS = ("chosen", "proportional")


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
    return in_panels(
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
        dots = dots_of(alt, table, vertical)
        if own is None:
            return dots
        rule = alt.Chart(own.head(1)).mark_rule(**dotted).encode(alt.Y("share:Q", title=""))
        return alt.layer(rule, dots)
    across = across_of(alt, x, axis, table[x])
    base = alt.Chart(ours_on_top(table)).encode(across, color=colour)
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
    return in_panels(alt, runs, title, lambda part: _regret(alt, part, x, axis, published))


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
        return dots_of(alt, table, vertical, "regret" if len(known) == 2 else None)
    dash = alt.StrokeDash(
        "regret:N",
        scale=alt.Scale(domain=["perceived", "true"], range=[[1, 0], [5, 3]]),
        legend=alt.Legend(title="regret", symbolStrokeColor="#444") if len(known) == 2 else None,
    )
    across = across_of(alt, x, axis, table[x])
    base = alt.Chart(ours_on_top(table)).encode(across, color=colour, detail="regret:N")
    layers: list[Any] = [
        base.mark_area(opacity=0.15).encode(alt.Y("low:Q", title=""), alt.Y2("high:Q")),
        base.mark_line(strokeWidth=1.8).encode(vertical, strokeDash=dash),
    ]
    if published is not None and len(published):
        layers.append(_crosses(alt, published.rename(columns={"x": x}), across, colour))
    return alt.layer(*layers)


def _of_panel(table: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    if "panel" not in table or "panel" not in runs:
        return table
    own: pd.DataFrame = table[table["panel"] == runs["panel"].iloc[0]]
    return own


def _crosses(alt: Any, published: pd.DataFrame, across: Any, colour: Any) -> Any:
    """Published values as crosses, with a legend of their own."""
    name = "published"
    legend = alt.Legend(title="", symbolStrokeColor="#444", symbolSize=60, symbolStrokeWidth=1.5)
    shape = alt.Shape("what:N", scale=alt.Scale(domain=[name], range=[CROSS]), legend=legend)
    marks = alt.Chart(published.assign(what=name)).mark_point(size=45, opacity=1, strokeWidth=1.5)
    return marks.encode(across, alt.Y("value:Q", title=""), shape=shape, color=colour)


def shares_over_time(table: pd.DataFrame, width: int = 620) -> alt.TopLevelMixin:
    """A line per group for its share of the choices, and a dashed one for its proportional share.

    Args:
        table: a row per time or round (`at`), `group` and `kind`, "chosen" or "proportional", with
            the `share`.
        width: of the figure, in pixels.

    Example:
        >>> import pandas as pd, evenhand as eh
        >>> rows = [(1, "F", "chosen", 0.4), (2, "F", "chosen", 0.5)]
        >>> table = pd.DataFrame(rows, columns=["at", "group", "kind", "share"])
        >>> eh.charts.shares_over_time(table).to_dict()["encoding"]["x"]["title"]
        'round'
    """
    alt = altair()
    missing = [name for name in NEEDED if name not in table]
    if missing:
        raise InputError(
            f"{setting('table')} has no column {missing[0]!r}; needed are {', '.join(NEEDED)}"
        )
    groups = sorted(table["group"].unique())
    colours = [OF_GROUPS[k % len(OF_GROUPS)] for k in range(len(groups))]
    below = alt.Legend(orient="bottom", title=None)
    colour = alt.Color("group:N", scale=alt.Scale(domain=groups, range=colours), legend=below)
    dashes = alt.Scale(domain=list(KINDS), range=[[1, 0], [4, 4]])
    dash = alt.StrokeDash("kind:N", scale=dashes, legend=below)
    by_time = pd.api.types.is_datetime64_any_dtype(table["at"])
    ticks = alt.Axis(labelOverlap="greedy", labelSeparation=8)
    x = alt.X("at:T" if by_time else "at:Q", title=None if by_time else "round", axis=ticks)
    percents = alt.Axis(format="%")
    y = alt.Y(
        "share:Q", title="share of the choices", axis=percents, scale=alt.Scale(domain=[0, 1])
    )
    lines = alt.Chart(table).mark_line().encode(x, y, colour, dash)
    return lines.properties(width=width, height=240)  # type: ignore[no-any-return]
