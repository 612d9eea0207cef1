"""How an audit works, what it assumes and what it cannot show: the last part of every report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.audit._report.blend import ARRIVAL, METHOD
from evenhand.audit._report.link_tests import method_of
from evenhand.bias._fit import ARMS
from evenhand.errors import blank, setting

if TYPE_CHECKING:
    from evenhand.audit._report.result import Audit

ERRORS = {
    "classical": "Standard errors assume equal noise within a group; it may differ between groups.",
    "robust": "Standard errors do not assume equal noise (HC1, from squared residuals of every "
    "row).",
    "cluster": "Standard errors allow for dependence between rows of the same cluster (CR1), with "
    "as many degrees of freedom in a group as it has clusters, minus one.",
}

BORROWED = (
    "Cells where group columns meet are shown from their own rows, and shrunk towards additive "
    "margins by empirical Bayes: how much of a deviation is kept depends on how precise it is, "
    "averaged over what the data leave open. These intervals are of a cell alone."
)


def method(audit: Audit) -> list[str]:
    """How the numbers were computed."""
    from evenhand import __version__

    facts = audit.facts
    columns = facts.columns
    sentences = [
        f"evenhand {__version__} on {facts.engine}: {facts.used:,} rows of {facts.label} were "
        "summed up where they are, and everything here is computed from the sums.",
        "For every group the reward is fitted by least squares on the features and an intercept: "
        f"{', '.join(columns.features) or 'none'}. The bias of a group is its coefficients minus "
        "those that it is compared with: the gap at a context is that vector times the context. "
        "What is said of people with the same features is the gap at the average context of "
        "everyone.",
        ERRORS[facts.errors],
        *(
            [f"Too few rows for that: the errors of {', '.join(facts.classical)} are classical."]
            if facts.classical
            else []
        ),
        f"Intervals are at {100 * audit.bias.level:.6g} %. Those of features in the summary hold "
        "for all groups and features at once (Bonferroni), those at the average context for all "
        f"groups. So without any bias, at most {100 * (1 - audit.bias.level):.3g} % of audits find "
        "a bias on a feature, and at most as many find one at the average context.",
    ]
    if audit.logistic is not None:
        sentences += method_of(audit.logistic)
    if audit.intersections is not None:
        sentences.append(BORROWED)
    if facts.settings.reward_values is not None:
        worth = ", ".join(f"{word!r} {n:g}" for word, n in facts.settings.reward_values.items())
        sentences.append(f"The values of {columns.reward} count as {worth}.")
    if facts.settings.marks.every:
        marks = ", ".join(map(repr, facts.settings.marks.every))
        sentences.append(
            f"These values count as missing, in every column: {marks}, and empty text."
        )
    for name, own in facts.settings.marks.own.items():
        sentences.append(f"In {name} these values count as missing: {', '.join(map(repr, own))}.")
    if audit.bias.arms is not None:
        sentences.append(
            "Every arm of a group counts the same, however often it was chosen: equal averages are "
            "about arms."
            if audit.bias.weighting == ARMS
            else "Arms count by how often they were chosen."
        )
    if columns.cluster is not None:
        sentences.append(
            "Intervals of mean outcomes, in time windows too, and of selection rates by outcome "
            "allow for clusters as well; those of the other metrics ignore clusters."
        )
    if audit.against_truth is not None:
        sentences.append(
            f"Against {columns.true_reward}: the same regressions of {columns.reward} minus "
            f"{columns.true_reward}, of the rows that have both, by pulls: the worth of the arms "
            "cancels."
        )
    if audit.blend is not None:
        sentences += [*([METHOD] if audit.blend.measured is not None else []), ARRIVAL]
    if facts.baselines:
        names = ", ".join(f"{baseline!r} of {name}" for name, baseline in facts.baselines.items())
        sentences.append(f"Categories are compared with the most frequent one: {names}.")
    if facts.settings.weigh_by_propensity:
        sentences.append(
            f"Rows are weighted by the inverse of {columns.propensity}: the fit is that of a log "
            "in which every choice was equally likely, if the propensities are right."
        )
    if columns.count is not None:
        sentences.append(f"Every row stands for as many people as {columns.count} says.")
    if columns.weight is not None:
        sentences.append(
            f"Rows are weighted by {columns.weight}. Metrics and counts do not use weights."
        )
    if audit.drift is not None:
        sentences.append(
            f"Time windows have equal length by {columns.timestamp}. The bias in a window is at "
            "the average context of the whole log, with intervals of that window alone; the test "
            "for change allows for all groups at once."
        )
        if columns.cluster is not None:
            sentences.append(
                "In a window a group has the degrees of freedom of its clusters there. With few of "
                "them intervals are too short rather than too long: with 8, 95 % intervals cover "
                "in 93 % of cases."
            )
        if audit.within is not None:
            sentences.append(
                "The comparison within time windows has a column for every window but one in every "
                "group's regression, and is at the average mix of the windows. Windows in which a "
                "group has no rows are left out of it."
            )
        if facts.windows is not None and facts.windows[1] != facts.errors:
            sentences.append(
                f"Within windows, standard errors are {facts.windows[1]}: too few rows or too many "
                "regressions for others."
            )
    if facts.filled:
        sentences.append(
            "A missing number is replaced by a value near the mean, and a separate column says "
            "where; a missing category is a category. The value that is filled in changes the "
            "coefficient of that column and no other."
        )
    return sentences


def limits(audit: Audit) -> list[str]:
    """What this log cannot show."""
    facts = audit.facts
    reward = facts.columns.reward
    sentences = [
        "Equal averages. What is called bias here is bias and true difference together, unless the "
        "groups are equally good on average at the same features. No log can show which it is; "
        + (
            "the true rewards in this log can, where they are known: see what is measured against "
            "them."
            if audit.against_truth is not None
            else "outcomes that do not pass through the same judgement could."
        ),
        "Selection. Only decisions that were logged are here. If a row is in the log, or has a "
        f"{reward}, because of what its {reward} is or would have been, the numbers are wrong by "
        "an amount that this log cannot show.",
        (
            "Rows are weighted by their inverse propensity, which removes a selection that "
            "depends on what the propensity was made from, and nothing else."
            if facts.settings.weigh_by_propensity
            else "Propensities are in this log and were not used: weighting by them "
            f"({setting('weigh_by_propensity', True)}) removes the selection that they describe."
            if facts.columns.propensity
            else "There are no propensities in this log, so a selection by the policy itself "
            "cannot be removed either."
        ),
        "Straight lines. If outcomes are not linear in the features and the groups differ in their "
        "features, part of the misfit is counted as bias.",
        "Features. What is not a column here cannot be held constant. A feature that is itself "
        "shaped by discrimination hides bias when it is held constant.",
    ]
    if facts.binary:
        sentences.append(
            "Probabilities. Outcomes are 0 or 1; differences are in the probability of a 1, by a "
            "straight line. How a difference is divided among features depends on that scale; "
            "with probabilities near 0 or 1, another one (odds) may divide it differently."
            + ("" if audit.logistic is None else " Only what both agree on is claimed here.")
        )
    if facts.columns.cluster is None:
        sentences.append(
            "Independence. Rows are treated as independent. If a person has several, name the "
            f"column that identifies people ({setting('cluster', blank('COLUMN'))}): otherwise "
            "intervals are too short."
        )
    sentences.append(
        "No verdict. A difference is a reason to look at how the outcomes came about. It is no "
        "proof of discrimination, and an interval that contains zero is no proof of its absence."
    )
    return sentences
