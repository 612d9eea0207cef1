"""The endpoints under /v1: decide, reward, override, use, and the most frequent queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenhand.service import _queries
from evenhand.service._asgi import Answer, Request, in_thread
from evenhand.service._bodies import (
    BulkOutcome,
    DecisionView,
    Outcome,
    OverrideIn,
    RewardIn,
    RewardsIn,
    decision_in,
)
from evenhand.service._engine import Engine
from evenhand.service._features import membership_rows
from evenhand.service._ledger import asks
from evenhand.service._ledger.transaction import decision_of
from evenhand.service._problems import Problem, Refused
from evenhand.service._reasons import reasons

_reward = msgspec.json.Decoder(RewardIn)
_rewards = msgspec.json.Decoder(RewardsIn)
_override = msgspec.json.Decoder(OverrideIn)
encode = msgspec.json.Encoder().encode
STATUSES = tuple(_queries.TESTS)
RESERVED = ("export",)


class Api:
    """Handlers that share an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        most = engine.config.server.max_candidates
        self.decision_type = decision_in(
            engine.encoder, engine.config.groups, len(engine.state.arms), most
        )
        self._decision = msgspec.json.Decoder(self.decision_type)

    # Deciding -----------------------------------------------------------------------------------

    async def decide(self, request: Request) -> Answer:
        """Choose an arm. A caller that sends the same id again gets the stored answer."""
        engine = self.engine
        given: Any = self._decision.decode(request.body)
        if given.id in RESERVED:
            raise Refused("id", "is reserved; choose another id")
        if engine.state.paused:
            raise Problem(503, "a human has paused decisions; they continue when resumed")
        if engine.failure:
            raise Problem(503, engine.failure, headers={"Retry-After": "1"})
        shadow = given.mode == "shadow"
        if shadow != (given.chosen is not None):
            raise Refused("chosen", "is required in shadow mode, and allowed only there")
        candidates = given.candidates
        if given.available is not None:
            candidates = self._available(candidates, given.available)
        arms = [candidate.arm for candidate in candidates]
        features = [candidate.features for candidate in candidates]
        rows = engine.encoder.rows(features)
        texts = engine.encoder.texts_of(features) if engine.encoder.texts else None
        rows = self._with_groups(rows, candidates)
        ask = engine.prepare(given.id, arms, rows, shadow, given.chosen, given.person, texts)
        await engine.submit(ask)
        if ask.status == 410:
            raise Problem(410, "the decision was erased")
        if ask.status == 409:
            raise Problem(409, "a decision with this id was made for a different request", "id")
        known = ask.answer
        body = decision_of(known)
        assert body is not None
        out = _queries.decision_out(known.id, known.at, body, known.override, engine.state)
        return Answer(ask.status, encode(out))

    @staticmethod
    def _available(candidates: list[Any], available: list[str]) -> list[Any]:
        names = {candidate.arm for candidate in candidates}
        for place, name in enumerate(available):
            if name not in names:
                raise Refused(f"available[{place}]", "is not the arm of a candidate")
        chosen = set(available)
        open_ = [candidate for candidate in candidates if candidate.arm in chosen]
        if not open_:
            raise Refused("available", "is empty; at least one candidate has to be available")
        return open_

    def _with_groups(self, rows: NDArray[np.float64], candidates: list[Any]) -> Any:
        """Contexts with the groups that candidates bring.

        Where groups are those of the arms, a caller may repeat them as a check.
        """
        state = self.engine.state
        if state.given is not None:
            given = [candidate.group for candidate in candidates]
            return np.concatenate([rows, membership_rows(state.given.groups, given)], axis=1)
        for place, candidate in enumerate(candidates):
            number = state.numbers.get(candidate.arm)
            if candidate.group is None or number is None:
                continue
            if state.arms[number].group != candidate.group:
                raise Refused(f"candidates[{place}].group", "is not the group of this arm")
        return rows

    # What happens afterwards --------------------------------------------------------------------

    async def reward(self, request: Request) -> Answer:
        """The observed reward of a decision, the true one, or both."""
        given = _reward.decode(request.body)
        if given.observed is None and given.true is None:
            raise Refused("observed", "is missing; give observed, true, or both")
        learns = self.engine.state.truth
        ask = asks.Reward(request.name, given.observed, given.true, learns)
        await self.engine.submit(ask)
        return outcome(ask)

    async def rewards(self, request: Request) -> Answer:
        """Many rewards; each gets a status."""
        given = _rewards.decode(request.body)
        for place, reward in enumerate(given.rewards):
            if reward.observed is None and reward.true is None:
                raise Refused(f"rewards[{place}]", "has neither observed nor true")
        learns = self.engine.state.truth
        batch = Many([asks.Reward(r.id, r.observed, r.true, learns) for r in given.rewards])
        await self.engine.submit(batch)
        out = BulkOutcome([Outcome(ask.status, ask.answer or "") for ask in batch.asks])
        return Answer(200, encode(out))

    async def override(self, request: Request) -> Answer:
        """A human chooses another arm, and says why."""
        given = _override.decode(request.body)
        assert request.caller is not None
        state = self.engine.state
        number = state.numbers.get(given.arm)
        groups: Callable[[int], str] = lambda arm: state.arms[arm].group  # noqa: E731
        by = given.by or request.caller.name
        ask = asks.Override(request.name, number, groups, given.reason, by)
        await self.engine.submit(ask)
        if ask.status == 422:
            raise Refused("arm", "is not the arm of a candidate of this decision")
        return outcome(ask)

    async def use(self, request: Request) -> Answer:
        """A decision was used; where use has to be confirmed, it waits for a reward from now on."""
        ask = asks.Use(request.name)
        await self.engine.submit(ask)
        return outcome(ask)

    # Looking ------------------------------------------------------------------------------------

    async def get(self, request: Request) -> Answer:
        """A decision and everything that happened to it."""
        return Answer(200, encode(await self.view(request.name)))

    async def view(self, id: str) -> DecisionView:
        """The same, for pages."""
        view: DecisionView = await in_thread(
            self._read, _queries.decision_view, id, self.engine.state
        )
        return view

    async def search(self, request: Request) -> Answer:
        """Decisions, the newest first."""
        known = {"after": 20, "limit": 4, "arm": 200, "group": 200, "status": 20, "person": 200}
        given = request.given(known)
        before = whole(given, "after")
        limit = whole(given, "limit", 1, 1000) or 100
        if "status" in given and given["status"] not in STATUSES:
            raise Refused("query.status", f"allowed are {', '.join(STATUSES)}")
        person = given.get("person")
        page = await in_thread(
            self._read, _queries.page, self.engine.state, before, limit,
            self.engine.rules.confirmed,
            arm=given.get("arm"), group=given.get("group"), status=given.get("status"),
            person=None if person is None else self.engine.pseudonym(person),
        )  # fmt: skip
        return Answer(200, encode(page))

    async def reasons(self, request: Request) -> Answer:
        """Why a decision was made, feature by feature."""
        given = (request.name, list(self.engine.state.arms), self.engine.encoder)
        return Answer(200, encode(await in_thread(self._read, reasons, *given)))

    def _read(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        with self.engine.database.reading() as connection:
            return function(connection, *arguments, **named)


class Many(asks.Ask):
    """Several asks in one."""

    def __init__(self, rewards: list[asks.Reward]) -> None:
        self.asks = rewards

    def ids(self) -> list[str]:
        """The ids of all of them."""
        return [ask.id for ask in self.asks]

    def settle(self, tx: Any) -> None:
        """Settle all of them, in their order."""
        for ask in self.asks:
            ask.settle(tx)
        self.status = 200


def outcome(ask: asks.Ask) -> Answer:
    """The outcome of an ask that has no other answer."""
    if ask.status >= 400:
        raise Problem(ask.status, ask.answer or "")
    return Answer(ask.status, encode(Outcome(ask.status, ask.answer or "")))


def whole(given: dict[str, str], name: str, least: int = 0, most: int = 2**62) -> int | None:
    """A whole number from the parameters of a query."""
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or not least <= int(text) <= most:
        raise Refused(f"query.{name}", f"allowed is a whole number from {least} to {most}")
    return int(text)
