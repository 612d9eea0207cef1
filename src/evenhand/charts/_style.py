"""What all charts share: colours, sizes, the frame, panels, checks of the table, and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand._atomic_files import write_whole
from evenhand._svg import svg_of
from evenhand.errors import InputError, MissingExtraError, setting

if TYPE_CHECKING:
    import altair as alt

# Colours that colour-blind readers can tell apart (Okabe and Ito). Ours are fixed, so that a policy
# looks the same in every figure; other policies get the spare colours in turn.
COLOURS = {
    "TopInterval": "#D55E00",
    "IntervalChaining": "#E69F00",
    "GroupFairTopInterval": "#0072B2",
    "GroupFairIntervalChaining": "#882255",
    "NaiveFair": "#009E73",
    "MultiGroupFairTopInterval": "#56B4E9",
    "PooledGroupFair": "#CC79A7",
    "UniformRandom": "#7F7F7F",
    "floor": "#444444",
}
_SPARE = ("#8C564B", "#B8A200", "#4B0082", "#2CA02C", "#000000")
OF_GROUPS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
    "#7F7F7F", "#8C564B", "#B8A200", "#4B0082", "#2CA02C",
)  # fmt: skip
WIDTH, HEIGHT, PANEL_WIDTH, PANEL_HEIGHT = 340, 230, 150, 155
WHOLE = {"width": 570, "height": 280}  # with axes and legend, so that figures in a row line up
PLAIN = ",.12~r"  # 0.25 and 1,000,000,000, where Vega would write 250m and 1G


def altair() -> Any:
    """Altair, or an error that says what to install."""
    try:
        import altair as alt
    except ImportError as error:
        raise MissingExtraError(
            "charts need Altair: install it with pip install 'evenhand[charts]'"
        ) from error
    alt.data_transformers.disable_max_rows()
    return alt


def colour_of(alt: Any, policies: Iterable[str], legend: bool = True) -> Any:
    """The colour of each policy, with a legend unless something else names them."""
    names = list(dict.fromkeys(policies))
    spare = iter(_SPARE * (1 + len(names) // len(_SPARE)))
    palette = [COLOURS[name] if name in COLOURS else next(spare) for name in names]
    scale = alt.Scale(domain=names, range=palette)
    strokes = {"symbolType": "stroke", "symbolOpacity": 1, "symbolStrokeWidth": 3}
    named = alt.Legend(title="policy", **strokes) if legend else None
    return alt.Color("policy:N", scale=scale, legend=named)


def fitted(alt: Any, chart: Any) -> Any:
    """A chart that has the common size, axes and legend included."""
    return chart.properties(autosize=alt.AutoSizeParams(type="fit", contains="padding"), **WHOLE)


def frame(chart: Any, title: Any, legend: str = "right") -> alt.TopLevelMixin:
    """A chart with the common style of title, axes and legend.

    All of it in one call: every call of Altair copies the chart, data included.
    """
    framed: alt.TopLevelMixin = chart.properties(title=title).configure(
        numberFormat=PLAIN,
        axis={"grid": True, "gridColor": "#eee", "labelFontSize": 11, "titleFontSize": 12},
        legend={"labelFontSize": 11, "titleFontSize": 11, "labelLimit": 220, "orient": legend},
        title={"fontSize": 13, "anchor": "start", "fontWeight": "normal"},
        view={"stroke": "#ccc"},
    )
    return framed


def need(table: Any, x: str, *columns: str) -> None:
    """Raise an error that says which column is missing, and how to add it."""
    if not isinstance(table, pd.DataFrame):
        raise InputError(
            f"{setting('runs')} is a {type(table).__name__}; allowed is a table like results.runs"
        )
    missing = [name for name in ("policy", x, *columns) if name not in table]
    if missing or not pd.api.types.is_numeric_dtype(table[x]):
        raise InputError(
            f"{setting('x')} is {x!r}; the table needs a column of numbers of that name, and "
            f"policy, {', '.join(columns)}: add one with runs.assign({x}=...)",
            value=x,
        )


FORMATS = ("pdf", "svg", "png")


def save(chart: Any, stem: str | Path, formats: str | Sequence[str] = FORMATS) -> list[Path]:
    """Write a chart as files with this stem: "share" gives share.pdf, share.svg and share.png.

    A stem that ends in one of the formats is written in that format only. No browser is needed.

    Example:
        >>> import pathlib, tempfile, pandas as pd, evenhand as eh
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> runs = pd.DataFrame({"policy": "TopInterval", "horizon": [1, 2], "share": [0.2, 0.4]})
        >>> chart = eh.charts.share_chart(runs, "horizon")
        >>> [path.name for path in eh.charts.save(chart, folder / "share.svg")]
        ['share.svg']
    """
    stem, formats = Path(stem), [formats] if isinstance(formats, str) else formats
    if stem.suffix[1:] in FORMATS:
        stem, formats = stem.with_suffix(""), [stem.suffix[1:]]
    unknown = [form for form in formats if form not in FORMATS]
    if unknown:
        raise InputError(f"format {unknown[0]!r}; allowed are {', '.join(FORMATS)}")
    import vl_convert as vlc

    spec, version = chart.to_json(validate=False), _version()
    makers: dict[str, Any] = {
        "svg": lambda: to_svg(chart).encode(),
        "pdf": lambda: vlc.vegalite_to_pdf(spec, vl_version=version),
        "png": lambda: vlc.vegalite_to_png(spec, vl_version=version, scale=2),
    }
    paths = []
    for form in formats:
        path = stem.with_name(f"{stem.name}.{form}")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, makers[form]())
        paths.append(path)
    return paths


def to_svg(chart: Any) -> str:
    """A chart as the text of an SVG picture, for a page that needs no other file.

    Example:
        >>> import pandas as pd, evenhand as eh
        >>> runs = pd.DataFrame({"policy": "TopInterval", "horizon": [1, 2], "share": [0.2, 0.4]})
        >>> eh.charts.to_svg(eh.charts.share_chart(runs, "horizon"))[:4]
        '<svg'
    """
    return svg_of(chart.to_json(validate=False), _version())


def _version() -> str:
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])


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
    """The horizontal axis of numbers.

    Ticks stand at the values themselves where there are up to ten, because what a sweep tried says
    more than round numbers. The axis is logarithmic where values span a factor of 100 or more and
    begin at 1 or above.

    Args:
        alt: Altair.
        x: the column.
        axis: the title; the name of the column unless given.
        values: all that the column has.
    """
    different = np.unique(values)
    few = {"values": different.tolist()} if different.size <= 10 else {"tickCount": 6}
    ticks = alt.Axis(**few, labelOverlap="greedy", labelSeparation=8)
    first, last = float(different[0]), float(different[-1])
    kind = "log" if 1.0 <= first <= last / 100.0 else "linear"  # of counts, such as rounds
    scale = alt.Scale(type=kind, domain=[first, last], nice=False)
    return alt.X(f"{x}:Q", title=x if axis is None else axis, scale=scale, axis=ticks)
