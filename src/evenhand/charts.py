"""Every picture, once: the same definition serves notebooks, PDF, SVG, PNG and web pages.

The functions take tidy tables and return Altair charts; `save` renders them without a browser.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand.metrics import summarise
from evenhand.theory import rate_through

if TYPE_CHECKING:
    import altair as alt

# Colours that stay apart for colour-blind readers (Okabe and Ito), fixed for the policies here so
# that a policy looks the same in every figure; others get the rest in turn.
COLOURS = {
    "TopInterval": "#D55E00",
    "IntervalChaining": "#E69F00",
    "GroupFairTopInterval": "#0072B2",
    "NaiveFair": "#009E73",
    "MultiGroupFairTopInterval": "#56B4E9",
    "UniformRandom": "#7F7F7F",
}
_SPARE = ("#CC79A7", "#000000", "#8C564B", "#B8A200", "#4B0082", "#2CA02C")
_OF_GROUPS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
FORMATS = ("pdf", "svg", "png")
WIDTH, HEIGHT, PANEL_WIDTH, PANEL_HEIGHT = 340, 230, 150, 155


def share_chart(
    runs: pd.DataFrame,
    x: str,
    title: str = "",
    axis: str | None = None,
    published: pd.DataFrame | None = None,
    proportional: pd.DataFrame | None = None,
) -> alt.TopLevelMixin:
    """The share of pulls that went to sensitive arms, with 95 % bands, as in the paper's Figure 1.

    Args:
        runs: a row per run with `policy`, `share` and the column `x`. Where a column `panel` tells
            them apart, there is a panel for each of its values.
        x: the column on the horizontal axis; with a single value, policies stand there.
        title: above the figure.
        axis: the words on the horizontal axis.
        published: values to overlay as crosses: `policy`, `x`, `value`.
        proportional: `x` and `share`, what proportional parity asks for: a dotted line.
    """
    alt = _altair()
    _need(runs, x, "share")
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
    colour = _colour(alt, table["policy"])
    vertical = alt.Y("mean:Q", title="share of sensitive pulls", scale=alt.Scale(zero=True))
    if table[x].nunique() == 1:
        return _dots(alt, table, vertical, colour)
    across = _across(alt, x, axis, table[x])
    base = alt.Chart(_ours_on_top(table)).encode(across, color=colour)
    layers: list[Any] = [
        base.mark_area(opacity=0.18).encode(alt.Y("low:Q", title=""), alt.Y2("high:Q")),
        base.mark_line(strokeWidth=1.8).encode(vertical),
    ]
    if proportional is not None:
        rule = alt.Chart(_of_panel(proportional, runs)).mark_line(
            color="#444", strokeDash=[2, 3], strokeWidth=1
        )
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
        x: the column on the horizontal axis; with a single value, policies stand there.
        title: above the figure.
        axis: the words on the horizontal axis.
        published: values to overlay: `policy`, `x`, `metric`, `value`.
    """
    alt = _altair()
    _need(runs, x, "perceived_regret", "true_regret")
    return _panels(alt, runs, title, lambda part: _regret(alt, part, x, axis, published))


def _regret(
    alt: Any, runs: pd.DataFrame, x: str, axis: str | None, published: pd.DataFrame | None
) -> Any:
    kinds = {"perceived_regret": "perceived", "true_regret": "true"}
    long = runs.melt(id_vars=["policy", x], value_vars=list(kinds), var_name="metric")
    table = summarise(long.dropna(subset="value"), ["policy", "metric", x], "value")
    table["regret"] = table["metric"].map(kinds)
    colour = _colour(alt, table["policy"])
    known = [kind for kind in kinds.values() if (table["regret"] == kind).any()]
    words = "regret per round" if len(known) == 2 else f"{known[0]} regret per round"
    vertical = alt.Y("mean:Q", title=words, axis=alt.Axis(format="~s"))
    if table[x].nunique() == 1:
        return _dots(alt, table, vertical, colour, "regret" if len(known) == 2 else None)
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


def _dots(
    alt: Any, table: pd.DataFrame, vertical: Any, colour: Any, apart: str | None = None
) -> Any:
    """One value of x: a dot with its interval for every policy."""
    by = alt.X("policy:N", title="", axis=alt.Axis(labels=False, ticks=False), sort=None)
    base = alt.Chart(table).encode(by, color=colour)
    if apart:
        base = base.encode(alt.XOffset(f"{apart}:N"), shape=alt.Shape(f"{apart}:N"))
    reach = base.mark_rule(strokeWidth=2).encode(alt.Y("low:Q", title=""), alt.Y2("high:Q"))
    return alt.layer(reach, base.mark_point(filled=True, size=70).encode(vertical))


