"""Bodies of requests and answers. msgspec checks them, and describes them for OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from evenhand._checks import LARGEST
from evenhand.groups import Groups
from evenhand.service._auth import Role
from evenhand.service._features import Encoder

ID = r"^[A-Za-z0-9._~:@-]{1,200}$"
Id = Annotated[str, Meta(pattern=ID, description="Letters, digits and . _ ~ : @ -")]
# PostgreSQL cannot keep the character 0; in names no control character makes sense.
Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Words = Annotated[str, Meta(min_length=1, max_length=2000, pattern=r"^[^\x00]+$")]
Number = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
By = Literal["estimate", "width", "exploration", "otherwise"]  # what made a choice


class RewardIn(Struct, forbid_unknown_fields=True):
    """An observed reward, the true one, or both."""

    observed: Number | None = None
    true: Number | None = None


class OverrideIn(Struct, forbid_unknown_fields=True):
    """An arm other than the chosen one, and why."""

    arm: Name
    reason: Words
    by: Name | None = None


class BulkReward(Struct, forbid_unknown_fields=True):
    """One of many rewards."""

    id: Id
    observed: Number | None = None
    true: Number | None = None


class RewardsIn(Struct, forbid_unknown_fields=True):
    """Many rewards."""

    rewards: Annotated[list[BulkReward], Meta(min_length=1, max_length=10_000)]


class ArmIn(Struct, forbid_unknown_fields=True):
    """A new arm. It has no group where candidates bring theirs."""

    name: Name
    group: Name | None = None


class ArmChange(Struct, forbid_unknown_fields=True):
    """A new name, or whether the arm can still be chosen."""

    name: Name | None = None
    retired: bool | None = None


class ClaimIn(Struct, forbid_unknown_fields=True):
    """Who reviews a decision; by default the name of the key."""

    by: Name | None = None


class VerdictIn(Struct, forbid_unknown_fields=True):
    """What a reviewer says: accepted, or overridden with another arm and a reason."""

    verdict: Literal["accepted", "overridden"]
    arm: Name | None = None
    reason: Words | None = None
    by: Name | None = None


class RollbackIn(Struct, forbid_unknown_fields=True):
    """The version that decides from now on; null for the newest, which learns."""

    version: Annotated[int, Meta(ge=1, le=2**53)] | None
    reason: Words


class ReasonIn(Struct, forbid_unknown_fields=True):
    """The reason."""

    reason: Words


class KeyIn(Struct, forbid_unknown_fields=True):
    """A key to be made."""

    name: Name
    roles: Annotated[list[Role], Meta(min_length=1, max_length=5)]


class Scores(Struct, omit_defaults=True):
    """By candidate, in columns. Where nothing is known, the width is null and known is false."""

    arm: list[str]
    group: list[str]
    propensity: list[float]
    estimate: list[float]
    correction: list[float]
    width: list[float | None]
    known: list[bool]


class DecisionOut(Struct):
    """A decision.

    `arm` and `group` are those in force: after an override, those of the human's arm. The policy
    chose `policy_arm`, with the probability `policy_propensity`. A human's arm has none.
    """

    id: str
    arm: str
    group: str
    policy_propensity: float
    explored: bool
    round: int
    version: int
    at: str
    mode: Literal["decide", "shadow"]
    policy_arm: str
    candidates: Scores


class RewardView(Struct):
    """A reward that came."""

    value: float
    at: str
    late: bool = False


class OverrideView(Struct):
    """An override."""

    arm: str
    group: str
    reason: str
    by: str
    at: str
    shadow: bool


class DecisionView(DecisionOut):
    """A decision with everything that happened since."""

    contexts: dict[str, list[float | None]]
    hashed: list[list[str]]
    waits_until: str | None
    used_at: str | None
    reward: RewardView | None
    true_reward: RewardView | None
    override: OverrideView | None


class Line(Struct):
    """A decision in a list."""

    id: str
    at: str
    arm: str
    group: str
    reward: float | None
    waiting: bool
    missing: bool
    overridden: bool


class Page(Struct):
    """Decisions, the newest first. `next` is the cursor of the page after it."""

    decisions: list[Line]
    next: str | None


class Contribution(Struct):
    """What a feature adds to a corrected estimate, alone and compared with the chosen arm.

    The value is what the policy saw: a number, or 1 or 0 for yes or no. A category has a feature
    for every value except the first. Texts are not features of the policy; hashes of them are kept.
    """

    feature: str
    value: float
    contribution: float
    against_chosen: float


class CandidateReasons(Struct):
    """Why a candidate ranks where it does, the strongest reason first."""

    arm: str
    group: str
    chosen: bool
    corrected_estimate: float
    reasons: list[Contribution]
    words: list[str]


class ReasonsOut(Struct):
    """The reasons of the policy's decision, even if a human chose another arm later."""

    id: str
    version: int
    same: bool
    decided_by: By
    words: str
    candidates: list[CandidateReasons]


