"""Decisions whose reward has not come: what has to be kept to learn from it, and no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.events.schema import NAMES
from evenhand.policies.decision import Decision, Scores


class Waiting:
    """By round, the arm in force and its context, as bytes: 0.3 kB for a decision."""

    def __init__(self) -> None:
        self.kept: dict[int, bytes] = {}
        self.overridden: set[int] = set()

    @classmethod
    def of_log(cls, frame: pd.DataFrame, features: tuple[str, ...]) -> Waiting:
        """Those of a log."""
        waiting = cls()
        its = frame[frame[NAMES["round"]].notna()]
        contexts = its[list(features)].to_numpy(dtype=np.float64)
        columns = [its[NAMES[role]] for role in ("round", "arm", "reward", "propensity")]
        for round, arm, reward, propensity, context in zip(*columns, contexts, strict=True):
            if np.isnan(propensity):  # a human's, which comes after the policy's own
                waiting.overridden.add(int(round))
            if np.isnan(reward):
                waiting.add(int(round), int(arm), context)
            else:
                waiting.kept.pop(int(round), None)
        return waiting

    def add(self, round: int, arm: int, context: NDArray[np.float64]) -> None:
        """A decision, or what stands in its place."""
        self.kept[round] = _bytes(arm, context)

    def is_this(self, decision: Decision) -> bool:
        """Whether it is what was kept for its round, unless a human overrode that."""
        context = np.asarray(decision.context, dtype=np.float64)
        return decision.round in self.overridden or (
            self.kept[decision.round] == _bytes(int(decision.arm), context)
        )

    def decision(self, round: int) -> Decision:
        """As far as learning needs it."""
        kept = self.kept[round]
        context: Any = np.frombuffer(kept, dtype=np.float64, offset=8).copy()
        arm = int.from_bytes(kept[:8], "little", signed=True)
        return Decision(arm, np.nan, False, round, context, Scores(np.empty((5, 0))))


def _bytes(arm: int, context: NDArray[np.float64]) -> bytes:
    return arm.to_bytes(8, "little", signed=True) + context.tobytes()
