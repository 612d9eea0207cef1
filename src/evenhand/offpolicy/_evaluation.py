"""What another policy would have earned, from a log with propensities, overall and per group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand import _checks
from evenhand._checks import Array, numbers
from evenhand.errors import InputError, setting
from evenhand.fairness.report import LEAST
from evenhand.offpolicy._correction import Correction, correction
from evenhand.offpolicy._estimators import ESTIMATORS, WeightedRows, cross_fitted
from evenhand.offpolicy._gain import gains
from evenhand.offpolicy._intervals import INTERVALS
from evenhand.offpolicy._overlap import Overlap, overlap
from evenhand.offpolicy._read_logs import later, read_own
from evenhand.offpolicy._report_table import COLUMNS, EvaluationSettings, shares, span, table
from evenhand.offpolicy._seen_warning import warn_if_seen
from evenhand.offpolicy._sentences import warnings
from evenhand.offpolicy._targets import Target, probabilities
from evenhand.offpolicy.logged import Logged
from evenhand.offpolicy.report import ValueReport

OBSERVED, CORRECTED = "observed", "corrected"


def evaluate(
    log: Logged | str | Path | pd.DataFrame,
    target: Target,
    *,
    after: int | None = None,
    bias: Any = None,
    estimators: Sequence[str] | None = None,
    interval: str = "normal",
    level: float = 0.95,
    least: int = LEAST,
    predictions: ArrayLike | None = None,
    folds: int = 5,
    ridge: float = 1.0,
    reward_range: tuple[float, float] | None = None,
    largest_weight: float | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> ValueReport:
    """What the target policy would have earned in the rounds of a log.

    Args:
        log: decisions with propensities. Rows without a reward are left out, and counted. A log
            that evenhand wrote can be given as its path, or as the frame that `read_log` returned.
        target: a policy with a method `propensities`; or probabilities (rows, arms); or the arm
            chosen in each row; or a function from the log's contexts to one of these two; or
            "uniform" for all available arms equally often. A policy must not have learned from the
            same rows: `evenhand.errors.SeenWarning` warns if it has, or may have.
        after: only decisions after this round, of a log that is given as its path or frame. Give 0
            if the policy has seen none of the log; then there is no warning that it may have.
        bias: a `BiasReport`, or a vector or number for each group. Then there are also values in
            corrected reward: the reward minus the bias of the chosen arm's group at its context.
        estimators: of "ips", "snips" and "dr"; all that the log allows unless given.
        interval: "normal", by the influence of rows; "bootstrap", for skewed ones; or "bernstein",
            which holds for any number of rows and is wide.
        level: of the intervals.
        least: a smaller effective number of rows is called weak overlap.
        predictions: of the reward of every row and arm, (rows, arms), for "dr", by a model that has
            not seen the log. Unless given, a ridge regression per arm is cross-fitted.
        folds: of the cross-fitting.
        ridge: the penalty of the regressions, in rows; features are in standard deviations.
        reward_range: the smallest and largest possible observed reward; "bernstein" needs it.
        largest_weight: the largest possible target over propensity; "bernstein" needs it, unless
            the log has `all_propensities`.
        resamples: of the bootstrap.
        seed: of the folds and the bootstrap.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> rng = np.random.default_rng(1)
        >>> arms = rng.integers(2, size=1000)
        >>> rewards = rng.random(1000) < np.array([0.3, 0.6])[arms]
        >>> log = eh.offpolicy.Logged(arms, rewards, np.full(1000, 0.5), ["F", "M"])
        >>> report = eh.offpolicy.evaluate(log, np.tile([0.2, 0.8], (1000, 1)))
        >>> report.overall.loc[("observed", "dr"), ["estimate", "low", "high"]].round(2).tolist()
        [0.52, 0.49, 0.56]
    """
    if isinstance(log, (str, Path)):
        log = read_own(log, after)
    elif isinstance(log, pd.DataFrame):
        log = Logged.from_log(later(log, after))
    if not isinstance(log, Logged):
        raise InputError(
            f"{setting('log')} is a {type(log).__name__}; allowed is a log that evenhand wrote, or "
            "Logged, such as Logged.from_frame(frame, groups)"
        )
    chances = probabilities(target, log)
    warn_if_seen(target, log, after)
    has_reward = ~np.isnan(log.rewards)
    if has_reward.sum() < 2:
        raise InputError(
            f"{setting('rewards')} has {has_reward.sum()} values; allowed are at least two"
        )
    rewarded = log.rows(has_reward)
    weights = chances[has_reward][np.arange(rewarded.n), rewarded.arms] / rewarded.propensities
    settings = EvaluationSettings(
        _which(estimators, log, predictions),
        _checks.one_of("interval", interval, INTERVALS),
        _checks.number("level", level, 0.0, 1.0, open_ends=True),
        _checks.whole("least", least, 1),
        _checks.whole("resamples", resamples, 100),
        _checks.whole("seed", seed, 0, _checks.LARGEST_SEED),
    )
    if settings.interval == "bernstein":
        bounds = _bounds(rewarded, chances[has_reward], weights, reward_range, largest_weight)
        settings = settings._replace(rewards=bounds[0], most=bounds[1])
    folds = _checks.whole("folds", folds, 2)
    ridge = _checks.number("ridge", ridge, 0.0, np.inf, open_ends=True)
    given = None
    if predictions is not None:
        given = numbers("predictions", predictions, (log.n, log.groups.n_arms))[has_reward]
    kinds = {OBSERVED: Correction(np.zeros(rewarded.n), {})}
    if bias is not None:
        kinds[CORRECTED] = correction(bias, rewarded)
    lines, gained = [], []
    for kind, corrected in kinds.items():
        rewards = rewarded.rewards - np.nan_to_num(corrected.bias)
        predicted = None
        if "dr" in settings.estimators:
            if given is None:
                predicted = cross_fitted(rewarded, rewards, folds, ridge, seed)
            else:  # of the observed reward
                predicted = given - _bias_of_arms(corrected, rewarded)
            if settings.interval == "bernstein":  # the bound needs predictions in the same range
                predicted = np.clip(predicted, *span(corrected, settings))
        rows = WeightedRows(rewarded, chances[has_reward], weights, rewards, predicted)
        lines += table(kind, rows, corrected, settings)
        gained += gains(kind, rows, corrected, settings)
    lines += shares(log, chances, settings)
    overlaps = [
        overlap(rewarded, chances[has_reward], weights, g, settings.least)
        for g in (None, *range(len(log.names)))
    ]
    return _report(lines, gained, overlaps, _missing(log), settings.level, settings.interval)


def _report(
    lines: Sequence[Any],
    gained: Sequence[Any],
    overlaps: Sequence[Overlap],
    missing: pd.DataFrame,
    level: float,
    interval: str,
) -> ValueReport:
    """Put a report together.

    Args:
        lines: rows of `COLUMNS`.
        gained: also rows of `COLUMNS`, of target minus log.
        overlaps: of everything, then of each group.
        missing: by group, the part of rows that are "lost", without a reward, and "overridden".
        level: of the intervals.
        interval: their kind.
    """
    table, gain_table = (
        pd.DataFrame(list(rows), columns=list(COLUMNS)) for rows in (lines, gained)
    )
    return ValueReport(
        groups=tuple(str(name) for name in missing.index),
        level=level,
        interval=interval,
        overlap=pd.DataFrame(overlaps),
        warnings=tuple(warnings(table, overlaps, missing)),
        _table=table,
        _gain=gain_table,
    )


def _missing(log: Logged) -> pd.DataFrame:
    """The share of each group's rows without a reward, and of those that a human overrode."""
    count = np.bincount(log.of, minlength=len(log.names))
    overridden = np.zeros(log.n, dtype=np.bool_) if log.overridden is None else log.overridden
    rows = {"lost": np.isnan(log.rewards) & ~overridden, "overridden": overridden}
    parts = {
        name: np.bincount(log.of, which, len(log.names)) / np.maximum(count, 1)
        for name, which in rows.items()
    }
    return pd.DataFrame(parts, index=list(log.names))


