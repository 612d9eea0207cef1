"""PooledGroupFair: the policy to use unless you have a reason for another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from evenhand.errors import InputError
from evenhand.groups import Groups
from evenhand.policies._settings import Common
from evenhand.policies.base import Policy
from evenhand.policies.pooled import _choosing as _choosing  # registers its kernels
from evenhand.policies.pooled._layout import LATEST, LIMIT, STALE, PooledState, new_state
from evenhand.policies.pooled._learning import work_out_all
from evenhand.policies.pooled._rule import PooledRule


class PooledGroupFair(Policy):
    """TODO"""

    learns_by_round = True

    def __init__(
        self,
        groups: Groups | Sequence[object],
        n_features: int,
        horizon: int | None = None,
        delta: float = 0.1,
        *,
        reference: object = None,
        probe: bool = True,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            groups,
            n_features,
            horizon,
            delta,
            **{"noise": "estimate", "exploration": "none", **common},
        )
        self.reference = reference
        self.probe = probe
        self._weights = self._reference_weights()

    def _reference_weights(self):
        m = len(self.groups)
        reference = self.groups.reference if self.reference is None else self.reference
        if reference is None or reference == "mean":
            return np.full(m, 1.0 / m)
        names = [reference] if isinstance(reference, str) else list(reference)
        w = np.zeros(m)
        for name in names:
            w[self.groups.index(name)] = self.groups.sizes[self.groups.index(name)]
        return w / w.sum()

    def learns(self) -> PooledState:
        """Sums of rewards, and the posterior."""
        return new_state(self.n_arms, len(self.groups), self.n_features)

    def rule(self) -> PooledRule:
        """The groups, and what they are compared with."""
        sigma2 = -1.0 if isinstance(self.noise, str) else float(self.noise) ** 2
        return PooledRule(
            self.n_features, self.groups.of, self.groups.sizes.astype(np.float64), self._weights,
            sigma2, self.probe,
        )
