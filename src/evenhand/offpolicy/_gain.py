"""How much more the target would have earned than the log did, from the same rows.

Both are estimated from one log, so their errors are correlated: a lucky round raises both. The
interval of the difference comes from the difference of each row's influences on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand._checks import Array
from evenhand.fairness._group_metrics import INSUFFICIENT, SUFFICIENT, UNKNOWN
from evenhand.offpolicy._correction import Correction
from evenhand.offpolicy._estimators import LOGGED, RatioTerms, WeightedRows, effective, terms
from evenhand.offpolicy._intervals import Reach, bootstrap, estimate_and_influence, normal
from evenhand.offpolicy._overlap import WEAK, skewed
from evenhand.offpolicy._report_table import (
    FEW_DECIDE,
    NOTHING,
    EvaluationSettings,
    name_of,
    no_number,
    problems_of,
    quantities,
    reach_of,
    widened,
)


def gains(
    kind: str, rows: WeightedRows, corrected: Correction, settings: EvaluationSettings
) -> list[Any]:
    """Target minus log, for one kind of reward: overall, by groups and within them."""
    lines: list[Any] = []
    problems = problems_of(rows, settings)
    for name in settings.estimators:
        for quantity, group in quantities(rows):
            target, logged = (
                terms(estimator, quantity, group, rows) for estimator in (name, LOGGED)
            )
            line = _line(name, quantity, group, rows, (target, logged), corrected, settings)
            judged = _judged(line, target, logged, problems[group], settings)
            lines.append((kind, name, quantity, name_of(rows.log, group), *judged))
    return lines


def _line(
    name: str,
    quantity: str,
    group: int | None,
    rows: WeightedRows,
    pair: tuple[RatioTerms, RatioTerms],
    corrected: Correction,
    settings: EvaluationSettings,
) -> tuple[Reach, str]:
    for estimator, parts in zip((name, LOGGED), pair, strict=True):
        why = no_number(estimator, group, rows, parts, corrected)
        if why:
            return NOTHING, why
    bias_half_width = _unsure(rows, group, pair, corrected, settings.level)
    return widened(_reach(name, quantity, pair, corrected, settings), bias_half_width)


def _reach(
    name: str,
    quantity: str,
    pair: tuple[RatioTerms, RatioTerms],
    corrected: Correction,
    settings: EvaluationSettings,
) -> Reach:
    target, logged = pair
    if settings.interval == "bootstrap":
        return bootstrap(target, settings.level, settings.resamples, settings.seed, less=logged)
    plain = normal(target, settings.level, less=logged)
    if settings.interval == "normal":
        return plain
    # Bernstein: each of the two intervals fails half as often, so their difference holds.
    half = settings._replace(level=(1.0 + settings.level) / 2.0)
    more, less = (
        reach_of(estimator, quantity, parts, corrected, half)
        for estimator, parts in zip((name, LOGGED), pair, strict=True)
    )
    return plain._replace(low=more.low - less.high, high=more.high - less.low)


def _unsure(
    rows: WeightedRows,
    group: int | None,
    pair: tuple[RatioTerms, RatioTerms],
    corrected: Correction,
    level: float,
) -> float:
    """What the uncertainty of the bias adds: its error where target and log differ in contexts.

    The part of a group's bias that both have in common cancels in their difference.
    """
    contexts, log = rows.log.chosen_contexts, rows.log
    if contexts is None:
        return 0.0
    # A bias that is off by delta . x changes the target's value by the mean of w delta . x and the
    # log's by that of delta . x: what remains is delta at the weighted difference of contexts.
    weights: Array = rows.weights / pair[0].b.mean() - 1.0 / pair[1].b.mean()
    return sum(
        corrected.half_width(g, name, (weights * (log.of == g)) @ contexts / log.n, level)
        for g, name in enumerate(log.names)
        if group in (None, g)
    )


def _judged(
    line: tuple[Reach, str],
    target: RatioTerms,
    logged: RatioTerms,
    problem: str,
    settings: EvaluationSettings,
) -> tuple[Any, ...]:
    reach, why = line
    n = int(np.sum((target.weights > 0.0) | (logged.weights > 0.0)))
    worth = min(effective(target.weights), effective(logged.weights))
    if why or np.isnan(reach.estimate):
        return *reach, n, worth, UNKNOWN, why
    n_logged = int(np.sum(logged.weights > 0.0))
    if not problem and n_logged < settings.least:
        return *reach, n, worth, INSUFFICIENT, f"n is {n_logged}, less than {settings.least}"
    if not problem and settings.interval == "normal":
        _, parts = estimate_and_influence(target, logged)
        # If the target is the logging policy, all that differs is rounding error.
        rounding = 1e-9 * float(np.abs(target.a).max())
        if float(np.abs(parts).max()) > rounding and skewed(parts):
            problem = FEW_DECIDE
    return *reach, n, worth, WEAK if problem else SUFFICIENT, problem
