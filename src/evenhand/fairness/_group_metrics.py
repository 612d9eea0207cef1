"""The fairness metrics, computed from sums of groups; and whether the evidence is sufficient.

`selection_rate_by_pulls` and `selection_rate_by_reward` are both called "selection rate" elsewhere.
In a log of pulls an arm is selected when it is chosen: its group's rate is pulls over chances. In a
log of people with a yes or no as the reward, a person is selected when the reward is 1: the rate is
the mean of the reward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from evenhand.fairness._clusters import ClusterMeans
from evenhand.fairness._measures import Means, Measure, Rates, Shares, WeightedShares, less, means
from evenhand.fairness.intervals import Ends
from evenhand.fairness.sums import GroupSums

# Metrics whose intervals can allow for clusters.
WITH_CLUSTERS = ("mean_reward", "selection_rate_by_reward")
BY_PULLS, BY_REWARD = "selection_rate_by_pulls", "selection_rate_by_reward"
MISSING = "missing_reward_rate"
SELECTION = (BY_PULLS, BY_REWARD)


class Metric(NamedTuple):
    """A metric: its name in words, the sums that it needs, and how it is computed."""

    words: str
    needs: tuple[str, ...]
    make: Callable[[GroupSums, str], Measure]
    average: bool  # whether the overall number is the average of the groups', over decisions


def _share(sums: GroupSums, method: str) -> Measure:
    return Shares(sums.column("n"), np.ones(len(sums.groups)), method)


def _by_pulls(sums: GroupSums, method: str) -> Measure:
    n, chances = sums.column("n"), sums.chances()
    assert chances is not None
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(chances > 0.0, n.sum() / chances, np.nan)
    return Shares(n, scale, method)


def _by_reward(sums: GroupSums, method: str) -> Measure:
    good = "favourable" if sums.has("favourable") else "positives"
    return Rates(sums.column(good), sums.column("n_reward"), method)


def _mean_reward(sums: GroupSums, method: str) -> Measure:
    if sums.has("positives"):
        return Rates(sums.column("positives"), sums.column("n_reward"), method)
    return _mean("reward")(sums, method)


def _missing(sums: GroupSums, method: str) -> Measure:
    n = sums.column("n")
    return Rates(n - sums.column("n_reward"), n, method)


def _explored(sums: GroupSums, method: str) -> Measure:
    return Rates(sums.column("explored"), sums.column("n"), method)


def _mean(name: str) -> Callable[[GroupSums, str], Measure]:
    def make(sums: GroupSums, method: str) -> Means:  # noqa: ARG001
        return means(*(sums.column(f"{part}_{name}") for part in ("n", "sum", "square")))

    return make


def _exploration_cost(sums: GroupSums, method: str) -> Measure:  # noqa: ARG001
    parts = ("n", "sum", "square")
    every = [sums.column(f"{part}_reward") for part in parts]
    tried = [sums.column(f"{part}_explored_reward") for part in parts]
    usual = [a - b for a, b in zip(every, tried, strict=True)]
    return less(means(*usual), means(*tried))


def _exposure(sums: GroupSums, method: str) -> Measure:
    return WeightedShares(
        sums.column("sum_exposure"),
        sums.column("square_exposure"),
        float(sums.column("n_exposure").sum()),
        method,
    )


METRICS: dict[str, Metric] = {
    "share": Metric("share of the decisions", ("n",), _share, False),
    BY_PULLS: Metric("selection rate by pulls (pulls over chances)", (), _by_pulls, False),
    BY_REWARD: Metric(
        "selection rate by reward (rewards of 1 over rewards)", ("positives",), _by_reward, True
    ),
    "exposure_share": Metric("share of the exposure", ("sum_exposure",), _exposure, False),
    "mean_reward": Metric("mean observed reward", ("n_reward",), _mean_reward, True),
    "mean_true_reward": Metric("mean true reward", ("n_true_reward",), _mean("true_reward"), True),
    "perceived_regret": Metric(
        "perceived regret per decision", ("n_perceived_regret",), _mean("perceived_regret"), True
    ),
    "true_regret": Metric(
        "true regret per decision", ("n_true_regret",), _mean("true_regret"), True
    ),
    "exploration_rate": Metric(
        "fraction of the decisions that explored", ("explored",), _explored, True
    ),
    "exploration_cost": Metric(
        "observed reward lost per decision that explored",
        ("n_reward", "n_explored_reward"),
        _exploration_cost,
        False,
    ),
    MISSING: Metric("fraction of the decisions without a reward", ("n_reward",), _missing, True),
}


# The same in the words of auditors, for whom a reward is an outcome of people.
OUTCOMES = {
    BY_REWARD: "selection rate (outcomes of 1 over all outcomes)",
    "mean_true_reward": "mean true outcome",
    "exploration_cost": "outcome lost per decision that explored",
    MISSING: "fraction of the rows without an outcome",
}


def words_of(name: str, sums: GroupSums, outcome: str = "") -> str:
    """A metric in words; which reward is favourable depends on the log.

    Args:
        name: of the metric.
        sums: what it is computed from.
        outcome: the name of the reward, for readers to whom it is an outcome.
    """
    if name == BY_REWARD and sums.has("favourable"):
        which = "outcomes of 0 over all outcomes" if outcome else "rewards of 0 over rewards"
        return f"rate of the favourable outcome ({which})"
    if outcome and name == "mean_reward":
        return f"mean {outcome}"
    return OUTCOMES.get(name, METRICS[name].words) if outcome else METRICS[name].words


def possible(sums: GroupSums) -> list[str]:
    """The metrics that can be computed from these sums."""
    computable = [name for name, metric in METRICS.items() if sums.has(*metric.needs)]
    return [name for name in computable if name != BY_PULLS or sums.chances() is not None]


SUFFICIENT, INSUFFICIENT, UNKNOWN = "sufficient", "insufficient evidence", "not known"
ORDER = (SUFFICIENT, INSUFFICIENT, UNKNOWN)


class MetricRow(NamedTuple):
    """A number with its interval, how many decisions it rests on, and whether that is enough."""

    estimate: float
    low: float
    high: float
    n: int
    evidence: str
    why: str


def judged(ends: Ends, n: float, least: int, flat: bool = False) -> MetricRow:
    """A number with its evidence.

    Args:
        ends: the number and its interval.
        n: how many decisions it rests on.
        least: fewer than this are not enough.
        flat: whether all values are equal, so that their spread says nothing about their noise.
    """
    estimate, low, high = (float(end) for end in ends)
    if np.isnan(estimate):
        why = "there are no values" if n == 0 else "not defined for these values"
        return MetricRow(np.nan, np.nan, np.nan, int(n), UNKNOWN, why)
    if n < least:
        return MetricRow(
            estimate, low, high, int(n), INSUFFICIENT, f"n is {n:.0f}, less than {least}"
        )
    if np.isnan(low) and np.isnan(high):
        return MetricRow(estimate, low, high, int(n), INSUFFICIENT, "a single cluster")
    if flat:
        why = "all values are equal, so their spread is not known"
        return MetricRow(estimate, low, high, int(n), INSUFFICIENT, why)
    return MetricRow(estimate, low, high, int(n), SUFFICIENT, "")


def rows(measure: Measure, level: float, least: int) -> list[MetricRow]:
    """The numbers of all groups."""
    ends = measure.ends(level)
    return [
        judged(Ends(*(end[g] for end in ends)), measure.n[g], least, is_flat(measure, g))
        for g in range(len(measure.n))
    ]


def noted(row: MetricRow, note: str) -> MetricRow:
    """The number with a note on its interval, if there is one."""
    if not note or row.evidence == UNKNOWN:
        return row
    return row._replace(why=f"{row.why}; {note}" if row.why else note)


def is_flat(measure: Measure, group: int) -> bool:
    """Whether a mean is of equal values."""
    if isinstance(measure, ClusterMeans):
        return not measure.rates and measure.error[group] == 0.0
    return isinstance(measure, Means) and not measure.error[group] > 0.0


def compared(ends: Ends, first: MetricRow, second: MetricRow, names: tuple[str, str]) -> MetricRow:
    """A difference or ratio of two groups: its evidence is that of the worse of them."""
    worst, whose = max(
        ((first, names[0]), (second, names[1])), key=lambda pair: ORDER.index(pair[0].evidence)
    )
    n = min(first.n, second.n)
    estimate, low, high = (float(end) for end in ends)
    if np.isnan(estimate):
        why = f"group {whose}: {worst.why}" if worst.why else "an interval is not above 0"
        return MetricRow(np.nan, np.nan, np.nan, n, UNKNOWN, why)
    why = f"group {whose}: {worst.why}" if worst.why else ""
    return MetricRow(estimate, low, high, n, worst.evidence, why)
