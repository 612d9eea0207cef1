"""True regret on logarithmic axes: over a setting, and how it grows with the number of rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand.charts._style import (
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
from evenhand.theory import rate_through

if TYPE_CHECKING:
    import altair as alt


def true_regret_chart(
    runs: pd.DataFrame, x: str, title: str = "", axis: str | None = None
) -> alt.TopLevelMixin:
    """True regret per round with 95 % intervals, on a logarithmic axis.

    Policies whose regrets differ by orders of magnitude can be told apart. A mean of zero has no
    place on such an axis and is left out.

    Args:
        runs: a row per run with `policy`, `true_regret` and the column `x`. With a column `panel`,
            there is a panel for each of its values.
        x: the column on the horizontal axis. If it has a single value, the axis shows policies.
        title: above the figure.
        axis: the words on the horizontal axis.

    Example:
        >>> import pandas as pd, evenhand as eh
        >>> runs = pd.DataFrame({"policy": ["TopInterval", "PooledGroupFair"] * 2, "horizon": 100,
        ...     "true_regret": [4.0, 0.1, 5.0, 0.2]})
        >>> chart = eh.charts.true_regret_chart(runs, "horizon")
        >>> "true regret per round" in eh.charts.to_svg(chart)
        True
    """
    alt = altair()
    need(runs, x, "true_regret")
    panel = ["panel"] if "panel" in runs else []
    means = summarise(runs, [*panel, "policy", x], "true_regret")
    means = means[means["mean"] > 0.0]
    if means.empty:
        raise InputError(f"{setting('runs')} have no true regret above zero to draw")
    scale = _scale(alt, means, means["mean"], means["low"].clip(lower=0.5 * means["mean"]))
    table = means.assign(low=means["low"].clip(lower=scale.domain[0]))
    words, few = "true regret per round", runs[x].nunique() <= 10
    vertical = alt.Y("mean:Q", title=words, scale=scale, axis=alt.Axis(tickCount=5))

    def draw(part: pd.DataFrame) -> Any:
        if runs[x].nunique() == 1:
            dots = dots_of(alt, part, vertical)
            values = alt.Chart(part).mark_text(dx=9, align="left", fontSize=11)
            by = alt.X("policy:N", sort=None)
            return dots + values.encode(by, vertical, alt.Text("mean:Q", format=".2r"))
        colour = colour_of(alt, part["policy"])
        across = across_of(alt, x, axis, runs[x])
        base = alt.Chart(ours_on_top(part)).encode(across, color=colour)
        return alt.layer(
            base.mark_area(opacity=0.18, clip=True).encode(
                alt.Y("low:Q", title="", scale=scale), alt.Y2("high:Q")
            ),
            base.mark_line(strokeWidth=1.8, point=few).encode(vertical),
        )

    return in_panels(alt, table, title, draw)


def _scale(alt: Any, table: pd.DataFrame, *lowest: pd.Series[float]) -> Any:
    """A logarithmic axis from a little below the lowest to a little above the highest value."""
    low = min(float(values.min()) for values in lowest)
    high = np.nanmax([table["high"].max(), *(values.max() for values in (table["mean"], *lowest))])
    return alt.Scale(type="log", domain=[0.8 * low, 1.25 * float(high)], nice=False)


def rate_chart(measured: pd.DataFrame, title: str = "") -> alt.TopLevelMixin:
    """Measured true regret over T and the rate T^(2/3) of Theorem 1, on logarithmic axes.

    The grey lines have slope 2/3 and pass through each policy's first point. A curve below its
    line grows no faster than the theorem allows.

    Args:
        measured: a row per run with `policy`, `horizon` and `true_regret` per round. With a column
            `panel`, there is a panel for each of its values.
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
    panel = ["panel"] if "panel" in measured else []
    table = summarise(total, [*panel, "policy", "horizon"], "total")
    for _, curve in table.groupby([*panel, "policy"], sort=False):
        start = curve.iloc[0]
        line = rate_through(curve["horizon"], start["horizon"], start["mean"])
        table.loc[curve.index, "rate"] = line
    horizons = np.unique(table["horizon"])
    across = alt.X(
        "horizon:Q",
        scale=alt.Scale(type="log", domain=[int(horizons[0]), int(horizons[-1])], nice=False),
        axis=alt.Axis(values=horizons.tolist(), labelOverlap="greedy", labelSeparation=8),
        title="number of rounds T",
    )
    log = _scale(alt, table, table["mean"], table["rate"])
    table["low"] = table["low"].clip(lower=log.domain[0])
    words = "true regret in all T rounds"

    def draw(part: pd.DataFrame) -> Any:
        colour = colour_of(alt, part["policy"])
        base = alt.Chart(part).encode(across)
        return alt.layer(
            base.mark_line(color="#999", strokeDash=[4, 3]).encode(
                alt.Y("rate:Q", scale=log, title=""), detail="policy:N"
            ),
            base.mark_area(opacity=0.18, clip=True).encode(
                alt.Y("low:Q", scale=log, title=""), alt.Y2("high:Q"), color=colour
            ),
            base.mark_line(strokeWidth=1.8, point=True).encode(
                alt.Y("mean:Q", scale=log, axis=alt.Axis(tickCount=5), title=words), color=colour
            ),
        )

    return in_panels(alt, table, title, draw)