def _panels(alt: Any, runs: pd.DataFrame, title: str, draw: Any) -> alt.TopLevelMixin:
    """One panel, or one for every value of `panel`, side by side on the same scales."""
    names = list(dict.fromkeys(runs["panel"])) if "panel" in runs else [""]
    if len(names) < 2:
        return _frame(draw(runs).properties(width=WIDTH, height=HEIGHT), title)
    parts = [
        draw(runs[runs["panel"] == name]).properties(
            width=PANEL_WIDTH, height=PANEL_HEIGHT, title=name
        )
        for name in names
    ]
    whole = alt.concat(*parts, columns=5).resolve_scale(y="shared", x="shared")
    return _frame(whole, title, legend="bottom")


def _of_panel(table: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    if "panel" not in table or "panel" not in runs:
        return table
    own: pd.DataFrame = table[table["panel"] == runs["panel"].iloc[0]]
    return own


def rate_chart(measured: pd.DataFrame, title: str = "") -> alt.TopLevelMixin:
    """Measured true regret over T against the rate T^(2/3) of Theorem 1, on logarithmic axes.

    Args:
        measured: a row per run with `policy`, `horizon` and `true_regret` per round.
        title: above the figure. The grey lines have the slope 2/3, through each policy's first
            point: a curve below its line grows more slowly than the theorem allows.
    """
    alt = _altair()
    _need(measured, "horizon", "true_regret")
    total = measured.assign(total=measured["true_regret"] * measured["horizon"])
    table = summarise(total, ["policy", "horizon"], "total")
    for _, mine in table.groupby("policy", sort=False):
        start = mine.iloc[0]
        line = rate_through(mine["horizon"], start["horizon"], start["mean"])
        table.loc[mine.index, "rate"] = line
    colour = _colour(alt, table["policy"])
    found = np.unique(table["horizon"])
    across = alt.X(
        "horizon:Q",
        scale=alt.Scale(type="log", domain=[int(found[0]), int(found[-1])], nice=False),
        axis=alt.Axis(values=found.tolist(), format="~s"),
        title="number of rounds T",
    )
    lowest = float(min(table["mean"].min(), table["rate"].min()))
    highest = float(np.nanmax([table["high"].max(), table["mean"].max(), table["rate"].max()]))
    log = alt.Scale(type="log", domain=[0.8 * lowest, 1.25 * highest], nice=False)
    base = alt.Chart(table).encode(across)
    return _frame(
        alt.layer(
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
                    axis=alt.Axis(tickCount=5, format="~s"),
                    title="true regret in all T rounds",
                ),
                color=colour,
            ),
        ).properties(width=WIDTH, height=HEIGHT),
        title,
    )


def bias_chart(
    bias: pd.DataFrame,
    units: Mapping[str, float] | None = None,
    axis: str = "bias, in units of reward",
    title: str = "Bias by feature and group",
    level: float = 0.95,
) -> alt.TopLevelMixin:
    """The bias by feature and group: a point, a thick interval alone, a thin one for all at once.

    Rows without an estimate are not left out: they say "not identified".

    Args:
        bias: a row per group and feature, as `BiasReport.to_frame` gives it.
        units: the step of each feature that the bias is drawn for; 1 unless given.
        axis: the words on the horizontal axis.
        title: above the figure.
        level: of the intervals, for the words below the title.
    """
    alt = _altair()
    table = _in_units(bias, units or {})
    groups = list(dict.fromkeys(table["group"]))
    colours = dict(zip(groups, cycle(_OF_GROUPS), strict=False))
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
    return _frame(alt.layer(*layers).properties(width=WIDTH, height=rows), heading)


def _in_units(bias: pd.DataFrame, units: Mapping[str, float]) -> pd.DataFrame:
    ends = ["estimate", "low", "high", "simultaneous_low", "simultaneous_high"]
    missing = [name for name in ("group", "feature", "why", *ends) if name not in bias]
    if missing:
        raise ValueError(
            f"bias has no column {missing[0]!r}; allowed is a table as report.to_frame() gives it"
        )
    table = bias[["group", "feature", "why", *ends]].copy()
    step = table["feature"].map(lambda name: float(units.get(name, 1.0)))
    table[ends] = table[ends].mul(step, axis=0)
    steps = [f"{one:,.0f}" if one >= 1.0 and one == round(one) else f"{one:g}" for one in step]
    table["label"] = [
        name if one == "1" else f"{name}, per {one}"
        for name, one in zip(table["feature"], steps, strict=True)
    ]
    return table


