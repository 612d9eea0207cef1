"""Why a decision was made: the estimates of the candidates, feature by feature."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.policies import (
    GroupFairTopInterval,
    MultiGroupFairTopInterval,
    PooledGroupFair,
    TopInterval,
)
from evenhand.policies.base import Policy
from evenhand.service import _policy_calls
from evenhand.service._bodies import By, CandidateReasons, Contribution, ReasonsOut
from evenhand.service._features import Encoder
from evenhand.service._ledger.fold import LedgerArm, restored
from evenhand.service._ledger.sqlite_and_postgres import Connection
from evenhand.service._problems import Problem
from evenhand.service._queries import body_and_seed, groups_of

# They choose the highest sum of corrected estimate and (a part of) the width, if not at random.
BY_WIDTH = (PooledGroupFair, TopInterval, GroupFairTopInterval, MultiGroupFairTopInterval)
Array = NDArray[np.float64]


def reasons(
    connection: Connection, id: str, names: Sequence[LedgerArm], encoder: Encoder
) -> ReasonsOut:
    """The reasons of a decision, found by making it again on its version."""
    body, seed = body_and_seed(connection, id)
    try:
        state = restored(connection, body.version)
    except InputError as error:
        raise Problem(
            410, "the version of this decision can no longer be restored, because of an erasure"
        ) from error
    chosen = _policy_calls.again(state, body, seed)
    table = _policy_calls.contributions(state, body)
    values, _ = _policy_calls.rows_of(state, body)
    same = chosen.decision.arm == body.arm and chosen.scores == body.scores
    candidates = []
    numbers = np.flatnonzero(~np.isnan(table).any(axis=1)).tolist()
    for number, group in zip(numbers, groups_of(state, body, numbers), strict=True):
        against = table[number] - table[body.arm]
        is_chosen = number == body.arm
        order = np.argsort(-np.abs(table[number] if is_chosen else against), kind="stable").tolist()
        listed = [
            Contribution(
                state.features[k], float(values[number, k]), float(table[number, k]),
                float(against[k]),
            )
            for k in order
        ]  # fmt: skip
        chosen_values = (
            None if is_chosen else dict(zip(state.features, values[body.arm], strict=False))
        )
        candidates.append(
            CandidateReasons(
                names[number].name, group, is_chosen, float(table[number].sum()), listed,
                _words(listed, chosen_values, encoder),
            )
        )  # fmt: skip
    candidates.sort(key=lambda candidate: (not candidate.chosen, -candidate.corrected_estimate))
    # The scores that are kept are rounded, which would make and break ties.
    scores = chosen.decision.scores.table if same else _policy_calls.scores_of(body)
    by, words = decided_by(
        state.policy, scores, body.arm, body.explored, numbers, lambda number: names[number].name
    )
    return ReasonsOut(id, body.version, same, by, words, candidates)


def decided_by(
    policy: Policy,
    scores: Array,
    arm: int,
    explored: bool,
    numbers: Sequence[int],
    name_of: Callable[[int], str],
) -> tuple[By, str]:
    """Whether the estimate, the width or exploration made the choice; and that in words.

    They say only what the numbers show: the width is named if the policy goes by it, and the chosen
    candidate has a larger one than the candidate with the best estimate.
    """
    estimate, width, correction = scores[:3]
    corrected: Array = estimate + correction
    name = name_of(arm)
    best = max(numbers, key=lambda number: float(corrected[number]))
    if explored:
        return "exploration", (
            f"{name} was drawn at random, in a round that explores: to learn, not for its estimate."
        )
    if corrected[arm] >= corrected[best]:
        same = sum(bool(corrected[number] == corrected[arm]) for number in numbers) - 1
        if same:
            return "otherwise", f"No estimate is higher than that of {name}, and {same} as high."
        if isinstance(policy, BY_WIDTH):
            return "estimate", f"{name} has the highest corrected estimate."
        return "otherwise", (
            f"{name} has the highest corrected estimate; {type(policy).__name__} also draws at "
            "random."
        )
    higher = (
        f"{name_of(best)} has the highest corrected estimate, {corrected[best]:.4g}, and "
        f"{name} was chosen with {corrected[arm]:.4g}"
    )
    if isinstance(policy, BY_WIDTH) and width[arm] > width[best]:
        unsure = "nothing is known about it yet"
        if np.isfinite(width[arm]):
            unsure = f"its width is {width[arm]:.3g}, against {width[best]:.3g}"
        return "width", (
            f"{higher}, because less is known about it ({unsure}): the policy adds a part of the "
            "width, to learn."
        )
    return "otherwise", f"{higher}: this policy does not always choose the highest estimate."


def _words(
    listed: list[Contribution], chosen_values: dict[str, float] | None, encoder: Encoder
) -> list[str]:
    """The four strongest reasons in words; Regulation B asks for no more.

    `chosen_values` are those of the chosen candidate, for one that was not chosen.
    """
    sentences = []
    for reason in listed[:4]:
        size = reason.contribution if chosen_values is None else reason.against_chosen
        if size == 0.0:
            continue
        direction = "raised" if size > 0 else "lowered"
        name = encoder.labels.get(reason.feature, reason.feature)
        value = encoder.shown(reason.feature, reason.value)
        text = f"{name}, {value}," if value else name
        text += f" {direction} the estimate by {abs(size):.3g}"
        if chosen_values is not None:
            chosen_value = encoder.shown(reason.feature, chosen_values[reason.feature])
            text += " compared with the chosen arm" + (f"'s {chosen_value}" if chosen_value else "")
        sentences.append(text)
    return sentences
