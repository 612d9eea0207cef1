"""How well the log covers what the target would do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand._checks import Array
from evenhand.offpolicy._estimators import effective
from evenhand.offpolicy.logged import Logged

WEAK = "weak overlap"

# A single row with more than this share of all weight decides too much.
LARGEST_PART = 0.1
# With more target probability than this on arms that the log could not choose, the log cannot say.
UNSUPPORTED = 0.01
# Weights must average the target's probability. If they are off by more standard errors than this,
# something is missing or wrong; by chance that is one log in 16,000 if weights are not heavy.
ERRORS_OFF = 4.0
# The normal approximation of a mean needs n above this times the squared skewness (Cochran 1977).
SKEWNESS = 25.0


class Overlap(NamedTuple):
    """The weights of all rows, or of those of a group.

    `expected` is the target's probability of the group, and `mean_weight` should be close to it.
    `unsupported` is the target's probability of arms that the logging policy could not choose. If
    its probabilities of all arms are not known, it is that of arms that were never chosen.
    `could_not` is the share of rows with any such probability.
    """

    group: str
    n: int
    effective_n: float
    largest_weight: float
    largest_part: float
    mean_weight: float
    expected: float
    unsupported: float
    could_not: float
    why: str


def overlap(log: Logged, target: Array, weights: Array, group: int | None, least: int) -> Overlap:
    """The overlap overall (group None) or of a group."""
    in_group = log.inside(group)
    inside = np.ones(log.n, bool) if group is None else log.of == group
    if log.all_propensities is not None:
        never = log.all_propensities <= 0.0
    else:
        never = np.broadcast_to(
            np.bincount(log.arms, minlength=log.groups.n_arms) == 0, target.shape
        )
    if log.available is not None:
        never = never | ~log.available
    lost = np.sum(np.where(never & in_group, target, 0.0), axis=1)
    expected, group_weights = np.sum(np.where(in_group, target, 0.0), axis=1), weights * inside
    total, largest = float(group_weights.sum()), float(group_weights.max())
    measured = Overlap(
        group="all" if group is None else log.names[group],
        n=int(inside.sum()),
        effective_n=effective(group_weights),
        largest_weight=largest,
        largest_part=largest / total if total > 0.0 else np.nan,
        mean_weight=float(group_weights.mean()),
        expected=float(expected.mean()),
        unsupported=float(lost.mean()),
        could_not=float((lost > 0.0).mean()),
        why="",
    )
    return measured._replace(why=_why(measured, group_weights, group_weights - expected, least))


def _why(measured: Overlap, group_weights: Array, off: Array, least: int) -> str:
    """What is wrong with the weights, the worst first; empty if the target never chooses the group.

    None of it looks at rewards. A check of rewards would pass logs in which rare rows happen to
    have ordinary rewards, and these are the logs whose intervals are too narrow.
    """
    if measured.expected <= 0.0:
        return ""
    if measured.unsupported > UNSUPPORTED * measured.expected:
        return (
            f"{100.0 * measured.unsupported / measured.expected:.3g} % of the target's "
            "probability here is on arms that the logging policy could not or did not choose"
        )
    if measured.effective_n < least:
        return f"the weights are worth {measured.effective_n:.1f} rows, fewer than {least}"
    if measured.largest_part > LARGEST_PART:
        return f"one row has {100.0 * measured.largest_part:.0f} % of all weight"
    error = float(off.std(ddof=1)) / np.sqrt(len(off))
    if abs(off.mean()) > ERRORS_OFF * error + 1e-9:
        return (
            f"the mean weight is {measured.mean_weight:.3g} and should be {measured.expected:.3g}: "
            "the propensities are wrong, or the log does not cover what the target would do"
        )
    if skewed(group_weights):
        return "a few rows have most of the weight: it is too skewed for this number of rows"
    return ""


def skewed(parts: Array) -> bool:
    """Whether a mean of these is too skewed for a normal interval."""
    centred = parts - parts.mean()
    variance = float(np.mean(centred**2))
    if variance <= 0.0:
        return False
    skewness = float(np.mean(centred**3)) / variance**1.5
    return bool(len(parts) < SKEWNESS * skewness**2)
