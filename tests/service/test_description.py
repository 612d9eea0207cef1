"""The OpenAPI description, and requests generated from it: none ends in a server error."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

import waiting
from forking import Forked
from serving import GIVEN, TWO_ATTRIBUTES, make_key, write_config

pytestmark = pytest.mark.slow  # a server, or commands, in processes of their own


@pytest.fixture(scope="module", params=["sqlite", "postgresql", "given", "two attributes"])
def server(request, nursery, tmp_path_factory):
    folder = tmp_path_factory.mktemp("description")
    store = "sqlite:loans.db"
    if request.param == "postgresql":
        store = request.getfixturevalue("server_of_postgres").database("described")
    groups = {"given": GIVEN, "two attributes": TWO_ATTRIBUTES}.get(request.param, {})
    config = write_config(folder, store=store, **groups)
    with Forked(nursery, config, make_key(config)) as server:
        server.described = server.call("GET", "/openapi.json").json()["paths"]
        yield server


def test_no_request_is_a_server_error(server):
    schema = schemathesis.openapi.from_dict(server.call("GET", "/openapi.json").json())
    seen = set()
    for result in schema.get_all_operations():
        operation = result.ok()

        @given(case=operation.as_strategy())
        @settings(max_examples=10, suppress_health_check=list(HealthCheck))
        def ask(case):
            check(server, case)
            seen.add((case.operation.method, case.operation.path))

        ask()
    assert len(seen) > 25


def check(server, case) -> None:
    """No server error, only statuses that are described, and problems that are problems."""
    case.headers = {**(case.headers or {}), "Authorization": f"Bearer {server.key}"}
    answer = case.call(base_url=server.url)
    where = f"{case.operation.method} {case.operation.path}: {answer.text}"
    paused = answer.status_code == 503 and "paused" in answer.text
    assert answer.status_code < 500 or paused, where
    described = server.described[case.operation.path][case.operation.method.lower()]["responses"]
    assert str(answer.status_code) in {*described, "405"}, f"{answer.status_code} {where}"
    if answer.status_code >= 400:
        assert "problem+json" in str(answer.headers["content-type"]), where
        assert {"type", "title", "status"} <= answer.json().keys()


def test_every_operation_has_a_description_and_every_body_an_example(server):
    description = server.call("GET", "/openapi.json").json()
    for path, methods in description["paths"].items():
        for operation in methods.values():
            assert operation["summary"] and operation["description"], path
            if "requestBody" in operation:
                assert "example" in operation["requestBody"]["content"]["application/json"], path


def test_the_examples_work(server):
    description = server.call("GET", "/openapi.json").json()
    operation = description["paths"]["/v1/decisions"]["post"]
    body = operation["requestBody"]["content"]["application/json"]["example"]
    assert server.call("POST", "/v1/decisions", body).status_code == 201
    assert waiting.get(f"{server.url}/healthz").json()["status"] == "ok"
