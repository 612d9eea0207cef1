"""What a simulation gives: a row per run, and tables of groups, arms and rounds behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.groups import Groups
from evenhand.metrics import summarise
from evenhand.simulation.loop import EXPLORED, PERCEIVED, TRACE, TRUE, Run

METRICS = ("share", "perceived_regret", "true_regret", "explored")


class Key(NamedTuple):
    """What tells runs apart."""

    policy: str
    world: str
    replication: int


@dataclass(frozen=True, repr=False)
class Simulation:
    """The outcome of `simulate`.

    `runs` has a row per policy, world and replication: the `share` of pulls that went to the
    sensitive group (missing where no group is sensitive), `perceived_regret` and `true_regret` per
    round, and the part of rounds that `explored`. `groups` and `arms` have the pulls behind it, and
    `trace` a row per round if traces were kept.
    """

    horizon: int
    keys: Sequence[Key]
    outcomes: Sequence[Run]
    groups_of: dict[str, Groups]

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row per run, with means over its rounds."""
        totals = np.array([run.totals for run in self.outcomes]) / self.horizon
        frame = self._keys()
        frame["horizon"] = self.horizon
        frame["share"] = [
            _share(run.pulls, self.groups_of[key.world])
            for key, run in zip(self.keys, self.outcomes, strict=True)
        ]
        frame["perceived_regret"] = totals[:, PERCEIVED]
        frame["true_regret"] = totals[:, TRUE]
        frame["explored"] = totals[:, EXPLORED]
        return frame

    @cached_property
    def groups(self) -> pd.DataFrame:
        """A row per run and group: its pulls and its share of them."""
        rows = []
        for key, run in zip(self.keys, self.outcomes, strict=True):
            groups = self.groups_of[key.world]
            pulls = np.bincount(groups.of, weights=run.pulls, minlength=len(groups))
            for name, size, number in zip(groups.names, groups.sizes, pulls, strict=True):
                rows.append((*key, name, int(number), number / self.horizon, size / groups.n_arms))
        names = [*Key._fields, "group", "pulls", "share", "proportional_share"]
        return pd.DataFrame(rows, columns=names)

    @cached_property
    def arms(self) -> pd.DataFrame:
        """A row per run and arm: its group and its pulls."""
        rows: list[tuple[Any, ...]] = []
        for key, run in zip(self.keys, self.outcomes, strict=True):
            labels = self.groups_of[key.world].labels
            rows += [(*key, arm, labels[arm], int(n)) for arm, n in enumerate(run.pulls)]
        return pd.DataFrame(rows, columns=[*Key._fields, "arm", "group", "pulls"])

    @cached_property
    def trace(self) -> pd.DataFrame:
        """A row per run and round. Empty unless traces were asked for."""
        kept = [(key, run.trace) for key, run in zip(self.keys, self.outcomes, strict=True)]
        if not any(trace.shape[0] for _, trace in kept):
            return pd.DataFrame(columns=[*Key._fields, "round", *TRACE])
        frame = self._keys().loc[np.repeat(np.arange(len(kept)), self.horizon)]
        frame = frame.reset_index(drop=True)
        frame["round"] = np.tile(np.arange(1, self.horizon + 1), len(kept))
        stacked = np.concatenate([trace for _, trace in kept])
        for column, name in enumerate(TRACE):
            frame[name] = stacked[:, column]
        return frame.astype({"arm": int, "explored": bool})

    def __repr__(self) -> str:
        policies = ", ".join(dict.fromkeys(key.policy for key in self.keys))
        return f"Simulation({policies}: {len(self.keys)} runs of {self.horizon} rounds)"

    def summary(self, level: float = 0.95) -> pd.DataFrame:
        """Mean, standard deviation and interval of each metric, by policy and world.

        A metric that no run has, such as true regret without true rewards, has no row.

        Example:
            >>> import evenhand as eh
            >>> world = eh.SyntheticWorld(n_arms=4, n_sensitive=2)
            >>> runs = eh.simulate([eh.UniformRandom], world, horizon=50, replications=4, seed=1)
            >>> list(runs.summary().columns)
            ['policy', 'world', 'metric', 'n', 'mean', 'sd', 'low', 'high']
        """
        long = self.runs.melt(
            id_vars=["policy", "world"], value_vars=list(METRICS), var_name="metric"
        )
        return summarise(long.dropna(subset="value"), ["policy", "world", "metric"], "value", level)

    def _keys(self) -> pd.DataFrame:
        return pd.DataFrame(list(self.keys), columns=list(Key._fields))


def _share(pulls: NDArray[np.int64], groups: Groups) -> float:
    if groups.sensitive is None:
        return float("nan")
    return float(pulls[groups.of == groups.index(groups.sensitive)].sum() / pulls.sum())
