"""Whether a policy has learned from the log that it is evaluated on, which would flatter it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand._checks import Whole
from evenhand.errors import SeenWarning, blank, setting

if TYPE_CHECKING:
    from evenhand.events._header import About
    from evenhand.offpolicy.logged import Logged
    from evenhand.policies import Policy

LATER = (
    f"use later ones with {setting('after', blank('ROUND'))}, or give {setting('after', 0)} if it "
    "has seen none"
)
OTHERS = "use rows that it has not seen"


class Origin(NamedTuple):
    """Where logged decisions come from: the header of the log, and what can be learned from it.

    `learned` counts the rewards of each arm, also of overrides and of history.
    """

    about: About | None
    learned: Whole
    rounds: bool


def warn_if_seen(policy: Any, log: Logged, after: int | None) -> None:
    """Warn if a policy has learned from this log, or may have.

    Args:
        policy: what is evaluated; there is no warning about what is not a `Policy`.
        log: what it is evaluated on.
        after: the round after which rows were chosen, if the caller has chosen them.
    """
    from evenhand.policies import Policy

    policy = getattr(policy, "policy", policy)  # of one that logs
    if not isinstance(policy, Policy):
        return
    origin = log.origin
    if origin is not None and origin.about is not None:
        if _ended_here(origin.about, policy):
            warnings.warn(
                SeenWarning(
                    f"{setting('target')} is in the state in which this log ended: it has learned "
                    "from the rows that it is evaluated on, which makes it look better than it is; "
                    "use rows that it has not seen"
                ),
                stacklevel=3,
            )
            return
        if _began_here(origin.about, policy):
            return
    if after is None:
        _warn_if_it_may_have(policy, log)


def _ended_here(about: About, policy: Policy) -> bool:
    """Whether this is the policy at the end of the log: it has learned from all of its rows."""
    from evenhand.recording._replay import checksum

    state = about.state
    return bool(state and state["learned"] and state["sha256"] == checksum(policy))


def _began_here(about: About, policy: Policy) -> bool:
    """Whether this is the policy at the start of the log: it has seen none of its rows."""
    from evenhand.policies.saving import to_dict

    return bool(to_dict(policy)["arms"] == about.policy["arms"])


def _warn_if_it_may_have(policy: Policy, log: Logged) -> None:
    """Warn if the log has enough rewards of every arm to be all that the policy learned from.

    A policy does not remember rows, only their number for each arm.
    """
    counts, log_counts = (
        np.asarray(policy.counts),
        rewards_by_arm(log.arms, log.rewards, log.groups.n_arms),
    )
    remedy = f"{OTHERS}, or give {setting('after', 0)} if it has seen none"
    if log.origin is not None:
        log_counts, remedy = log.origin.learned, LATER if log.origin.rounds else OTHERS
    if counts.shape == log_counts.shape and counts.any() and (counts <= log_counts).all():
        warnings.warn(
            SeenWarning(
                f"{setting('target')} may have learned from rows of this log: for every arm the "
                f"log has at least as many rewards as the policy has observations "
                f"({counts.sum():,} in all); rows that it has seen flatter it: {remedy}"
            ),
            stacklevel=4,
        )


def rewards_by_arm(arms: Any, rewards: Any, n_arms: int) -> Whole:
    """The number of rewards of each arm."""
    known = np.asarray(arms, dtype=np.int64)[~np.asarray(pd.isna(rewards), dtype=np.bool_)]
    counts: Whole = np.bincount(known, minlength=n_arms)
    return counts
