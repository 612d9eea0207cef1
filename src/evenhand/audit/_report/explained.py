"""The gap explained, in sentences: before any adjustment, what features account for, what is left.

Tables that would make such sentences false: intervals that hold zero (then no direction is told),
a gap at the average context that is not identified (then nothing is said to be left), vectors that
average over arms (then a part belongs to the arms), and features that cannot be told apart (then
none is named).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand._prose import in_digits, quoted
from evenhand.audit._inference.decomposition import BY_ARMS, EXPLAINED, FEATURE, LEFT, UNADJUSTED

if TYPE_CHECKING:
    from evenhand.audit._report.result import Audit

MOST_GROUPS = 5  # to speak of, those with the largest gaps first
MOST_FEATURES = 3


def explained(audit: Audit) -> list[str]:
    """A sentence or two for each group, the largest unadjusted gap first."""
    table = audit.decomposition
    if table.empty:
        return []
    first = table[table["part"] == UNADJUSTED].set_index("group")["estimate"].abs()
    order = first.sort_values(ascending=False, kind="stable").index.tolist()
    said = []
    for name in order[:MOST_GROUPS]:
        said += _of_group(audit, table[table["group"] == name])
    hidden = len(order) - MOST_GROUPS
    if hidden > 0:
        said.append(
            f"The table of gaps explained has {hidden} more group{'s' if hidden > 1 else ''}."
        )
    return said


def reverses(part: pd.DataFrame) -> bool:
    """Whether what is left points the other way, both beyond doubt."""
    rows = part.set_index("part")
    if LEFT not in rows.index:
        return False
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
    who = f"the mean {outcome} of group {group}"
    if before["low"] <= 0.0 <= before["high"]:
        start = (
            f"Before any adjustment, {who} cannot be told from that of group {reference} "
            f"({level} interval {_signed(before['low'])} to {_signed(before['high'])})"
        )
    else:
        word = "lower" if before["estimate"] < 0.0 else "higher"
        ends = sorted((abs(before["low"]), abs(before["high"])))
        start = (
            f"Before any adjustment, {who} is {_digits(abs(before['estimate']))} {word} than that "
            f"of group {reference} ({level} interval {_digits(ends[0])} to {_digits(ends[1])})"
        )
    if LEFT not in rows:
        return [f"{start}."]
    arms = (
        f", who met which arm for {_signed(rows[BY_ARMS]['estimate'])}" if BY_ARMS in rows else ""
    )
    sentence = (
        f"{start}: the features account for {_signed(rows[EXPLAINED]['estimate'])}"
        f"{_mostly(part)}{arms}, and {_signed(rows[LEFT]['estimate'])} is left between people with "
        "the same features."
    )
    if not reverses(part):
        return [sentence]
    now, then = ("lower", "higher") if before["estimate"] < 0.0 else ("higher", "lower")
    return [
        sentence,
        f"The direction of the gap reverses: {who} is {now} than that of group {reference} before "
        f"adjustment, and {then} between people with the same features.",
    ]


def _mostly(part: pd.DataFrame) -> str:
    """The features that account for most, by size; none where they cannot be told apart."""
    features = part[part["part"] == FEATURE]
    if len(features) < 2 or features["estimate"].isna().any():
        return f" ({features['column'].iloc[0]})" if len(features) == 1 else ""
    sure = features[(features["low"] > 0.0) | (features["high"] < 0.0)]
    order = sure["estimate"].abs().sort_values(ascending=False, kind="stable").index
    named = [
        f"{quoted(str(row['column']))} {_signed(row['estimate'])}"
        for row in sure.loc[order[:MOST_FEATURES]].to_dict(orient="records")
    ]
    return f" ({', '.join(named)}{', ...' if len(features) > len(named) else ''})" if named else ""


def compared_with(audit: Audit) -> str:
    """The group compared with; the largest where bias is compared with the mean of all."""
    bias = audit.bias
    if bias.reference is not None:
        return bias.reference
    return bias.groups[bias.observations.index(max(bias.observations))]


def _digits(value: float) -> str:
    return in_digits(float(f"{value:.2g}"))


def _signed(value: float) -> str:
    return in_digits(float(f"{value:.2g}"), "+")
