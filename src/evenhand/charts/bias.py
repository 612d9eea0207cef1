"""A bias report as a picture: every group and feature with its intervals."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import cycle
from typing import TYPE_CHECKING

import pandas as pd

from evenhand.charts._style import OF_GROUPS, WIDTH, altair, frame
from evenhand.errors import InputError, setting
from evenhand.prose import in_digits

if TYPE_CHECKING:
    import altair as alt


def bias_chart(
    bias: pd.DataFrame,
    units: Mapping[str, float] | None = None,
    axis: str = "bias, in units of reward",
    title: str = "Bias by feature and group",
    level: float = 0.95,
    codes: Collection[str] = (),
) -> alt.TopLevelMixin:
    """The bias by feature and group: a point, a thick interval alone, a thin one for all at once.

    Rows without an estimate are not left out: they say "not identified".

    Args:
        bias: a row per group and feature, as `BiasReport.to_frame` gives it.
        units: the step of each feature that the bias is drawn for; 1 unless given.
        axis: the words on the horizontal axis.
        title: above the figure.
        level: of the intervals, for the words below the title.
        codes: features whose numbers are codes of categories, which their labels say.
    """
    alt = altair()
    table = _in_units(bias, units or {}, codes)
    groups = list(dict.fromkeys(table["group"]))
    colours = dict(zip(groups, cycle(OF_GROUPS), strict=False))
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
            legend=alt.Legend(title="group", symbolType="circle", symbolOpacity=1),
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
    return frame(alt.layer(*layers).properties(width=WIDTH, height=rows), heading)


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
    steps = [in_digits(one) for one in step]
    table["label"] = [
        f"{name} (code)" if name in codes else name if one == "1" else f"{name}, per {one}"
        for name, one in zip(table["feature"], steps, strict=True)
    ]
    return table
