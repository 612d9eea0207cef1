"""What to know before using the numbers of a report, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenhand._prose import quoted
from evenhand.bias._contexts import WEAK_OVERLAP, WEAK_TOGETHER
from evenhand.bias._contrasts import few
from evenhand.bias._fit import ARMS

if TYPE_CHECKING:
    from evenhand.bias.report import BiasReport


PLURAL = {"has": "have", "was": "were"}


def cautions(report: BiasReport) -> list[str]:
    """Groups and features without a number, weak overlap, weightings that disagree."""
    return [
        *_blocked(report),
        *_collinear(report),
        *_overlap(report),
        *_together(report),
        *_far_arms(report),
        *_weighting(report),
        *_disagreements(report),
        *_averages(report),
        *_digits(report),
    ]


def _blocked(report: BiasReport) -> list[str]:
    sentences = []
    bias = report._terms.bias
    reasons = dict(zip(report.groups, report._fit.blocked, strict=True))
    many = [name for name, reason in reasons.items() if reason and name != report.reference]
    if len(many) > 1:  # a sentence for each of many tiny groups would hide the others
        then = ""
        if report.reference is None and report._fit.usable.any():
            then = ". They are left out of the mean that the others are compared with"
        why = _once([(name, reasons[name]) for name in many])
        sentences.append(f"The {bias} of {len(many)} groups is not identified: {why}{then}.")
    for name, reason in reasons.items():
        if not reason or (len(many) > 1 and name in many):
            continue
        then = f"the {bias} of group {name} is not identified"
        if report.reference == name:
            then = f"nothing can be compared with it, and no {bias} is identified"
        elif report.reference is None and report._fit.usable.any():
            then += ", and it is left out of the mean that the others are compared with"
        sentences.append(f"{_start(reason)}: {then}.")
    if report._fit.usable.sum() == 1 and report.reference is None:
        alone = report.groups[int(np.argmax(report._fit.usable))]
        sentences.append(f"Group {alone} has no other group to be compared with.")
    return sentences


def _once(reasons: list[tuple[str, str]]) -> str:
    """Reasons that several groups share, each said once with the names of these groups.

    Example:
        >>> from evenhand.bias._cautions import _once
        >>> _once([("F", "group F was never chosen"), ("M", "group M was never chosen")])
        'groups F, M were never chosen'
    """
    shared: dict[str, list[str]] = {}
    for name, reason in reasons:
        own = reason.removeprefix(f"group {name} ")
        # How many observations each has is in the tables.
        key = own.split(": ")[0] if own != reason else reason
        shared.setdefault(key, []).append(name)
    sentences = []
    for predicate, names in shared.items():
        if len(names) == 1:
            sentences.append(dict(reasons)[names[0]])
            continue
        verb, _, rest = predicate.partition(" ")
        sentences.append(f"groups {few(names)} {PLURAL.get(verb, verb)} {rest}")
    return few(sentences)


def _collinear(report: BiasReport) -> list[str]:
    """A sentence for each set of collinear features, with the groups or arms that have it."""
    fit, where = report._fit, dict[str, list[int]]()
    for row in range(len(fit.labels)):
        if fit.blocked[fit.of[row]] or fit.designs.rank[row] == len(report.features):
            continue
        for k in np.flatnonzero(fit.designs.absent[row]):
            finding = f"{report.features[k]} is always 0: the bias on it"
            where.setdefault(finding, []).append(row)
        for linked in fit.designs.sets(row):
            names = few([report.features[k] for k in linked])
            where.setdefault(f"{names} are collinear: the bias on each", []).append(row)
    return [
        f"In {_listed(rows, report)} {finding} is not identified."
        for finding, rows in where.items()
    ]


def _overlap(report: BiasReport) -> list[str]:
    sentences = []
    for g, weak in enumerate(report._weak):
        if weak and report._fit.usable[g]:
            names = few(
                [
                    f"{quoted(report.features[k])} ({_distance(far)} from group "
                    f"{quoted(report.groups[other])})"
                    for k, (other, far) in weak.items()
                ]
            )
            sentences.append(
                f"The average {report._terms.contexts} of group {quoted(report.groups[g])} are "
                "more than one standard "
                f"deviation away from another group's in {names}: a comparison there rests on the "
                "linear model more than on data."
            )
    return sentences


def _distance(far: float) -> str:
    """In standard deviations; where neither group varies there are none."""
    return f"{abs(far):.1f}" if np.isfinite(far) else "without any overlap"


def _together(report: BiasReport) -> list[str]:
    """Pairs of groups that overlap feature by feature, and not in all of them at once."""
    apart, sentences = report._contexts.together, []
    if apart is None:
        return []
    for a, b in np.argwhere(np.triu(apart > WEAK_TOGETHER)):
        single = b in {other for other, _ in report._weak[a].values()}
        single |= a in {other for other, _ in report._weak[b].values()}
        if not single and report._fit.usable[[a, b]].all():
            sentences.append(
                f"The {report._terms.contexts} of groups {report.groups[a]} and "
                f"{report.groups[b]} have little in "
                f"common, taking all features together ({apart[a, b]:.1f} standard deviations "
                "apart): a comparison rests on the linear model more than on data."
            )
    return sentences


def _far_arms(report: BiasReport) -> list[str]:
    """Arms whose coefficients are used at contexts that they hardly had."""
    far = report._contexts.arms
    if far is None or report.weighting != ARMS:
        return []
    where = [
        f"{report._fit.labels[row]} ({report.features[int(np.argmax(far[row]))]}, "
        f"{far[row].max():.1f})"
        for row in np.flatnonzero((far > WEAK_OVERLAP).any(axis=1))
        if report._fit.usable[report._fit.of[row]]
    ]
    if not where:
        return []
    return [
        "Some arms were chosen at contexts that are on average more than one standard deviation "
        f"away from everyone's: {few(where, most=3)}. Elsewhere they rest on the linear model more "
        "than on data."
    ]


def _weighting(report: BiasReport) -> list[str]:
    if not report._instead:
        return []
    return [
        f"Arms count by how often they were chosen, because {report._instead}. This is right if "
        "the arms of a group are alike, or were chosen equally often."
    ]


def _disagreements(report: BiasReport) -> list[str]:
    """Where the other weighting disagrees, by more than chance and more than the error."""
    between, bias = report._between, report._by_feature
    if between is None:
        return []
    sentences, d = [], len(report.features)
    by_arms = report.weighting == ARMS
    matters = np.abs(between.estimate) > bias.error  # NaN where there is nothing to compare
    for g, name in enumerate(report.groups):
        rows = [g * d + k for k in range(d) if report._disagrees[g * d + k] is True]
        rows = [row for row in rows if matters[row]]
        if not rows or _mirrored(report, g):
            continue
        apart = between.estimate[rows]
        arms = bias.estimate[rows] - (0.0 if by_arms else apart)
        numbers = [
            f"{report.features[row % d]} ({by_arm:.3g}, and {by_arm + more:.3g})"
            for row, by_arm, more in zip(rows, arms, apart, strict=True)
        ]
        sentences.append(
            f"For group {name} it matters whether arms count equally or by how often they were "
            f"chosen: {few(numbers, most=3)}. "
            + (
                "Here they count equally, as equal averages require."
                if by_arms
                else "Here they count by how often they were chosen; equal averages require that "
                'they count equally (weighting="arms").'
            )
        )
    return sentences


def _mirrored(report: BiasReport, group: int) -> bool:
    """Whether a group only repeats the first: each of two groups mirrors the other."""
    return report.reference is None and len(report.groups) == 2 and group == 1


def _averages(report: BiasReport) -> list[str]:
    if report._contexts.means is not None:
        return []
    total = (
        "" if report.average is not None else " no totals and contributions (give average=), and"
    )
    return [f"The average contexts are not known, so there are{total} no checks of overlap."]


def _digits(report: BiasReport) -> list[str]:
    if report._precision <= 1e-11:
        return []
    return [
        f"The sums are exact only to {report._precision:.0e}, as they are after a large ridge was "
        "removed: features that are nearly collinear count as not identified."
    ]


def _listed(rows: list[int], report: BiasReport) -> str:
    """The names of regressions; a group's name stands for all of its arms."""
    fit, labels = report._fit, list[str]()
    for group, home in enumerate(fit.homes):
        own = np.flatnonzero(fit.of == group)
        inside = [row for row in rows if row in own]
        labels += [home] if len(inside) == len(own) > 0 else [fit.labels[row] for row in inside]
    if labels == list(fit.homes) and len(labels) > 1:
        return "all groups"
    return few(labels, most=3)


def _start(text: str) -> str:
    return text[0].upper() + text[1:]
