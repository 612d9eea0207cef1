"""A client of the service. It tries again if no answer comes, and nothing counts twice.

Every decision gets an id before it is sent, so the same request can be sent again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self
from urllib.parse import quote

import httpx
import stamina

from evenhand.errors import EvenhandError
from evenhand.service._ids import new_id

Candidates = Sequence[Mapping[str, Any]]
TRIES, TIMEOUT = 8, 10.0


class ServiceError(EvenhandError):
    """The service refused a request. The message is that of the service.

    Example:
        >>> from evenhand.service.client import ServiceError
        >>> error = ServiceError(422, {"title": "A field is not allowed", "field": "candidates"})
        >>> str(error), error.status
        ('A field is not allowed: candidates', 422)
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status, self.problem = status, dict(problem)
        parts = [problem.get("field", ""), problem.get("detail", "")]
        reason = " ".join(part for part in parts if part)
        title = problem.get("title", f"status {status}")
        super().__init__(f"{title}: {reason}" if reason else title)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.problem)


class _Again(Exception):
    """No answer, or one that says to try again."""


def _answer(response: httpx.Response) -> Any:
    if response.status_code in (429, 502, 503, 504):
        try:
            problem = response.json()
        except ValueError:
            problem = {}
        if "paused" in problem.get("detail", ""):  # by a human, so trying again does not help
            raise ServiceError(response.status_code, problem)
        raise _Again(problem.get("detail", f"status {response.status_code}"))
    if response.status_code >= 400:
        try:
            problem = response.json()
        except ValueError:
            problem = {"title": f"status {response.status_code}"}
        raise ServiceError(response.status_code, problem)
    if response.headers.get("content-type", "").startswith("application/json"):
        return response.json()
    return response.content


