"""The audit as one HTML page with its pictures, which needs no other file and no network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand import charts
from evenhand._columns.words import INTERCEPT
from evenhand._html import drawn, render
from evenhand._html.tables import Table, of_frame, of_rows
from evenhand._prose import quoted
from evenhand.audit._inference.decomposition import (
    EXPLAINED,
    LEFT,
    LOGISTIC_MODEL,
    UNADJUSTED,
)
from evenhand.audit._report.blend import blend_view
from evenhand.audit._report.by_probability import view
from evenhand.audit._report.decomposition_sentences import compared_with, reverses
from evenhand.audit._report.impact import impact_view
from evenhand.audit._report.intersection_sentences import intersections_view
from evenhand.audit._report.link_tests import link_sentence, logistic_part
from evenhand.audit._report.logistic import LOGISTIC, NEITHER
from evenhand.audit._report.result import WITHIN_WINDOWS
from evenhand.charts.decomposition import OTHERWISE

if TYPE_CHECKING:
    from markupsafe import Markup

    from evenhand.audit._report.logistic import Logistic
    from evenhand.audit._report.result import Audit
    from evenhand.bias import BiasReport
    from evenhand.fairness import FairnessReport


MOST_PANELS = 6  # of groups in the picture of gaps; all are in its table
MOST_ROWS = 240  # of group and feature: more would not be read


def gap_picture(bias: BiasReport) -> Markup | None:
    """The gap within each category and at values of each number."""
    table = bias.gaps()
    if table.empty:
        return None
    sign = {column.name: " = " if column.categories else " at " for column in bias._columns}
    labels = [
        f"{name}{sign[str(name)]}{at}"
        for name, at in zip(table["column"], table["at"], strict=True)
    ]
    axis = f"gap to {bias.against}, in units of {bias._terms.unit}"
    return _intervals(bias, table.assign(feature=labels), {}, axis)


def bias_picture(bias: BiasReport) -> Markup | None:
    """How the gap changes with each feature, without the intercept: that is no change."""
    table = bias.to_frame()
    table = table[table["feature"] != INTERCEPT]
    units = dict(zip(bias.features, bias.units, strict=True))
    return _intervals(bias, table, units, bias.change)


def _intervals(
    bias: BiasReport, table: pd.DataFrame, units: dict[str, float], axis: str
) -> Markup | None:
    """Estimates with their intervals, as SVG; the clearest, where they are too many to be read."""
    if table.empty:
        return None
    if len(table) > MOST_ROWS:
        size = (table["estimate"] / table["standard_error"]).abs().fillna(0.0)
        best = size.groupby(table["feature"], sort=False).max().sort_values(ascending=False)
        keep = best.index[: max(MOST_ROWS // len(bias.groups), 1)]
        table = table[table["feature"].isin(keep)]
    chart: Any = charts.bias_chart(table, units, axis, "", bias.level, groups=bias.groups)
    return drawn(charts.to_svg(chart.configure_axisX(labelFlush=False, labelOverlap="greedy")))


def drift_pictures(audit: Audit) -> list[tuple[Markup, str]]:
    """Mean reward by group and, where it is known, bias by group: over the time windows."""
    if audit.drift is None:
        return []
    at = f"{100 * audit.bias.level:.6g} % intervals"
    terms, means = audit.bias._terms, ("mean_reward", "mean_low", "mean_high")
    wanted = [(f"The {terms.outcome} by time window, unadjusted; {at}.", means)]
    if audit.changes is not None and len(audit.changes):
        words = f"The gap to {audit.bias.against} {terms.alike}, by time window; {at}."
        wanted.append((words, ("estimate", "low", "high")))
    pictures = []
    for words, (value, low, high) in wanted:
        is_bias = value == "estimate"
        chart = charts.windows_chart(
            audit.drift,
            value,
            low,
            high,
            audit.bias.groups,
            f"gap, in units of {terms.unit}" if is_bias else terms.outcome,
            audit.bias.reference if is_bias else None,
        )
        pictures.append((drawn(charts.to_svg(chart)), words))
    return pictures


Named = list[tuple[str, Table]]  # tables that open on a click, with the words to click on


def html(audit: Audit) -> str:
    """The whole page: words first, then numbers, then the method and its limits."""
    facts = audit.facts
    return render(
        "audit.html",
        title=facts.settings.title,
        about=f"{facts.label}; made on {facts.made[:16].replace('T', ' ')} UTC",
        summary=audit.summary,
        explained=_explained(audit),
        whole=_bias(audit.bias, audit.within, audit.logistic),
        logistic=None if audit.logistic is None else logistic_part(audit.logistic),
        truth=_against_truth(audit),
        blend=blend_view(audit),
        errors=_error_rates(audit),
        cells=intersections_view(audit),
        impact=None if audit.impact.empty else impact_view(audit),
        metrics=None if audit.metrics is None else _metrics(audit, audit.metrics),
        by_probability=view(audit),
        drift=_drift(audit),
        missing=_missing(audit),
        method=audit.method,
        provenance=facts.provenance.table(facts.rows),
        limits=audit.limits,
        asked=_asked(audit),
    )


def _explained(audit: Audit) -> dict[str, Any] | None:
    """The headline: the gap before and after adjustment."""
    table = audit.decomposition
    if table.empty:
        return None
    against, columns = compared_with(audit), audit.facts.columns
    outcome = columns.reward
    every = list(dict.fromkeys(table["group"]))
    chart = charts.decomposition_chart(
        table[table["group"].isin(every[:MOST_PANELS])],
        against,
        f"difference in mean {outcome}",
        attribute=columns.group,
    )
    words = {EXPLAINED: "explained by all features", LEFT: "left after adjustment"}
    words |= {UNADJUSTED: "unadjusted gap"}
    words |= {kind: f"explained by {other}" for kind, other in OTHERWISE.items()}
    shown = table.assign(
        part=[
            words.get(part, f"explained by {column}")
            for part, column in zip(table["part"], table["column"], strict=True)
        ]
    )
    return {
        "picture": drawn(charts.to_svg(chart)),
        "outcome": outcome,
        "against": against,
        "level": f"{100 * audit.bias.level:.6g} %",
        "attribute": columns.group,
        "direction": f" A higher {outcome} is worse for people."
        if audit.facts.settings.unfavourable
        else "",
        "adjusted": _adjusted(audit),
        "hidden": len(every[MOST_PANELS:]),
        "doubts": _doubts(audit),
        "reversed": [name for name, part in table.groupby("group", sort=False) if reverses(part)],
        "table": of_frame(
            shown[["group", "part", "estimate", "low", "high", "model", "why"]], keys=2
        ),
    }


def _adjusted(audit: Audit) -> str:
    """The model behind the adjustment in the picture."""
    if not audit.facts.columns.features:
        return "There are no features to hold constant."
    models = set(audit.decomposition["model"])
    windows = " within time windows" if audit.believe == WITHIN_WINDOWS else ""
    if models == {LOGISTIC_MODEL}:
        return "The adjustment is by logistic models."
    if LOGISTIC_MODEL in models:
        table = audit.decomposition
        left = table[(table["part"] == LEFT) & table["estimate"].notna()]  # what is adjusted
        without = left[left["model"] != LOGISTIC_MODEL]["group"].unique()
        if not len(without):
            return "The adjustment is by logistic models."
        names = ", ".join(map(str, without))
        return f"The adjustment is by logistic models; of {names} by straight lines."
    return f"The adjustment is by straight lines (least squares){windows}."


def _doubts(audit: Audit) -> list[str]:
    """What a reader of the picture must know about the form of the models."""
    models = audit.logistic
    if models is None or (models.odds is not None and models.fits != NEITHER):
        return []
    return [link_sentence(models)]


def _bias(
    bias: BiasReport, within: BiasReport | None = None, logistic: Logistic | None = None
) -> dict[str, Any]:
    reports = {"over the whole log": bias}
    if within is not None:
        reports["within time windows"] = within
    full = bias.to_frame()[
        ["group", "feature", "estimate", "standard_error", "low", "high", "simultaneous_low",
         "simultaneous_high", "p_value", "mean", "contribution", "disagrees", "why"]
    ]  # fmt: skip
    gaps = bias.gaps().rename(columns={"estimate": "gap"})
    return {
        "against": bias.against,
        "level": f"{100 * bias.level:.6g} %",
        "unit": bias._terms.unit,
        "alike": bias._terms.alike,
        "at_average": _at_average(reports, logistic),
        "gap_picture": gap_picture(bias),
        "gaps": of_frame(gaps.drop(columns=["freedom", "simultaneous_p_value"]), keys=3),
        "change_picture": bias_picture(bias),
        "changes": of_frame(full, keys=2),
    }


def _at_average(reports: dict[str, BiasReport], logistic: Logistic | None) -> Table:
    """The gap of every group: the intervals are those of the summary."""
    parts = []
    for words, bias in reports.items():
        ends = {"simultaneous_low": "low", "simultaneous_high": "high", "observations": "rows"}
        part = bias.by_group.reset_index().rename(columns={"low": "_", "high": "__"})
        part = part.rename(columns={**ends, "estimate": "gap"})
        part = part[["group", "rows", "gap", "low", "high", "detectable", "why"]]
        if len(reports) > 1:
            part.insert(1, "compared", words)
        if logistic is not None:
            part.insert(1, "by", "straight lines")
        parts.append(part[part["group"] != bias.reference])
    if logistic is not None and logistic.gaps is not None:
        bias = reports["over the whole log"]
        gaps = {"gap_simultaneous_low": "low", "gap_simultaneous_high": "high"}
        part = logistic.by_group.drop(columns=["low", "high"]).rename(columns=gaps)
        part = part.assign(by="logistic models", rows=list(bias.observations))
        if len(reports) > 1:
            part["compared"] = "over the whole log"
        part = part[[name for name in parts[0] if name in part]]
        parts.insert(0 if logistic.fits == LOGISTIC else 1, part[part["group"] != bias.reference])
    return of_frame(pd.concat(parts, ignore_index=True), keys=1)


def _against_truth(audit: Audit) -> dict[str, Any] | None:
    if audit.against_truth is None:
        return None
    return {
        "name": audit.facts.columns.true_reward,
        "assumption": audit.against_truth.assumption,
        "bias": _bias(audit.against_truth),
    }


def _error_rates(audit: Audit) -> dict[str, Any] | None:
    """Error rates and calibration: rewards beside true rewards."""
    if audit.truth is None:
        return None
    errors, calibration = audit.truth.errors, audit.truth.calibration.reset_index()
    tables: Named = [("calibration", of_frame(calibration))]
    if errors is None:
        return {"sentences": [], "table": None, "tables": tables}
    rates = errors.by_group.reset_index()
    rates["rate"] = rates["rate"].str.replace("_", " ")
    apart = errors.differences.reset_index()
    apart["rate"] = apart["rate"].str.replace("_", " ")
    tables.append(("counts", of_frame(errors.counts.astype(int).reset_index())))
    tables.insert(0, ("largest differences between groups", of_frame(apart)))
    return {"sentences": errors.to_words(), "table": of_frame(rates, keys=2), "tables": tables}


def _metrics(audit: Audit, metrics: FairnessReport) -> dict[str, Any]:
    frame = metrics.to_frame()
    plain = frame["metric"].str.replace("_", " ").str.replace(" by reward", "")
    frame = frame.assign(metric=plain.str.replace("reward", "outcome"))
    tables: Named = [("all numbers of the metrics", of_frame(frame))]
    if audit.arms is not None:
        tables.append(("pulls by arm", of_frame(audit.arms)))
    if len(audit.extras.columns) > 1:
        tables.append(("weights, propensities and overrides", of_frame(audit.extras)))
    words = metrics.to_words(quoted(audit.facts.columns.reward))
    return {"sentences": words.splitlines(), "tables": tables}


def _drift(audit: Audit) -> dict[str, Any] | None:
    if audit.drift is None:
        return None
    tables: Named = []
    if audit.changes is not None and not audit.changes.empty:
        tables.append(("the test for change", of_frame(audit.changes)))
    tables.append(("all numbers by window", of_frame(audit.drift)))
    return {"pictures": drift_pictures(audit), "tables": tables}


def _missing(audit: Audit) -> Table | None:
    if audit.missing.empty:
        return None
    percent = 100.0 * audit.missing["missing"] / audit.missing["rows"]
    return of_frame(audit.missing.assign(percent=percent))


def _asked(audit: Audit) -> Named:
    """What was asked for: columns and settings."""
    columns = audit.facts.columns
    roles = [
        (name.replace("_", " "), value)
        for name, value in vars(columns).items()
        if value is not None and name != "features"
    ]
    roles.append(("features", ", ".join(columns.features)))
    roles.append(("left out", ", ".join(audit.facts.left_out) or "none"))
    chosen = [(name, str(value)) for name, value in audit.facts.chosen().items()]
    return [
        ("which column is what", of_rows(["role", "column"], roles)),
        ("all settings", of_rows(["setting", "value"], chosen)),
    ]
