"""The rows of an off-policy report, one for each number."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenhand._checks import Array
from evenhand.fairness._group_metrics import INSUFFICIENT, SUFFICIENT, UNKNOWN
from evenhand.fairness.intervals import proportion
from evenhand.offpolicy._correction import Correction
from evenhand.offpolicy._estimators import (
    CONTRIBUTION,
    LOGGED,
    SHARE,
    VALUE,
    WITHIN,
    RatioTerms,
    WeightedRows,
    effective,
    influence,
    terms,
)
from evenhand.offpolicy._intervals import Reach, bernstein, bootstrap, normal, widths
from evenhand.offpolicy._overlap import WEAK, overlap, skewed
from evenhand.offpolicy.logged import Logged

ALL = "all"
FEW_DECIDE = "a few rows dominate: too skewed for a normal interval; use a bootstrap interval"
NOTHING = Reach(np.nan, np.nan, np.nan, np.nan)
COLUMNS = (
    "reward",
    "estimator",
    "quantity",
    "group",
    "estimate",
    "standard_error",
    "low",
    "high",
    "n",
    "effective_n",
    "evidence",
    "why",
)


class EvaluationSettings(NamedTuple):
    """The caller's choices."""

    estimators: tuple[str, ...]
    interval: str
    level: float
    least: int
    resamples: int
    seed: int
    rewards: tuple[float, float] = (-np.inf, np.inf)
    most: float = np.inf


def table(
    kind: str, rows: WeightedRows, corrected: Correction, settings: EvaluationSettings
) -> list[Any]:
    """The values of one kind of reward: overall, by groups and within them."""
    lines: list[Any] = []
    problems = problems_of(rows, settings)
    weights = {True: np.ones(rows.log.n), False: rows.weights}
    of_bias = {own: _unsure(w, rows.log, corrected, settings.level) for own, w in weights.items()}
    for name in (*settings.estimators, LOGGED):
        unsure = of_bias[name == LOGGED]
        for quantity, group in quantities(rows):
            parts = terms(name, quantity, group, rows)
            line = _line(name, quantity, group, rows, parts, corrected, unsure, settings)
            judged = _judged(name, line, parts, problems[group], settings)
            lines.append((kind, name, quantity, name_of(rows.log, group), *judged))
    return lines


def quantities(rows: WeightedRows) -> list[tuple[str, int | None]]:
    """The quantities of a report, each with its group; None is overall."""
    groups = range(len(rows.log.names))
    return [(VALUE, None), *((quantity, g) for quantity in (CONTRIBUTION, WITHIN) for g in groups)]


def problems_of(rows: WeightedRows, settings: EvaluationSettings) -> dict[int | None, str]:
    """What is wrong with the overlap, overall and in each group."""
    return {
        g: overlap(rows.log, rows.target, rows.weights, g, settings.least).why
        for g in (None, *range(len(rows.log.names)))
    }


def shares(log: Logged, target: Array, settings: EvaluationSettings) -> list[Any]:
    """The share of every group under the target, and under the logging policy.

    The first needs no weights: it is the mean of the target's probabilities, and only the contexts
    of the log are random.
    """
    lines: list[Any] = []
    enough = log.n >= settings.least
    why = "" if enough else f"n is {log.n}, less than {settings.least}"
    evidence = SUFFICIENT if enough else INSUFFICIENT
    for g, name in enumerate(log.names):
        chance = np.sum(np.where(log.inside(g), target, 0.0), axis=1)
        ones = np.ones(log.n)
        reach = normal(RatioTerms(chance, ones, ones), settings.level)
        ends = max(reach.low, 0.0), min(reach.high, 1.0)
        numbers = reach.estimate, reach.error, *ends, log.n, float(log.n)
        lines.append(("", "target", SHARE, name, *numbers, evidence, why))
        rate, low, high = (
            float(end) for end in proportion((log.of == g).sum(), log.n, settings.level)
        )
        error = float(np.sqrt(rate * (1.0 - rate) / log.n))
        numbers = rate, error, low, high, log.n, float(log.n)
        lines.append(("", LOGGED, SHARE, name, *numbers, evidence, why))
    return lines


