"""Shares of the choices over time, beside the shares in proportion to the candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from evenhand.charts._style import OF_GROUPS, altair
from evenhand.errors import InputError, setting

if TYPE_CHECKING:
    import altair as alt

NEEDED = ("at", "group", "kind", "share")
KINDS = ("chosen", "proportional")


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
