"""TopInterval: the arm with the highest upper bound. It trusts the feedback."""

from __future__ import annotations

from typing import NamedTuple

from evenhand.policies._kernels import kernel, score
from evenhand.policies._scores import add_up, score_arms
from evenhand.policies.base import Policy


class _TopIntervalRule(NamedTuple):
    """No numbers of its own."""


@kernel(score, _TopIntervalRule)
def _score(rule, memory, t):  # type: ignore[no-untyped-def]
    score_arms(memory, t)
    add_up(memory)


class TopInterval(Policy):
    """Play argmax of beta_hat . x + w: a LinUCB with one regression per arm.

    It takes rewards at face value, so it learns to avoid a group whose feedback is biased. Where
    membership comes with the round (`Groups.per_round`), it is one more feature.

    References:
        Li, Chu, Langford and Schapire (2010), as varied in Schumann et al. (2022).

    Example:
        >>> import numpy as np, evenhand as eh
        >>> policy = eh.TopInterval(["F", "M"], n_features=1, horizon=100, exploration="none")
        >>> policy.absorb(arms=[0, 1], contexts=np.ones((2, 1)), rewards=[1.0, 2.0])
        >>> decision = policy.select(np.ones((2, 1)))
        >>> decision.arm, decision.scores.estimate.tolist()
        (1, [1.0, 2.0])
    """

    takes_membership = True

    def rule(self) -> _TopIntervalRule:
        """No numbers of its own."""
        return _TopIntervalRule()
