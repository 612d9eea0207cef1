"""The report in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenhand.bias.comparing import NOT, few
from evenhand.bias.contexts import BINARY, INTERCEPT
from evenhand.bias.statistics import Array

if TYPE_CHECKING:
    from evenhand.bias.report import BiasReport

ASSUMPTION = (
    "All of this assumes that at the same features the groups are equally good on average: where "
    "they are not, what is called bias here is bias and true difference together."
)


def sentences(report: BiasReport, most: int) -> list[str]:
    """Totals, then features by importance, then what is not known, then the assumption."""
    said = comparisons(report, most)
    if said:
        also = ", those at the average context for all groups" if report.overall is not None else ""
        said.append(f"Intervals for features hold for all of them and all groups at once{also}.")
    else:
        said.append("The bias of no group is identified.")
    return [*said, *report.warnings, report.assumption]


def comparisons(report: BiasReport, most: int) -> list[str]:
    """What is found, and where nothing can be told from zero; nothing if nothing is identified."""
    found, d = report._by_feature, len(report.features)
    rows = _once(report, found.estimate.reshape(-1, d))
    coded = {k for _, k in rows if len(report.codes.get(report.features[k], "01")) != 2}
    spoken = [(g, k) for g, k in rows if k not in coded]
    clear = [(g, k) for g, k in spoken if _outside(report, g * d + k)]
    clear.sort(key=lambda row: -_importance(report, *row))
    said = _totals(report) + [_of_feature(report, g, k) for g, k in clear[: max(most, 0)]]
    hidden = len(clear) - max(most, 0)
    if hidden > 0:
        said.append(f"{hidden} more intervals leave out zero: see to_frame().")
    unclear = [row for row in spoken if row not in clear]
    if unclear:
        texts = [f"group {report.groups[g]} on {report.features[k]}" for g, k in unclear]
        named = f"{len(texts)} of {len(spoken)} comparisons of a group on a feature"
        told = ", ".join(texts) if len(texts) <= 3 else named
        said.append(f"The interval holds zero for {told}: this is no proof that there is no bias.")
    return said + _of_codes(report, sorted(coded))


def _of_codes(report: BiasReport, features: list[int]) -> list[str]:
    """A sentence about categories with numbers for names: one more of them means nothing."""
    if not features:
        return []
    return [
        f"Nothing is said about the bias on {few([report.features[k] for k in features])}: the "
        "numbers there are codes of categories, and one more of a code means nothing. A feature "
        'for each category (nominal="one-hot") would tell.'
    ]


def _once(report: BiasReport, estimates: Array) -> list[tuple[int, int]]:
    """Group and feature of every row worth saying, of two that mirror each other the lower one."""
    rows: dict[tuple[object, ...], tuple[int, int]] = {}
    for g, k in np.argwhere(~np.isnan(estimates)):
        weights = report._weights[g].round(12)
        if not weights.any():  # the reference itself
            continue
        mirrored = min(tuple(weights), tuple(-weights))
        before = rows.get((*mirrored, k))
        if before is None or estimates[g, k] < estimates[before]:
            rows[(*mirrored, k)] = (int(g), int(k))
    return list(rows.values())


def _outside(report: BiasReport, row: int) -> bool:
    found = report._by_feature
    return bool(found.all_low[row] > 0.0 or found.all_high[row] < 0.0)


def _importance(report: BiasReport, g: int, k: int) -> float:
    """The bias times the usual size of the feature: what it does to a reward, far from zero."""
    spread, overall = report._contexts.spread[k], report._contexts.overall
    size = np.hypot(spread, 0.0 if overall is None else overall[k])
    return float(abs(report._by_feature.estimate[g * len(report.features) + k]) * size)


def _totals(report: BiasReport) -> list[str]:
    if report.overall is None:
        return []
    table = report.by_group
    ends = table[["estimate", "simultaneous_low", "simultaneous_high"]].to_numpy(dtype=float)
    rows = [g for g, _ in _once(report, ends[:, :1])]
    clear = [g for g in rows if not ends[g, 1] <= 0.0 <= ends[g, 2]]
    unclear = [g for g in rows if g not in clear]
    said = [
        f"At the average context {_compared(report, g, *ends[g])}"
        for g in sorted(clear, key=lambda g: -abs(ends[g, 0]))
    ]
    for name, why in table["why"].items():
        if why.startswith(NOT) and report._fit.usable[report.groups.index(str(name))]:
            said.append(
                f"At the average context the bias of group {name} is not identified: "
                f"{why.removeprefix(NOT)}."
            )
    if len(unclear) == 1:
        said.append(f"At the average context {_compared(report, unclear[0], *ends[unclear[0]])}")
    elif unclear:
        of = f"the other {len(unclear)}" if clear else f"all {len(unclear)}"
        said.append(
            f"At the average context the feedback for {of} groups cannot be told from "
            f"{_reference(report)}."
        )
    return said


def _of_feature(report: BiasReport, g: int, k: int) -> str:
    found, unit = report._by_feature, report.units[k]
    row = g * len(report.features) + k
    name, kind = report.features[k], report._contexts.kinds[k]
    start = f"For every additional {_amount(unit)} of {name}"
    if name in report.codes:
        start = "Where {0} is {2} and not {1}".format(name, *report.codes[name])
    elif kind == INTERCEPT:
        start = "Where all other features are 0," if len(report.features) > 1 else "On average,"
    elif kind == BINARY and unit == 1.0:
        start = f"Where {name} is 1"
    values = unit * found.estimate[row], unit * found.all_low[row], unit * found.all_high[row]
    return f"{start} {_compared(report, g, *values)}"


def _compared(report: BiasReport, g: int, estimate: float, low: float, high: float) -> str:
    """ "the feedback for group F is 0.1 lower than that for group M, 95 % interval 0.0 to 0.2." """
    who, half = f"the feedback for group {report.groups[g]}", (high - low) / 2.0
    if low <= 0.0 <= high:
        return (
            f"{who} cannot be told from {_reference(report)}: "
            f"{_percent(report)} interval from {_number(-low, half)} lower to "
            f"{_number(high, half)} higher."
        )
    word, ends = ("lower", (-high, -low)) if estimate < 0.0 else ("higher", (low, high))
    return (
        f"{who} is {_number(abs(estimate), half)} {word} than {_reference(report)}, "
        f"{_percent(report)} interval {_number(ends[0], half)} to {_number(ends[1], half)}."
    )


def _reference(report: BiasReport) -> str:
    if report.reference is None:
        return "the average of the groups"
    return f"that for group {report.reference}"


def _number(value: float, half_width: float) -> str:
    """With as many digits as the interval is worth: two of its half width."""
    digits = 2
    if 0.0 < half_width < np.inf:
        digits = int(np.clip(1 - np.floor(np.log10(half_width)), 0, 15))
    return f"{value:,.{digits}f}"


def _amount(unit: float) -> str:
    return f"{unit:,.0f}" if unit >= 1.0 and unit == round(unit) else f"{unit:g}"


def _percent(report: BiasReport) -> str:
    return f"{100.0 * report.level:.6g} %"
