"""What a bias rests on, in sentences: on an assumption, on measured truth, or on both."""

from __future__ import annotations

from math import isnan

from evenhand.bias.measured import Measured

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
            "The units of true rewards cannot be estimated yet from those of the reference"
            if truth.feedback
            else "There is no feedback yet to compare with"
        )
        consequence = "so it is not used yet" if truth.number == 1 else "so they are not used yet"
        said = f"There {_are(truth.number)} {number}{since}. {why}, {consequence}."
        return [said, ASSUMPTION]
    return [f"There {_are(truth.number)} {number}{since}.", averages(truth), _arrival(truth)]


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def p_value(value: float) -> str:
    """A p-value in words.

    Example:
        >>> from evenhand.bias._rests_on import p_value
        >>> p_value(0.0341), p_value(1e-9)
        ('p = 0.034', 'p < 0.001')
    """
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def averages(truth: Measured, what: str = "The bias", them: str = "them") -> str:
    """What rests on equal averages, and what on true rewards.

    Args:
        truth: what true rewards say.
        what: the subject of the sentence.
        them: the true rewards, in words.
    """
    test = "" if isnan(truth.p_equal) else f" (test of equal averages: {p_value(truth.p_equal)})"
    if truth.equal:
        return (
            f"{what} rests on {them} and on the assumption that the true averages of the groups "
            "are equal. They do not contradict it clearly enough to drop it"
            f"{test}."
        )
    return (
        f"With {them}, different averages are more likely than equal ones, so the assumption of "
        "equal averages is dropped: the true rewards decide how much of a gap is bias"
        f"{test}."
    )


def depends(p_arrival: float) -> bool | None:
    """Whether arrival seems to depend on the outcome; None where that could not be tested.

    Example:
        >>> from evenhand.bias._rests_on import depends
        >>> depends(0.2), depends(0.001), depends(float("nan"))
        (False, True, None)
    """
    return None if isnan(p_arrival) else p_arrival < UNLIKELY


def _arrival(truth: Measured) -> str:
    rule = "This holds only if whether a true reward arrives does not depend on its value"
    dependent = depends(truth.p_arrival)
    if dependent is None:
        return f"{rule}. That could not be tested here."
    if dependent:
        better = "better" if truth.arrived_better else "worse"
        return (
            f"WARNING: {rule[0].lower()}{rule[1:]}, but it seems to: decisions "
            f"with a true reward had {better} feedback than their arm and context explain "
            f"({p_value(truth.p_arrival)}). The bias may be wrong."
        )
    return (
        f"{rule}. The feedback of these decisions gives no evidence that it does "
        f"({p_value(truth.p_arrival)}), but it would not reveal every such dependence."
    )
