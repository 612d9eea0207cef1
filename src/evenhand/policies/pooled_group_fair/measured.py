"""The bias by the true rewards in a policy's state."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evenhand.bias import measured
from evenhand.bias._evidence import Evidence
from evenhand.policies.pooled_group_fair._layout import FIRST_TRUE, IN_USE, KAPPA2, TRUE_NUMBER


class Measured(measured.Measured):
    """`evenhand.bias.measured.Measured` of a policy: `PooledGroupFair.measured` makes it.

    Averages are held constant, or may differ, exactly as in the policy's decisions.

    Args:
        truth: the numbers of true rewards in the state (`_layout`).
        feedback: how many observed rewards there are.
        start: called for the posterior of both, if there are rewards of both kinds.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> groups = eh.Groups(["F", "F", "F", "M", "M", "M"], sensitive="F")
        >>> policy = eh.PooledGroupFair(groups, n_features=1, seed=1)
        >>> worth, lost = [5.0, 6.0, 7.0, 6.0, 7.0, 8.0], [4.0, 4.0, 4.0, 0.0, 0.0, 0.0]
        >>> for _ in range(60):
        ...     decision = policy.select(np.ones((6, 1)))
        ...     policy.update(decision, worth[decision.arm] - lost[decision.arm])
        ...     policy.update(decision, true_reward=worth[decision.arm])
        >>> policy.measured().number, (policy.measured().bias.round(0) + 0.0).tolist()
        (60, [[-4.0], [0.0]])
    """

    def __init__(
        self, truth: NDArray[np.float64], feedback: int, start: Callable[[], Evidence]
    ) -> None:
        kappa2 = float(truth[KAPPA2]) if truth[IN_USE] else 0.0
        super().__init__(int(truth[TRUE_NUMBER]), feedback, start, kappa2, int(truth[FIRST_TRUE]))
