"""All endpoints, and their description for OpenAPI 3.1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from evenhand import __version__
from evenhand.groups import Groups
from evenhand.service import _wire as wire
from evenhand.service._asgi import Endpoint
from evenhand.service._auth import ADMIN, DECIDE, READ, REVIEW, REWARD
from evenhand.service._features import CATEGORY, TEXT, YES_NO, Feature
from evenhand.service._problems import TITLES
from evenhand.service.config import Config

if TYPE_CHECKING:
    from evenhand.service._service import Service

_REASON = {"reason": "rewards of May are wrong"}
_ID = "0192f3a1-b2c3-7def-8123-456789abcdef"


def endpoints_of(service: Service) -> list[Endpoint]:
    """The routes of the service, the most frequent first."""
    api, admin, review = service.api, service.admin, service.review
    config = service.config
    done = {200: wire.Outcome, 201: wire.Outcome}
    return [
        Endpoint("POST", "/v1/decisions", api.decide, DECIDE, "Decide, or record in shadow mode",
                 api.decision_type, {200: wire.DecisionOut, 201: wire.DecisionOut},
                 example=_candidates(config)),
        Endpoint("PUT", "/v1/decisions/{id}/reward", api.reward, REWARD,
                 "Give the observed reward, the true one, or both", wire.RewardIn, done,
                 example={"observed": 1.0}),
        Endpoint("POST", "/v1/rewards", api.rewards, REWARD, "Give many rewards", wire.RewardsIn,
                 {200: wire.BulkOutcome}, example={"rewards": [{"id": _ID, "observed": 1.0}]}),
        Endpoint("PUT", "/v1/decisions/{id}/override", api.override, REVIEW,
                 "Override a decision, with a reason", wire.OverrideIn, done,
                 example={"arm": config.arms[0], "reason": "knows the applicant"}),
        Endpoint("PUT", "/v1/decisions/{id}/use", api.use, DECIDE,
                 "Confirm that a decision was used", None, done),
        Endpoint("GET", "/v1/decisions", api.search, READ, "Search decisions, the newest first",
                 None, {200: wire.Page},
                 {"after": "the cursor `next` of the page before", "limit": "1 to 1000",
                  "arm": "the name of an arm", "group": "the name of a group",
                  "status": "waiting, rewarded, missing, overridden or shadow",
                  "person": "the id of a person"}),
        Endpoint("GET", "/v1/decisions/export", admin.export, READ,
                 "All decisions in evenhand's log format", None, {200: None},
                 {"format": "csv or parquet"}),
        Endpoint("GET", "/v1/decisions/{id}", api.get, READ, "Look up a decision", None,
                 {200: wire.DecisionView}),
        Endpoint("GET", "/v1/decisions/{id}/reasons", api.reasons, READ,
                 "Why a decision was made, feature by feature", None, {200: wire.ReasonsOut}),
        Endpoint("GET", "/v1/review", review.cases, REVIEW, "The queue of reviewers", None,
                 {200: wire.QueueOut}, {"limit": "1 to 1000"}),
        Endpoint("PUT", "/v1/decisions/{id}/review", review.ask, REVIEW,
                 "Put a decision into the queue of reviewers", None, done),
        Endpoint("PUT", "/v1/decisions/{id}/claim", review.claim, REVIEW,
                 "Claim a decision to look at", wire.ClaimIn, done, example={"by": "Ada"}),
        Endpoint("PUT", "/v1/decisions/{id}/verdict", review.verdict, REVIEW,
                 "Accept a claimed decision, or override it", wire.VerdictIn, done,
                 example={"verdict": "accepted", "by": "Ada"}),
        Endpoint("GET", "/v1/bias", admin.bias, READ, "What was learned about the bias", None,
                 {200: dict}, {"level": "of the intervals, 0.9 by default"}),
        Endpoint("GET", "/v1/shares", admin.shares, READ, "Shares and rewards by group", None,
                 {200: dict}, {"since": "seconds since the start of 1970"}),
        Endpoint("GET", "/v1/waiting", admin.waiting, READ, "Decisions that wait, by group", None,
                 {200: dict}),
        Endpoint("GET", "/v1/arms", admin.arms, READ, "All arms", None, {200: wire.ArmsOut}),
        Endpoint("POST", "/v1/arms", admin.add_arm, ADMIN, "Add an arm", wire.ArmIn, done,
                 example={"name": "south"} if config.groups.changes else
                 {"name": "south", "group": config.groups.labels[0]}),
        Endpoint("PUT", "/v1/arms/{id}", admin.change_arm, ADMIN,
                 "Rename an arm, retire it, or bring it back", wire.ArmChange, {200: wire.Outcome},
                 example={"retired": True}),
        Endpoint("GET", "/v1/model/versions", admin.versions, READ, "The model and its versions",
                 None, {200: dict}),
        Endpoint("POST", "/v1/model/rollback", admin.rollback, ADMIN,
                 "Decide with an older version, or with the newest again", wire.RollbackIn,
                 {201: wire.Outcome}, example={"version": 1, **_REASON}),
        Endpoint("POST", "/v1/pause", admin.pause, REVIEW, "Stop all decisions", wire.ReasonIn,
                 done, example=_REASON),
        Endpoint("POST", "/v1/resume", admin.resume, ADMIN, "Resume decisions", wire.ReasonIn, done,
                 example=_REASON),
        Endpoint("DELETE", "/v1/persons/{id}", admin.erase, ADMIN, "Erase a person", None,
                 {200: wire.Outcome},
                 {"force": "true to erase even within the retention", "reason": "why"}),
        Endpoint("POST", "/v1/keys", admin.add_key, ADMIN, "Make a key", wire.KeyIn,
                 {201: wire.KeyOut}, example={"name": "website", "roles": ["decide", "reward"]}),
        Endpoint("DELETE", "/v1/keys/{id}", admin.withdraw_key, ADMIN, "Withdraw a key", None,
                 {200: wire.Outcome}),
        Endpoint("GET", "/healthz", service.healthz, None, "Whether the process runs", None,
                 {200: wire.Health}),
        Endpoint("GET", "/readyz", service.readyz, None, "Whether it can decide", None,
                 {200: wire.Health, 503: wire.Health}),
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


def _example(feature: Feature) -> Any:
    if feature.type == CATEGORY:
        return feature.values[0]
    if feature.type == YES_NO:
        return True
    if feature.type == TEXT:
        return "only its hash is kept"
    return min(max(1.0, feature.low), feature.high)


def describe(endpoints: Sequence[Endpoint], config: Config) -> dict[str, Any]:
    """The description, with an example of every body."""
    types = {e.takes for e in endpoints if e.takes is not None}
    types |= {t for e in endpoints for t in e.gives.values() if t not in (None, dict)}
    listed = sorted(types, key=lambda kind: kind.__name__)
    refs, parts = msgspec.json.schema_components(listed, ref_template="#/components/schemas/{name}")
    schema = dict(zip(listed, refs, strict=True))
    problem = {
        "type": "object",
        "required": ["type", "title", "status"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "field": {"type": "string"},
        },
    }
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schema)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": config.title,
            "version": __version__,
            "description": "Even-handed decisions from biased feedback. After an answer of 2xx, it "
            "is on disk. After 5xx or no answer, send the same id again: it counts once.",
        },
        "paths": paths,
        "components": {
            "schemas": {**parts, "Problem": problem},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint, schema: dict[Any, Any]) -> dict[str, Any]:
    words = f"{endpoint.method.lower()} {endpoint.path}"
    operation: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", words).strip("_"),
        "summary": endpoint.summary,
        "responses": {},
    }
    doc = (endpoint.handler.__doc__ or "").strip()
    if doc:
        operation["description"] = doc
    if endpoint.role is not None:
        operation["security"] = [{"key": []}]
        operation["description"] = f"{doc} Needs the role {endpoint.role}."
    parameters: list[dict[str, Any]] = []
    if "{id}" in endpoint.path:
        parameters.append(
            {"name": "id", "in": "path", "required": True,
             "schema": {"type": "string", "minLength": 1, "maxLength": 200},
             "example": _ID if "decisions" in endpoint.path else "north"}
        )  # fmt: skip
    for name, words in endpoint.query.items():
        parameters.append(
            {"name": name, "in": "query", "required": False, "description": words,
             "schema": {"type": "string"}}
        )  # fmt: skip
    if parameters:
        operation["parameters"] = parameters
    if endpoint.takes is not None:
        content: dict[str, Any] = {"schema": schema[endpoint.takes]}
        if endpoint.example is not None:
            content["example"] = endpoint.example
        operation["requestBody"] = {"required": True, "content": {"application/json": content}}
    for status, kind in endpoint.gives.items():
        answer: dict[str, Any] = {"description": "Done" if status < 300 else "Not ready"}
        if kind is not None:
            shape = {"type": "object"} if kind is dict else schema[kind]
            answer["content"] = {"application/json": {"schema": shape}}
        elif "export" in endpoint.path:
            answer["content"] = {"text/csv": {}, "application/vnd.apache.parquet": {}}
        else:
            answer["content"] = {"text/plain": {}}
        operation["responses"][str(status)] = answer
    for status in _problems(endpoint):
        operation["responses"].setdefault(str(status), _PROBLEM | {"description": TITLES[status]})
    return operation


_PROBLEM: dict[str, Any] = {
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
}


def _problems(endpoint: Endpoint) -> list[int]:
    """The statuses of problems that may occur."""
    statuses = [421, 422, 503]
    if endpoint.role is not None:
        statuses += [401, 403, 429]
    if endpoint.method != "GET":
        statuses += [400, 409, 413]
    if "{id}" in endpoint.path:
        statuses += [404, 410]
    if endpoint.path == "/v1/decisions" or "model" in endpoint.path:
        statuses += [410]
    return sorted(statuses)
