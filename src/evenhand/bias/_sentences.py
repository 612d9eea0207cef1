"""The report in sentences, and as plain data for JSON.

Each sentence must be true of any table. So a coefficient is called what it is, a change of the gap,
and a gap is stated only at contexts at which the fit was evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand._columns.column import FLAGS, Column
from evenhand._prose import in_digits, quoted, records, value
from evenhand.bias._contexts import INTERCEPT
from evenhand.bias._contrasts import NOT, POWER, few
from evenhand.bias._findings import clear_features, is_code, spoken_of, unmirrored

if TYPE_CHECKING:
    from evenhand.bias.report import BiasReport

FORMAT, VERSION = "evenhand bias report", 1


def plain(report: BiasReport) -> dict[str, Any]:
    """Everything in a report as plain data. None stands for NaN and for infinite freedom."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "reference": report.reference,
        "level": report.level,
        "weighting": report.weighting,
        "assumption": report.assumption,
        "groups": list(report.groups),
        "observations": list(report.observations),
        "arms": None if report.arms is None else list(report.arms),
        "features": list(report.features),
        "units": list(report.units),
        "bias": records(report.to_frame()),
        "totals": records(report.totals()),
        "gaps": records(report.gaps()),
        "weightings": records(report.weightings()),
        "difference": {name: value(item) for name, item in report.difference()._asdict().items()},
        "ratio": {name: value(item) for name, item in report.ratio()._asdict().items()},
        "warnings": list(report.warnings),
        "words": report.to_words(),
    }


ASSUMPTION = (
    "All of this assumes that at the same features the groups are equally good on average: where "
    "they are not, what is called bias here is bias and true difference together."
)
MOST_PLACES = 8  # of a column, for which the gap is stated


def sentences(report: BiasReport, most: int) -> list[str]:
    """Totals, then features by importance, then what is not known, then the assumption."""
    sentences = comparisons(report, most)
    if sentences:
        also = (
            "; those for gaps at the average context hold for all groups at once"
            if report.overall is not None
            else ""
        )
        sentences.append(
            f"The intervals for features hold for all features and groups at once{also}."
        )
    else:
        sentences.append("The bias of no group is identified.")
    return [*sentences, *report.warnings, report.assumption]


def comparisons(report: BiasReport, most: int) -> list[str]:
    """Gaps and changes, then what may be zero; empty if nothing is identified."""
    spoken = spoken_of(report)
    clear = clear_features(report)
    sentences = totals(report)
    shown = clear[: max(most, 0)]
    for g, k in shown:
        sentences.append(_change(report, g, k))
    for g, column in dict.fromkeys((g, _column_of(report, k)) for g, k in shown):
        sentences += _within(report, g, column)
    hidden = len(clear) - len(shown)
    if hidden > 0:
        more = "1 more interval excludes" if hidden == 1 else f"{hidden} more intervals exclude"
        sentences.append(f"{more} zero: see the table of all features.")
    elsewhere = report._second.changes
    unclear = [row for row in spoken if row not in clear and row not in elsewhere]
    if unclear:
        rows = [
            f"group {quoted(report.groups[g])} with {quoted(report.features[k])} (by "
            f"{_size(_detectable(report, g, k))} or more)"
            for g, k in unclear
        ]
        named = f"{len(rows)} of {len(spoken)} pairs of a group and a feature"
        few_rows = len(rows) <= 3
        where = "" if few_rows else " that the column `detectable` of the table has"
        sentences.append(
            "It is not clear whether the gap changes for "
            f"{', '.join(rows) if few_rows else named}, where the interval contains zero; this is "
            f"no proof that there is no bias. Changes of the size{where or ' in brackets'} would "
            f"have been found with {_power()}."
        )
    return sentences + list(report._second.about_changes) + _of_codes(report)


def _of_codes(report: BiasReport) -> list[str]:
    """A sentence about features whose numbers are codes: one more of a code means nothing."""
    names = [name for k, name in enumerate(report.features) if is_code(report, k)]
    if not names:
        return []
    return [
        f"Nothing is said about the bias on {few([quoted(name) for name in names])}: the numbers "
        "stand for categories, and a step from one code to the next means nothing. A feature for "
        'each category (nominal="one-hot") would show it.'
    ]


