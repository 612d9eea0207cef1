"""The summary of an audit in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from evenhand._columns.missing import listed
from evenhand._columns.words import bad_outcome, category, gap, shown
from evenhand._prose import quoted
from evenhand.audit._inference.robust import FEW_EVENTS, FEW_ROWS
from evenhand.audit._input.roles import guessed_roles
from evenhand.audit._input.scan import alike_groups
from evenhand.audit._report.cells import cell_sentences
from evenhand.audit._report.explained import explained
from evenhand.audit._report.impact import impact_sentences
from evenhand.audit._report.result import WHOLE_LOG
from evenhand.audit._sums.missing import FILLED, NOT_FILLABLE
from evenhand.bias._contrasts import few as few_of
from evenhand.bias._sentences import comparisons, totals
from evenhand.errors import blank, setting
from evenhand.events.columns import NEEDED

if TYPE_CHECKING:
    from evenhand.audit._report.result import Audit

FEW_CLUSTERS = 30
MANY_LOST = 0.1  # of the rows
ROLES = {"timestamp": "time", "learned": "mark of what was learned"}
MOST = 5  # features to speak of against the truth
MOST_FEATURES = 10  # within time windows
MOST_NAMED = 12  # features that are held equal


def summary(audit: Audit) -> list[str]:
    """What was summed up, what was found, what changed, what is missing, what to be careful of."""
    return [
        _scope(audit),
        *_direction(audit),
        *(_missing(audit) if _many_lost(audit) else []),
        *_given_away(audit),
        *_leave_out(audit),
        *explained(audit),
        *cell_sentences(audit),
        *_compared(audit),
        *_against_truth(audit),
        *impact_sentences(audit),
        *_drift(audit),
        *([] if _many_lost(audit) else _missing(audit)),
        *cautions(audit),
    ]


def _compared(audit: Audit) -> list[str]:
    """What the comparison found; where there are time windows, both, and which one to believe."""
    bias, within = audit.bias, audit.within
    if not audit.facts.columns.features:  # then the gap itself is all there is
        return [*totals(bias), *bias.warnings, bias.assumption]
    if within is None:
        return bias.to_words().splitlines()
    inside = [_after("Within time windows", sentence) for sentence in totals(within)]
    if audit.believe == WHOLE_LOG:
        said = bias.to_words().splitlines()
        first = len(totals(bias))
        return [*said[:first], *inside, *said[first:]]
    whole = [_after("Over the whole log", sentence) for sentence in totals(bias)]
    return [
        *(_after("Within time windows", line) for line in comparisons(within, MOST_FEATURES)),
        *whole,
        "The comparison over the whole log does not find the same. Believe the one within time "
        "windows: it compares people of the same time. Over the whole log, what changes over time "
        "counts as bias where the part of a group changes as well.",
        *bias.warnings,
        bias.assumption,
    ]


def _after(start: str, sentence: str) -> str:
    return f"{start}, {sentence[0].lower()}{sentence[1:]}"


def _many_lost(audit: Audit) -> bool:
    """Whether so many rows are left out that it comes first."""
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
        f"Held equal: {few_of(names, most=MOST_NAMED)}." if names else "No feature is held equal."
    )
    return (
        f"{facts.used:,} {'rows' if facts.columns.count is None else 'people'} in "
        f"{len(bias.groups)} groups by {quoted(facts.columns.group)} ({sizes}) are compared with "
        f"{against}. The outcome is {quoted(facts.columns.reward)}. {equal}{_by_name(audit)}"
    )


def _by_name(audit: Audit) -> str:
    """The roles that nobody gave: whoever reads on must know of them."""
    guessed = guessed_roles(audit.facts.columns, audit.facts.settings)
    roles = [
        f"{shown([name])} is the {ROLES.get(role, role.replace('_', ' '))}"
        for role, name in guessed.items()
        if role not in NEEDED
    ]
    return f" Known by name alone: {', '.join(roles)}." if roles else ""


def _leave_out(audit: Audit) -> list[str]:
    """What takes the comparison of all away, where leaving out a column gives it back."""
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
        screened = f"; selected are those with {reward} = 0" if facts.binary else ""
        return [f"A higher {reward} is worse for people{screened}."]
    word = bad_outcome(facts.columns.reward, facts.settings.reward_values)
    if word is None:
        return []
    return [
        f"{quoted(word)} sounds as if a higher {reward} were bad for people, and here it counts as "
        f"good: if it is bad, say so with {setting('unfavourable', True)}."
    ]


def _against_truth(audit: Audit) -> list[str]:
    """What the true rewards say, for they need no assumption about averages."""
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
    every = dict(zip(audit.bias.groups, audit.bias.observations, strict=True))
    known = dict(zip(report.groups, report.observations, strict=True))
    parts = ", ".join(f"{name} {known.get(name, 0):,} of {many:,}" for name, many in every.items())
    against = f"Against {columns.true_reward}, "
    return [
        f"{columns.true_reward} is known in {sum(known.values()):,} rows ({parts}): there "
        f"{columns.reward} can be measured against it.",
        *(
            f"{against}{sentence[0].lower()}{sentence[1:]}"
            for sentence in comparisons(report, MOST)
        ),
        *report.warnings,
        *([audit.facts.doubt] if audit.facts.doubt else []),
        report.assumption,
    ]


def _drift(audit: Audit) -> list[str]:
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
            "the gap is known in too few of them to be compared"
            if "estimate" in table
            else "only counts and mean outcomes were compared, for there are too many arms"
        )
        return [f"Of the {windows} time windows {why}.", *without]
    if audit.bias.reference is None and len(audit.bias.groups) == 2:
        tests = tests.iloc[:1]  # the other group is its mirror image
    said, alike = [], audit.bias._terms.alike
    for _, row in tests[tests["changes"]].iterrows():
        part = table[(table["group"] == row["group"]) & table["estimate"].notna()]
        low, high = part.loc[part["estimate"].idxmin()], part.loc[part["estimate"].idxmax()]
        said.append(
            f"The gap of group {quoted(row['group'])} {alike} changes over time (p "
            f"{_p(row['p_value'])}): it is lowest, {low['estimate']:.3g}, in the window from "
            f"{low['from']}, and highest, {high['estimate']:.3g}, in the one from {high['from']}."
        )
    calm = [str(name) for name in tests[~tests["changes"]]["group"] if name != audit.bias.reference]
    if calm:
        said.append(
            f"No change of the gap over {windows} time windows can be told from chance for group "
            f"{', '.join(calm)}."
        )
    if audit.facts.windows is not None and audit.facts.windows[0] != audit.bias.weighting:
        said.append(
            "Not every arm has enough rows in every window, so within a window arms count by how "
            "often they were chosen: a change of the gap there may be one of the choice of arms."
        )
    common = audit.facts.common
    if audit.bias.reference is None and 2 <= len(common) < len(audit.bias.groups):
        said.append(
            f"Within windows groups are compared with the mean of {', '.join(common)}, which are "
            "known in all of them."
        )
    return [*said, *without]


def _p(value: float) -> str:
    return f"= {value:.2g}" if value >= 1e-6 else "< 0.000001"


def _missing(audit: Audit) -> list[str]:
    facts, table, said = audit.facts, audit.missing, []
    if table.empty:
        return []
    left_out = facts.rows - facts.used
    if left_out:
        dropped = table[table["done"] != FILLED].groupby("column")["missing"].sum()
        why = ", for what they lack cannot be filled in" if _stuck(table) else ""
        said.append(
            f"{left_out:,} of {facts.rows:,} rows {'is' if left_out == 1 else 'are'} left out{why} "
            "(missing: "
            f"{listed({str(k): int(v) for k, v in dropped.items() if v})}){_uneven(audit)}."
        )
    if facts.filled:
        filled = table[table["done"] == FILLED].groupby("column")["missing"].sum()
        said.append(
            f"{facts.filled:,} row{' has' if facts.filled == 1 else 's have'} values filled in "
            "(missing: "
            f"{listed({str(k): int(v) for k, v in filled.items()})})."
        )
    return said


def _stuck(table: pd.DataFrame) -> bool:
    return bool((table["done"] == NOT_FILLABLE).any())


def _uneven(audit: Audit) -> str:
    """The part of each group that is left out, where that differs much."""
    table = audit.groups
    part = 1.0 - pd.Series(audit.bias.observations) / table["n"]
    if part.max() - part.min() < 0.05:
        return ""
    low, high = (table["group"].iloc[int(at)] for at in (part.argmin(), part.argmax()))
    return (
        f": {100 * part.max():.0f} % of group {high} and {100 * part.min():.0f} % of group {low}, "
        "so what is left may not stand for the whole"
    )


def cautions(audit: Audit) -> list[str]:
    """What to know of this run before using its numbers."""
    facts, said = audit.facts, list[str]()
    if facts.binary and facts.errors == "classical":
        said.append(
            "Outcomes are 0 or 1, so their noise depends on the features, and errors here take it "
            "as equal within a group: choose robust errors for exact ones "
            f"({setting('errors', 'robust')})."
        )
    said += [*_classical(audit), *_few_events(audit)]
    if facts.clusters is not None:
        few = {name: many for name, many in facts.clusters.items() if many < FEW_CLUSTERS}
        alone = [quoted(name) for name, many in few.items() if many < 2]
        if alone:
            said.append(
                f"{_groups(alone, 'has', 'have')} a single cluster, from which no error can be "
                f"told: {'it is' if len(alone) == 1 else 'they are'} compared with nobody."
            )
        short = [f"{quoted(name)} ({many})" for name, many in few.items() if many > 1]
        if short:
            said.append(
                f"{_groups(short, 'has', 'have')} fewer than {FEW_CLUSTERS} clusters: "
                f"{_their(short)} intervals are too short rather than too long."
            )
    if facts.crossing:
        said.append(
            f"{facts.crossing:,} clusters have rows in more than one group; the intervals of gaps "
            "allow for that."
        )
    for name, value in facts.constant.items():
        said.append(
            f"{name} is {value:g} in every row: it is left out, for the intercept says the same."
        )
    if facts.whole_weights:
        said.append(
            f"All of {quoted(str(facts.columns.weight))} are whole numbers. If they say for how "
            f"many people a row stands, name the column in {setting('count')} instead: as weights, "
            "a row is one person however much it weighs."
        )
    if facts.effective is not None:
        for name, size in facts.effective.items():
            rows = audit.bias.observations[audit.bias.groups.index(name)]
            if size < 0.1 * rows:
                said.append(
                    f"A few rows carry most of the weight in group {name}: its {rows:,} rows are "
                    f"worth {size:,.0f} of equal weight."
                )
    if facts.columns.arm is not None and not facts.by_arm:
        said.append(
            f"There are about {facts.arms:,} arms, too many to be told apart here: whether the "
            "arms of a group differ and were chosen unequally was not checked."
        )
    if any(pd.notna(many) for many in facts.merged.values()):
        names = ", ".join(f"{many:,} of {name}" for name, many in facts.merged.items())
        said.append(f"Rare categories are merged into one: {names}.")
    for name, rare in facts.rare.items():
        said.append(
            f"Some categories of {name} have less than 1 % of the rows and none in some group: "
            f"{few_of(rare)} count as {facts.baselines[name]}."
        )
    said += alike_groups(audit.bias.groups)
    return said


def _classical(audit: Audit) -> list[str]:
    """Groups whose errors are not those of the others, and why."""
    names = audit.facts.classical
    if not names:
        return []
    return [
        f"{_groups([quoted(name) for name in names], 'has', 'have')} fewer than {FEW_ROWS} rows "
        f"for every coefficient: {_their(names)} errors take the noise as equal within the group. "
        "Those of the other groups do not."
    ]


def _groups(names: Sequence[str], has: str, have: str) -> str:
    """Groups as the subject of a sentence, with its verb."""
    many = len(names) > 1
    return f"Group{'s' if many else ''} {few_of(list(names))} {have if many else has}"


def _their(names: Sequence[str]) -> str:
    return "its" if len(names) == 1 else "their"


def _few_events(audit: Audit) -> list[str]:
    """Groups that hardly have any rewards of 1, or of 0."""
    table = audit.groups
    if "positives" not in table:
        return []
    less = np.minimum(table["positives"], table["n_reward"] - table["positives"])
    rows = zip(table["group"], table["positives"], less, strict=True)
    outcome = quoted(audit.facts.columns.reward)
    counts = [
        (quoted(name), f"{many:,.0f}" if many else "no", int(ones == many), int(many))
        for name, ones, many in rows
        if many < FEW_EVENTS
    ]
    if len(counts) == 1:
        name, count, value, many = counts[0]
        only = f"only {count} row{'s' if many != 1 else ''}" if many else "no row"
        return [f"Group {name} has {only} with {outcome} = {value}: its intervals are rough."]
    if not counts:
        return []
    names = few_of([f"{name} ({count} with {value})" for name, count, value, _ in counts])
    return [
        f"{len(counts)} groups have fewer than {FEW_EVENTS} rows with {outcome} = 0 or with "
        f"{outcome} = 1: {names}. Their intervals are rough."
    ]


def _given_away(audit: Audit) -> list[str]:
    """Features that should not be held equal."""
    giveaways, reward = audit.facts.giveaways, audit.facts.columns.reward
    said = [
        f"Feature {name} by itself predicts {reward} almost perfectly within groups (R squared "
        f"{fit:.4f}), as a copy of it would. Holding it equal hides the bias: leave it out with "
        f"{setting('leave_out', [name])}."
        for name, fit in giveaways.reward.items()
    ]
    every = len(audit.bias.groups)
    for name, told in giveaways.group.items():
        few = f"group {', '.join(told)} from the others"
        which = "the groups apart" if len(told) == every else few
        said.append(
            f"Feature {name} tells {which} almost perfectly, so the groups do not overlap there, "
            f"and bias cannot be told from what {name} does: leave it out with "
            f"{setting('leave_out', [name])}."
        )
    return said
