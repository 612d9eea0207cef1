"""A client of the service. It tries again when an answer does not come, and nothing counts twice.

Every decision gets an id before it is sent, so the same request can be sent again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self
from urllib.parse import quote

import httpx
import stamina

from evenhand.errors import EvenhandError
from evenhand.service._uuid import new_id

Candidates = Sequence[Mapping[str, Any]]
TRIES, TIMEOUT = 8, 10.0


class ServiceError(EvenhandError):
    """The service refused a request. The message says what it said.

    Example:
        >>> from evenhand.service.client import ServiceError
        >>> error = ServiceError(422, {"title": "A field is not allowed", "field": "candidates"})
        >>> str(error), error.status
        ('A field is not allowed: candidates', 422)
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status, self.problem = status, dict(problem)
        parts = [problem.get("field", ""), problem.get("detail", "")]
        said = " ".join(part for part in parts if part)
        title = problem.get("title", f"status {status}")
        super().__init__(f"{title}: {said}" if said else title)

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
        if "paused" in problem.get("detail", ""):  # by a human, so it will not help to try again
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
    """What both clients ask for: method, path and body of every call."""

    @staticmethod
    def _decision(
        candidates: Candidates, id: str | None, person: str | None, chosen: str | None
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"id": id or new_id(), "candidates": list(candidates)}
        if person is not None:
            body["person"] = person
        if chosen is not None:
            body |= {"mode": "shadow", "chosen": chosen}
        return body

    @staticmethod
    def _reward(observed: float | None, true: float | None) -> dict[str, float]:
        given = {"observed": observed, "true": true}
        return {name: value for name, value in given.items() if value is not None}

    @staticmethod
    def _of(id: str, what: str = "") -> str:
        return f"/v1/decisions/{quote(id, safe='')}{what}"


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

    def decide(
        self,
        candidates: Candidates,
        id: str | None = None,
        person: str | None = None,
        chosen: str | None = None,
    ) -> Any:
        """Choose among candidates; with `chosen`, record your own choice in shadow mode."""
        return self.call("POST", "/v1/decisions", self._decision(candidates, id, person, chosen))

    def reward(self, id: str, observed: float | None = None, true: float | None = None) -> Any:
        """Give the observed reward of a decision, the true one, or both."""
        return self.call("PUT", self._of(id, "/reward"), self._reward(observed, true))

    def override(self, id: str, arm: str, reason: str) -> Any:
        """Overrule a decision."""
        return self.call("PUT", self._of(id, "/override"), {"arm": arm, "reason": reason})

    def use(self, id: str) -> Any:
        """Say that a decision was used."""
        return self.call("PUT", self._of(id, "/use"))

    def decision(self, id: str) -> Any:
        """A decision and what happened to it."""
        return self.call("GET", self._of(id))

    def reasons(self, id: str) -> Any:
        """Why a decision was made."""
        return self.call("GET", self._of(id, "/reasons"))

    def bias(self) -> Any:
        """What was learned of the bias."""
        return self.call("GET", "/v1/bias")

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

    async def decide(
        self,
        candidates: Candidates,
        id: str | None = None,
        person: str | None = None,
        chosen: str | None = None,
    ) -> Any:
        """Choose among candidates; with `chosen`, record your own choice in shadow mode."""
        body = self._decision(candidates, id, person, chosen)
        return await self.call("POST", "/v1/decisions", body)

    async def reward(
        self, id: str, observed: float | None = None, true: float | None = None
    ) -> Any:
        """Give the observed reward of a decision, the true one, or both."""
        return await self.call("PUT", self._of(id, "/reward"), self._reward(observed, true))

    async def override(self, id: str, arm: str, reason: str) -> Any:
        """Overrule a decision."""
        return await self.call("PUT", self._of(id, "/override"), {"arm": arm, "reason": reason})

    async def use(self, id: str) -> Any:
        """Say that a decision was used."""
        return await self.call("PUT", self._of(id, "/use"))

    async def decision(self, id: str) -> Any:
        """A decision and what happened to it."""
        return await self.call("GET", self._of(id))

    async def reasons(self, id: str) -> Any:
        """Why a decision was made."""
        return await self.call("GET", self._of(id, "/reasons"))

    async def bias(self) -> Any:
        """What was learned of the bias."""
        return await self.call("GET", "/v1/bias")

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
