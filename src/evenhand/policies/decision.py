"""Decisions: the arm, its probability, and the scores behind it."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand._checks import LARGEST, MALFORMED
from evenhand.errors import DataError
from evenhand.policies._state import CORRECTION, CORRECTION_WIDTH, ESTIMATE, UPPER, WIDTH

if TYPE_CHECKING:
    import pandas as pd


class Scores:
    """Per arm: estimate, width, correction, correction_width and upper, which is their sum.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> policy = eh.TopInterval(["F", "M"], n_features=1, horizon=10, seed=1)
        >>> policy.absorb([0, 1], np.ones((2, 1)), [1.0, 2.0])
        >>> scores = policy.select(np.ones((2, 1))).scores
        >>> scores.estimate.tolist(), scores.correction.tolist()
        ([1.0, 2.0], [0.0, 0.0])
        >>> list(scores.to_frame().columns)
        ['estimate', 'width', 'correction', 'correction_width', 'upper']
    """

    __slots__ = ("table",)

    def __init__(self, table: NDArray[np.float64]) -> None:
        self.table = table

    def _row(self, row: int) -> NDArray[np.float64]:
        values: NDArray[np.float64] = self.table[row]
        return values

    @property
    def estimate(self) -> NDArray[np.float64]:
        """The estimated observed reward, beta_hat . x; 0 for an arm that was never observed."""
        return self._row(ESTIMATE)

    @property
    def width(self) -> NDArray[np.float64]:
        """The half-width w of the interval around the estimate; infinite where nothing is known."""
        return self._row(WIDTH)

    @property
    def correction(self) -> NDArray[np.float64]:
        """The amount added for the bias of the arm's group, in reward units."""
        return self._row(CORRECTION)

    @property
    def correction_width(self) -> NDArray[np.float64]:
        """The uncertainty of the correction: the widths b of its groups."""
        return self._row(CORRECTION_WIDTH)

    @property
    def upper(self) -> NDArray[np.float64]:
        """The upper bound by which the policy ranks arms."""
        return self._row(UPPER)

    def to_frame(self) -> pd.DataFrame:
        """A table with a row per arm."""
        import pandas as pd

        return pd.DataFrame(dict(zip(SCORES, self.table, strict=True))).rename_axis("arm")


