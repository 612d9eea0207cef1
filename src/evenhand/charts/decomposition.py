"""The gap of groups explained: unadjusted, what each feature accounts for, and what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from evenhand._prose import in_digits
from evenhand.charts._style import WIDTH, altair, frame
from evenhand.errors import InputError, setting

if TYPE_CHECKING:
    import altair as alt

MOST_FEATURES = 6  # with a bar of their own; the others share one
WORDS = {
    "unadjusted": "unadjusted gap",
    "feature": "explained",
    "explained": "explained",
    "arms": "explained",
    "time": "explained",
    "arms and time": "explained",
    "left": "left after adjustment",
}
OTHERWISE = {
    "arms": "differences in arms",
    "time": "differences in time",
    "arms and time": "differences in time and arms",
}
COLOURS = {
    "unadjusted gap": "#777777",
    "explained": "#9CC7E4",
    "left after adjustment": "#D55E00",
}


def decomposition_chart(
    table: pd.DataFrame,
    against: str = "",
    axis: str = "gap, in units of reward",
    title: str = "",
    attribute: str = "",
) -> alt.TopLevelMixin:
    """A panel per group: bars for the unadjusted gap, each feature's part of it, and the rest.

    Bars start at zero, so that a change of sign cannot be missed. Lines are intervals.

    Args:
        table: a row per group and part, as `Audit.decomposition` is.
        against: what the groups are compared with, in words, for the headings.
        axis: the words on the horizontal axis.
        title: above the figure.
        attribute: the column of the groups, for the headings.

    Example:
        >>> import pandas as pd, evenhand as eh
        >>> parts = pd.DataFrame(
        ...     [
        ...         ["F", "unadjusted", "", -0.14, -0.17, -0.11],
        ...         ["F", "feature", "Dept", -0.18, -0.21, -0.16],
        ...         ["F", "left", "", 0.04, 0.01, 0.08],
        ...     ],
        ...     columns=["group", "part", "column", "estimate", "low", "high"],
        ... )
        >>> chart = eh.charts.decomposition_chart(parts)
        >>> sorted(chart.to_dict()["facet"]["row"])[:2]
        ['field', 'header']
    """
    alt = altair()
    needed = ("group", "part", "column", "estimate", "low", "high")
    missing = [name for name in needed if name not in table]
    if missing:
        raise InputError(
            f"{setting('table')} has no column {missing[0]!r}; allowed is a table such as "
            "audit.decomposition"
        )
    rows = pd.concat([_bars(part) for _, part in table.groupby("group", sort=False)])
    if attribute:
        rows["group"] = f"{attribute}: " + rows["group"]
    if against:
        rows["group"] = rows["group"] + f" compared with {against}"
    groups = list(dict.fromkeys(rows["group"]))
    ends = rows[["estimate", "beyond"]].assign(zero=0.0).to_numpy(dtype=float)
    room = 0.2 * (ends.max() - ends.min() or 1.0)  # for the numbers beside the bars
    span = alt.Scale(domain=[ends.min() - room, ends.max() + room], nice=False)
    labels = _in_order(rows)
    base = alt.Chart(rows).encode(
        alt.Y("label:N", title=None, sort=labels, axis=alt.Axis(labelLimit=260)),
        tooltip=["group", "label", "estimate", "low", "high"],
    )
    kinds = [kind for kind in COLOURS if kind in set(rows["kind"])]
    colour = alt.Color(
        "kind:N",
        scale=alt.Scale(domain=kinds, range=[COLOURS[kind] for kind in kinds]),
        legend=alt.Legend(title=None, orient="bottom"),
    )
    across = alt.X("estimate:Q", title=axis, axis=alt.Axis(tickCount=6), scale=span)
    known = "isValid(datum.low)"
    layers = [
        base.mark_bar(size=13).encode(across, colour),
        alt.Chart(rows).mark_rule(color="#333").encode(x=alt.datum(0.0)),
        base.transform_filter(known)
        .mark_rule(strokeWidth=1.6, color="#222")
        .encode(alt.X("low:Q", title=axis), alt.X2("high")),
        # Beyond the end of the interval, on the side where the bar points.
        base.transform_filter("datum.estimate >= 0")
        .mark_text(align="left", dx=5, fontSize=11)
        .encode(alt.X("beyond:Q"), text="words:N"),
        base.transform_filter("datum.estimate < 0")
        .mark_text(align="right", dx=-5, fontSize=11)
        .encode(alt.X("beyond:Q"), text="words:N"),
    ]
    panel = alt.layer(*layers, data=rows).properties(width=WIDTH - 20, height={"step": 20})
    header = alt.Header(
        title=None,
        labelAngle=0,
        labelAlign="left",
        labelAnchor="start",
        labelOrient="top",
        labelFontWeight="bold",
    )
    faceted = panel.facet(row=alt.Row("group:N", sort=groups, header=header)).resolve_scale(
        y="independent"
    )
    return frame(faceted, alt.TitleParams(title), legend="bottom")


def _bars(part: pd.DataFrame) -> pd.DataFrame:
    """The bars of one group: features by size, the smallest ones together.

    Features whose parts are not known one by one share a bar.
    """
    single = part[part["part"] == "feature"]["estimate"].notna()
    part = part[part["part"] != ("explained" if single.all() else "feature")]
    unknown = (part["part"] == "left") & part["estimate"].isna()
    part = part[part["part"].isin(WORDS) & (part["estimate"].notna() | unknown)].copy()
    features = part[part["part"] == "feature"]
    order = features["estimate"].abs().sort_values(ascending=False, kind="stable").index
    largest, rest = features.loc[order[:MOST_FEATURES]], features.loc[order[MOST_FEATURES:]]
    if len(rest) == 1:
        largest, rest = features.loc[order], rest.iloc[:0]
    ends = part.drop(index=features.index)
    parts = [ends[ends["part"] == "unadjusted"], ends[ends["part"] == "explained"], largest]
    if len(rest):
        together = {"group": rest["group"].iloc[0], "part": "feature", "low": None, "high": None}
        together |= {"column": f"{len(rest)} other features", "estimate": rest["estimate"].sum()}
        parts.append(pd.DataFrame([together]).astype({"low": float, "high": float}))
    parts += [ends[ends["part"].isin(OTHERWISE)], ends[ends["part"] == "left"]]
    bars = pd.concat([piece for piece in parts if len(piece)], ignore_index=True)
    named = {"unadjusted": "unadjusted gap", "left": "left after adjustment"}
    named |= {"explained": "explained: all features together"}
    named |= {kind: f"explained: {words}" for kind, words in OTHERWISE.items()}
    bars["label"] = [
        named.get(kind, f"explained: {column}")
        for kind, column in zip(bars["part"], bars["column"], strict=True)
    ]
    bars["kind"] = bars["part"].map(WORDS)
    bars["words"] = [_two_digits(value) for value in bars["estimate"]]
    bars["estimate"] = bars["estimate"].fillna(0.0)
    outer = bars["high"].where(bars["estimate"] >= 0, bars["low"])
    bars["beyond"] = outer.fillna(bars["estimate"])
    return bars


def _in_order(rows: pd.DataFrame) -> list[str]:
    """Labels as the panels have them: the unadjusted gap first, what is left last."""
    labels = list(dict.fromkeys(rows["label"]))
    first, last = "unadjusted gap", "left after adjustment"
    middle = [label for label in labels if label not in (first, last)]
    return [first, *middle, last]


def _two_digits(value: float) -> str:
    """With its sign and two significant digits, including zeros at the end."""
    if np.isnan(value):
        return "not known"
    rough = float(f"{value:.2g}")
    if not rough:
        return "0"
    places = max(1 - int(np.floor(np.log10(abs(rough)))), 0)
    return f"{rough:+,.{places}f}" if places <= 9 else in_digits(rough, "+")
