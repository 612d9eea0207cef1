"""What an audit says about changes of the gap over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand._prose import quoted

if TYPE_CHECKING:
    from evenhand.audit._report.result import Audit


def drift_sentences(audit: Audit) -> list[str]:
    """Which gaps change over time, which do not, and what has no time."""
    table, tests = audit.drift, audit.changes
    if table is None or tests is None:
        return []
    windows = table["window"].max()
    timeless = audit.facts.used - int(table["n"].sum())
    rows = "1 row has" if timeless == 1 else f"{timeless:,} rows have"
    without = [f"{rows} no {audit.facts.columns.timestamp}, and no time window."]
    without = without if timeless else []
    if tests.empty:
        why = (
            "no change of the gap can be tested: the gap is known in too few of them"
            if "estimate" in table
            else "only counts and mean outcomes were compared, because there are too many arms"
        )
        return [f"For the {windows} time windows {why}.", *without]
    if audit.bias.reference is None and len(audit.bias.groups) == 2:
        tests = tests.iloc[:1]  # the other group is its mirror image
    sentences, alike = [], audit.bias._terms.alike
    for _, row in tests[tests["changes"]].iterrows():
        part = table[(table["group"] == row["group"]) & table["estimate"].notna()]
        low, high = part.loc[part["estimate"].idxmin()], part.loc[part["estimate"].idxmax()]
        sentences.append(
            f"The gap of group {quoted(row['group'])} {alike} changes over time (p "
            f"{_p(row['p_value'])}): it is lowest, {low['estimate']:.3g}, in the window from "
            f"{low['from']}, and highest, {high['estimate']:.3g}, in the one from {high['from']}."
        )
    calm = [str(name) for name in tests[~tests["changes"]]["group"] if name != audit.bias.reference]
    if calm:
        sentences.append(
            f"No change of the gap over {windows} windows can be told apart from chance for group "
            f"{', '.join(calm)}."
        )
    if audit.facts.windows is not None and audit.facts.windows[0] != audit.bias.weighting:
        sentences.append(
            "Not every arm has enough rows in every window, so within a window arms count by how "
            "often they were chosen: a change of the gap may come from a change in the arms chosen."
        )
    common = audit.facts.common
    if audit.bias.reference is None and 2 <= len(common) < len(audit.bias.groups):
        sentences.append(
            f"Within windows groups are compared with the mean of {', '.join(common)}, which are "
            "known in all of them."
        )
    return [*sentences, *without]


def _p(value: float) -> str:
    return f"= {value:.2g}" if value >= 1e-6 else "< 0.000001"
