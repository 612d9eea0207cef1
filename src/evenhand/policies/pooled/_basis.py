"""What a bias rests on, in sentences: on an assumption, on measured truth, or on both."""

from __future__ import annotations

from math import isnan

from evenhand.policies.pooled.measured import Measured

ASSUMPTION = (
    "All of this rests on the assumption that the true averages of the groups are equal. Feedback "
    "alone cannot check it: a true difference would look the same."
)
UNLIKELY = 0.01  # below this p-value, arrival is said to depend on the outcome


def basis_of(truth: Measured) -> list[str]:
    """The sentences for a bias with true rewards."""
    number = "1 true reward" if truth.number == 1 else f"{truth.number} true rewards"
    since = f", the first of round {truth.since}" if truth.since else ""
    if not truth.usable:
        why = (
            "The units of true rewards cannot be told yet from those of the reference"
            if truth.feedback
            else "There is no feedback yet to compare with"
        )
        said = f"There {_are(truth.number)} {number}{since}. {why}, so nothing is made of that yet."
        return [said, ASSUMPTION]
    return [f"There {_are(truth.number)} {number}{since}.", _averages(truth), _arrival(truth)]


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def _averages(truth: Measured) -> str:
    test = "" if isnan(truth.p_equal) else f" (test of equal averages: {_p(truth.p_equal)})"
    if truth.equal:
        return (
            "The bias rests on them and on the assumption that the true averages of the groups are "
            "equal. They do not speak against it clearly enough to give it up"
            f"{test}."
        )
    return (
        "With them it is more likely that true averages differ than that they are equal, and that "
        f"assumption is given up: how much of a gap is bias rests on the true rewards{test}."
    )


def _arrival(truth: Measured) -> str:
    rule = "This holds if it does not depend on its value whether a true reward arrives"
    if isnan(truth.p_arrival):
        return f"{rule}. That could not be tested here."
    if truth.p_arrival < UNLIKELY:
        better = "better" if truth.arrived_better else "worse"
        return (
            f"WARNING: {rule[0].lower()}{rule[1:]}, and that seems not to be so: decisions with a "
            f"true reward had {better} feedback than their arm and context explain "
            f"({_p(truth.p_arrival)}). The bias may be wrong."
        )
    return (
        f"{rule}. The feedback of these decisions shows no sign of the contrary "
        f"({_p(truth.p_arrival)}), but not every dependence shows there."
    )