class Case(Struct):
    """A decision that waits for a human. An expired claim is not shown."""

    id: str
    at: str
    arm: str
    group: str
    claimed_by: str | None
    claimed_until: str | None


class Reviewer(Struct):
    """How often a reviewer changed anything, and how long they looked."""

    reviewer: str
    reviewed: int
    changed: float
    median_seconds: float


class QueueOut(Struct):
    """The decisions that wait for a human, the oldest first, and what reviewers did."""

    queue: list[Case]
    reviewers: list[Reviewer]


class Outcome(Struct):
    """The outcome of a request."""

    status: int
    detail: str = ""


class BulkOutcome(Struct):
    """The outcome for each reward, in their order."""

    rewards: list[Outcome]


class ArmOut(Struct):
    """An arm; its group is null where candidates bring theirs."""

    name: str
    group: str | None
    retired: bool


class ArmsOut(Struct):
    """All arms, in their order."""

    arms: list[ArmOut]


class KeyOut(Struct):
    """A new key. It is shown once; only its hash is kept."""

    name: str
    roles: list[str]
    key: str


class Health(Struct):
    """Whether the service runs."""

    status: str
    version: int | None = None
    detail: str = ""


def decision_in(encoder: Encoder, groups: Groups, arms: int, most: int) -> type[Struct]:
    """The body of a decision, for the features and groups of a configuration."""
    value: Any = float if encoder.only_numbers else float | bool | str
    group: Any = ("group", str | None, None)  # that of the arm, which may be repeated
    if groups.changes:
        level = str | dict[str, float] | None
        several = len(groups.attributes) > 1
        group = ("group", Annotated[
            dict[str, level] | None if several else level,
            Meta(description=_group_words(groups)),
        ])  # fmt: skip
    candidate = msgspec.defstruct(
        "Candidate",
        [("arm", str), ("features", dict[str, value] | list[value]), group],
        forbid_unknown_fields=True,
        gc=False,
    )
    return msgspec.defstruct(
        "DecisionIn",
        [
            (
                "candidates",
                Annotated[list[candidate], Meta(min_length=1, max_length=max(most, arms))],  # type: ignore[valid-type]
            ),
            ("id", Id | None, None),
            ("person", Name | None, None),
            ("available", Annotated[list[str], Meta(max_length=max(most, arms))] | None, None),
            ("mode", Literal["decide", "shadow"], "decide"),
            ("chosen", str | None, None),
        ],
        forbid_unknown_fields=True,
        gc=False,
    )


def _group_words(groups: Groups) -> str:
    """What a candidate's group may be, in words."""
    levels = {attribute.name: ", ".join(attribute.levels) for attribute in groups.attributes}
    if len(levels) == 1:
        return f"One of {levels.popitem()[1]}; their probabilities; or null if they did not say."
    listed = "; ".join(f"{name} is one of {words}" for name, words in levels.items())
    return f"By attribute a level, their probabilities, or null if they did not say: {listed}."
