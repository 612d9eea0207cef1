"""The actions of the forms on the pages. Each returns the path to go to next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from evenhand.service import _auth
from evenhand.service._asgi import Request
from evenhand.service._auth import Caller
from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.asks import Call
from evenhand.service._ledger.review_queue import AskReview, Judge, ReviewClaim
from evenhand.service._page_requests import reason_of
from evenhand.service._problems import Problem

if TYPE_CHECKING:
    from evenhand.service._admin import Admin
    from evenhand.service._engine import Engine
    from evenhand.service._service import Service


class Forms:
    """The part of `Pages` that changes something."""

    service: Service
    engine: Engine
    admin: Admin
    _shown: dict[str, str]  # what a page shows once, by session

    async def _asked(self, ask: Any) -> None:
        await self.engine.submit(ask)
        if ask.status >= 400:
            raise Problem(ask.status, str(ask.answer))

    async def ask_review(self, form: dict[str, str], caller: Caller, request: Request) -> str:  # noqa: ARG002
        """Put a decision into the queue for review."""
        await self._asked(AskReview(form.get("id", "")))
        return "/review"

    async def claim(self, form: dict[str, str], caller: Caller, request: Request) -> str:  # noqa: ARG002
        """Take a decision to look at."""
        id = form.get("id", "")
        await self._asked(ReviewClaim(id, caller.name, self.service.config.claim))
        return f"/decisions/{quote(id, safe='')}#review"

    async def judge(self, form: dict[str, str], caller: Caller, request: Request) -> str:  # noqa: ARG002
        """Accept, or override with a reason."""
        state = self.engine.state
        arm = form.get("arm", "")
        number = state.numbers.get(arm) if arm else None
        reason = form.get("reason", "").strip()[:2000]
        if arm and number is None:
            raise Problem(422, "choose one of the candidates")
        if arm and not reason:
            raise Problem(422, "an override needs a reason")
        group: Callable[[int], str] = lambda place: state.arms[place].group  # noqa: E731
        await self._asked(Judge(form.get("id", ""), caller.name, reason, number, group))
        return "/review"

    async def pause(self, form: dict[str, str], caller: Caller, request: Request) -> str:  # noqa: ARG002
        """Stop all decisions."""
        await self.admin.control("pause", caller.name, reason_of(form))
        return "/model"

    async def resume(self, form: dict[str, str], caller: Caller, request: Request) -> str:  # noqa: ARG002
        """Resume decisions."""
        await self.admin.control("resume", caller.name, reason_of(form))
        return "/model"

    async def rollback(self, form: dict[str, str], caller: Caller, request: Request) -> str:  # noqa: ARG002
        """Decide with another version."""
        text = form.get("version", "0")
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise Problem(422, "the version is a whole number")
        await self.admin.roll_back(int(text), caller.name, reason_of(form))
        return "/model"

    async def invite(self, form: dict[str, str], caller: Caller, request: Request) -> str:  # noqa: ARG002
        """A link with which a colleague can make a login."""
        roles = [role for role in _auth.ROLES if form.get(role)]
        if not roles:
            raise Problem(422, "choose at least one role")
        ask = await self.engine.settle(Call(_auth.new_token, roles))
        self._shown[caller.csrf] = f"/login?token={ask.answer}"
        return "/model#people"

    async def make_key(self, form: dict[str, str], caller: Caller, request: Request) -> str:  # noqa: ARG002
        """A key for a program."""
        name = form.get("name", "").strip()[:200]
        roles = [role for role in _auth.ROLES if form.get(role)]
        if not roles or not name or not name.isprintable():
            raise Problem(422, "give a name, and choose at least one role")
        key = _auth.new_key()
        note = (kinds.KEY, kinds.Key("add", name, roles, caller.name))
        await self.engine.settle(Call(_auth.add_key, name, roles, key, note=note))
        self._shown[caller.csrf] = key
        return "/model#people"
