"""Beyond the paper: PooledGroupFair and the floor, in the rounds of the paper's own experiments.

The paper's policies are not run again: the figures take their runs from the paper's experiments,
which meet the same worlds, contexts and noise. Our own claims about PooledGroupFair there are
checked like the paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from evenhand.experiments._claims import FAILS, FAIR, HOLDS, PARTLY, Claim, MeansByPoint, Verdict
from evenhand.experiments.model import Experiment
from evenhand.policies import PooledGroupFair
from evenhand.simulation.floor import FLOOR, corrected
from evenhand.worlds import TableWorld

SWEEPS = ("T", "arms", "error", "ratio", "c", "d", "delta")
TABLES = ("family-income", "compas", "student", "mortgage")
POOLED, PROPORTIONAL = PooledGroupFair.__name__, "PooledGroupFair, proportional"
# Where the features of groups differ, equal averages do not make equal shares; a price does.
HELD = {PROPORTIONAL: partial(PooledGroupFair, shares="proportional")}
# With many features a round takes long, so there are fewer points and fewer replications: the
# paper's number of replications is divided by this.
FEWER = {"d": 2, "family-income": 5, "student": 2}


def beside(experiments: Sequence[Experiment]) -> list[Experiment]:
    """For every experiment where it makes sense, one with PooledGroupFair and the floor.

    They are run under the last reading of each, which is PAPER if it is among them, and in the
    first panel: PooledGroupFair does not depend on delta.
    """
    names = (*SWEEPS, *TABLES)
    return [_pooled(experiment) for experiment in experiments if experiment.name in names]


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
    """The runs that the figures of an experiment show: its own, after those of `beside`.

    Of the latter, only the first panel, and the points and replications that it has itself.
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
    combined = pd.concat([others[first & same], own], ignore_index=True)
    named: pd.DataFrame = combined.assign(experiment=experiment.name, panel="")
    return named


def known_share(world: TableWorld, rounds: int = 20_000) -> float:
    """The share of sensitive arms if all coefficients were known and averages equal.

    Like the floor of a synthetic world, but with least squares over all rows of an arm for its
    coefficients. Where arms are not exchangeable this need not be proportional, however well a
    policy learns.
    """
    arms, contexts, rewards = world.observations()
    groups = world.groups
    rows = [np.flatnonzero(arms == i) for i in range(world.n_arms)]
    fits = [np.linalg.lstsq(contexts[own], rewards[own], rcond=None)[0] for own in rows]
    reference = groups.index(groups.reference)
    known = corrected(np.array(fits), groups, reference)
    generator = np.random.default_rng(1)
    values = [
        (contexts[own] @ coefficients)[generator.integers(own.size, size=rounds)]
        for own, coefficients in zip(rows, known, strict=True)
    ]
    sensitive = groups.of == groups.index(groups.sensitive)
    return float(sensitive[np.argmax(values, axis=0)].mean())


AXES = {"arms": "n", "error": "mu", "ratio": "s"}  # as the paper writes them
NAMES = {
    "family-income": "family income",
    "compas": "COMPAS",
    "student": "grades of students",
    "mortgage": "mortgage applications",
}


def _lower(experiment: str) -> Callable[[MeansByPoint], Verdict]:
    """True regret below that of the paper's policy at every point."""

    def check(m: MeansByPoint) -> Verdict:
        own, fair, floor = (
            m.curve(experiment, policy, "true_regret") for policy in (POOLED, FAIR, FLOOR)
        )
        below = own < fair
        return Verdict(
            _verdict(below),
            f"at {int(below.sum())} of {len(below)} points; from {own.iloc[0]:.2f} to "
            f"{own.iloc[-1]:.2f} a round over the figure, where GroupFairTopInterval has "
            f"{fair.iloc[0]:.2f} to {fair.iloc[-1]:.2f} and the floor {floor.iloc[0]:.2f} to "
            f"{floor.iloc[-1]:.2f}",
        )

    return check


def _proportional(experiment: str) -> Callable[[MeansByPoint], Verdict]:
    """A share within a point of proportional: arms are exchangeable in all of these worlds."""

    def check(m: MeansByPoint) -> Verdict:
        share = m.curve(experiment, POOLED, "share")
        fair = share.index.to_numpy() / 10 if experiment.startswith("ratio") else 0.5
        gap = 100.0 * (share - fair).abs()
        name = experiment.removesuffix("-beyond")
        word = AXES.get(name, name)
        return Verdict(
            _verdict(gap <= 1.0),
            f"at {int((gap <= 1.0).sum())} of {len(gap)} points; the largest distance is "
            f"{gap.max():.1f} points, at {word} = {gap.idxmax():g}, and {gap.iloc[-1]:.1f} at the "
            "end of the figure",
        )

    return check


def _near_the_floor(m: MeansByPoint) -> Verdict:
    own, floor = (m.last("T-beyond", policy, "true_regret") for policy in (POOLED, FLOOR))
    return Verdict(
        HOLDS if own <= 2.0 * floor else FAILS,
        f"{own:.3f} a round at T = 1000, where the floor is {floor:.3f}",
    )


def _half(experiment: str, policy: str) -> Callable[[MeansByPoint], Verdict]:
    def check(m: MeansByPoint) -> Verdict:
        own, fair = (m.last(experiment, name, "share") for name in (policy, FAIR))
        return Verdict(
            HOLDS if abs(own - 0.5) <= 0.03 else FAILS,
            f"its share at the last T is {own:.3f}; GroupFairTopInterval's is {fair:.3f}",
        )

    return check


def _no_dearer(experiment: str, policy: str) -> Callable[[MeansByPoint], Verdict]:
    def check(m: MeansByPoint) -> Verdict:
        own, fair = (m.last(experiment, name, "perceived_regret") for name in (policy, FAIR))
        return Verdict(
            HOLDS if own <= fair else FAILS,
            f"perceived regret {_digits(own)} a round at the last T, and GroupFairTopInterval's "
            f"{_digits(fair)} ({100 * (own / fair - 1):+.1f} %)",
        )

    return check


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _verdict(points: pd.Series[bool]) -> str:
    return HOLDS if points.all() else PARTLY if points.any() else FAILS


TITLES = {
    "T": "at every number of rounds",
    "arms": "at every number of arms",
    "error": "at every size of the bias",
    "ratio": "at every number of sensitive arms",
    "c": "at every range of the coefficients",
    "d": "at every number of features",
    "delta": "at every delta",
}

OWN_CLAIMS = (
    *(
        claim
        for name in SWEEPS
        for claim in (
            Claim(
                f"{name}-beyond",
                f"true regret is below that of GroupFairTopInterval {TITLES[name]}",
                _lower(f"{name}-beyond"),
            ),
            Claim(
                f"{name}-beyond",
                f"the share is within 1 point of proportional {TITLES[name]}",
                _proportional(f"{name}-beyond"),
            ),
        )
    ),
    Claim("T-beyond", "true regret is at most twice the floor after 1000 rounds", _near_the_floor),
    *(
        claim
        for name in TABLES
        for policy, words in ((POOLED, ""), (PROPORTIONAL, ', shares="proportional",'))
        for claim in (
            Claim(
                f"{name}-beyond",
                f"on {NAMES[name]}{words} the share is within 3 points of a half",
                _half(f"{name}-beyond", policy),
            ),
            Claim(
                f"{name}-beyond",
                f"on {NAMES[name]}{words} perceived regret is no higher than "
                "GroupFairTopInterval's",
                _no_dearer(f"{name}-beyond", policy),
            ),
        )
    ),
)