def _line(
    name: str,
    quantity: str,
    group: int | None,
    rows: WeightedRows,
    parts: RatioTerms,
    corrected: Correction,
    unsure: Array,
    settings: EvaluationSettings,
) -> tuple[Reach, str]:
    """A number with its interval, or why there is none."""
    why = no_number(name, group, rows, parts, corrected)
    if why:
        return NOTHING, why
    bias_half_width = float(unsure.sum() if group is None else unsure[group]) / parts.b.mean()
    return widened(reach_of(name, quantity, parts, corrected, settings), bias_half_width)


def no_number(
    name: str, group: int | None, rows: WeightedRows, parts: RatioTerms, corrected: Correction
) -> str:
    """Why there is no number; empty if there is one."""
    for g, why in corrected.unknown.items():
        if group in (None, g):
            return f"the bias of group {rows.log.names[g]} is {why}"
    if not parts.b.sum() > 0.0:
        if name in (LOGGED, "snips"):
            return "the log has no decision there"
        return "the target never chooses it"
    return ""


def widened(reach: Reach, bias_half_width: float) -> tuple[Reach, str]:
    """An interval with what the uncertainty of the bias adds to it."""
    if np.isnan(bias_half_width):
        return NOTHING, "the bias is not identified at the contexts that the target would meet"
    return reach._replace(low=reach.low - bias_half_width, high=reach.high + bias_half_width), ""


def reach_of(
    name: str, quantity: str, parts: RatioTerms, corrected: Correction, settings: EvaluationSettings
) -> Reach:
    """An estimate with an interval of the chosen kind."""
    if settings.interval == "bootstrap":
        return bootstrap(parts, settings.level, settings.resamples, settings.seed)
    if settings.interval == "bernstein":
        own, most = ("snips", 1.0) if name == LOGGED else (name, settings.most)
        ends = widths(own, quantity, span(corrected, settings), most)
        return bernstein(parts, settings.level, *ends)
    return normal(parts, settings.level)


def span(corrected: Correction, settings: EvaluationSettings) -> tuple[float, float]:
    """The range of rewards minus their bias."""
    low, high = settings.rewards
    bias = np.nan_to_num(corrected.bias)
    return low - float(bias.max()), high - float(bias.min())


def _unsure(weights: Array, log: Logged, corrected: Correction, level: float) -> Array:
    """What the uncertainty of each group's bias adds to both ends, per round.

    Half-widths at the same level are added: that of the value and those of all groups' biases. For
    jointly normal errors that is enough however they are correlated, as they are if the bias is
    learned from the same log.
    """
    contexts = log.chosen_contexts
    return np.array(
        [
            0.0
            if contexts is None
            else corrected.half_width(g, group, (weights * (log.of == g)) @ contexts / log.n, level)
            for g, group in enumerate(log.names)
        ]
    )


def _judged(
    name: str,
    line: tuple[Reach, str],
    parts: RatioTerms,
    problem: str,
    settings: EvaluationSettings,
) -> tuple[Any, ...]:
    reach, why = line
    n, worth = int((parts.weights > 0.0).sum()), effective(parts.weights)
    if why or np.isnan(reach.estimate):
        return *reach, n, worth, UNKNOWN, why
    if name == LOGGED:
        few = n < settings.least
        words = f"n is {n}, less than {settings.least}" if few else ""
        return *reach, n, worth, INSUFFICIENT if few else SUFFICIENT, words
    normally = settings.interval == "normal"
    if not problem and normally and skewed(influence(parts, reach.estimate)):
        problem = FEW_DECIDE
    return *reach, n, worth, WEAK if problem else SUFFICIENT, problem


def name_of(log: Logged, group: int | None) -> str:
    """The name of a group, or "all"."""
    return ALL if group is None else log.names[group]
