"""What the paper says about real data, checked against the numbers, in words."""

from __future__ import annotations

from collections.abc import Callable

from evenhand.experiments.claims import (
    FAILS,
    FAIR,
    HOLDS,
    NAIVE,
    PARTLY,
    TOP,
    Claim,
    Means,
    Verdict,
)


def _very_close(experiment: str) -> Callable[[Means], Verdict]:
    def check(m: Means) -> Verdict:
        last = {panel: m.last(experiment, FAIR, "share", panel) for panel in m.panels[experiment]}
        near = [abs(share - 0.5) <= 0.02 for share in last.values()]
        x = m.curve(experiment, FAIR, "share").index[-1]
        shown = ", ".join(f"{share:.3f} ({panel})" for panel, share in last.items())
        text = f"its share at T = {x:g} is {shown} (0.02 allowed)"
        plain = m.last(experiment, TOP, "share")
        if all(near) and abs(plain - 0.5) <= 0.02:
            text += f"; but so is TopInterval's, {plain:.3f}: it is no doing of the correction"
            return Verdict(PARTLY, text)
        return Verdict(HOLDS if all(near) else PARTLY if any(near) else FAILS, text)

    return check


def _small_price(experiment: str) -> Callable[[Means], Verdict]:
    def check(m: Means) -> Verdict:
        rose, points = _gap(m, experiment, FAIR)
        return Verdict(
            HOLDS if points >= 1.0 and rose < points else FAILS,
            f"perceived regret is {rose:+.1f} % against TopInterval's for {points:+.1f} points of "
            "share (fewer per cent than points count as small, if a point was gained)",
        )

    return check


def _naive_larger(experiment: str) -> Callable[[Means], Verdict]:
    def check(m: Means) -> Verdict:
        fair, naive = _gap(m, experiment, FAIR)[0], _gap(m, experiment, NAIVE)[0]
        return Verdict(
            HOLDS if naive > 2.0 * max(fair, 0.0) and naive > 2.0 else FAILS,
            f"perceived regret is {naive:+.1f} % against TopInterval's, GroupFairTopInterval's "
            f"{fair:+.1f} % (twice as much, and 2 %, counts as large)",
        )

    return check


def _gap(m: Means, experiment: str, policy: str) -> tuple[float, float]:
    """Against TopInterval at the last T: perceived regret in per cent, and share in points."""
    regret, base = (m.last(experiment, one, "perceived_regret") for one in (policy, TOP))
    share, plain = (m.last(experiment, one, "share") for one in (policy, TOP))
    return 100.0 * (regret / base - 1.0), 100.0 * (share - plain)


NAMES = {"family-income": "family income", "compas": "COMPAS"}

REAL_CLAIMS = tuple(
    claim
    for experiment, name in NAMES.items()
    for claim in (
        Claim(
            experiment,
            f"on {name} the share of GroupFairTopInterval gets very close to 50 % after a period "
            "of exploration",
            _very_close(experiment),
        ),
        Claim(
            experiment,
            f"on {name} the gap in perceived regret to TopInterval is small compared to the "
            "increase in share",
            _small_price(experiment),
        ),
        Claim(
            experiment,
            f"on {name} the gap of NaiveFair is large in comparison",
            _naive_larger(experiment),
        ),
    )
)
