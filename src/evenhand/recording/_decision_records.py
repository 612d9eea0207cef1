"""Decisions as a log keeps them, with or without the other arms, and as they are read back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import isfinite
from time import time_ns
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._checks import LARGEST
from evenhand.errors import InputError
from evenhand.events._candidates import CLOSE
from evenhand.events._header import feature_names
from evenhand.events._schema import FIRST_YEAR, LAST_YEAR, SCHEMA
from evenhand.events.event import (
    DecisionMade,
    Event,
    Overridden,
    RewardObserved,
    TrueRewardObserved,
)
from evenhand.policies import _checks as checking
from evenhand.policies.base import Policy
from evenhand.policies.decision import Decision, Scores

Array = NDArray[np.float64]
_CHANCE = SCHEMA["propensity"]


_FIRST, _AFTER = (
    int(np.datetime64(year - 1970, "Y").astype("datetime64[us]").astype(np.int64))
    for year in (FIRST_YEAR, LAST_YEAR + 1)
)


def now() -> int:
    """Microseconds since the start of 1970, if a log can hold them."""
    time = time_ns() // 1000
    if not _FIRST <= time < _AFTER:
        raise InputError(
            f"the clock of this machine says {time // 1_000_000} seconds since the start of 1970; "
            f"allowed in a log are the years {FIRST_YEAR} to {LAST_YEAR}: set the clock"
        )
    return time


class DecisionRecord(NamedTuple):
    """The part of a decision that a log keeps, as plain numbers that can be read back."""

    round: int
    arm: int
    propensity: float
    explored: bool
    context: tuple[float, ...]


def record_of(policy: Policy, decision: Decision, round: int) -> DecisionRecord:
    """A decision in plain numbers; an InputError if a log cannot hold it.

    Evenhand's policies always make valid decisions. A user's policy may return anything.
    """
    n_arms, n_features = policy._shape
    try:
        arm, chance = int(decision.arm), float(decision.propensity)
        context = np.ascontiguousarray(decision.row, dtype=np.float64)
        good = decision.round == round and arm == decision.arm and 0 <= arm < n_arms
        explored = bool(decision.explored)
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"the policy gave something that is not a decision: {error}") from error
    if not good:
        raise InputError(
            f"the policy gave arm {decision.arm} in round {decision.round}; allowed are arms 0 to "
            f"{n_arms - 1}, in round {round}"
        )
    if not _CHANCE.least <= chance <= _CHANCE.most:
        raise InputError(
            f"the policy gave arm {arm} the propensity {chance}; allowed is {_CHANCE.words}"
        )
    values = context.tolist()
    # A sum is finite only if all values are: this is faster than checking one by one.
    good = context.shape == (n_features,) and isfinite(sum(values))
    if not good or min(values) < -LARGEST or max(values) > LARGEST:
        raise InputError(
            f"the policy gave the context {values}; allowed are {n_features} finite numbers up to "
            f"{LARGEST:g}"
        )
    return DecisionRecord(round, arm, chance, explored, tuple(values))


def with_candidates(
    policy: Policy, decision: DecisionRecord, contexts: ArrayLike, available: ArrayLike | None
) -> tuple[Array, Array | None]:
    """The contexts and probabilities of all arms."""
    all_contexts = candidate_contexts(policy, contexts, available)
    table = all_contexts.reshape(-1, policy._shape[1])
    if (table[decision.arm if len(table) > 1 else 0] != decision.context).any():
        raise InputError(
            f"the policy chose arm {decision.arm} with the context {list(decision.context)}, "
            "which is not the context given for this arm, or the arm was not available"
        )
    return all_contexts, candidate_propensities(policy, decision, contexts, available)


def candidate_contexts(
    policy: Policy, contexts: ArrayLike, available: ArrayLike | None = None
) -> Array:
    """The contexts of all arms, one after the other; only once if all are the same.

    Those of arms that are not available are NaN.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> from evenhand.recording._decision_records import candidate_contexts
        >>> policy = eh.UniformRandom(["F", "M", "M"], n_features=1)
        >>> candidate_contexts(policy, [[1.0], [2.0], [3.0]], available=[0, 2]).tolist()
        [1.0, nan, 3.0]
        >>> candidate_contexts(policy, np.ones((3, 1))).tolist()
        [1.0]
    """
    rows = checking.rows_of(contexts, policy._shape)
    open_arms = None if available is None else checking.open_arms(available, policy.n_arms)
    possible = rows if open_arms is None else rows[open_arms]
    if not (np.abs(possible) <= LARGEST).all():
        raise InputError(f"contexts are not all finite; allowed are numbers up to {LARGEST:g}")
    if open_arms is not None and not open_arms.all():
        return np.where(open_arms[:, None], rows, np.nan).ravel()
    # Bytes are fast to compare, and differ between 0.0 and -0.0.
    same = rows.tobytes() == rows[0].tobytes() * len(rows)
    return rows[0].copy() if same else rows.flatten()


def candidate_propensities(
    policy: Policy,
    decision: Decision | DecisionRecord,
    contexts: ArrayLike,
    available: ArrayLike | None = None,
) -> Array | None:
    """The probabilities of all arms in the round of the decision that was just made.

    None if they are not a distribution, or inconsistent with the decision's own propensity: a
    policy with its own `select` may lack `propensities` that match.
    """
    after = policy.round
    try:
        policy.round = after - 1
        chances = np.asarray(policy.propensities(contexts, available), dtype=np.float64)
    finally:
        policy.round = after
    if chances.shape != (policy.n_arms,) or not (
        chances.min() >= 0.0 and abs(chances.sum() - 1) <= CLOSE
    ):
        return None
    if available is not None and chances[~checking.open_arms(available, policy.n_arms)].any():
        return None
    return chances if abs(chances[decision.arm] - decision.propensity) <= 1e-9 else None


def columns_of(features: Sequence[object] | None, policy: Policy) -> tuple[str, ...]:
    """The names of the features, and those of the levels if membership comes with the round.

    Example:
        >>> import evenhand as eh
        >>> from evenhand.recording._decision_records import columns_of
        >>> columns_of(["age"], eh.TopInterval(["F", "M"], n_features=1))
        ('age',)
    """
    names = feature_names(features, policy.n_features)
    return (*names, *policy.groups.columns) if policy.groups.changes else names


class Past(NamedTuple):
    """A decision as the policy made it, and as it was when its true reward came, or is now.

    They differ if a human chose another arm.
    """

    made: Decision
    learned: Decision


def past_decisions(events: Iterable[Event], ids: Collection[str]) -> dict[str, Past]:
    """The decisions with these ids.

    A true reward may come years later, so decisions are not kept in memory until then: finding any
    number of them takes one pass over the log.

    Example:
        >>> from evenhand.events.event import DecisionMade, RewardObserved
        >>> from evenhand.recording._decision_records import past_decisions
        >>> made = DecisionMade(1, 0, "a", 1, 2, 0.5, False, (1.0,), None, None)
        >>> past = past_decisions([made, RewardObserved(2, 0, "a", 3.0)], {"a"})
        >>> past["a"].made.arm, past["a"].learned.reward
        (2, 3.0)
    """
    decisions: dict[str, Past] = {}
    done: set[str] = set()
    for event in events:
        if event.id not in ids or event.id in done:
            continue
        if isinstance(event, DecisionMade):
            made = _decision(event.round, event.arm, event.context)
            decisions[event.id] = Past(made, made)
        elif isinstance(event, Overridden):
            made = decisions[event.id].made
            chosen = _decision(made.round, event.arm, event.context)
            decisions[event.id] = Past(made, chosen)
        elif isinstance(event, RewardObserved):
            decisions[event.id].learned.reward = event.reward
        elif isinstance(event, TrueRewardObserved):
            done.add(event.id)
    return decisions


def _decision(round: int, arm: int, context: Iterable[float]) -> Decision:
    row = np.array(tuple(context), dtype=np.float64)
    return Decision(arm, np.nan, False, round, row, Scores(np.empty((5, 0))))