class Decision:
    """One decision. Pass it to `Policy.update` with the reward when that is known.

    Example:
        >>> import evenhand as eh
        >>> policy = eh.UniformRandom(["F", "M"], n_features=1, seed=1)
        >>> decision = policy.select([[1.0], [2.0]], available=[1])
        >>> decision.arm, decision.propensity, decision.round, decision.context.tolist()
        (1, 1.0, 1, [2.0])
        >>> policy.update(decision, reward=0.5)
    """

    __slots__ = (
        *("arm", "context", "explored", "groups", "propensity", "reward", "round", "scores"),
        "__weakref__",
    )

    def __init__(
        self,
        arm: int,
        propensity: float,
        explored: bool,
        round: int,
        context: NDArray[np.float64],
        scores: Scores,
        groups: NDArray[np.float64] | None = None,
    ) -> None:
        self.arm = arm
        self.propensity = propensity
        self.explored = explored
        self.round = round
        self.context = context
        self.scores = scores
        self.groups = groups
        """The membership of every candidate, a row each with a number per level of
        `Groups.columns`; None unless it came with the round."""
        self.reward: float | None = None
        """The observed reward, once `update` has learned it."""

    @property
    def row(self) -> NDArray[np.float64]:
        """The row that the reward is learned with.

        It is the context, followed by the candidate's membership if that came with the round.
        """
        if self.groups is None:
            return self.context
        row: NDArray[np.float64] = np.concatenate([self.context, self.groups[self.arm]])
        return row

    def __repr__(self) -> str:
        return (
            f"Decision(arm={self.arm}, propensity={self.propensity:.4g}, "
            f"explored={self.explored}, round={self.round})"
        )

    def to_dict(self) -> dict[str, Any]:
        """The decision as plain data for JSON, with every bit of its numbers.

        An infinite score, such as a width where nothing is known, is None.

        Example:
            >>> import json, evenhand as eh
            >>> policy = eh.TopInterval(["F", "M"], n_features=1, horizon=10, seed=1)
            >>> text = json.dumps(policy.select([[1.0], [2.0]]).to_dict())
            >>> decision = eh.Decision.from_dict(json.loads(text))  # in another process
            >>> policy.update(decision, reward=0.5)
            >>> decision.scores.width
            array([inf, inf])
        """
        rows = ([_plain(score) for score in row] for row in self.scores.table.tolist())
        return {
            "arm": int(self.arm),
            "propensity": float(self.propensity),
            "explored": bool(self.explored),
            "round": int(self.round),
            "context": np.asarray(self.context, dtype=np.float64).tolist(),
            "scores": dict(zip(SCORES, rows, strict=True)),
            "groups": None if self.groups is None else np.asarray(self.groups).tolist(),
            "reward": self.reward,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Decision:
        """The decision that `to_dict` described.

        Example:
            >>> import evenhand as eh
            >>> decision = eh.UniformRandom(["F", "M"], n_features=1).select([[1.0], [2.0]])
            >>> again = eh.Decision.from_dict(decision.to_dict())
            >>> (again.arm, again.round) == (decision.arm, decision.round)
            True
        """
        try:
            groups, reward = data.get("groups"), data.get("reward")  # older ones lack them
            scores = np.array([list(map(_score, data["scores"][name])) for name in SCORES])
            arm, chance = _whole(data["arm"], least=0), _real(data["propensity"])
            if not 0.0 <= chance <= 1.0 + 1e-9:
                raise TypeError(f"{chance} is no probability")
            if scores.shape[1] and arm >= scores.shape[1]:
                raise TypeError(f"arm {arm} has no scores")
            if type(data["explored"]) is not bool:
                raise TypeError(f"explored is {data['explored']!r}")
            decision = cls(
                arm=arm,
                propensity=chance,
                explored=data["explored"],
                round=_whole(data["round"], least=0),
                context=np.array([_real(value) for value in data["context"]]),
                scores=Scores(scores),
                groups=None if groups is None else _membership(groups, scores.shape[1]),
            )
            decision.reward = None if reward is None else _real(reward)
        except MALFORMED as error:
            raise DataError(
                parameter="data",
                value=data,
                allowed="the result of Decision.to_dict",
                hint="do not change it",
            ) from error
        return decision


SCORES = ("estimate", "width", "correction", "correction_width", "upper")
"""The rows of a table of scores."""


def _whole(value: Any, least: int) -> int:
    """A whole number of at least `least`; a TypeError if it is anything else."""
    if isinstance(value, bool) or operator.index(value) < least:
        raise TypeError(f"{value!r} is not a whole number of at least {least}")
    return operator.index(value)


def _real(value: Any) -> float:
    """A number that a policy takes; a TypeError if it is anything else."""
    if isinstance(value, (bool, str)) or not abs(float(value)) <= LARGEST:
        raise TypeError(f"{value!r} is not a number up to {LARGEST:g}")
    return float(value)


def _membership(groups: Any, n_arms: int) -> NDArray[np.float64]:
    """A row of probabilities per candidate; a TypeError if it is anything else."""
    table = np.array([[_real(value) for value in row] for row in groups])
    good = table.ndim == 2 and len(table) == n_arms and table.min() >= 0.0 and table.max() <= 1.0
    sums = table.sum(axis=1)  # 1 for every attribute
    if not good or sums.min() < 0.5 or np.abs(sums - np.round(sums[0])).max() > 1e-5:
        raise TypeError(f"groups are no membership of {n_arms} candidates")
    return table


def _score(value: Any) -> float:
    """What `_plain` wrote."""
    if isinstance(value, str):
        return {"nan": np.nan, "-inf": -np.inf}[value]
    if isinstance(value, bool):
        raise TypeError(f"{value!r} is no score")
    return np.inf if value is None else float(value)


def _plain(score: float) -> float | str | None:
    """A score for JSON, which has no NaN or infinities; a user's policy may have any score."""
    if np.isfinite(score):
        return score
    return None if score == np.inf else str(score)
