"""The endpoints for oversight: bias, shares, versions, pause, arms, keys, erasure, export."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec

from evenhand.events._formats import FORMATS_BY_NAME
from evenhand.groups import PER_ROUND
from evenhand.service import _auth, _policy_calls, _queries
from evenhand.service._api import encode, whole
from evenhand.service._asgi import Answer, Request, in_thread
from evenhand.service._bodies import (
    ArmChange,
    ArmIn,
    ArmOut,
    ArmsOut,
    KeyIn,
    KeyOut,
    Outcome,
    ReasonIn,
    RollbackIn,
)
from evenhand.service._engine import Engine
from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.asks import Ask, Call
from evenhand.service._ledger.copies import export
from evenhand.service._ledger.erasure import EraseAsk
from evenhand.service._ledger.fold import restored
from evenhand.service._ledger.transaction import Transaction
from evenhand.service._problems import Problem, Refused


class Admin:
    """Handlers that share an engine."""

    def __init__(self, engine: Engine, keys: _auth.Keys) -> None:
        self.engine, self.keys = engine, keys

    def read(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a function with a connection that reads."""
        with self.engine.database.reading() as connection:
            return function(connection, *arguments, **named)

    # What was learned, and what happened --------------------------------------------------------

    async def bias(self, request: Request) -> Answer:
        """What was learned about the bias, per feature and group, with intervals and in words."""
        given = request.given({"level": 20})
        try:
            level = float(given.get("level", "0.9"))
        except ValueError:
            level = 0.0
        if not 0.5 <= level < 1.0:
            raise Refused("query.level", "allowed is a number from 0.5 to below 1")
        state = await in_thread(self.read, restored)
        report = await in_thread(_policy_calls.bias_of, state, level)
        return Answer(200, encode({"version": state.version, "learned": state.learned, **report}))

    async def shares(self, request: Request) -> Answer:
        """By group: shares of the choices, rewards, missing rewards and the cost of exploration."""
        since = whole(request.given({"since": 20}), "since") or 0
        rows = await in_thread(self.read, _queries.shares, since * 1_000_000)
        return Answer(200, encode({"groups": rows}))

    async def waiting(self, request: Request) -> Answer:
        """By group: how many decisions wait for a reward."""
        request.given({})
        return Answer(200, encode({"groups": await in_thread(self.read, _queries.waiting)}))

    async def versions(self, request: Request) -> Answer:
        """The version that decides, the newest one, and those that were kept."""
        request.given({})
        state, decider = self.engine.state, self.engine.decider
        snapshots = await in_thread(self.read, _queries.versions)
        model = {
            "policy": type(state.policy).__name__,
            "newest": state.version,
            "deciding": decider.version,
            "rolled_back_to": state.pinned or None,
            "paused": state.paused,
            "round": state.round,
            "learned": state.learned,
            "kept": snapshots,
        }
        return Answer(200, encode(model))

    # The stop, and the way back -----------------------------------------------------------------

    async def pause(self, request: Request) -> Answer:
        """Stop all decisions. Rewards are still accepted."""
        return await self._control(request, "pause")

    async def resume(self, request: Request) -> Answer:
        """Resume decisions."""
        return await self._control(request, "resume")

    async def _control(self, request: Request, what: str) -> Answer:
        given = msgspec.json.decode(request.body, type=ReasonIn)
        assert request.caller is not None
        paused = self.engine.state.paused
        if paused == (what == "pause"):
            return Answer(200, encode(Outcome(200, f"it was already {what}d")))
        await self.control(what, request.caller.name, given.reason)
        return Answer(201, encode(Outcome(201, f"{what}d")))

    async def control(self, what: str, by: str, reason: str, version: int = 0) -> Ask:
        """Record a pause, a resumption or a rollback."""
        body = kinds.Control(what, by, reason, version)
        return await self.engine.settle(_Noted(kinds.CONTROL, body))

    async def rollback(self, request: Request) -> Answer:
        """Decide with an older version from now on, or with the newest again."""
        given = msgspec.json.decode(request.body, type=RollbackIn)
        assert request.caller is not None
        await self.roll_back(given.version or 0, request.caller.name, given.reason)
        return Answer(201, encode(Outcome(201, "decisions are now made by this version")))

    async def roll_back(self, version: int, by: str, reason: str) -> None:
        """The same, for pages."""
        if version > self.engine.state.version:
            raise Refused("version", "is newer than the newest; GET /v1/model/versions lists them")
        if version:
            try:
                await in_thread(self.read, restored, version)
            except ValueError as error:
                raise Problem(
                    410, "this version can no longer be restored, because of an erasure"
                ) from error
        await self.control("rollback", by, reason, version)

    # Arms ---------------------------------------------------------------------------------------

    async def arms(self, request: Request) -> Answer:
        """All arms, their groups, and whether they can still be chosen."""
        request.given({})
        state = self.engine.state
        arms = [
            ArmOut(arm.name, None if state.given else arm.group, arm.retired) for arm in state.arms
        ]
        return Answer(200, encode(ArmsOut(arms)))

    async def add_arm(self, request: Request) -> Answer:
        """A new arm, as if it had been there from the beginning but was never available."""
        given = msgspec.json.decode(request.body, type=ArmIn)
        assert request.caller is not None
        state = self.engine.state
        if state.given is not None and given.group is not None:
            raise Refused("group", "is given, but candidates bring their groups; leave it out")
        group = PER_ROUND if state.given is not None else given.group
        known = state.numbers.get(given.name)
        if known is not None:
            if state.arms[known].group == group:
                return Answer(200, encode(Outcome(200, "the arm already exists")))
            raise Problem(409, "another arm has this name", "name")
        groups = {arm.group for arm in state.arms}
        if group not in groups:
            raise Refused("group", f"is missing or new; allowed are {', '.join(sorted(groups))}")
        if not given.name.isprintable() or not given.name.strip():
            raise Refused("name", "cannot be printed")
        body = kinds.Arm("add", len(state.arms), given.name, group, request.caller.name)
        await self.engine.settle(_Noted(kinds.ARM, body))
        return Answer(201, encode(Outcome(201, "added")))

    async def change_arm(self, request: Request) -> Answer:
        """Rename an arm, retire it, or bring it back."""
        given = msgspec.json.decode(request.body, type=ArmChange)
        assert request.caller is not None
        state = self.engine.state
        number = state.numbers.get(request.name)
        if number is None:
            raise Problem(404, "there is no such arm")
        arm = state.arms[number]
        name = arm.name if given.name is None else given.name
        if name != arm.name and name in state.numbers:
            raise Problem(409, "another arm has this name", "name")
        if not name.isprintable() or not name.strip():
            raise Refused("name", "cannot be printed")
        retired = arm.retired if given.retired is None else given.retired
        others = [a for n, a in enumerate(state.arms) if n != number and not a.retired]
        if retired and not others:
            raise Problem(409, "the last arm cannot be retired; pause decisions instead")
        what = "rename" if retired == arm.retired else "retire" if retired else "return"
        body = kinds.Arm(what, number, name, arm.group, request.caller.name)
        await self.engine.settle(_Noted(kinds.ARM, body))
        return Answer(200, encode(Outcome(200, f"{what}d" if what != "return" else "brought back")))

    # Persons, keys, export ----------------------------------------------------------------------

    async def erase(self, request: Request) -> Answer:
        """Erase what is known about a person: bodies are removed, the chain stays whole."""
        given = request.given({"force": 4, "reason": 2000})
        assert request.caller is not None
        retention = int(self.engine.config.retention * 1e6)
        ask = EraseAsk(
            self.engine.pseudonym(request.name), request.caller.name, given.get("reason", ""),
            retention, given.get("force") == "true",
        )  # fmt: skip
        await self.engine.submit(ask)
        if ask.status >= 400:
            raise Problem(ask.status, ask.answer)
        return Answer(200, encode(Outcome(200, f"{ask.answer} decisions were erased")))

    async def add_key(self, request: Request) -> Answer:
        """A new key. It is shown only once."""
        given = msgspec.json.decode(request.body, type=KeyIn)
        assert request.caller is not None
        key, roles = _auth.new_key(), _auth.roles_of(given.roles)
        note = (kinds.KEY, kinds.Key("add", given.name, roles, request.caller.name))
        await self.engine.settle(Call(_auth.add_key, given.name, roles, key, note=note))
        return Answer(201, encode(KeyOut(given.name, roles, key)))

    async def withdraw_key(self, request: Request) -> Answer:
        """Withdraw all keys with a name."""
        assert request.caller is not None
        note = (kinds.KEY, kinds.Key("withdraw", request.name, [], request.caller.name))
        ask = await self.engine.settle(Call(_auth.withdraw_key, request.name, note=note))
        if not ask.answer:
            raise Problem(404, "there is no key with this name")
        return Answer(200, encode(Outcome(200, "withdrawn")))

    async def export(self, request: Request) -> Answer:
        """All decisions in the log format of evenhand, for audits and evaluations."""
        format = request.given({"format": 10}).get("format", "csv")
        if format not in FORMATS_BY_NAME:
            raise Refused("query.format", f"allowed are {', '.join(FORMATS_BY_NAME)}")
        folder = tempfile.TemporaryDirectory()
        path = Path(folder.name) / f"decisions.{format}"
        try:
            await in_thread(export, self.engine.config.store, path)
        except BaseException:
            folder.cleanup()
            raise
        name = f'attachment; filename="decisions.{format}"'.encode()
        form = FORMATS_BY_NAME[format]
        kind = form.media_type + ("; charset=utf-8" if form.is_text else "")
        headers = ((b"content-disposition", name),)
        return Answer(200, _parts(path, folder), kind.encode(), headers)


class _Noted(Ask):
    """An entry about the service itself."""

    def __init__(self, kind: str, body: Any) -> None:
        self.kind, self.body = kind, body

    def settle(self, tx: Transaction) -> None:
        """Record it."""
        tx.append(self.kind, None, self.body)
        self.status = 201


async def _parts(path: Path, folder: Any) -> AsyncIterator[bytes]:
    try:
        with path.open("rb") as file:
            while part := await asyncio.to_thread(file.read, 1 << 16):
                yield part
    finally:
        folder.cleanup()