def save(chart: Any, stem: str | Path, formats: str | Sequence[str] = FORMATS) -> list[Path]:
    """Write a chart as files with this stem: "share" gives share.pdf, share.svg and share.png.

    A stem that ends in one of the formats is written in that format alone. No browser is needed.
    """
    stem, formats = Path(stem), [formats] if isinstance(formats, str) else formats
    if stem.suffix[1:] in FORMATS:
        stem, formats = stem.with_suffix(""), [stem.suffix[1:]]
    unknown = [one for one in formats if one not in FORMATS]
    if unknown:
        raise ValueError(f"format {unknown[0]!r}; allowed are {', '.join(FORMATS)}")
    import vl_convert as vlc

    spec, version = chart.to_json(validate=False), _version()
    makers: dict[str, Any] = {
        "svg": lambda: to_svg(chart).encode(),
        "pdf": lambda: vlc.vegalite_to_pdf(spec, vl_version=version),
        "png": lambda: vlc.vegalite_to_png(spec, vl_version=version, scale=2),
    }
    paths = []
    for one in formats:
        path = stem.with_name(f"{stem.name}.{one}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(makers[one]())
        paths.append(path)
    return paths


def to_svg(chart: Any) -> str:
    """A chart as the text of an SVG picture, for a page that needs nothing else."""
    import vl_convert as vlc

    svg: str = vlc.vegalite_to_svg(chart.to_json(validate=False), vl_version=_version())
    return svg


def _need(table: Any, x: str, *columns: str) -> None:
    if not isinstance(table, pd.DataFrame):
        raise ValueError(
            f"runs is a {type(table).__name__}; allowed is a table, such as found.runs"
        )
    missing = [name for name in ("policy", x, *columns) if name not in table]
    if missing or not pd.api.types.is_numeric_dtype(table[x]):
        raise ValueError(
            f"x is {x!r}; the table has to have a column of numbers of that name, and policy, "
            f"{', '.join(columns)}: add one with runs.assign({x}=...)"
        )


def _altair() -> Any:
    try:
        import altair as alt
    except ImportError as error:
        raise ImportError(
            "charts need Altair: install it with pip install 'evenhand[charts]'"
        ) from error
    alt.data_transformers.disable_max_rows()
    return alt


def _version() -> str:
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])


def _colour(alt: Any, policies: Iterable[str]) -> Any:
    names = list(dict.fromkeys(policies))
    spare = iter(_SPARE * (1 + len(names) // len(_SPARE)))
    palette = [COLOURS[name] if name in COLOURS else next(spare) for name in names]
    scale = alt.Scale(domain=names, range=palette)
    legend = alt.Legend(title="policy", symbolType="stroke", symbolOpacity=1, symbolStrokeWidth=3)
    return alt.Color("policy:N", scale=scale, legend=legend)


def _ours_on_top(table: pd.DataFrame) -> pd.DataFrame:
    """GroupFairTopInterval last, so that no other line hides it."""
    return table.sort_values("policy", key=lambda names: names.str.startswith("GroupFair"))


def _across(alt: Any, x: str, axis: str | None, values: pd.Series[float]) -> Any:
    found = np.unique(values)
    few = {"values": found.tolist(), "format": ".3~f"} if found.size <= 10 else {"tickCount": 6}
    ticks = alt.Axis(**few, labelOverlap="greedy", labelSeparation=8)
    scale = alt.Scale(domain=[float(found[0]), float(found[-1])], nice=False)
    return alt.X(f"{x}:Q", title=x if axis is None else axis, scale=scale, axis=ticks)


def _crosses(alt: Any, published: pd.DataFrame, across: Any, colour: Any) -> Any:
    marks = alt.Chart(published).mark_point(shape="cross", size=16, opacity=0.75, strokeWidth=1)
    return marks.encode(across, alt.Y("value:Q", title=""), color=colour)


def _frame(chart: Any, title: Any, legend: str = "right") -> alt.TopLevelMixin:
    framed: alt.TopLevelMixin = (
        chart.properties(title=title)
        .configure_axis(grid=True, gridColor="#eee", labelFontSize=11, titleFontSize=12)
        .configure_legend(labelFontSize=11, titleFontSize=11, labelLimit=220, orient=legend)
        .configure_title(fontSize=13, anchor="start", fontWeight="normal")
        .configure_view(stroke="#ccc")
    )
    return framed