def totals(report: BiasReport) -> list[str]:
    """The gap of each group at the average context."""
    if report.overall is None:
        return []
    table = report.by_group
    ends = table[["estimate", "simultaneous_low", "simultaneous_high"]].to_numpy(dtype=float)
    second, terms = report._second, report._terms
    every = [g for g, _ in unmirrored(report, ends[:, :1])]
    rows = [g for g in every if g not in second.gaps]
    clear = [g for g in rows if not ends[g, 1] <= 0.0 <= ends[g, 2]]
    unclear = [g for g in rows if g not in clear]
    sentences = [
        terms.at(_compared(report, g, *ends[g]))
        for g in sorted(clear, key=lambda g: -abs(ends[g, 0]))
    ]
    sentences = [*_by(report, sentences), *unidentified(report).values()]
    if len(unclear) == 1:
        compared = _compared(report, unclear[0], *ends[unclear[0]])
        size = float(table["detectable"].iloc[unclear[0]])
        power = f" A gap of {_size(size)} or more would have been found with {_power()}."
        sentences += _by(report, [terms.at(f"{compared}{power if size > 0.0 else ''}")])
    elif unclear:
        subject = f"{'all' if unclear == every else 'the other'} {len(unclear)} groups"
        subject = "both groups" if subject == "all 2 groups" else subject
        # With groups that are not known, "all" would be false and "the other" unclear.
        if table["estimate"].isna().any():
            subject = f"groups {few([quoted(report.groups[g]) for g in unclear])}"
        size = float(table["detectable"].iloc[unclear].max())
        power = (
            f" In each of them, a gap of {_size(size)} or more would have been found with "
            f"{_power()}."
        )
        compared = (
            f"the {terms.outcome} {terms.of} {subject} cannot be told apart from "
            f"{_reference(report)}."
        )
        sentences += _by(report, [terms.at(f"{compared}{power if size > 0.0 else ''}")])
    return [*second.before, *sentences, *second.about_gaps]


def unidentified(report: BiasReport) -> dict[str, str]:
    """A sentence for each group whose gap at the average context is not identified, by group."""
    terms, names, sentences = report._terms, list[str](), list[str]()
    for name, why in report.by_group["why"].items():
        if why.startswith(NOT) and report._fit.usable[report.groups.index(str(name))]:
            names.append(str(name))
            sentences.append(
                terms.at(
                    f"the {terms.bias} of group {quoted(str(name))} is not identified: "
                    f"{why.removeprefix(NOT)}."
                )
            )
    return dict(zip(names, _by(report, sentences), strict=True))


def _by(report: BiasReport, sentences: list[str]) -> list[str]:
    """Sentences that name their model, where there is a second one."""
    by = report._second.by
    return [f"{by}, {words[0].lower()}{words[1:]}" for words in sentences] if by else sentences


def _column_of(report: BiasReport, k: int) -> Column:
    return next((column for column in report._columns if k in column.features), Column("", (k,)))


def _change(report: BiasReport, g: int, k: int) -> str:
    """A coefficient in words: how the gap differs from the baseline's, or changes with a number."""
    bias, unit, column = report._by_feature, report.units[k], _column_of(report, k)
    row = g * len(report.features) + k
    estimate, low, high = (
        unit * numbers[row] for numbers in (bias.estimate, bias.all_low, bias.all_high)
    )
    if report._contexts.kinds[k] == INTERCEPT:
        start = "Where all other features are 0," if len(report.features) > 1 else "On average,"
        return f"{start} {_compared(report, g, estimate, low, high)}"
    half = (high - low) / 2.0
    near, far = sorted((abs(low), abs(high)))
    size = f"{rounded(abs(estimate), half)}"
    ends = f"{_percent(report)} interval {rounded(near, half)} to {rounded(far, half)}"
    compared = report._terms.compared(quoted(report.groups[g]))
    if column.categories or report.features[k] in report.codes:
        # Not "F is lower in B": it may be higher there, by less than in A.
        side = "below" if estimate < 0.0 else "above"
        here, there = _in_category(report, column, k)
        gap = f"the gap ({compared} less {_reference(report)})"
        return f"{here} {gap} is {size} {side} the gap {there}; {ends}."
    turn = "falls" if estimate < 0.0 else "rises"
    return (
        f"With every additional {_amount(unit)} of {quoted(report.features[k])}, the {compared} "
        f"{turn} by {size} relative to {_reference(report)}; {ends}."
    )


def _in_category(report: BiasReport, column: Column, k: int) -> tuple[str, str]:
    """ "In Dept F", and "in Dept A, the baseline", for a feature that stands for a category."""
    if report.features[k] in report.codes:
        name, (first, second) = quoted(report.features[k]), report.codes[report.features[k]]
        return f"Where {name} is {quoted(second)}", f"where {name} is {quoted(first)}"
    if column.categories == FLAGS:
        name = quoted(column.name)
        return f"Where {name} is 1", f"where {name} is 0"
    here = f"In {_category(column, column.category_of(k))}"
    if column.baseline is None:
        return here, "that the other features alone would leave"
    return here, f"in {_category(column, column.baseline)}, the baseline"