class _Calls:
    """The calls of both clients. `call` sends them: at once, or when it is awaited."""

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Any other call; all calls of the service can be sent again."""
        raise NotImplementedError

    def decide(
        self,
        candidates: Candidates,
        id: str | None = None,
        person: str | None = None,
        chosen: str | None = None,
    ) -> Any:
        """Choose among candidates; with `chosen`, record your own choice in shadow mode.

        A candidate has an arm, its features and, where candidates bring them, its group: a level,
        probabilities of the levels, or None for not stated.
        """
        body: dict[str, Any] = {"id": id or new_id(), "candidates": list(candidates)}
        if person is not None:
            body["person"] = person
        if chosen is not None:
            body |= {"mode": "shadow", "chosen": chosen}
        return self.call("POST", "/v1/decisions", body)

    def reward(self, id: str, observed: float | None = None, true: float | None = None) -> Any:
        """Give the observed reward of a decision, the true one, or both."""
        return self.call("PUT", _of(id, "/reward"), _given(observed=observed, true=true))

    def override(self, id: str, arm: str, reason: str) -> Any:
        """Override a decision."""
        return self.call("PUT", _of(id, "/override"), {"arm": arm, "reason": reason})

    def use(self, id: str) -> Any:
        """Confirm that a decision was used."""
        return self.call("PUT", _of(id, "/use"))

    def decision(self, id: str) -> Any:
        """A decision and everything that happened to it."""
        return self.call("GET", _of(id))

    def reasons(self, id: str) -> Any:
        """Why a decision was made."""
        return self.call("GET", _of(id, "/reasons"))

    def bias(self) -> Any:
        """What was learned about the bias."""
        return self.call("GET", "/v1/bias")

    def queue(self) -> Any:
        """The decisions that wait for a reviewer, and what reviewers did."""
        return self.call("GET", "/v1/review")

    def claim(self, id: str, by: str | None = None) -> Any:
        """Claim a decision to review; others cannot until the claim expires."""
        return self.call("PUT", _of(id, "/claim"), _given(by=by))

    def judge(
        self, id: str, arm: str | None = None, reason: str | None = None, by: str | None = None
    ) -> Any:
        """Accept a decision that you have claimed or, with `arm` and `reason`, override it."""
        verdict = "accepted" if arm is None else "overridden"
        body = {"verdict": verdict, **_given(arm=arm, reason=reason, by=by)}
        return self.call("PUT", _of(id, "/verdict"), body)


def _of(id: str, part: str = "") -> str:
    return f"/v1/decisions/{quote(id, safe='')}{part}"


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


class Client(_Calls):
    """Decide, reward and override over HTTP, from one thread.

    Args:
        url: where the service is, such as "http://127.0.0.1:8321".
        key: a key with the roles that are needed.
        tries: how often a request is sent until there is an answer.
        timeout: how many seconds to wait for each.
        transport: of httpx, for tests.

    Example:
        >>> import httpx
        >>> from evenhand.service.client import Client
        >>> answers = httpx.MockTransport(lambda request: httpx.Response(201, json={"arm": "f1"}))
        >>> with Client("http://127.0.0.1:8321", "eh_...", transport=answers) as client:
        ...     client.decide([{"arm": "f1", "features": {"income": 30}}])["arm"]
        'f1'
        >>> def echo(request):  # a service that answers with what it was asked
        ...     return httpx.Response(200, json=f"{request.method} {request.url.path}")
        >>> client = Client("http://127.0.0.1:8321", "eh_...", transport=httpx.MockTransport(echo))
        >>> client.reward("loan-3", observed=1.0), client.use("loan-3")
        ('PUT /v1/decisions/loan-3/reward', 'PUT /v1/decisions/loan-3/use')
        >>> client.claim("loan-3", by="Ann"), client.judge("loan-3", by="Ann")
        ('PUT /v1/decisions/loan-3/claim', 'PUT /v1/decisions/loan-3/verdict')
        >>> client.override("loan-3", arm="m1", reason="promised"), client.decision("loan-3")
        ('PUT /v1/decisions/loan-3/override', 'GET /v1/decisions/loan-3')
        >>> client.reasons("loan-3"), client.bias(), client.queue()
        ('GET /v1/decisions/loan-3/reasons', 'GET /v1/bias', 'GET /v1/review')
        >>> client.call("GET", "/v1/arms")
        'GET /v1/arms'
        >>> client.close()
    """

    def __init__(
        self,
        url: str,
        key: str,
        tries: int = TRIES,
        timeout: float = TIMEOUT,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=timeout,
            transport=transport,
        )  # fmt: skip
        self._tries = tries

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Any other call; all calls of the service can be sent again."""
        for attempt in stamina.retry_context(on=_Again, attempts=self._tries, timeout=None):
            with attempt:
                try:
                    return _answer(self._http.request(method, path, json=body))
                except httpx.TransportError as error:
                    raise _Again(str(error) or type(error).__name__) from error
        raise AssertionError

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(_Calls):
    """The same for asyncio: every call is awaited.

    Args:
        url: where the service is, such as "http://127.0.0.1:8321".
        key: a key with the roles that are needed.
        tries: how often a request is sent until there is an answer.
        timeout: how many seconds to wait for each.
        transport: of httpx, for tests.

    Example:
        >>> import asyncio, httpx
        >>> from evenhand.service.client import AsyncClient
        >>> answers = httpx.MockTransport(lambda request: httpx.Response(201, json={"arm": "f1"}))
        >>> async def ask():
        ...     async with AsyncClient("http://127.0.0.1:8321", "eh_...", transport=answers) as it:
        ...         return await it.decide([{"arm": "f1", "features": {"income": 30}}])
        >>> asyncio.run(ask())
        {'arm': 'f1'}
        >>> def echo(request):  # a service that answers with what it was asked
        ...     return httpx.Response(200, json=f"{request.method} {request.url.path}")
        >>> service = httpx.MockTransport(echo)
        >>> async def review(id):
        ...     client = AsyncClient("http://127.0.0.1:8321", "eh_...", transport=service)
        ...     asked = [client.queue(), client.claim(id), client.decision(id), client.reasons(id),
        ...              client.judge(id), client.override(id, arm="m1", reason="promised"),
        ...              client.use(id), client.reward(id, true=1.0), client.bias(),
        ...              client.call("GET", "/v1/arms")]
        ...     answers = await asyncio.gather(*asked)
        ...     await client.close()
        ...     return answers
        >>> asyncio.run(review("loan-3"))[:2]
        ['GET /v1/review', 'PUT /v1/decisions/loan-3/claim']
    """

    def __init__(
        self,
        url: str,
        key: str,
        tries: int = TRIES,
        timeout: float = TIMEOUT,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=timeout,
            transport=transport,
        )  # fmt: skip
        self._tries = tries

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """Any other call; all calls of the service can be sent again."""
        async for attempt in stamina.retry_context(on=_Again, attempts=self._tries, timeout=None):
            with attempt:
                try:
                    return _answer(await self._http.request(method, path, json=body))
                except httpx.TransportError as error:
                    raise _Again(str(error) or type(error).__name__) from error
        raise AssertionError

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
