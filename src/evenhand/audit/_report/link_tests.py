"""Whether straight lines or logistic models have the form of rewards of 0 and 1, in words."""

from __future__ import annotations

from typing import Any

from evenhand.audit._report.logistic import BOTH, LINEAR, LOGISTIC, Logistic

_ERRORS = {
    "classical": "the inverse of the information",
    "robust": "robust (from squared scores, with the correction of the straight lines)",
    "cluster": "those of clusters (from sums of scores, with the correction of the straight lines)",
}
# The intervals that hold for all rows at once are those of the summary.
_SHOWN = {
    "simultaneous_low": "low",
    "simultaneous_high": "high",
    "gap_simultaneous_low": "gap_low",
    "gap_simultaneous_high": "gap_high",
}


def link_sentence(models: Logistic) -> str:
    """Which form the rewards have, as far as link tests can tell."""
    line, logistic = map(_tested, (models.linear_p_value, models.logistic_p_value))
    if models.odds is None:
        return (
            f"Outcomes are 0 or 1, and there is no logistic model: {models.why}. All gaps rest on "
            "straight lines alone, and no change of a gap with a feature is claimed. Link test of "
            f"the straight lines: {line}."
        )
    if models.linear_p_value is None and models.logistic_p_value is None:
        return (
            "Outcomes are 0 or 1, and no test can tell whether a straight line or a logistic model "
            "fits them better. Numbers are those of straight lines unless stated otherwise."
        )
    start = "Outcomes are 0 or 1. The link test"
    if models.fits == LOGISTIC:
        return (
            f"{start} rejects straight lines ({line}) and not logistic models ({logistic}), so "
            "what is left of a gap is taken from the logistic models, with that of straight lines "
            "beside it for comparison."
        )
    if models.fits == LINEAR:
        return (
            f"{start} rejects logistic models ({logistic}) and not straight lines ({line}), so "
            "numbers are those of the straight lines unless stated otherwise."
        )
    if models.fits == BOTH:
        return (
            f"{start} rejects neither straight lines ({line}) nor logistic models ({logistic}). "
            "Numbers are those of straight lines, in which probabilities add up, unless stated "
            "otherwise."
        )
    return (
        f"{start} rejects straight lines ({line}) and logistic models ({logistic}): neither has "
        "the right form for these outcomes, and some findings may come from that. Numbers are "
        "those of straight lines unless stated otherwise."
    )


def method_of(models: Logistic) -> list[str]:
    """How the logistic models were fitted, for the method of a report."""
    level = f"{100 * (1 - models.line.level):.3g} %"
    sentences = [
        "Rewards are 0 or 1, so every group also has a logistic model with the same features, by "
        "Newton's method with sums computed where the rows are. A gap, and a change of it, is "
        "claimed where straight lines and logistic models both find it at the same level and in "
        "the same direction. A link test asks whether the square of a model's own predictions "
        f"would add to them (a score test of all groups at once, at {level}).",
    ]
    if models.odds is not None:
        sentences.append(
            "Average gaps are the mean over all rows of the probability of a 1 with the "
            "coefficients of the group, minus that with those of the reference; errors are by "
            "the delta method, with the features as given. Errors of the logistic models are "
            f"{_ERRORS[models.errors]}."
        )
    return sentences


def logistic_part(models: Logistic) -> dict[str, Any]:
    """The part of the page: a sentence and two tables."""
    fits = link_sentence(models)
    if models.odds is None:
        return {"fits": fits, "by_group": None}
    from evenhand._html.tables import of_frame

    tables = []
    for table, keys in ((models.by_group, 1), (models.by_feature, 2)):
        rows = table[table["group"] != models.line.reference]
        alone = [name for name in ("low", "high", "gap_low", "gap_high") if name in rows]
        tables.append(of_frame(rows.drop(columns=alone).rename(columns=_SHOWN), keys=keys))
    level = f"{100 * models.line.level:.6g} %"
    against = models.line.against
    return {
        "fits": fits,
        "against": against,
        "level": level,
        "event": models.line._terms.event,
        "by_group": tables[0],
        "by_feature": tables[1],
    }


def _tested(p_value: float | None) -> str:
    if p_value is None:
        return "nothing to test"
    return f"p = {p_value:.2g}" if p_value >= 1e-6 else "p < 0.000001"
