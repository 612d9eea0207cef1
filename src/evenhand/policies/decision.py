"""What a policy answers: the arm, how likely it was, and the scores behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenhand.policies.state import CORRECTION, CORRECTION_WIDTH, ESTIMATE, UPPER, WIDTH

if TYPE_CHECKING:
    import pandas as pd


class Scores:
    """Per arm: estimate, width, correction, correction_width and upper, which is their sum."""

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
        """What is added for the bias of the arm's group, in reward units."""
        return self._row(CORRECTION)

    @property
    def correction_width(self) -> NDArray[np.float64]:
        """How unsure the correction is: the widths b of the groups in it."""
        return self._row(CORRECTION_WIDTH)

    @property
    def upper(self) -> NDArray[np.float64]:
        """The upper bound that the policy ranks by."""
        return self._row(UPPER)

    def to_frame(self) -> pd.DataFrame:
        """A table with a row per arm."""
        import pandas as pd

        names = ("estimate", "width", "correction", "correction_width", "upper")
        return pd.DataFrame(dict(zip(names, self.table, strict=True))).rename_axis("arm")


class Decision:
    """One decision. Give it back to `Policy.update` with the reward when that is known."""

    __slots__ = ("arm", "context", "explored", "groups", "propensity", "round", "scores")

    def __init__(
        self,
        arm: int,
        propensity: float,
        explored: bool,
        round: int,
        context: NDArray[np.float64],
        scores: Scores,
        groups: NDArray[np.int64] | None = None,
    ) -> None:
        self.arm = arm
        self.propensity = propensity
        self.explored = explored
        self.round = round
        self.context = context
        self.scores = scores
        self.groups = groups
        """The number of the group of every candidate; None where those of the policy hold."""

    def __repr__(self) -> str:
        return (
            f"Decision(arm={self.arm}, propensity={self.propensity:.4g}, "
            f"explored={self.explored}, round={self.round})"
        )
