"""What all figures look like: colours, sizes, the frame around them, and Altair itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

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
OF_GROUPS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
    "#7F7F7F", "#8C564B", "#B8A200", "#4B0082", "#2CA02C",
)  # fmt: skip
WIDTH, HEIGHT, PANEL_WIDTH, PANEL_HEIGHT = 340, 230, 150, 155


def altair() -> Any:
    """Altair, or what to install."""
    try:
        import altair as alt
    except ImportError as error:
        raise ImportError(
            "charts need Altair: install it with pip install 'evenhand[charts]'"
        ) from error
    alt.data_transformers.disable_max_rows()
    return alt


def colour_of(alt: Any, policies: Iterable[str]) -> Any:
    """The colour of each policy, with a legend."""
    names = list(dict.fromkeys(policies))
    spare = iter(_SPARE * (1 + len(names) // len(_SPARE)))
    palette = [COLOURS[name] if name in COLOURS else next(spare) for name in names]
    scale = alt.Scale(domain=names, range=palette)
    legend = alt.Legend(title="policy", symbolType="stroke", symbolOpacity=1, symbolStrokeWidth=3)
    return alt.Color("policy:N", scale=scale, legend=legend)


def frame(chart: Any, title: Any, legend: str = "right") -> alt.TopLevelMixin:
    """A chart with the title, axes and legend that all have."""
    framed: alt.TopLevelMixin = (
        chart.properties(title=title)
        .configure_axis(grid=True, gridColor="#eee", labelFontSize=11, titleFontSize=12)
        .configure_legend(labelFontSize=11, titleFontSize=11, labelLimit=220, orient=legend)
        .configure_title(fontSize=13, anchor="start", fontWeight="normal")
        .configure_view(stroke="#ccc")
    )
    return framed
