"""Why a decision was made: by the estimate of which candidate, and by which features."""

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
from evenhand.service._ledger.database import Connection
from evenhand.service._ledger.fold import Arm, restored
from evenhand.service._problems import Problem
from evenhand.service._queries import body_and_seed, groups_of

# They choose the highest sum of corrected estimate and (a part of) the width, if not at random.
BY_WIDTH = (PooledGroupFair, TopInterval, GroupFairTopInterval, MultiGroupFairTopInterval)
Array = NDArray[np.float64]


def reasons(connection: Connection, id: str, names: Sequence[Arm], encoder: Encoder) -> ReasonsOut:
    """It is made again on its version, feature by feature."""
    body, seed = body_and_seed(connection, id)
    try:
        state = restored(connection, body.version)
    except InputError as error:
        raise Problem(410, "an erasure makes the version of this decision unknown") from error
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
        beside = None if is_chosen else dict(zip(state.features, values[body.arm], strict=False))
        candidates.append(
            CandidateReasons(
                names[number].name, group, is_chosen, float(table[number].sum()), listed,
                _words(listed, beside, encoder),
            )
        )  # fmt: skip
    candidates.sort(key=lambda candidate: (not candidate.chosen, -candidate.corrected_estimate))
    # As kept they are rounded, which would make ties and break them.
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

    Only what the numbers show is said: the width is named if the policy goes by it, and that of
    the chosen candidate is larger than that of the one with the best estimate.
    """
    estimate, width, correction = scores[:3]
    corrected: Array = estimate + correction
    name = name_of(arm)
    best = max(numbers, key=lambda number: float(corrected[number]))
    if explored:
        return "exploration", (
            f"{name} was drawn in a round that explores: to learn, and not for its estimate."
        )
    if corrected[arm] >= corrected[best]:
        same = sum(bool(corrected[number] == corrected[arm]) for number in numbers) - 1
        if same:
            return "otherwise", f"No estimate is higher than that of {name}, and {same} as high."
        if isinstance(policy, BY_WIDTH):
            return "estimate", f"{name} has the highest corrected estimate."
        return "otherwise", (
            f"{name} has the highest corrected estimate; {type(policy).__name__} draws by lot as "
            "well."
        )
    higher = (
        f"{name_of(best)} has the highest corrected estimate, {corrected[best]:.4g}, and "
        f"{name} was chosen with {corrected[arm]:.4g}"
    )
    if isinstance(policy, BY_WIDTH) and width[arm] > width[best]:
        unsure = "nothing is known of it yet"
        if np.isfinite(width[arm]):
            unsure = f"its width is {width[arm]:.3g} beside {width[best]:.3g}"
        return "width", (
            f"{higher}, because less is known of it ({unsure}): the policy adds a part of the "
            "width, to learn."
        )
    return "otherwise", f"{higher}: this policy does not always choose the highest estimate."


def _words(
    listed: list[Contribution], beside: dict[str, float] | None, encoder: Encoder
) -> list[str]:
    """The four strongest reasons in words; Regulation B asks for no more.

    `beside` has the values of the chosen candidate, for one that was not chosen.
    """
    said = []
    for reason in listed[:4]:
        size = reason.contribution if beside is None else reason.against_chosen
        if size == 0.0:
            continue
        direction = "raised" if size > 0 else "lowered"
        name = encoder.labels.get(reason.feature, reason.feature)
        value = encoder.shown(reason.feature, reason.value)
        text = f"{name}, {value}," if value else name
        text += f" {direction} the estimate by {abs(size):.3g}"
        if beside is not None:
            its = encoder.shown(reason.feature, beside[reason.feature])
            text += " beside the chosen arm" + (f" with {its}" if its else "")
        said.append(text)
    return said