def _which(
    given: Sequence[str] | None, log: Logged, predictions: ArrayLike | None
) -> tuple[str, ...]:
    no_model = log.contexts is not None and log.contexts.ndim == 2 and not log.shared
    blocked = no_model and predictions is None
    if given is None:
        return tuple(name for name in ESTIMATORS if name != "dr" or not blocked)
    names = [given] if isinstance(given, str) else list(given)
    for name in names:
        _checks.one_of("estimators", name, ESTIMATORS)
    if "dr" in names and blocked:
        raise InputError(
            f"{setting('estimators')} has 'dr', but contexts are of chosen arms only; allowed are "
            "'ips' and 'snips', or give predictions"
        )
    return tuple(names)


def _bounds(
    log: Logged, target: Any, weights: Any, rewards: Any, most: float | None
) -> tuple[tuple[float, float], float]:
    if rewards is None:
        raise InputError(
            f"{setting('reward_range')} is not given; {setting('interval', 'bernstein')} needs "
            "(least, most)"
        )
    low, high = (float(end) for end in rewards)
    if not (low < high and low <= log.rewards.min() and high >= log.rewards.max()):
        raise InputError(
            f"{setting('reward_range')} is ({low:g}, {high:g}); allowed is a range that holds all "
            f"rewards, {log.rewards.min():g} to {log.rewards.max():g}"
        )
    if most is None:
        if log.all_propensities is None:
            raise InputError(
                f"{setting('largest_weight')} is not given; {setting('interval', 'bernstein')} "
                "needs it, or all_propensities"
            )
        possible = log.all_propensities > 0.0
        most = float(np.max(target[possible] / log.all_propensities[possible]))
    if most < weights.max():
        raise InputError(
            f"{setting('largest_weight')} is {most:g}; allowed is at least {weights.max():g}, the "
            "largest in the log"
        )
    return (low, high), most


def _bias_of_arms(corrected: Correction, log: Logged) -> Array:
    """The mean bias of each arm's group: predictions need not be exact for "dr" to be right."""
    total = np.bincount(log.of, np.nan_to_num(corrected.bias), len(log.names))
    count = np.bincount(log.of, minlength=len(log.names))
    means: Array = total / np.maximum(count, 1)
    return means[log.groups.of] if log.members is None else means[log.members]
