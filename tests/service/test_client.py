"""The clients: retries that cannot count twice, for threads and for asyncio; and the demo."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys

import httpx
import pytest

import evenhand as eh
import waiting
from evenhand.service.client import ServiceError
from serving import ARMS, candidates, free_port

pytestmark = pytest.mark.slow  # a server, or commands, in processes of their own


@pytest.fixture
def unreliable(running):
    """The server behind a line that loses every answer once."""
    seen = {}

    class Lossy(httpx.HTTPTransport):
        def handle_request(self, request):
            answer = super().handle_request(request)
            key = (request.method, request.url.path, request.content)
            seen[key] = seen.get(key, 0) + 1
            if seen[key] == 1 and request.method != "GET":
                answer.read()
                raise httpx.ReadError("lost")
            return answer

    client = eh.Client(running.url, running.key, transport=Lossy())
    yield client, seen
    client.close()


def test_an_answer_that_was_lost_counts_once(running, unreliable):
    client, seen = unreliable
    before = running.call("GET", "/v1/model/versions").json()
    made = client.decide(candidates(), person="p1")
    client.reward(made["id"], observed=2.0, true=3.0)
    other = next(arm for arm in ARMS if arm != made["arm"])
    second = client.decide(candidates())
    client.override(second["id"], other if other != second["arm"] else made["arm"], "because")
    client.use(second["id"])
    third = client.decide(candidates())
    client.call("PUT", f"/v1/decisions/{third['id']}/review")
    client.claim(third["id"], by="Ada")
    assert third["id"] in [case["id"] for case in client.queue()["queue"]]
    assert client.judge(third["id"], by="Ada")["status"] == 200  # the answer of 201 was lost
    after = running.call("GET", "/v1/model/versions").json()
    assert (after["round"] - before["round"], after["learned"] - before["learned"]) == (3, 1)
    assert {n for (method, *_), n in seen.items() if method != "GET"} == {2}  # all lost once
    assert client.decision(made["id"])["reward"]["value"] == 2.0
    assert client.reasons(made["id"])["same"] is True
    assert client.bias()["words"]


def test_refusals_are_errors_and_are_not_tried_again(running):
    with eh.Client(running.url, running.key) as client:
        with pytest.raises(ServiceError, match="candidates") as caught:
            client.decide([])
        assert caught.value.status == 422
        shadow = client.decide(candidates(), chosen="m2")
        assert (shadow["arm"], shadow["mode"]) == ("m2", "shadow")


def test_the_same_for_asyncio(running):
    async def ask():
        async with eh.AsyncClient(running.url, running.key) as client:
            made = await asyncio.gather(*(client.decide(candidates(k)) for k in range(20)))
            await asyncio.gather(*(client.reward(one["id"], 1.0) for one in made))
            with pytest.raises(ServiceError):
                await client.override(made[0]["id"], "nobody", "because")
            await client.use(made[0]["id"])
            assert (await client.decision(made[0]["id"]))["reward"]["value"] == 1.0
            assert (await client.reasons(made[0]["id"]))["same"]
            return {one["id"] for one in made}, await client.bias()

    ids, bias = asyncio.run(ask())
    assert len(ids) == 20 and bias["level"] == 0.9


def test_it_gives_up_after_some_tries():
    told = []

    def down(request):
        told.append(json.loads(request.content)["id"])
        return httpx.Response(503, json={"detail": "the store is not available"})

    client = eh.Client("http://x", "k", tries=2, transport=httpx.MockTransport(down))
    with pytest.raises(Exception, match="the store is not available"):
        client.decide(candidates())
    assert len(told) == 2 and len(set(told)) == 1  # the same id both times
    client.close()


def test_the_demo_is_alive(tmp_path):
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "evenhand", "serve", "--demo", "--port", str(port)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        lines = []
        while not lines or "first login" not in lines[-1]:
            lines.append(process.stdout.readline())
            assert lines[-1], "it ended"
        url = f"http://127.0.0.1:{port}"
        token = re.search(r"token=(\S+)", lines[-1])[1]
        form = {"token": token, "name": "Ada", "password": "correct horse"}
        with waiting.Client(base_url=url, follow_redirects=True) as browser:
            assert browser.post("/login", data=form).status_code == 200
            while "Group black got" not in (text := browser.get("/").text):
                assert process.poll() is None
            assert "decisions were made" in text
            while not (
                ids := re.findall(r'href="/decisions/([^"?]+)"', browser.get("/decisions").text)
            ):
                assert process.poll() is None
            assert (
                "recomputed from it, the decision is the same"
                in browser.get(f"/decisions/{ids[0]}").text
            )
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        process.stdout.close()
