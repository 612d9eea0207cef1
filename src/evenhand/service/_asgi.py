"""The service as an ASGI application: hosts, sizes, keys and roles, routes, problems.

It is small and written by hand because every decision passes through it: the routing and middleware
of a framework cost more than the policy and the ledger together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec
import structlog

from evenhand.service._auth import Caller, Keys
from evenhand.service._ledger.sqlite_and_postgres import Unavailable
from evenhand.service._problems import Problem, of_decoding
from evenhand.service._rate_limit import Bucket
from evenhand.service.config import Server

log = structlog.get_logger("evenhand.service")
JSON, PROBLEM = b"application/json", b"application/problem+json"
_COMMON = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"same-origin"),
]


class Answer(NamedTuple):
    """A response. Content that comes in parts is sent as it comes."""

    status: int
    content: bytes | Any = b""
    type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(slots=True)
class Request:
    """A request, with everything that handlers may look at."""

    method: str
    path: str
    name: str  # the part of the path in braces
    query: str
    body: bytes
    caller: Caller | None
    headers: Mapping[bytes, bytes]

    def given(self, known: Mapping[str, int]) -> dict[str, str]:
        """The parameters of the query; `known` has their names and longest lengths."""
        pairs = parse_qsl(self.query, keep_blank_values=True, max_num_fields=20)
        values: dict[str, str] = {}
        for name, value in pairs:
            if name not in known:
                raise Problem(422, f"a parameter is unknown; known are {', '.join(known)}", "query")
            if name in values or len(value) > known[name] or "\0" in value:
                raise Problem(422, "is given twice, too long or unprintable", f"query.{name}")
            values[name] = value
        return values


Handler = Callable[[Request], Awaitable[Answer]]


@dataclass(frozen=True)
class Endpoint:
    """A route: what it is for, who may use it, what it takes and gives."""

    method: str
    path: str
    handler: Handler
    role: str | None
    summary: str
    takes: Any = None
    gives: Mapping[int, Any] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    example: Any = None
    answer: Any = None


class Application:
    """Finds the endpoint of a request, checks the caller, and always answers."""

    def __init__(
        self,
        server: Server,
        keys: Keys,
        endpoints: list[Endpoint],
        pages: Callable[[Request], Awaitable[Answer]] | None,
        on_start: Callable[[], Awaitable[None]],
        on_stop: Callable[[], Awaitable[None]],
        counted: Callable[[str, int], None],
    ) -> None:
        self.server, self.keys, self.pages = server, keys, pages
        self.hosts = {host.lower() for host in server.hosts}
        self._start, self._stop, self._counted = on_start, on_stop, counted
        self._exact: dict[str, dict[str, Endpoint]] = {}
        self._named: dict[tuple[str, str], dict[str, Endpoint]] = {}
        for endpoint in endpoints:
            before, brace, rest = endpoint.path.partition("{")
            where: dict[str, Endpoint]
            if brace:
                where = self._named.setdefault((before, rest.partition("}")[2]), {})
            else:
                where = self._exact.setdefault(endpoint.path, {})
            where[endpoint.method] = endpoint
        self._bucket = Bucket(server.rate, max(server.rate, 1.0)) if server.rate else None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or start and stop."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        route = ""
        try:
            endpoint, name = self._find(scope["method"], scope["path"])
            route = endpoint.path if endpoint is not None else "page"
            answer = await self._answer(scope, receive, endpoint, name)
        except Problem as problem:
            answer = _told(problem)
        except msgspec.DecodeError as error:
            answer = _told(of_decoding(error))
        except Unavailable:
            answer = _told(Problem(503, "the store is not available", headers={"Retry-After": "1"}))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.error("unexpected error", route=route, error=type(error).__name__, exc_info=True)
            answer = _told(Problem(500, "this is an error in the service; it was logged"))
        self._counted(route, answer.status)
        await _send(send, answer, scope["method"])

    def _find(self, method: str, path: str) -> tuple[Endpoint | None, str]:
        if "\0" in path:
            raise Problem(404, "there is no such path")
        methods, name = self._exact.get(path), ""
        if methods is None and path.startswith("/v1/"):
            for (before, after), by_method in self._named.items():
                if path.startswith(before) and path.endswith(after):
                    name = path[len(before) : len(path) - len(after)]
                    if name and "/" not in name:
                        methods = by_method
                        break
        if methods is None:
            if path.startswith("/v1/") or self.pages is None:
                raise Problem(404, "there is no such path")
            return None, ""
        endpoint = methods.get("GET" if method == "HEAD" else method)
        if endpoint is None:
            raise Problem(405, headers={"Allow": ", ".join(sorted(methods))})
        return endpoint, name

    async def _answer(
        self, scope: Any, receive: Any, endpoint: Endpoint | None, name: str
    ) -> Answer:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        bare = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if (bare or host) not in self.hosts:
            raise Problem(421, "add it to server.hosts in the configuration")
        caller = self.keys.of_header(headers.get(b"authorization", b"").decode("latin-1"))
        if endpoint is not None and endpoint.role is not None:
            if caller is None:
                raise Problem(
                    401, "send the header Authorization: Bearer KEY",
                    headers={"WWW-Authenticate": "Bearer"},
                )  # fmt: skip
            if not caller.may(endpoint.role):
                raise Problem(403, f"this needs the role {endpoint.role}")
            if self._bucket is not None and not self._bucket.take(caller.name):
                raise self._too_many(self._bucket)
        body = b""
        if scope["method"] in ("POST", "PUT", "PATCH", "DELETE"):
            body = await self._body(receive, headers)
        query = scope["query_string"].decode("latin-1")
        request = Request(scope["method"], scope["path"], name, query, body, caller, headers)
        if endpoint is not None:
            return await endpoint.handler(request)
        assert self.pages is not None
        return await self.pages(request)

    @staticmethod
    def _too_many(bucket: Bucket) -> Problem:
        detail = (
            f"allowed are {bucket.rate:g} requests a second for each key; server.rate in the "
            "configuration sets this limit"
        )
        seconds = max(ceil(1.0 / bucket.rate), 1)  # until one more is allowed
        return Problem(429, detail, headers={"Retry-After": str(seconds)})

    async def _body(self, receive: Any, headers: Mapping[bytes, bytes]) -> bytes:
        most = self.server.max_body
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > most:
            raise Problem(413, f"allowed are {most} bytes")
        message = await receive()
        body: bytes = message.get("body", b"")
        while message.get("more_body"):
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Problem(400, "the connection was closed")
            body += message.get("body", b"")
            if len(body) > most:
                raise Problem(413, f"allowed are {most} bytes")
        if len(body) > most:
            raise Problem(413, f"allowed are {most} bytes")
        return body

    async def _lifespan(self, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self._start()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self._stop()
                await send({"type": "lifespan.shutdown.complete"})
                return


def _told(problem: Problem) -> Answer:
    headers = tuple(
        (name.lower().encode(), value.encode()) for name, value in problem.headers.items()
    )
    return Answer(problem.status, problem.body(), PROBLEM, headers)


async def _send(send: Any, answer: Answer, method: str) -> None:
    headers = [(b"content-type", answer.type), *_COMMON, *answer.headers]
    content = answer.content
    if isinstance(content, bytes):
        headers.append((b"content-length", b"%d" % len(content)))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else content})
        return
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if method != "HEAD":
        async for part in content:
            await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def in_thread(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a function that reads the store in a thread, so that decisions continue meanwhile."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, partial(function, *arguments, **named))
