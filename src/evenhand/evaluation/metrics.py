"""The fairness metrics, each made from sums of groups.

`selection_rate_by_pulls` and `selection_rate_by_reward` are both called "selection rate" elsewhere.
In a log of pulls an arm is selected when it is chosen: its group's rate is pulls over chances. In a
log of people with a yes or no as the reward, a person is selected when the reward is 1: the rate is
the mean of the reward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from evenhand.evaluation.measures import Means, Measure, Rates, Shares, WeightedShares, less, means
from evenhand.evaluation.sums import GroupSums

BY_PULLS, BY_REWARD = "selection_rate_by_pulls", "selection_rate_by_reward"
SELECTION = (BY_PULLS, BY_REWARD)


class Metric(NamedTuple):
    """A metric: what it is in words, what it needs, and how it is made."""

    words: str
    needs: tuple[str, ...]
    make: Callable[[GroupSums, str], Measure]
    average: bool  # whether the number of all is the average over decisions of those of the groups


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
        "part of the decisions that explored", ("explored",), _explored, True
    ),
    "exploration_cost": Metric(
        "observed reward lost per decision that explored",
        ("n_reward", "n_explored_reward"),
        _exploration_cost,
        False,
    ),
    "missing_reward_rate": Metric(
        "part of the decisions without a reward", ("n_reward",), _missing, True
    ),
}


def words_of(name: str, sums: GroupSums) -> str:
    """A metric in words; which reward is the good one depends on the log."""
    if name == BY_REWARD and sums.has("favourable"):
        return "rate of the favourable outcome (rewards of 0 over rewards)"
    return METRICS[name].words


def possible(sums: GroupSums) -> list[str]:
    """The metrics that these sums are enough for."""
    found = [name for name, metric in METRICS.items() if sums.has(*metric.needs)]
    return [name for name in found if name != BY_PULLS or sums.chances() is not None]
