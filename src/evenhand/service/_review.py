"""The endpoints of reviewers: the queue, claims, and verdicts."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from evenhand.service._api import encode, outcome, whole
from evenhand.service._asgi import Answer, Request, in_thread
from evenhand.service._bodies import Case, ClaimIn, QueueOut, Reviewer, VerdictIn
from evenhand.service._engine import Engine
from evenhand.service._ledger.review_queue import (
    OVERRIDDEN,
    AskReview,
    Judge,
    ReviewClaim,
    queue,
    reviewers,
)
from evenhand.service._ledger.sqlite_and_postgres import Connection
from evenhand.service._problems import Refused
from evenhand.service._queries import moment

_claim = msgspec.json.Decoder(ClaimIn)
_verdict = msgspec.json.Decoder(VerdictIn)


class ReviewHandlers:
    """Handlers that share an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def cases(self, request: Request) -> Answer:
        """Decisions waiting for a human, oldest first; and how often reviewers change anything."""
        limit = whole(request.given({"limit": 4}), "limit", 1, 1000) or 100
        return Answer(200, encode(await in_thread(self._read, limit)))

    def _read(self, limit: int) -> QueueOut:
        with self.engine.database.reading() as connection:
            people = reviewers(connection, self.engine.config.claim)
            listed = cases(connection, self.engine, limit)
        return QueueOut(listed, [Reviewer(**person) for person in people])

    async def ask(self, request: Request) -> Answer:
        """Put a decision into the queue, in addition to those drawn at random."""
        return await self._settled(AskReview(request.name))

    async def claim(self, request: Request) -> Answer:
        """Claim a decision to review. Others cannot claim it until the claim expires."""
        given = _claim.decode(request.body or b"{}")
        return await self._settled(
            ReviewClaim(request.name, _who(request, given.by), self.engine.config.claim)
        )

    async def verdict(self, request: Request) -> Answer:
        """Accept a decision that you have claimed, or override it with a reason."""
        given = _verdict.decode(request.body)
        state, arm = self.engine.state, None
        if given.verdict == OVERRIDDEN:
            if given.arm is None or given.arm not in state.numbers:
                raise Refused("arm", "is missing or unknown; an override needs another arm")
            if given.reason is None:
                raise Refused("reason", "is missing; an override needs a reason")
            arm = state.numbers[given.arm]
        elif given.arm is not None:
            raise Refused("arm", "is given, but the verdict is that the arm is accepted")
        by, reason = _who(request, given.by), given.reason or ""
        ask = Judge(request.name, by, reason, arm, lambda number: state.arms[number].group)
        return await self._settled(ask)

    async def _settled(self, ask: Any) -> Answer:
        await self.engine.submit(ask)
        if ask.status == 422:
            raise Refused("arm", "is not the arm of a candidate of this decision")
        return outcome(ask)


def cases(connection: Connection, engine: Engine, limit: int) -> list[Case]:
    """The queue, as callers and pages read it."""
    state, confirmed = engine.state, engine.rules.confirmed
    rows = queue(connection, time.time_ns() // 1000, limit, confirmed)
    return [
        Case(row["id"], moment(row["at"]) or "", state.arms[row["arm"]].name, row["group"],
             row["claimed_by"], moment(row["claimed_until"]))
        for row in rows
    ]  # fmt: skip


def _who(request: Request, by: str | None) -> str:
    assert request.caller is not None
    return by or request.caller.name
