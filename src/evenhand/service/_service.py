"""The parts of the service put together: engine, endpoints, pages, server."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from typing import Any

import structlog

from evenhand.service import _auth
from evenhand.service._admin import Admin
from evenhand.service._api import Api, encode
from evenhand.service._asgi import Answer, Application, Endpoint, Request
from evenhand.service._bodies import Health
from evenhand.service._engine import Engine
from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.asks import Call
from evenhand.service._openapi import describe
from evenhand.service._pages import Pages
from evenhand.service._prometheus import Metrics
from evenhand.service._review import ReviewHandlers
from evenhand.service._routes import endpoints_of
from evenhand.service.config import Config


class Service:
    """A service from its configuration. `application` is for any ASGI server."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.engine = Engine(config)
        self.engine.open()
        self.keys = _auth.Keys()
        self.keys.load(self.engine.store.connection)
        self.metrics = Metrics(self.engine)
        self.api, self.admin = Api(self.engine), Admin(self.engine, self.keys)
        self.review = ReviewHandlers(self.engine)
        self.engine.listeners.append(self._keys_changed)
        self.endpoints: list[Endpoint] = endpoints_of(self)
        self._description = encode(describe(self.endpoints, config))
        self.pages = Pages(self)
        self.application = Application(
            config.server, self.keys, self.endpoints, self.pages.answer, self.start, self.stop,
            self.metrics.counted,
        )  # fmt: skip

    async def start(self) -> None:
        """Begin to write."""
        self.engine.run(asyncio.get_running_loop())

    async def stop(self) -> None:
        """Finish what is in the queue."""
        await asyncio.get_running_loop().run_in_executor(None, self.engine.close)

    def _keys_changed(self, entries: list[tuple[Any, Any]]) -> None:
        if any(entry.kind == kinds.KEY for entry, _ in entries):
            with self.engine.database.reading() as connection:
                self.keys.load(connection)

    def first_token(self) -> str | None:
        """A token for the first administrator, if nobody can log in yet. Before `start`."""
        connection = self.engine.store.connection
        if _auth.has_users(connection):
            return None
        ask = Call(_auth.new_token, list(_auth.ROLES))
        entries = self.engine.store.write([ask]).told
        self.engine.state.apply(entries)
        return str(ask.answer)

    # The endpoints of the service itself --------------------------------------------------------

    async def healthz(self, request: Request) -> Answer:
        """Whether the process runs."""
        request.given({})
        return Answer(200, encode(Health("ok")))

    async def readyz(self, request: Request) -> Answer:
        """Whether it can decide and record; a load balancer asks this."""
        request.given({})
        wrong = self.engine.ready
        health = Health("ready" if not wrong else "not ready", self.engine.state.version, wrong)
        return Answer(200 if not wrong else 503, encode(health))

    async def metrics_text(self, request: Request) -> Answer:
        """Numbers for Prometheus."""
        request.given({})
        return Answer(200, self.metrics.text(), b"text/plain; version=0.0.4; charset=utf-8")

    async def description(self, request: Request) -> Answer:
        """The OpenAPI description."""
        request.given({})
        return Answer(200, self._description)


def set_up_logs() -> None:
    """Lines of JSON on standard error, without values of callers."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def run(service: Service, listener: socket.socket) -> None:
    """Serve on a socket until told to stop."""
    import uvicorn

    config = uvicorn.Config(
        service.application,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="on",
        timeout_graceful_shutdown=10,
    )
    # Not by its number: uvicorn would take it for a Unix socket, and wait 40 ms before sending.
    uvicorn.Server(config).run(sockets=[listener])
