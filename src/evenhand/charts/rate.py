"""True regret against the rate of Theorem 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from evenhand.charts.style import altair, colour_of, fitted, frame
from evenhand.charts.tables import need
from evenhand.metrics import summarise
from evenhand.theory import rate_through

if TYPE_CHECKING:
    import altair as alt


def rate_chart(measured: pd.DataFrame, title: str = "") -> alt.TopLevelMixin:
    """Measured true regret over T against the rate T^(2/3) of Theorem 1, on logarithmic axes.

    Args:
        measured: a row per run with `policy`, `horizon` and `true_regret` per round.
        title: above the figure. The grey lines have the slope 2/3, through each policy's first
            point: a curve below its line grows more slowly than the theorem allows.
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
    found = np.unique(table["horizon"])
    across = alt.X(
        "horizon:Q",
        scale=alt.Scale(type="log", domain=[int(found[0]), int(found[-1])], nice=False),
        axis=alt.Axis(values=found.tolist(), labelOverlap="greedy", labelSeparation=8),
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
