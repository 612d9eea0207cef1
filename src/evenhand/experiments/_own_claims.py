"""What we say about PooledGroupFair in the paper's experiments, checked like the paper's claims."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from evenhand.experiments._beside import POOLED, PROPORTIONAL, SWEEPS, TABLES
from evenhand.experiments._claims import FAILS, FAIR, HOLDS, PARTLY, Claim, Means, Verdict
from evenhand.simulation.floor import FLOOR

AXES = {"arms": "n", "error": "mu", "ratio": "s"}  # as the paper writes them
NAMES = {
    "family-income": "family income",
    "compas": "COMPAS",
    "student": "grades of students",
    "mortgage": "mortgage applications",
}


def _lower(experiment: str) -> Callable[[Means], Verdict]:
    """True regret below that of the paper's policy at every point."""

    def check(m: Means) -> Verdict:
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


def _proportional(experiment: str) -> Callable[[Means], Verdict]:
    """A share within a point of proportional: arms are exchangeable in all of these worlds."""

    def check(m: Means) -> Verdict:
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


def _near_the_floor(m: Means) -> Verdict:
    own, floor = (m.last("T-beyond", policy, "true_regret") for policy in (POOLED, FLOOR))
    return Verdict(
        HOLDS if own <= 2.0 * floor else FAILS,
        f"{own:.3f} a round at T = 1000, where the floor is {floor:.3f}",
    )


def _half(experiment: str, policy: str) -> Callable[[Means], Verdict]:
    def check(m: Means) -> Verdict:
        own, fair = (m.last(experiment, name, "share") for name in (policy, FAIR))
        return Verdict(
            HOLDS if abs(own - 0.5) <= 0.03 else FAILS,
            f"its share at the last T is {own:.3f}; GroupFairTopInterval's is {fair:.3f}",
        )

    return check


def _no_dearer(experiment: str, policy: str) -> Callable[[Means], Verdict]:
    def check(m: Means) -> Verdict:
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
