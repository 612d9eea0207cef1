"""What to know of an audit before using its numbers: few rows, clusters or outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from evenhand._prose import quoted
from evenhand.audit._inference.standard_errors import FEW_EVENTS, FEW_ROWS
from evenhand.audit._input.first_look import alike_groups
from evenhand.bias._contrasts import few as few_of
from evenhand.errors import setting

if TYPE_CHECKING:
    from evenhand.audit._report.result import Audit

FEW_CLUSTERS = 30


def cautions(audit: Audit) -> list[str]:
    """What to know of this run before using its numbers."""
    facts, sentences = audit.facts, list[str]()
    if facts.binary and facts.errors == "classical":
        sentences.append(
            "Outcomes are 0 or 1, so their noise depends on the features; standard errors assume "
            "that it is equal within a group: robust standard errors do not assume that "
            f"({setting('errors', 'robust')})."
        )
    sentences += [*_classical(audit), *_few_events(audit)]
    if facts.clusters is not None:
        few = {name: count for name, count in facts.clusters.items() if count < FEW_CLUSTERS}
        single = [quoted(name) for name, count in few.items() if count < 2]
        if single:
            sentences.append(
                f"{_groups(single, 'has', 'have')} a single cluster, so no standard error can be "
                f"estimated: {'it is' if len(single) == 1 else 'they are'} compared with nobody."
            )
        short = [f"{quoted(name)} ({count})" for name, count in few.items() if count > 1]
        if short:
            sentences.append(
                f"{_groups(short, 'has', 'have')} fewer than {FEW_CLUSTERS} clusters: "
                f"{_their(short)} intervals are too short rather than too long."
            )
    if facts.crossing:
        sentences.append(
            f"{facts.crossing:,} clusters have rows in more than one group; the intervals of gaps "
            "allow for that."
        )
    for name, value in facts.constant.items():
        sentences.append(
            f"{name} is {value:g} in every row: it is left out, because the intercept already says "
            "the same."
        )
    if facts.whole_weights:
        sentences.append(
            f"All of {quoted(str(facts.columns.weight))} are whole numbers. If they say how "
            f"many people a row stands for, name the column in {setting('count')} instead: as "
            "weights, a row counts as one person, whatever its weight."
        )
    if facts.effective is not None:
        for name, size in facts.effective.items():
            rows = audit.bias.observations[audit.bias.groups.index(name)]
            if size < 0.1 * rows:
                sentences.append(
                    f"A few rows carry most of the weight in group {name}: its {rows:,} rows are "
                    f"worth {size:,.0f} of equal weight."
                )
    if facts.columns.arm is not None and not facts.by_arm:
        sentences.append(
            f"There are about {facts.arms:,} arms, too many to be told apart here: whether the "
            "arms of a group differ and were chosen unequally was not checked."
        )
    if any(pd.notna(count) for count in facts.merged.values()):
        names = ", ".join(f"{count:,} of {name}" for name, count in facts.merged.items())
        sentences.append(f"Rare categories are merged into one: {names}.")
    for name, rare in facts.rare.items():
        sentences.append(
            f"Some categories of {name} have less than 1 % of the rows and none in some group: "
            f"{few_of(rare)} count as {facts.baselines[name]}."
        )
    sentences += alike_groups(audit.bias.groups)
    return sentences


def _classical(audit: Audit) -> list[str]:
    """Groups whose errors are of another kind than those of the others, and why."""
    names = audit.facts.classical
    if not names:
        return []
    return [
        f"{_groups([quoted(name) for name in names], 'has', 'have')} fewer than {FEW_ROWS} rows "
        f"for every coefficient: {_their(names)} standard errors assume equal noise in the group. "
        "Those of the other groups do not."
    ]


def _groups(names: Sequence[str], has: str, have: str) -> str:
    """Groups as the subject of a sentence, with its verb."""
    is_plural = len(names) > 1
    return f"Group{'s' if is_plural else ''} {few_of(list(names))} {have if is_plural else has}"


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
        return [f"Group {name} has {only} with {outcome} = {value}: its intervals are approximate."]
    if not counts:
        return []
    names = few_of([f"{name} ({count} with {value})" for name, count, value, _ in counts])
    return [
        f"{len(counts)} groups have fewer than {FEW_EVENTS} rows with {outcome} = 0 or with "
        f"{outcome} = 1: {names}. Their intervals are approximate."
    ]
