"""The gap explained, in sentences: before any adjustment, what features account for, what is left.

Tables that would make such sentences false: intervals that contain zero (then no direction is
given), a gap at the average context that is not identified (then nothing is said to be left),
vectors that average over arms (then a part belongs to the arms), and features that cannot be told
apart (then none is named).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand._prose import quoted
from evenhand.audit._inference.decomposition import (
    BOTH,
    EXPLAINED,
    FEATURE,
    LEFT,
    LOGISTIC_MODEL,
    TIME,
    UNADJUSTED,
)
from evenhand.bias._contrasts import NOT
from evenhand.bias._sentences import rounded
from evenhand.charts.decomposition import OTHERWISE as OTHER_WORDS

if TYPE_CHECKING:
    from evenhand.audit._report.result import Audit

MOST_GROUPS = 5  # to speak of
MOST_FEATURES = 3


def explained(audit: Audit) -> list[str]:
    """A sentence or two for each group: clear gaps by size, then the others, best known first.

    A group of two people has a large gap by chance: it must not come before what is beyond doubt.
    """
    order, table = _in_order(audit), audit.decomposition
    sentences = []
    for name in order[:MOST_GROUPS]:
        sentences += _of_group(audit, table[table["group"] == name])
    hidden = len(order) - MOST_GROUPS
    if hidden > 0:
        sentences.append(
            f"The table of gaps explained has {hidden} more group{'s' if hidden > 1 else ''}."
        )
    return sentences


def told_why(audit: Audit) -> set[str]:
    """The groups for which `explained` says why what is left is not known."""
    table = audit.decomposition
    left = table[(table["part"] == LEFT) & table["estimate"].isna()]
    return set(left["group"].astype(str)) & set(_in_order(audit)[:MOST_GROUPS])


def _in_order(audit: Audit) -> list[str]:
    """The groups, in the order in which `explained` mentions them."""
    table = audit.decomposition
    if table.empty:
        return []
    first = table[table["part"] == UNADJUSTED].set_index("group")
    clear = (first["low"] > 0.0) | (first["high"] < 0.0)
    width = (first["high"] - first["low"]).fillna(np.inf)
    rank = np.where(clear, -first["estimate"].abs(), width)
    return [str(name) for name in first.index[np.lexsort((rank, ~clear))]]


def reverses(part: pd.DataFrame) -> bool:
    """Whether what is left points the other way, both beyond doubt."""
    rows = part.set_index("part")
    before, after = rows.loc[UNADJUSTED], rows.loc[LEFT]
    return bool(
        (before["high"] < 0.0 and after["low"] > 0.0)
        or (before["low"] > 0.0 and after["high"] < 0.0)
    )


def _of_group(audit: Audit, part: pd.DataFrame) -> list[str]:
    rows: dict[str, Any] = {row["part"]: row for row in part.to_dict(orient="records")}
    outcome, level = quoted(audit.facts.columns.reward), f"{100 * audit.bias.level:.6g} %"
    group = quoted(str(part["group"].iloc[0]))
    reference = quoted(compared_with(audit))
    before = rows[UNADJUSTED]
    low, high = before["low"], before["high"]
    who = f"the mean {outcome} of group {group}"
    if low <= 0.0 <= high:
        ends = f"{_signed(before, low)} to {_signed(before, high)}"
        finding = f"{who} cannot be told apart from that of group {reference}"
    else:
        word = "lower" if before["estimate"] < 0.0 else "higher"
        near, far = sorted((abs(low), abs(high)))
        ends = f"{_digits(before, near)} to {_digits(before, far)}"
        size = _digits(before, abs(before["estimate"]))
        finding = f"{who} is {size} {word} than that of group {reference}"
    start = f"Before any adjustment, {finding} ({level} interval {ends})"
    if not np.isfinite(rows[LEFT]["estimate"]):
        why = str(rows[LEFT]["why"]).removeprefix(NOT) or "the groups cannot be compared there"
        return [f"{start}. What is left between people with the same features is not known: {why}."]
    shares = {kind: _signed(row, row["estimate"]) for kind, row in rows.items()}
    others = [kind for kind in OTHER_WORDS if kind in rows]
    when = " at the same time" if {TIME, BOTH} & set(others) else ""
    other = "".join(f", {OTHER_WORDS[kind]} for {shares[kind]}" for kind in others)
    by = ", by logistic models" if rows[LEFT]["model"] == LOGISTIC_MODEL else ""
    sentence = (
        f"{start}: the features account for {shares[EXPLAINED]}{_mostly(part)}{other}, and "
        f"{shares[LEFT]} is left between people with the same features{when}{by}."
    )
    if not audit.facts.columns.features:
        return [f"{start}. There are no features to hold constant."]
    if not reverses(part):
        return [sentence]
    now, then = ("lower", "higher") if before["estimate"] < 0.0 else ("higher", "lower")
    return [
        sentence,
        f"The direction of the gap reverses: {who} is {now} than that of group {reference} before "
        f"adjustment, and {then} between people with the same features{when}.",
    ]


def _mostly(part: pd.DataFrame) -> str:
    """The features that account for most, by size; none where they cannot be told apart."""
    features = part[part["part"] == FEATURE]
    if len(features) < 2 or features["estimate"].isna().any():
        return f" ({features['column'].iloc[0]})" if len(features) == 1 else ""
    sure = features[(features["low"] > 0.0) | (features["high"] < 0.0)]
    order = sure["estimate"].abs().sort_values(ascending=False, kind="stable").index
    named = [
        f"{quoted(str(row['column']))} {_signed(row, row['estimate'])}"
        for row in sure.loc[order[:MOST_FEATURES]].to_dict(orient="records")
    ]
    return f" ({', '.join(named)}{', ...' if len(features) > len(named) else ''})" if named else ""


def compared_with(audit: Audit) -> str:
    """The group compared with; the largest where bias is compared with the mean of all."""
    bias = audit.bias
    if bias.reference is not None:
        return bias.reference
    return bias.groups[bias.observations.index(max(bias.observations))]


def _digits(row: Mapping[Any, Any], value: float) -> str:
    """With as many digits as the interval is worth."""
    return rounded(value, _half(row))


def _signed(row: Mapping[Any, Any], value: float) -> str:
    shown = rounded(value, _half(row))
    if not float(shown.replace(",", "")):
        return shown.removeprefix("-")
    return shown if shown.startswith("-") else f"+{shown}"


def _half(row: Mapping[Any, Any]) -> float:
    """Half of the interval; without one, a fifth of the estimate, for two digits or so."""
    half = float(row["high"] - row["low"]) / 2.0
    return half if half > 0.0 else abs(float(row["estimate"])) / 5.0
