"""Charts of bias reports and audits: groups and features with intervals, and time windows."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import pandas as pd

from evenhand._prose import in_digits
from evenhand.charts._style import HEIGHT, OF_GROUPS, WIDTH, altair, frame
from evenhand.errors import InputError, setting

if TYPE_CHECKING:
    import altair as alt


def bias_chart(
    bias: pd.DataFrame,
    units: Mapping[str, float] | None = None,
    axis: str = "bias, in units of reward",
    title: str = "Bias by feature and group",
    level: float = 0.95,
    codes: Collection[str] = (),
    groups: Sequence[str] | None = None,
) -> alt.TopLevelMixin:
    """The bias by feature and group: a point with a pointwise (thick) and simultaneous interval.

    Rows without an estimate are not left out: they say "not identified".

    Args:
        bias: a row per group and feature, as `BiasReport.to_frame` gives it.
        units: the step of each feature for which the bias is drawn; 1 unless given.
        axis: the words on the horizontal axis.
        title: above the figure.
        level: of the intervals, for the subtitle.
        codes: features whose numbers are codes of categories; their labels say so.
        groups: all groups, in the order that gives them their colours; those of the table unless
            given.

    Example:
        >>> import pandas as pd, evenhand as eh
        >>> row = {"group": "F", "feature": "age", "why": "", "estimate": -0.2, "low": -0.3,
        ...     "high": -0.1, "simultaneous_low": -0.35, "simultaneous_high": -0.05}
        >>> chart = eh.charts.bias_chart(pd.DataFrame([row]), units={"age": 10})
        >>> "age, per 10" in eh.charts.to_svg(chart)
        True
    """
    alt = altair()
    table = _in_units(bias, units or {}, codes)
    colours = dict(zip(groups or dict.fromkeys(table["group"]), cycle(OF_GROUPS), strict=False))
    table = table[table["why"] != "the reference"]  # 0 by definition
    shown = list(dict.fromkeys(table["group"]))
    hints = ["group", "feature", "estimate", "low", "high", "why"]
    base = alt.Chart(table).encode(
        alt.Y(
            "label:N",
            title=None,
            sort=list(dict.fromkeys(table["label"])),
            axis=alt.Axis(labelLimit=300),
        ),
        alt.YOffset("group:N", sort=shown),
        alt.Color(
            "group:N",
            scale=alt.Scale(domain=shown, range=[colours[name] for name in shown]),
            legend=alt.Legend(title="group", symbolType="circle", symbolOpacity=1, columns=4),
        ),
        tooltip=hints,
    )
    across, known = alt.X("estimate:Q", title=axis), "isValid(datum.estimate)"
    zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(color="#777", strokeDash=[3, 3])
    words = base.transform_filter(f"!{known}").mark_text(
        text="not identified", align="left", dx=5, fontSize=10, fontStyle="italic"
    )
    bars = base.transform_filter(known)
    layers = [
        zero.encode(alt.X("zero:Q", title=axis, axis=alt.Axis(tickCount=6))),
        bars.mark_rule(strokeWidth=1).encode(
            alt.X("simultaneous_low:Q"), alt.X2("simultaneous_high")
        ),
        bars.mark_rule(strokeWidth=3.5, opacity=0.55).encode(alt.X("low:Q"), alt.X2("high")),
        bars.mark_point(filled=True, size=34, opacity=1).encode(across),
        words.encode(x=alt.datum(0.0)),
    ]
    below = f"{100 * level:.6g} % intervals: thick for each alone, thin for all of them at once"
    heading = alt.TitleParams(title, subtitle=below, subtitleFontSize=11, subtitleColor="#555")
    if not title:
        heading = alt.TitleParams(below, fontSize=11, color="#555")
    rows = {"step": 14 if len(table) <= 100 else 9}
    # To the right of the picture, the names of the groups would be out of sight on a phone.
    return frame(alt.layer(*layers).properties(width=WIDTH, height=rows), heading, legend="top")


def _in_units(
    bias: pd.DataFrame, units: Mapping[str, float], codes: Collection[str]
) -> pd.DataFrame:
    ends = ["estimate", "low", "high", "simultaneous_low", "simultaneous_high"]
    missing = [name for name in ("group", "feature", "why", *ends) if name not in bias]
    if missing:
        raise InputError(
            f"{setting('bias')} has no column {missing[0]!r}; allowed is a table as "
            "report.to_frame() gives it"
        )
    table = bias[["group", "feature", "why", *ends]].copy()
    step = table["feature"].map(lambda name: float(units.get(name, 1.0)))
    table[ends] = table[ends].mul(step, axis=0)
    steps = [in_digits(size) for size in step]
    table["label"] = [
        f"{name} (code)" if name in codes else name if size == "1" else f"{name}, per {size}"
        for name, size in zip(table["feature"], steps, strict=True)
    ]
    return table


APART = 0.08  # distance between groups, as a part of a window


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
        table: `window` from 1, `from` (its start), `group` and the three columns below.
        value: the column to draw; rows without a value are gaps.
        low: the column of the lower end of the interval.
        high: the column of the upper end.
        groups: all groups, in the order that gives them their colours.
        axis: the words on the vertical axis.
        leave_out: a group that is not drawn, such as the reference.

    Example:
        >>> import pandas as pd, evenhand as eh
        >>> table = pd.DataFrame({"window": [1, 2], "from": ["January", "May"], "group": "F",
        ...     "rate": [0.4, 0.5], "low": [0.3, 0.4], "high": [0.5, 0.6]})
        >>> chart = eh.charts.windows_chart(table, "rate", "low", "high", groups=["F"])
        >>> "January" in eh.charts.to_svg(chart)
        True
    """
    alt = altair()
    colours = dict(zip(groups, cycle(OF_GROUPS), strict=False))
    shown = [name for name in groups if name != leave_out]
    # All windows, including those without a number, and even if two have the same name.
    order = table.drop_duplicates("window").sort_values("window")["from"].tolist()
    table = table[table["group"].isin(shown)]
    table = table[["window", "from", "group", value, low, high]].dropna(subset=value)
    shift = {name: (i - (len(shown) - 1) / 2) * APART for i, name in enumerate(shown)}
    place = table["window"].to_numpy(dtype=float) - 1.0
    table = table.assign(x=place + table["group"].map(shift).to_numpy(dtype=float))
    ticks = alt.Axis(
        values=list(range(len(order))),
        labelExpr=f"{json.dumps([str(label) for label in order])}[datum.value]",
        labelAngle=-40,
        labelOverlap="greedy",
        grid=False,
        title="window from",
    )
    across = alt.X("x:Q", axis=ticks, scale=alt.Scale(domain=[-0.4, len(order) - 0.6], nice=False))
    colour = alt.Color(
        "group:N",
        scale=alt.Scale(domain=shown, range=[colours[name] for name in shown]),
        legend=alt.Legend(title="group", symbolType="circle", symbolOpacity=1, columns=4),
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
    return frame(whole, alt.TitleParams(""), legend="top")
