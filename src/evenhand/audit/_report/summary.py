"""The summary of an audit, sentence by sentence; those on gaps are from `bias/_sentences.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand._columns.words import bad_outcome, category, gap, shown
from evenhand._prose import quoted
from evenhand.audit._input.roles import guessed_roles
from evenhand.audit._report.blend import blend_sentences
from evenhand.audit._report.cautions import cautions
from evenhand.audit._report.decomposition_sentences import explained, told_why
from evenhand.audit._report.drift_sentences import drift_sentences
from evenhand.audit._report.impact import impact_sentences
from evenhand.audit._report.intersection_sentences import cell_sentences
from evenhand.audit._report.missing_sentences import missing_sentences
from evenhand.audit._report.result import WHOLE_LOG
from evenhand.bias._contrasts import few as few_of
from evenhand.bias._sentences import comparisons, totals, unidentified
from evenhand.bias.report import BiasReport
from evenhand.errors import blank, setting
from evenhand.events.columns import NEEDED

if TYPE_CHECKING:
    from evenhand.audit._report.result import Audit

MANY_LOST = 0.1  # of the rows
ROLES = {"timestamp": "time", "learned": "mark of what was learned"}
MOST = 5  # features to speak of against the truth
MOST_FEATURES = 10  # within time windows
MOST_NAMED = 12  # features that are held constant


def summary(audit: Audit) -> list[str]:
    """The data, the findings, changes over time, missing values, and what to be careful of."""
    return [
        _scope(audit),
        *_direction(audit),
        *(missing_sentences(audit) if _many_lost(audit) else []),
        *_given_away(audit),
        *_leave_out(audit),
        *explained(audit),
        *cell_sentences(audit),
        *_compared(audit),
        *_against_truth(audit),
        *impact_sentences(audit),
        *drift_sentences(audit),
        *([] if _many_lost(audit) else missing_sentences(audit)),
        *cautions(audit),
    ]


def _compared(audit: Audit) -> list[str]:
    """The comparison; with time windows both comparisons, and which one to believe."""
    bias, within = audit.bias, audit.within
    if not audit.facts.columns.features:  # then the gap itself is all there is
        return [*totals(bias), *bias.warnings, bias.assumption]
    told = _told(audit, bias)
    lines = [line for line in bias.to_words().splitlines() if line not in told]
    if within is None:
        return lines
    # What rules out a comparison over the whole log does so within windows: once is enough.
    told = {*told, *unidentified(bias).values()}
    inside = [_after("Within time windows", line) for line in totals(within) if line not in told]
    if audit.believe == WHOLE_LOG:
        first = len([line for line in totals(bias) if line in lines])
        return [*lines[:first], *inside, *lines[first:]]
    told, most = _told(audit, within), MOST_FEATURES
    inside = [line for line in comparisons(within, most) if line not in told]
    told = {*told, *unidentified(within).values()}
    whole = [_after("Over the whole log", line) for line in totals(bias) if line not in told]
    return [
        *(_after("Within time windows", line) for line in inside),
        *whole,
        "The comparison over the whole log disagrees with this one. Rely on the one within time "
        "windows: it compares people in the same period. Over the whole log, what changes over "
        "time counts as bias where the share of a group changes as well.",
        *bias.warnings,
        bias.assumption,
    ]


def _told(audit: Audit, report: BiasReport) -> set[str]:
    """Sentences about what is not identified whose reason was given above already."""
    groups = told_why(audit)
    return {line for name, line in unidentified(report).items() if name in groups}


def _after(start: str, sentence: str) -> str:
    return f"{start}, {sentence[0].lower()}{sentence[1:]}"


def _many_lost(audit: Audit) -> bool:
    """Whether so many rows are left out that this comes first."""
    return audit.facts.used < (1.0 - MANY_LOST) * audit.facts.rows


def _scope(audit: Audit) -> str:
    facts, bias = audit.facts, audit.bias
    counts = zip(bias.groups, bias.observations, strict=True)
    sizes = ", ".join(f"{quoted(name)} {many:,}" for name, many in counts)
    against = "the mean of the groups"
    if bias.reference is not None:
        against = f"group {quoted(bias.reference)}"
        if facts.settings.reference is None:
            many = bias.observations.count(max(bias.observations))
            largest = "the largest" if many == 1 else "one of the largest"
            against += f", {largest} ({setting('reference', blank('GROUP'))} names another)"
    names = [quoted(name) for name in facts.columns.features]
    equal = (
        f"Held constant: {few_of(names, most=MOST_NAMED)}."
        if names
        else "No feature is held constant."
    )
    return (
        f"{facts.used:,} {'rows' if facts.columns.count is None else 'people'} in "
        f"{len(bias.groups)} groups by {quoted(facts.columns.group)} ({sizes}) are compared with "
        f"{against}. The outcome is {quoted(facts.columns.reward)}. {equal}{_by_name(audit)}"
    )


def _by_name(audit: Audit) -> str:
    """The roles that nobody gave: readers must know of them."""
    guessed = guessed_roles(audit.facts.columns, audit.facts.settings)
    roles = [
        f"{shown([name])} is the {ROLES.get(role, role.replace('_', ' '))}"
        for role, name in guessed.items()
        if role not in NEEDED
    ]
    return f" Recognised by name only: {', '.join(roles)}." if roles else ""


def _leave_out(audit: Audit) -> list[str]:
    """The columns that rule out a comparison of all groups, and that may be left out."""
    if audit.bias.by_group["estimate"].notna().all():
        return []
    table = audit.bias.to_frame()
    unknown = table[table["why"].str.contains(" is always 0 in group ")]["feature"].unique()
    columns = [
        name
        for name in audit.facts.columns.features
        if any(
            feature in (name, gap(name)) or feature.startswith(category(name, ""))
            for feature in unknown
        )
    ]
    if not columns:
        return []
    return [
        f"To compare all groups with the same features, leave out {shown(columns)} "
        f"({setting('leave_out', columns)}): some "
        "group has no row with one of its values."
    ]


def _direction(audit: Audit) -> list[str]:
    """Whether more reward is good or bad for people; it must not be taken for granted."""
    facts = audit.facts
    reward = quoted(facts.columns.reward)
    if facts.settings.unfavourable:
        screened = f"; those with {reward} = 0 count as selected" if facts.binary else ""
        return [f"A higher {reward} is worse for people{screened}."]
    word = bad_outcome(facts.columns.reward, facts.settings.reward_values)
    if word is None:
        return []
    return [
        f"{quoted(word)} sounds as if a higher {reward} were bad for people, and here it counts as "
        f"good: if it is bad, set {setting('unfavourable', True)}."
    ]


def _against_truth(audit: Audit) -> list[str]:
    """The comparison with true rewards, which needs no assumption about averages."""
    errors = None if audit.truth is None else audit.truth.errors
    return [*_of_outcomes(audit), *([] if errors is None else errors.to_words())]


def _of_outcomes(audit: Audit) -> list[str]:
    """How the outcomes differ from the true rewards."""
    report, columns = audit.against_truth, audit.facts.columns
    if report is None:
        if audit.facts.objection:
            return [f"{audit.facts.objection}."]
        if columns.true_reward is None or "n_true_reward" not in audit.groups:
            return []
        return [
            f"{columns.true_reward} is known in too few groups to measure {columns.reward} against."
        ]
    rows_by_group = dict(zip(audit.bias.groups, audit.bias.observations, strict=True))
    known = dict(zip(report.groups, report.observations, strict=True))
    parts = ", ".join(
        f"{name} {known.get(name, 0):,} of {many:,}" for name, many in rows_by_group.items()
    )
    against = f"Against {columns.true_reward}, "
    return [
        f"{columns.true_reward} is known in {sum(known.values()):,} rows ({parts}): there "
        f"{columns.reward} can be measured against it.",
        *(
            f"{against}{sentence[0].lower()}{sentence[1:]}"
            for sentence in comparisons(report, MOST)
        ),
        *report.warnings,
        report.assumption,
        *blend_sentences(audit),
    ]


def _given_away(audit: Audit) -> list[str]:
    """Features that should not be held constant."""
    giveaways, reward = audit.facts.giveaways, audit.facts.columns.reward
    sentences = [
        f"Feature {name} by itself predicts {reward} almost perfectly within groups (R squared "
        f"{fit:.4f}), as a copy of it would. Holding it constant hides the bias: leave it out with "
        f"{setting('leave_out', [name])}."
        for name, fit in giveaways.reward.items()
    ]
    n_groups = len(audit.bias.groups)
    for name, named in giveaways.group.items():
        few = f"group {', '.join(named)} from the others"
        which = "the groups" if len(named) == n_groups else few
        sentences.append(
            f"Feature {name} separates {which} almost perfectly, so the groups do not overlap, "
            f"and bias cannot be told apart from the effect of {name}: leave it out with "
            f"{setting('leave_out', [name])}."
        )
    return sentences
