"""The results of a simulation: a row per run, and tables of groups, arms and rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.groups import Groups
from evenhand.metrics import summarise
from evenhand.simulation._compiled_rounds import EXPLORED, PERCEIVED, TRACE, TRUE
from evenhand.simulation._replications import Part, read_traces

KEY = ("policy", "world", "replication")
METRICS = ("share", "perceived_regret", "true_regret", "explored")


@dataclass(frozen=True, repr=False)
class Simulation:
    """The result of `simulate`.

    `runs` has a row per policy, world and replication: the `share` of pulls that went to the
    sensitive group (missing if no group is sensitive), `perceived_regret` and `true_regret` per
    round, and the share of rounds that `explored`. `groups` and `arms` have the pulls, and `trace`
    has a row per round if traces were kept.

    Example:
        >>> import evenhand as eh
        >>> world = eh.SyntheticWorld(n_arms=4, n_sensitive=2)
        >>> result = eh.simulate([eh.UniformRandom], world, horizon=50, replications=4, seed=1)
        >>> result
        Simulation(UniformRandom: 4 runs of 50 rounds)
        >>> len(result.runs), len(result.groups), len(result.arms), len(result.trace)
        (4, 8, 16, 0)
    """

    horizon: int
    parts: Sequence[Part]
    groups_of: dict[str, Groups]
    folder: Path | None = None  # of traces

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row per run, with means over its rounds."""
        totals = np.concatenate([part.runs.totals for part in self.parts]) / self.horizon
        return self._keys([len(part.replications) for part in self.parts]).assign(
            horizon=self.horizon,
            share=np.concatenate([self._share(part) for part in self.parts]),
            perceived_regret=totals[:, PERCEIVED],
            true_regret=totals[:, TRUE],
            explored=totals[:, EXPLORED],
        )

    @cached_property
    def groups(self) -> pd.DataFrame:
        """A row per run and group: its pulls and its share of them."""

        def columns(part: Part) -> dict[str, Any]:
            groups, number = self.groups_of[part.world], len(part.replications)
            members = groups.of[:, None] == np.arange(len(groups))
            pulls = (part.runs.pulls @ members).ravel()
            return {
                "group": np.tile(np.array(groups.names, dtype=object), number),
                "pulls": pulls,
                "share": pulls / self.horizon,
                "proportional_share": np.tile(groups.sizes / groups.n_arms, number),
            }

        return self._table(columns)

    @cached_property
    def arms(self) -> pd.DataFrame:
        """A row per run and arm: its group and its pulls."""

        def columns(part: Part) -> dict[str, Any]:
            groups, number = self.groups_of[part.world], len(part.replications)
            return {
                "arm": np.tile(np.arange(groups.n_arms), number),
                "group": np.tile(np.array(groups.labels, dtype=object), number),
                "pulls": part.runs.pulls.ravel(),
            }

        return self._table(columns)

    @cached_property
    def trace(self) -> pd.DataFrame:
        """A row per run and round; empty unless traces were kept, and read from files if written.

        Traces in files may be larger than memory: `pandas.read_parquet(folder, columns=...,
        filters=...)` or DuckDB can read parts of them.
        """
        if self.folder is not None:
            return read_traces(self.folder)
        if not any(len(part.runs.trace) for part in self.parts):
            return pd.DataFrame(columns=[*KEY, "round", *TRACE])

        def columns(part: Part) -> dict[str, Any]:
            rounds = np.tile(np.arange(1, self.horizon + 1), len(part.replications))
            return {"round": rounds, **dict(zip(TRACE, part.runs.trace.T, strict=True))}

        return self._table(columns).astype({"arm": int, "explored": bool})

    def __repr__(self) -> str:
        policies = ", ".join(dict.fromkeys(part.policy for part in self.parts))
        number = sum(len(part.replications) for part in self.parts)
        return f"Simulation({policies}: {number} runs of {self.horizon} rounds)"

    def summary(self, level: float = 0.95) -> pd.DataFrame:
        """Mean, standard deviation and interval of each metric, by policy and world.

        A metric that is missing in all runs, such as true regret without true rewards, has no row.

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

    def _keys(self, rows: Sequence[int]) -> pd.DataFrame:
        """Policy, world and replication, with this number of rows for each part."""
        counts = list(rows)
        replications = [
            np.repeat(np.array(part.replications), count // len(part.replications))
            for part, count in zip(self.parts, counts, strict=True)
        ]
        names = [(part.policy, part.world) for part in self.parts]
        policies, worlds = (np.array(column, dtype=object) for column in zip(*names, strict=True))
        return pd.DataFrame(
            {
                "policy": np.repeat(policies, counts),
                "world": np.repeat(worlds, counts),
                "replication": np.concatenate(replications),
            }
        )

    def _table(self, columns: Callable[[Part], dict[str, Any]]) -> pd.DataFrame:
        """Columns of every part, after policy, world and replication."""
        tables = [columns(part) for part in self.parts]
        frame = self._keys([len(next(iter(table.values()))) for table in tables])
        for name in tables[0]:
            frame[name] = np.concatenate([table[name] for table in tables])
        return frame

    def _share(self, part: Part) -> NDArray[np.float64]:
        """The share of the sensitive group in every run."""
        groups, pulls = self.groups_of[part.world], part.runs.pulls
        if groups.sensitive is None:
            return np.full(len(pulls), np.nan)
        members = groups.of == groups.index(groups.sensitive)
        shares: NDArray[np.float64] = pulls[:, members].sum(axis=1) / pulls.sum(axis=1)
        return shares
