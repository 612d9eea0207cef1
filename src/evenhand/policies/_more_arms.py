"""More arms for a policy that has learned: as if they had been there, and could not be chosen."""

from __future__ import annotations

import numpy as np

from evenhand.errors import InputError
from evenhand.groups import Groups
from evenhand.leastsquares._saved import from_saved, to_saved
from evenhand.policies._state import estimate_noise
from evenhand.policies.base import Policy


def with_more_arms(policy: Policy, groups: Groups) -> Policy:
    """A policy with more arms, which has learned what `policy` has; that one is not changed.

    Sums by arm and by group are copied; what follows from them is worked out again. So it is the
    policy that would have learned the same with these arms, up to rounding.

    Args:
        policy: that has learned.
        groups: of its arms, in their order, and of those that are new. New groups are refused.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> from evenhand.policies._more_arms import with_more_arms
        >>> policy = eh.TopInterval(["F", "M"], n_features=1, horizon=100)
        >>> policy.absorb([0, 1], np.ones((2, 1)), [3.0, 5.0])
        >>> with_more_arms(policy, eh.Groups(["F", "M", "F"])).counts.tolist()
        [1, 1, 0]
    """
    n = policy.n_arms
    if groups.names != policy.groups.names or groups.labels[:n] != policy.groups.labels:
        raise InputError(
            f"groups are {', '.join(groups.labels)}; allowed are those of the arms that are there, "
            f"{', '.join(policy.groups.labels)}, and more arms of the same groups"
        )
    grown = policy.clone(groups=groups)
    mine, its = grown._state, policy._state
    for fits, old in ((mine.arms, its.arms), (mine.groups, its.groups)):
        saved = to_saved(old)
        if saved.size:  # arms fill blocks, and those of a block that are not there yet are blank
            table = to_saved(fits)
            table[: len(saved)] = saved
            from_saved(fits, table)
    tables = zip(mine.own, its.own, strict=True)
    padded = (
        np.pad(old, [(0, new - size) for new, size in zip(fresh.shape, old.shape, strict=True)])
        for fresh, old in tables
    )
    grown.merge_own(mine.own, type(its.own)(*padded))
    if grown.noise == "estimate":
        estimate_noise(mine.arms, mine.levels)
    grown.round = policy.round
    return grown
