"""Every picture, once: the same definition serves notebooks, PDF, SVG, PNG and web pages.

The functions take tidy tables and return Altair charts; `save` renders them without a browser.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
FORMATS = ("pdf", "svg", "png")
WIDTH, HEIGHT = 340, 230


def share_chart(
    runs: pd.DataFrame,
    x: str,
    title: str = "",
    axis: str | None = None,
    published: pd.DataFrame | None = None,
    proportional: pd.DataFrame | None = None,
) -> alt.LayerChart:
    """The share of pulls that went to sensitive arms, with 95 % bands, as in the paper's Figure 1.

    Args:
        runs: a row per run with `policy`, `share` and the column `x`.
        x: the column on the horizontal axis.
        title: above the figure.
        axis: the words on the horizontal axis.
        published: values to overlay as crosses: `policy`, `x`, `value`.
        proportional: `x` and `share`, what proportional parity asks for: a dotted line.
    """
    alt = _altair()
    _need(runs, x, "share")
    table = summarise(runs, ["policy", x], "share")
    colour = _colour(alt, table["policy"])
    vertical = alt.Y("mean:Q", title="share of sensitive pulls", scale=alt.Scale(zero=True))
    across = _across(alt, x, axis, table[x])
    base = alt.Chart(_ours_on_top(table)).encode(across, color=colour)
    layers: list[Any] = [
        base.mark_area(opacity=0.18).encode(alt.Y("low:Q", title=""), alt.Y2("high:Q")),
        base.mark_line(strokeWidth=1.8).encode(vertical),
    ]
    if proportional is not None:
        rule = alt.Chart(proportional).mark_line(color="#444", strokeDash=[2, 3], strokeWidth=1)
        layers.insert(0, rule.encode(across, alt.Y("share:Q", title="")))
    if published is not None and len(published):
        layers.append(_crosses(alt, published.rename(columns={"x": x}), across, colour))
    return _frame(alt.layer(*layers), title)


def regret_chart(
    runs: pd.DataFrame,
    x: str,
    title: str = "",
    axis: str | None = None,
    published: pd.DataFrame | None = None,
) -> alt.LayerChart:
    """Perceived regret solid and true regret dashed, per round, as in the paper's Figure 2.

    Args:
        runs: a row per run with `policy`, `perceived_regret`, `true_regret` and the column `x`.
        x: the column on the horizontal axis.
        title: above the figure.
        axis: the words on the horizontal axis.
        published: values to overlay: `policy`, `x`, `metric`, `value`.
    """
    alt = _altair()
    _need(runs, x, "perceived_regret", "true_regret")
    kinds = {"perceived_regret": "perceived", "true_regret": "true"}
    long = runs.melt(id_vars=["policy", x], value_vars=list(kinds), var_name="metric")
    table = summarise(long, ["policy", "metric", x], "value")
    table["regret"] = table["metric"].map(kinds)
    colour = _colour(alt, table["policy"])
    dash = alt.StrokeDash(
        "regret:N",
        scale=alt.Scale(domain=["perceived", "true"], range=[[1, 0], [5, 3]]),
        legend=alt.Legend(title="regret", symbolStrokeColor="#444"),
    )
    across = _across(alt, x, axis, table[x])
    base = alt.Chart(_ours_on_top(table)).encode(across, color=colour, detail="regret:N")
    layers: list[Any] = [
        base.mark_area(opacity=0.15).encode(alt.Y("low:Q", title=""), alt.Y2("high:Q")),
        base.mark_line(strokeWidth=1.8).encode(
            alt.Y("mean:Q", title="regret per round"), strokeDash=dash
        ),
    ]
    if published is not None and len(published):
        layers.append(_crosses(alt, published.rename(columns={"x": x}), across, colour))
    return _frame(alt.layer(*layers), title)


def rate_chart(measured: pd.DataFrame, title: str = "") -> alt.LayerChart:
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
        ),
        title,
    )


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

    spec = chart.to_json(validate=False)
    version = _version()
    makers: dict[str, Any] = {
        "svg": lambda: vlc.vegalite_to_svg(spec, vl_version=version).encode(),
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
    ticks = alt.Axis(**few, labelOverlap="greedy")
    scale = alt.Scale(domain=[float(found[0]), float(found[-1])], nice=False)
    return alt.X(f"{x}:Q", title=x if axis is None else axis, scale=scale, axis=ticks)


def _crosses(alt: Any, published: pd.DataFrame, across: Any, colour: Any) -> Any:
    marks = alt.Chart(published).mark_point(shape="cross", size=16, opacity=0.75, strokeWidth=1)
    return marks.encode(across, alt.Y("value:Q", title=""), color=colour)


def _frame(chart: Any, title: str) -> alt.LayerChart:
    framed: alt.LayerChart = (
        chart.properties(width=WIDTH, height=HEIGHT, title=title)
        .configure_axis(grid=True, gridColor="#eee", labelFontSize=11, titleFontSize=12)
        .configure_legend(labelFontSize=11, titleFontSize=11, labelLimit=220, orient="right")
        .configure_title(fontSize=13, anchor="start", fontWeight="normal")
        .configure_view(stroke="#ccc")
    )
    return framed
