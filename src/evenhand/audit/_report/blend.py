"""Equal averages and true rewards together, in sentences and on the page.

Cases that would make a sentence false, and what is said instead: a true reward in every row (then
its arrival depends on nothing), in rows of one kind only (then that is not tested), in too few rows
of a group (then nothing is blended), and a gap within time windows that differs from that of the
whole log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenhand._html.tables import of_frame
from evenhand._prose import in_digits, quoted
from evenhand.audit._report.result import WHOLE_LOG
from evenhand.bias._contrasts import few
from evenhand.bias._rests_on import averages, p_value
from evenhand.bias._sentences import totals

if TYPE_CHECKING:
    from evenhand.audit._report.result import Audit
    from evenhand.audit._stages.blend import Blended

METHOD = (
    "The combined bias is the mean of two estimates, from equal averages and from true rewards, "
    "weighted by their precisions; it allows for their dependence (same rows). How far true "
    "averages may differ is estimated (REML), for features and outcomes in standard deviations. "
    "Equal averages are dropped where the likelihood is 7 times as large without them. The test "
    "of equal averages is of all coefficients at once (Wald)."
)
ARRIVAL = (
    "Whether a true reward is known is tested against the outcome: an indicator of it is added to "
    "the features in the regression of every group."
)


def blend_sentences(audit: Audit) -> list[str]:
    """The blended estimate, what it rests on, and whether it can be trusted."""
    blended, columns = audit.blend, audit.facts.columns
    if blended is None:
        return []
    reward, true = quoted(columns.reward), quoted(str(columns.true_reward))
    return [*_together(audit, blended, true), arrival_sentence(blended, reward, true)]


def _together(audit: Audit, blended: Blended, true: str) -> list[str]:
    if blended.measured is None or blended.bias is None:
        return [f"Estimates from equal averages and {true} are not combined: {blended.why}."]
    sentences = together(blended, f"From equal averages and {true} combined, ")
    if audit.believe != WHOLE_LOG:
        sentences.append("This is the gap over the whole log, not the one within time windows.")
    return sentences


def together(blended: Blended, start: str) -> list[str]:
    """The blend at the average context, and what it rests on."""
    assert blended.measured is not None and blended.bias is not None
    return [
        *(f"{start}{words[0].lower()}{words[1:]}" for words in totals(blended.bias)),
        averages(blended.measured, "That", "the true rewards"),
    ]


def arrival_sentence(blended: Blended, reward: str, true: str) -> str:
    """Whether the arrival of true rewards depends on the outcome."""
    if not blended.rest.any():
        return f"{true} is known in every row, so whether it is known cannot depend on the outcome."
    rule = f"This holds if whether {true} is known does not depend on the outcome"
    if blended.depends is None:
        return f"{rule}. That could not be tested here."
    if not blended.depends:
        return (
            f"{rule}. The {reward} of these rows gives no evidence that it does "
            f"({p_value(blended.p_arrival)}), but would not reveal every such dependence."
        )
    table = blended.arrival.dropna(subset="difference")
    sizes = [
        f"{in_digits(float(f'{abs(size):.3g}'))} {'higher' if size > 0.0 else 'lower'} in group "
        f"{quoted(str(name))}"
        for name, size in zip(table["group"], table["difference"], strict=True)
        if size != 0.0
    ]
    return (
        f"WARNING: {rule[0].lower()}{rule[1:]}, but it seems to: where {true} is "
        f"known, {reward} is on average {few(sizes)} than where it is not, at the same features by "
        f"straight lines ({p_value(blended.p_arrival)}). What rests on {true} may be wrong by an "
        "amount that this log cannot show."
    )


def blend_view(audit: Audit) -> dict[str, Any] | None:
    """What the page shows: the three estimates side by side, and the rows with a true reward."""
    blended, truth = audit.blend, audit.against_truth
    if blended is None:
        return None
    table = None
    if blended.bias is not None and truth is not None:
        reports = {
            "equal averages": audit.bias,
            "true rewards": truth,
            "both together": blended.bias,
        }
        table = of_frame(side_by_side(reports), keys=2)
    return {
        "sentences": blend_sentences(audit),
        "table": table,
        "arrival": of_frame(blended.arrival),
    }


def side_by_side(reports: dict[str, Any]) -> Any:
    """The gap of every group at the average context, a row per report."""
    import pandas as pd

    parts = []
    for name, report in reports.items():
        ends = {"simultaneous_low": "low", "simultaneous_high": "high", "estimate": "gap"}
        part = report.by_group.reset_index().drop(columns=["low", "high"]).rename(columns=ends)
        part = part[part["group"] != report.reference]
        parts.append(part.assign(**{"based on": name}))
    every = pd.concat(parts, ignore_index=True)
    order = {name: i for i, name in enumerate(dict.fromkeys(every["group"]))}
    every = every.sort_values("group", key=lambda names: names.map(order), kind="stable")
    return every[["group", "based on", "gap", "low", "high", "why"]].reset_index(drop=True)
