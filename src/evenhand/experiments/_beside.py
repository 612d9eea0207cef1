"""Beyond the paper: PooledGroupFair and the floor, in the rounds of the paper's own experiments.

The paper's policies are not run again: the figures take their runs from the paper's experiments,
which meet the same worlds, contexts and noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from evenhand.experiments.model import Experiment
from evenhand.policies import PooledGroupFair
from evenhand.simulation.floor import corrected
from evenhand.worlds import TableWorld

SWEEPS = ("T", "arms", "error", "ratio", "c", "d", "delta")
TABLES = ("family-income", "compas", "student", "mortgage")
POOLED, PROPORTIONAL = PooledGroupFair.__name__, "PooledGroupFair, proportional"
# Where the features of groups differ, equal averages do not make equal shares; a price does.
HELD = {PROPORTIONAL: partial(PooledGroupFair, shares="proportional")}
# With many features a round takes long, so there are fewer points and fewer replications: the
# number of those of the paper is divided by this.
FEWER = {"d": 2, "family-income": 5, "student": 2}


def beside(experiments: Sequence[Experiment]) -> list[Experiment]:
    """For every experiment that it makes sense for, one with PooledGroupFair and the floor.

    They are run under the last reading of each, which is PAPER if it is among them, and in the
    first panel: PooledGroupFair does not depend on delta.
    """
    return [_pooled(one) for one in experiments if one.name in (*SWEEPS, *TABLES)]


def _pooled(experiment: Experiment) -> Experiment:
    panels, run, sweep = experiment.panels, experiment.run, experiment.sweep
    if experiment.name in FEWER:
        sweep = sweep._replace(values=sweep.values[3::4])
    return replace(
        experiment,
        name=f"{experiment.name}-beyond",
        title=f"{experiment.title}, with PooledGroupFair",
        policies={POOLED: PooledGroupFair, **(HELD if experiment.is_table else {})},
        replications=max(1, experiment.replications // FEWER.get(experiment.name, 1)),
        sweep=sweep,
        panels=None,
        run=run if panels is None else {**run, panels.parameter: panels.values[0]},
        conventions=experiment.conventions[-1:],
        published=None,
        in_paper="",
        note="",
        chart="share and regret" if experiment.is_table else "share and true regret",
        floor=not experiment.is_table,
        beside=experiment.name,
    )


def shown(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """The runs that the figures of an experiment show: its own, after those that it is beside.

    Of the others, it takes the first panel, and the points and replications that it has itself.
    """
    own: pd.DataFrame = runs[runs["experiment"] == experiment.name]
    if not experiment.beside:
        return own
    others = runs[runs["experiment"] == experiment.beside]
    first = others["panel"] == others["panel"].iloc[0]
    same = (
        others["conventions"].isin(experiment.conventions)
        & others["x"].isin(experiment.sweep.values)
        & (others["replication"] < experiment.replications)
    )
    both = pd.concat([others[first & same], own], ignore_index=True)
    named: pd.DataFrame = both.assign(experiment=experiment.name, panel="")
    return named


def known_share(world: TableWorld, rounds: int = 20_000) -> float:
    """The share of sensitive arms if all coefficients were known and averages equal.

    As the floor of a synthetic world, but with least squares over all rows of an arm for its
    coefficients. Where arms are not exchangeable this need not be proportional, however well a
    policy learns.
    """
    arms, contexts, rewards = world.observations()
    groups = world.groups
    rows = [np.flatnonzero(arms == i) for i in range(world.n_arms)]
    fits = [np.linalg.lstsq(contexts[mine], rewards[mine], rcond=None)[0] for mine in rows]
    reference = groups.index(groups.reference)
    known = corrected(np.array(fits), groups, reference)
    generator = np.random.default_rng(1)
    values = [
        (contexts[mine] @ coefficients)[generator.integers(mine.size, size=rounds)]
        for mine, coefficients in zip(rows, known, strict=True)
    ]
    sensitive = groups.of == groups.index(groups.sensitive)
    return float(sensitive[np.argmax(values, axis=0)].mean())
