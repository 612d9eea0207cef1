"""The OpenAPI description, and whatever can be made from it: no request ends in a server error."""

from __future__ import annotations

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from serving import Server, make_key, write_config


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("description")
    config = write_config(folder)
    with Server(config, make_key(config)) as server:
        yield server


@pytest.fixture(scope="module")
def described(server):
    return schemathesis.openapi.from_dict(server.call("GET", "/openapi.json").json())


schema = schemathesis.pytest.from_fixture("described")


@pytest.mark.slow
@schema.parametrize()
@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
def test_no_request_is_a_server_error(case, server):
    case.headers = {**(case.headers or {}), "Authorization": f"Bearer {server.key}"}
    answer = case.call(base_url=server.url)
    paused = answer.status_code == 503 and "paused" in answer.text
    assert answer.status_code < 500 or paused, answer.text
    described_here = {str(status) for status in case.operation.responses.status_codes}
    assert str(answer.status_code) in described_here | {"405"}, answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"].startswith("application/problem+json")
        assert {"type", "title", "status"} <= answer.json().keys()


def test_every_operation_has_words_and_every_body_an_example(server):
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
    assert httpx.get(f"{server.url}/healthz", timeout=60).json()["status"] == "ok"
