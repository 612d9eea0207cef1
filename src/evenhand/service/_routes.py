"""The routes of the API: method, path, handler, role, bodies and an example of each.

A new route is a line here and a handler in `_api`, `_admin` or `_review`; its bodies are in
`_bodies`. The description for OpenAPI follows from the list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenhand.events._formats import FORMATS_BY_NAME
from evenhand.groups import Groups
from evenhand.service import _bodies as bodies
from evenhand.service._asgi import Endpoint
from evenhand.service._auth import ADMIN, DECIDE, READ, REVIEW, REWARD
from evenhand.service._features import CATEGORY, TEXT, YES_NO, CandidateFeature
from evenhand.service.config import Config

if TYPE_CHECKING:
    from evenhand.service._service import Service

EXAMPLE_ID = "0192f3a1-b2c3-7def-8123-456789abcdef"
_REASON = {"reason": "rewards of May are wrong"}


def endpoints_of(service: Service) -> list[Endpoint]:
    """The routes of the service, the most frequent first."""
    api, admin, review = service.api, service.admin, service.review
    config = service.config
    done = {200: bodies.Outcome, 201: bodies.Outcome}
    return [
        Endpoint("POST", "/v1/decisions", api.decide, DECIDE, "Decide, or record in shadow mode",
                 api.decision_type, {200: bodies.DecisionOut, 201: bodies.DecisionOut},
                 example=_candidates(config)),
        Endpoint("PUT", "/v1/decisions/{id}/reward", api.reward, REWARD,
                 "Give the observed reward, the true one, or both", bodies.RewardIn, done,
                 example={"observed": 1.0}),
        Endpoint("POST", "/v1/rewards", api.rewards, REWARD, "Give many rewards", bodies.RewardsIn,
                 {200: bodies.BulkOutcome},
                 example={"rewards": [{"id": EXAMPLE_ID, "observed": 1.0}]}),
        Endpoint("PUT", "/v1/decisions/{id}/override", api.override, REVIEW,
                 "Override a decision, with a reason", bodies.OverrideIn, done,
                 example={"arm": config.arms[0], "reason": "knows the applicant"}),
        Endpoint("PUT", "/v1/decisions/{id}/use", api.use, DECIDE,
                 "Confirm that a decision was used", None, done),
        Endpoint("GET", "/v1/decisions", api.search, READ, "Search decisions, the newest first",
                 None, {200: bodies.Page},
                 {"after": "the cursor `next` of the page before", "limit": "1 to 1000",
                  "arm": "the name of an arm", "group": "the name of a group",
                  "status": "waiting, rewarded, missing, overridden or shadow",
                  "person": "the id of a person"}),
        Endpoint("GET", "/v1/decisions/export", admin.export, READ,
                 "All decisions in evenhand's log format", None, {200: None},
                 {"format": " or ".join(FORMATS_BY_NAME)}),
        Endpoint("GET", "/v1/decisions/{id}", api.get, READ, "Look up a decision", None,
                 {200: bodies.DecisionView}),
        Endpoint("GET", "/v1/decisions/{id}/reasons", api.reasons, READ,
                 "Why a decision was made, feature by feature", None, {200: bodies.ReasonsOut}),
        Endpoint("GET", "/v1/review", review.cases, REVIEW, "The queue of reviewers", None,
                 {200: bodies.QueueOut}, {"limit": "1 to 1000"}),
        Endpoint("PUT", "/v1/decisions/{id}/review", review.ask, REVIEW,
                 "Put a decision into the queue of reviewers", None, done),
        Endpoint("PUT", "/v1/decisions/{id}/claim", review.claim, REVIEW,
                 "Claim a decision to look at", bodies.ClaimIn, done, example={"by": "Ada"}),
        Endpoint("PUT", "/v1/decisions/{id}/verdict", review.verdict, REVIEW,
                 "Accept a claimed decision, or override it", bodies.VerdictIn, done,
                 example={"verdict": "accepted", "by": "Ada"}),
        Endpoint("GET", "/v1/bias", admin.bias, READ, "What was learned about the bias", None,
                 {200: dict}, {"level": "of the intervals, 0.9 by default"}),
        Endpoint("GET", "/v1/shares", admin.shares, READ, "Shares and rewards by group", None,
                 {200: dict}, {"since": "seconds since the start of 1970"}),
        Endpoint("GET", "/v1/waiting", admin.waiting, READ, "Decisions that wait, by group", None,
                 {200: dict}),
        Endpoint("GET", "/v1/arms", admin.arms, READ, "All arms", None, {200: bodies.ArmsOut}),
        Endpoint("POST", "/v1/arms", admin.add_arm, ADMIN, "Add an arm", bodies.ArmIn, done,
                 example={"name": "south"} if config.groups.changes else
                 {"name": "south", "group": config.groups.labels[0]}),
        Endpoint("PUT", "/v1/arms/{id}", admin.change_arm, ADMIN,
                 "Rename an arm, retire it, or bring it back", bodies.ArmChange,
                 {200: bodies.Outcome},
                 example={"retired": True}),
        Endpoint("GET", "/v1/model/versions", admin.versions, READ, "The model and its versions",
                 None, {200: dict}),
        Endpoint("POST", "/v1/model/rollback", admin.rollback, ADMIN,
                 "Decide with an older version, or with the newest again", bodies.RollbackIn,
                 {201: bodies.Outcome}, example={"version": 1, **_REASON}),
        Endpoint("POST", "/v1/pause", admin.pause, REVIEW, "Stop all decisions", bodies.ReasonIn,
                 done, example=_REASON),
        Endpoint("POST", "/v1/resume", admin.resume, ADMIN, "Resume decisions", bodies.ReasonIn,
                 done, example=_REASON),
        Endpoint("DELETE", "/v1/persons/{id}", admin.erase, ADMIN, "Erase a person", None,
                 {200: bodies.Outcome},
                 {"force": "true to erase even within the retention", "reason": "why"}),
        Endpoint("POST", "/v1/keys", admin.add_key, ADMIN, "Make a key", bodies.KeyIn,
                 {201: bodies.KeyOut}, example={"name": "website", "roles": ["decide", "reward"]}),
        Endpoint("DELETE", "/v1/keys/{id}", admin.withdraw_key, ADMIN, "Withdraw a key", None,
                 {200: bodies.Outcome}),
        Endpoint("GET", "/healthz", service.healthz, None, "Whether the process runs", None,
                 {200: bodies.Health}),
        Endpoint("GET", "/readyz", service.readyz, None, "Whether it can decide", None,
                 {200: bodies.Health, 503: bodies.Health}),
        Endpoint("GET", "/metrics", service.metrics_text, READ, "Numbers for Prometheus", None,
                 {200: None}),
        Endpoint("GET", "/openapi.json", service.description, None, "This description", None,
                 {200: dict}),
    ]  # fmt: skip


def _candidates(config: Config) -> dict[str, Any]:
    features = {feature.name: _example(feature) for feature in config.features}
    listed = [{"arm": arm, "features": features} for arm in config.arms[:2]]
    if config.groups.changes:
        for number, candidate in enumerate(listed):
            candidate["group"] = _group(config.groups, number)
    return {"candidates": listed}


def _group(groups: Groups, number: int) -> Any:
    """The group of a candidate in an example: a level or, for the second one, probabilities."""
    example: dict[str, Any] = {}
    for attribute in groups.attributes:
        first, second = attribute.levels[:2]
        example[attribute.name] = first if number == 0 else {first: 0.25, second: 0.75}
    return example if len(example) > 1 else example.popitem()[1]


def _example(feature: CandidateFeature) -> Any:
    if feature.type == CATEGORY:
        return feature.values[0]
    if feature.type == YES_NO:
        return True
    if feature.type == TEXT:
        return "only its hash is kept"
    return min(max(1.0, feature.low), feature.high)
