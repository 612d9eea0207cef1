"""Audits whose groups are known by probability: sentences, method, limits and the page.

Cases that would make a sentence false, and what is said instead: counts of people by group (they
are expected counts), probabilities that are all 0 or 1 (then nothing is uncertain), rows without
any (then they are "not stated"), and roles of the log that play no part here (they are named).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenhand._html.tables import of_frame
from evenhand._prose import quoted
from evenhand.audit._input.probabilities import ProbableGroups
from evenhand.audit._report.missing_sentences import missing_sentences
from evenhand.bias._contrasts import few as few_of
from evenhand.bias._sentences import totals
from evenhand.bias.report import BiasReport
from evenhand.groups import NOT_STATED

if TYPE_CHECKING:
    from evenhand.audit._report.result import Audit

CALIBRATED = (
    "This assumes that the probabilities are calibrated at the same features: among people with "
    "the same features and a probability of 0.7, seven in ten are of that group. Proxies such as "
    "BISG often are not. Check them where the group is known."
)
LEFT_OUT = (
    "Whatever counts people by group is left out if groups are probabilities: error rates, "
    "selection rates and impact ratios, fairness metrics, logistic models and time windows."
)


@dataclass(frozen=True, eq=False)
class ByProbability:
    """The parts of an audit by probability besides the bias.

    Attributes:
        membership: the groups, and the columns of their probabilities.
        unadjusted: the gap between the groups' mean rewards, with no feature held constant.
        expected: the sum of the probabilities of each group.
        clusters: how many there are; 0 without.
        not_used: roles that the log has and that play no part.
    """

    membership: ProbableGroups
    unadjusted: BiasReport
    expected: dict[str, float]
    clusters: int
    not_used: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        known = self.membership
        columns = dict(zip(known.groups, known.given, strict=True))
        return {
            "columns": {name: column or None for name, column in columns.items()},
            "expected": self.expected,
            "uncertain": known.uncertain,
            "unadjusted": self.unadjusted.to_dict(),
            "clusters": self.clusters,
            "not_used": list(self.not_used),
        }


def summary(audit: Audit) -> list[str]:
    """What was summed up, what was found, and what it rests on."""
    result, facts, bias = audit.by_probability, audit.facts, audit.bias
    assert result is not None
    sizes = ", ".join(f"{quoted(name)} {n:,.0f}" for name, n in result.expected.items())
    names = [quoted(name) for name in facts.columns.features]
    held = f"Held constant: {few_of(names, most=12)}." if names else "No feature is held constant."
    worse = f" A higher {quoted(facts.columns.reward)} is worse for people."
    return [
        f"{facts.used:,} rows in {len(bias.groups)} groups, known by probability (expected: "
        f"{sizes}), are compared with {bias.against}. The outcome is "
        f"{quoted(facts.columns.reward)}. {held}{worse if facts.settings.unfavourable else ''}",
        _certainty(result),
        *(f"Before any adjustment, {_lower(words)}" for words in totals(result.unadjusted)),
        *(bias.to_words().splitlines() if names else [*bias.warnings, bias.assumption]),
        CALIBRATED,
        *_not_used(result),
        LEFT_OUT,
        *missing_sentences(audit),
    ]


def _lower(sentence: str) -> str:
    return f"{sentence[0].lower()}{sentence[1:]}"


def _certainty(result: ByProbability) -> str:
    known = result.membership
    if not known.uncertain:
        return "All probabilities are 0 or 1, so every group is known."
    said = (
        f"In {known.uncertain:,} of {known.rows:,} rows the group is uncertain. Every row counts "
        "for each group in proportion to its probability, and is assigned to none."
    )
    if NOT_STATED in known.groups and "" in known.given:
        said += f' Rows without any probability are a group of their own, "{NOT_STATED}".'
    return said


def _not_used(result: ByProbability) -> list[str]:
    if not result.not_used:
        return []
    names = ", ".join(role.replace("_", " ") for role in result.not_used)
    return [f"The log also has columns for {names}: they are not used with groups by probability."]


def method(audit: Audit) -> list[str]:
    """How the numbers were computed."""
    from evenhand import __version__

    facts, result = audit.facts, audit.by_probability
    assert result is not None
    errors = (
        f"Standard errors allow for dependence between rows of the same cluster (CR1, "
        f"{result.clusters:,} clusters)."
        if result.clusters
        else "Standard errors do not assume equal noise (HC1, from squared residuals of every row)."
    )
    return [
        f"evenhand {__version__} on {facts.engine}: {facts.used:,} rows of {facts.label} were "
        "summed up where they are, and everything here is computed from the sums.",
        "The reward is fitted by least squares on the features and an intercept, each times the "
        f"probability of each group: {', '.join(facts.columns.features) or 'none'}. So every group "
        "has coefficients of its own, and no row is assigned to a group. The bias of a group is "
        "its coefficients minus those that it is compared with. What is said of people with the "
        "same features is the gap at the average context of everyone.",
        "Before adjustment, the mean of a group is its fit at the average features of the group, "
        "where rows count by probability too.",
        errors,
        f"Intervals are at {100 * audit.bias.level:.6g} %. Those of features in the summary hold "
        "for all groups and features at once (Bonferroni), those at the average context for all "
        "groups.",
        "Probabilities of a row are divided by their sum, which may differ from 1 by 0.01.",
    ]


def limits(audit: Audit) -> list[str]:
    """What this log cannot show."""
    reward = audit.facts.columns.reward
    return [
        f"Probabilities. {CALIBRATED} If {reward} itself, or what it is made from, went into the "
        "probabilities, they are not calibrated.",
        "Equal averages. What is called bias here is bias and true difference together, unless the "
        "groups are equally good on average at the same features. No log can show which it is.",
        "Selection. Only decisions that were logged are here. If a row is in the log, or has a "
        f"{reward}, because of what its {reward} is or would have been, the numbers are wrong by "
        "an amount that this log cannot show.",
        "Straight lines. If outcomes are not linear in the features and the groups differ in their "
        "features, part of the misfit is counted as bias.",
        "Features. What is not a column here cannot be held constant. A feature that is itself "
        "shaped by discrimination hides bias when it is held constant.",
        LEFT_OUT,
        "No verdict. A difference is a reason to look at how the outcomes came about. It is no "
        "proof of discrimination, and an interval that contains zero is no proof of its absence.",
    ]


def view(audit: Audit) -> dict[str, Any] | None:
    """What the page shows beside the bias: the gaps before adjustment."""
    from evenhand.audit._report.blend import side_by_side

    if audit.by_probability is None:
        return None
    reports = {"no feature": audit.by_probability.unadjusted, "the features": audit.bias}
    table = side_by_side(reports).rename(columns={"based on": "held constant"})
    return {"table": of_frame(table, keys=2), "assumption": CALIBRATED}
