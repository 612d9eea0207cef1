"""The audit as one HTML page that needs nothing else and no network.

The pictures of an audit, as SVG.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand import charts
from evenhand.columns.words import INTERCEPT
from evenhand.html import page

if TYPE_CHECKING:
    from evenhand.audit.report.result import Audit
    from evenhand.bias import BiasReport


def html(audit: Audit) -> str:
    """The whole page: words first, then numbers, then the method and where it ends."""
    body = [
        f"<h1>{escape(audit.facts.settings.title)}</h1>",
        f"<p class='note'>{escape(audit.facts.label)}; made on "
        f"{escape(audit.facts.made[:16].replace('T', ' '))} UTC</p>",
        "<h2 id='summary'>Summary</h2>",
        bullets(audit.summary),
        "<h2 id='bias'>Bias</h2>",
        *_bias(audit.bias, audit.within),
        *_against_truth(audit),
        *_metrics(audit),
        *_drift(audit),
        *_missing(audit),
        "<h2 id='method'>How this was made</h2>",
        bullets(audit.method),
        "<h2 id='limits'>What this cannot say</h2>",
        bullets(audit.limits),
        _columns(audit),
    ]
    return page(audit.facts.settings.title, "".join(body))


def _at_average(reports: dict[str, BiasReport]) -> str:
    """The gap of every group at the average context: the interval is the one of the summary."""
    parts = []
    for words, bias in reports.items():
        ends = {"simultaneous_low": "low", "simultaneous_high": "high", "observations": "rows"}
        part = bias.by_group.reset_index().rename(columns={"low": "_", "high": "__"})
        part = part.rename(columns={**ends, "estimate": "gap"})
        part = part[["group", "rows", "gap", "low", "high", "why"]]
        if len(reports) > 1:
            part.insert(1, "compared", words)
        parts.append(part[part["group"] != bias.reference])
    return table(pd.concat(parts, ignore_index=True))


def _bias(bias: BiasReport, within: BiasReport | None = None) -> list[str]:
    reports = {"over the whole log": bias}
    if within is not None:
        reports["within time windows"] = within
    level = f"{100 * bias.level:.6g} %"
    full = bias.to_frame()[
        ["group", "feature", "estimate", "standard_error", "low", "high", "simultaneous_low",
         "simultaneous_high", "p_value", "mean", "contribution", "disagrees", "why"]
    ]  # fmt: skip
    gaps = bias.gaps().rename(columns={"estimate": "gap"})
    gaps = gaps.drop(columns=["freedom", "simultaneous_p_value"])
    return [
        f"<p>The gap between each group and {escape(bias.against)} at the average context of "
        f"everyone, in units of reward. The {level} intervals are those of the summary: they hold "
        "for all groups at once.</p>",
        _at_average(reports),
        _figure(
            gap_picture(bias),
            f"The gap within each category, and at two values of each number, compared with "
            f"{bias.against}. All other features are at their average.",
        ),
        folded("all gaps", table(gaps)),
        _figure(
            bias_picture(bias),
            "How the gap changes: for a number with the step that is named, for a category from "
            "its baseline. These are no gaps themselves.",
        ),
        folded("all changes of the gap (the bias on each feature)", table(full)),
    ]


def _figure(picture: str, words: str) -> str:
    return f"<figure>{picture}<figcaption>{escape(words)}</figcaption></figure>" if picture else ""


def _against_truth(audit: Audit) -> list[str]:
    if audit.against_truth is None:
        return []
    name = escape(str(audit.facts.columns.true_reward))
    return [
        f"<h2 id='truth'>Measured against {name}</h2>",
        f"<p>{escape(audit.against_truth.assumption)}</p>",
        *_bias(audit.against_truth),
    ]


def _metrics(audit: Audit) -> list[str]:
    found = audit.metrics
    frame = found.to_frame()
    frame = frame.assign(metric=frame["metric"].str.replace("_", " "))
    return [
        "<h2 id='metrics'>Metrics</h2>",
        bullets(found.to_words().splitlines()),
        folded("all numbers of the metrics", table(frame)),
        *([] if audit.arms is None else [folded("pulls by arm", table(audit.arms))]),
        *(
            [folded("weights, propensities and overrides", table(audit.extras))]
            if len(audit.extras.columns) > 1
            else []
        ),
    ]


def _drift(audit: Audit) -> list[str]:
    if audit.drift is None:
        return []
    figures = "".join(
        f"<figure>{svg}<figcaption>{escape(words)}</figcaption></figure>"
        for svg, words in drift_pictures(audit)
    )
    tests = audit.changes
    return [
        "<h2 id='drift'>Over time</h2>",
        f"<div class='figures'>{figures}</div>",
        "" if tests is None or tests.empty else folded("the test for change", table(tests)),
        folded("all numbers by window", table(audit.drift)),
    ]


def _missing(audit: Audit) -> list[str]:
    if audit.missing.empty:
        return []
    frame = audit.missing.assign(percent=100.0 * audit.missing["missing"] / audit.missing["rows"])
    return ["<h2 id='missing'>Missing values</h2>", table(frame)]


def _columns(audit: Audit) -> str:
    columns = audit.facts.columns
    roles = [
        (name.replace("_", " "), value)
        for name, value in vars(columns).items()
        if value is not None and name != "features"
    ]
    roles.append(("features", ", ".join(columns.features)))
    roles.append(("left out", ", ".join(audit.facts.left_out) or "none"))
    chosen = [(name, str(value)) for name, value in audit.facts.chosen().items()]
    return folded(
        "which column is what", table(pd.DataFrame(roles, columns=["role", "column"]))
    ) + folded("all settings", table(pd.DataFrame(chosen, columns=["setting", "value"])))


def bullets(sentences: Sequence[str]) -> str:
    """Sentences as a list."""
    return "<ul>" + "".join(f"<li>{escape(one)}</li>" for one in sentences) + "</ul>"


def folded(words: str, inside: str) -> str:
    """What opens on a click."""
    return f"<details><summary>{escape(words)}</summary>{inside}</details>"


def table(frame: pd.DataFrame) -> str:
    """A frame as a table that scrolls where it is wider than the page."""
    head = "".join(
        f"<th{_right(frame[name])}>{escape(str(name).replace('_', ' '))}</th>"
        for name in frame.columns
    )
    rows = "".join(
        "<tr>" + "".join(_cell(value) for value in row) + "</tr>"
        for row in frame.itertuples(index=False)
    )
    return f"<div style='overflow-x:auto'><table><tr>{head}</tr>{rows}</table></div>"


def _right(column: pd.Series[Any]) -> str:
    is_number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    return " style='text-align:right'" if is_number else ""


def _cell(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, str):
        return f"<td>{escape(value)}</td>"
    if value is None or value is pd.NA or pd.isna(value):
        return "<td class='number note'>&ndash;</td>"
    if isinstance(value, (int, np.integer)) or (float(value).is_integer() and abs(value) >= 1):
        return f"<td class='number'>{int(value):,}</td>" if np.isfinite(value) else "<td>inf</td>"
    if np.isinf(value):
        return f"<td class='number'>{'&minus;' if value < 0 else ''}&infin;</td>"
    return f"<td class='number'>{value:,.5g}</td>"


MOST_ROWS = 240  # of group and feature: more would not be read


def gap_picture(bias: BiasReport) -> str:
    """The gap within each category and at values of each number."""
    table = bias.gaps()
    if table.empty:
        return ""
    sign = {column.name: " = " if column.categories else " at " for column in bias._columns}
    labels = [
        f"{name}{sign[str(name)]}{at}"
        for name, at in zip(table["column"], table["at"], strict=True)
    ]
    axis = f"feedback compared with {bias.against}, in units of reward"
    return _drawn(bias, table.assign(feature=labels), {}, axis)


def bias_picture(bias: BiasReport) -> str:
    """How the gap changes with each feature, without the intercept: that is no change."""
    table = bias.to_frame()
    table = table[table["feature"] != INTERCEPT]
    units = dict(zip(bias.features, bias.units, strict=True))
    return _drawn(bias, table, units, bias.change)


def _drawn(bias: BiasReport, table: pd.DataFrame, units: dict[str, float], axis: str) -> str:
    """Estimates with their intervals, as SVG; the clearest, where they are too many to be read."""
    if table.empty:
        return ""
    if len(table) > MOST_ROWS:
        size = (table["estimate"] / table["standard_error"]).abs().fillna(0.0)
        best = size.groupby(table["feature"], sort=False).max().sort_values(ascending=False)
        keep = best.index[: max(MOST_ROWS // len(bias.groups), 1)]
        table = table[table["feature"].isin(keep)]
    chart: Any = charts.bias_chart(table, units, axis, "", bias.level)
    return charts.to_svg(chart.configure_axisX(labelFlush=False, labelOverlap="greedy"))


def drift_pictures(audit: Audit) -> list[tuple[str, str]]:
    """Mean reward by group and, where it is known, bias by group: over the time windows."""
    if audit.drift is None:
        return []
    at = f"{100 * audit.bias.level:.6g} % intervals"
    means = ("mean_reward", "mean_low", "mean_high")
    drawn = [(f"mean reward by time window, {at}", means)]
    if audit.changes is not None and len(audit.changes):
        drawn.append((f"bias at the average context, {at}", ("estimate", "low", "high")))
    pictures = []
    for words, (value, low, high) in drawn:
        is_bias = value == "estimate"
        chart = charts.windows_chart(
            audit.drift,
            value,
            low,
            high,
            audit.bias.groups,
            "feedback compared, in units of reward" if is_bias else "mean reward",
            audit.bias.reference if is_bias else None,
        )
        pictures.append((charts.to_svg(chart), words))
    return pictures