def _category(column: Column, category: str) -> str:
    return f"{quoted(column.name)} {quoted(category)}"


def _within(report: BiasReport, g: int, column: Column) -> list[str]:
    """The gap within each category of a column, or at values of a number."""
    name, table = report.groups[g], report._gaps
    part = table[(table["column"] == column.name) & (table["group"] == name)]
    # A number whose range is not known is not evaluated: nobody may have these values.
    if part.empty or not (column.categories or np.isfinite([column.low, column.high]).all()):
        return []
    rows = part.to_dict("records")
    if len(rows) > MOST_PLACES:
        rows = sorted(rows, key=lambda row: -abs(row["estimate"]))[:MOST_PLACES]
    gaps = [_gap_there(row, _place(column, str(row["at"]))) for row in rows]
    hidden = len(part) - len(gaps)
    others = ", with all other features at their average" if len(report.columns) > 1 else ""
    return [
        f"The {report._terms.compared(quoted(name))} compared with {_reference(report)}, by "
        f"{quoted(column.name)}{others}: {', '.join(gaps)}"
        f"{f' (and {hidden} more in the table of gaps)' if hidden else ''}. These "
        f"{_percent(report)} intervals hold for all gaps in the table of gaps at once."
    ]


def _place(column: Column, at: str) -> str:
    if column.categories == FLAGS:
        return f"where it is {at}"
    return f"in {quoted(at)}" if column.categories else f"at {at}"


def _gap_there(row: dict[Any, Any], place: str) -> str:
    estimate, low, high = (
        row[name] for name in ("estimate", "simultaneous_low", "simultaneous_high")
    )
    if pd.isna(estimate):
        return f"not identified {place}"
    half = (high - low) / 2.0
    if low <= 0.0 <= high:
        return f"not distinguishable {place} ({_span(low, high, half)})"
    word, near, far = ("lower", -high, -low) if estimate < 0.0 else ("higher", low, high)
    size = rounded(abs(estimate), half)
    return f"{size} {word} {place} ({rounded(near, half)} to {rounded(far, half)})"


def _compared(report: BiasReport, g: int, estimate: float, low: float, high: float) -> str:
    """ "the feedback for group F is 0.1 lower than that for group M, 95 % interval 0.0 to 0.2." """
    who = f"the {report._terms.compared(quoted(report.groups[g]))}"
    half = (high - low) / 2.0
    if low <= 0.0 <= high:
        return (
            f"{who} cannot be told apart from {_reference(report)}: "
            f"{_percent(report)} interval {_span(low, high, half)}."
        )
    word, ends = ("lower", (-high, -low)) if estimate < 0.0 else ("higher", (low, high))
    return (
        f"{who} is {rounded(abs(estimate), half)} {word} than {_reference(report)}, "
        f"{_percent(report)} interval {rounded(ends[0], half)} to {rounded(ends[1], half)}."
    )


def _span(low: float, high: float, half: float) -> str:
    """An interval around zero, with a word for each side."""
    return f"from {rounded(abs(low), half)} lower to {rounded(abs(high), half)} higher"


def _reference(report: BiasReport) -> str:
    if report.reference is None:
        return "the average of the groups"
    return report._terms.other(quoted(report.reference))


def rounded(value: float, half_width: float) -> str:
    """With as many digits as the interval is worth: two digits of its half width."""
    digits = 2
    if 0.0 < half_width < np.inf:
        digits = int(np.clip(1 - np.floor(np.log10(half_width)), 0, 15))
    return f"{value:,.{digits}f}"


def _detectable(report: BiasReport, g: int, k: int) -> float:
    """The smallest detectable change for a step of a feature."""
    size = report._by_feature.detectable[g * len(report.features) + k]
    return float(report.units[k] * size)


def _size(value: float) -> str:
    """Two digits, rounded up, so that no detectable size is stated too small."""
    if not 0.0 < value < np.inf:
        return in_digits(value) if np.isfinite(value) else "any size"
    step = 10.0 ** (np.floor(np.log10(value)) - 1.0)
    return in_digits(float(f"{np.ceil(value / step * (1.0 - 1e-9)) * step:.2g}"))


def _power() -> str:
    return f"{100.0 * POWER:.0f} % power"


def _amount(unit: float) -> str:
    return f"{unit:,.0f}" if unit >= 1.0 and unit == round(unit) else f"{unit:g}"


def _percent(report: BiasReport) -> str:
    return f"{100.0 * report.level:.6g} %"
