"""The description of all routes for OpenAPI 3.1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from evenhand import __version__
from evenhand.events._formats import FORMATS_BY_NAME
from evenhand.service._asgi import Endpoint
from evenhand.service._problems import TITLES
from evenhand.service._routes import EXAMPLE_ID
from evenhand.service.config import Config


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
             "example": EXAMPLE_ID if "decisions" in endpoint.path else "north"}
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
            answer["content"] = {form.media_type: {} for form in FORMATS_BY_NAME.values()}
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
