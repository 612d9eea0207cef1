"""A decision as a line of the journal, with or without the arms that it was made among."""

from __future__ import annotations

from time import time_ns

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.logs.candidates import to_base64
from evenhand.policies import checking
from evenhand.policies.base import Policy
from evenhand.policies.decision import Decision

Array = NDArray[np.float64]


def plain_line(
    policy: Policy,  # noqa: ARG001
    decision: Decision,
    contexts: ArrayLike,  # noqa: ARG001
    available: ArrayLike | None,  # noqa: ARG001
) -> bytes:
    """A decision, with the context of the chosen arm alone.

    Python writes floats so that the same double is read again.
    """
    return b'["d",%d,%d,%d,%r,%d,%r]\n' % (
        decision.round,
        time_ns() // 1000,
        decision.arm,
        decision.propensity,
        decision.explored,
        decision.context.tolist(),
    )


def line_with_candidates(
    policy: Policy, decision: Decision, contexts: ArrayLike, available: ArrayLike | None
) -> bytes:
    """A decision, with the contexts and probabilities of all arms.

    They are doubles in base64: writing out their digits would take longer than deciding.
    """
    return b"%b,%b,%b]\n" % (
        plain_line(policy, decision, contexts, available)[:-2],
        to_base64(candidate_contexts(policy, contexts, available)),
        to_base64(candidate_propensities(policy, decision, contexts, available)),
    )


def candidate_contexts(
    policy: Policy, contexts: ArrayLike, available: ArrayLike | None = None
) -> Array:
    """The contexts of all arms, arm after arm: NaN for a missing arm, once if all are the same.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> from evenhand.recording.lines import candidate_contexts
        >>> policy = eh.UniformRandom(["F", "M", "M"], n_features=1)
        >>> candidate_contexts(policy, [[1.0], [2.0], [3.0]], available=[0, 2]).tolist()
        [1.0, nan, 3.0]
        >>> candidate_contexts(policy, np.ones((3, 1))).tolist()
        [1.0]
    """
    rows = checking.rows_of(contexts, policy._shape)
    if available is not None:
        open_arms = checking.open_arms(available, policy.n_arms)
        if not open_arms.all():
            return np.where(open_arms[:, None], rows, np.nan).ravel()
    # By their bytes, which is quick, and tells 0.0 from -0.0.
    same = rows.tobytes() == rows[0].tobytes() * len(rows)
    return rows[0].copy() if same else rows.flatten()


def candidate_propensities(
    policy: Policy, decision: Decision, contexts: ArrayLike, available: ArrayLike | None = None
) -> Array | None:
    """The probabilities of all arms in the round of a decision that was made just now.

    None if they are at odds with the decision's own: a policy with a `select` of its own may have
    no `propensities` to go with it.
    """
    after = policy.round
    try:
        policy.round = after - 1
        found = policy.propensities(contexts, available)
    finally:
        policy.round = after
    return found if abs(found[decision.arm] - decision.propensity) <= 1e-9 else None
