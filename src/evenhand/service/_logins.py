"""Logging in and out, and making a login with a token."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from evenhand.service import _auth
from evenhand.service._asgi import Answer, Request, in_thread
from evenhand.service._auth import Caller
from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.asks import Call
from evenhand.service._page_requests import COOKIE, cookie_of, form_of, local, to
from evenhand.service._problems import Problem

if TYPE_CHECKING:
    from evenhand.service._engine import Engine
    from evenhand.service._service import Service
from evenhand.service._rate_limit import Bucket

SHORTEST = 10  # characters of a password


class Logins:
    """The part of `Pages` for people who are not logged in."""

    service: Service
    engine: Engine
    _tries: Bucket
    _read: Callable[..., Any]
    _page: Callable[..., Answer]

    async def _log_in(self, request: Request) -> Answer:
        if request.method in ("GET", "HEAD"):
            query = dict(parse_qsl(request.query))
            return self._login_page(query.get("token", ""), query.get("next", "/"), "")
        form = form_of(request)
        name, password = form.get("name", "").strip(), form.get("password", "")
        token, after = form.get("token", ""), form.get("next", "/")
        # A page on another site cannot forge this header: browsers set it.
        origin = request.headers.get(b"origin", b"").decode("latin-1")
        host = request.headers.get(b"host", b"").decode("latin-1")
        if origin and origin.partition("://")[2] != host:
            raise Problem(403, "the form is not from this page")
        if not self._tries.take("all" if not name else name[:200]):
            raise Problem(429, "too many attempts; wait a minute", headers={"Retry-After": "60"})
        if not 0 < len(name) <= 100 or not name.isprintable() or len(password) > 1000:
            return self._login_page(token, after, "The name or the password is wrong.", 403)
        if token:
            roles, wrong = await self._first(name, password, token)
        else:
            roles = await in_thread(self._read, _auth.check_password, name, password)
            wrong = "The name or the password is wrong."
        if roles is None:
            return self._login_page(token, after, wrong, 403)
        ask = await self.engine.settle(Call(_auth.open_session, name, roles))
        cookie, _ = ask.answer
        secure = "; Secure" if self.service.config.server.https else ""
        value = f"{COOKIE}={cookie}; HttpOnly; SameSite=Lax; Path=/; Max-Age={_auth.SESSION}"
        return to(local(after), ((b"set-cookie", f"{value}{secure}".encode()),))

    async def _first(self, name: str, password: str, token: str) -> tuple[list[str] | None, str]:
        """Make a login with a token, which this uses up."""
        if len(password) < SHORTEST:
            return None, f"The password needs at least {SHORTEST} characters."

        password_hash = await in_thread(_auth.hash_password, password)
        wrong = ["The link was used before, or is older than a day."]

        def make(connection: Any) -> list[str] | bool:
            roles = _auth.take_token(connection, token)
            if roles is None:
                return False
            if not _auth.add_user(connection, name, password_hash, roles):
                wrong[0] = "This name is taken. Ask for a new link."
                return False
            return roles

        note = (kinds.KEY, kinds.Key("login", name, [], "one-time token"))
        ask = await self.engine.settle(Call(make, note=note))
        return (ask.answer, "") if ask.answer is not False else (None, wrong[0])

    def _login_page(self, token: str, after: str, wrong: str, status: int = 200) -> Answer:
        title = "Make your login" if token else "Log in"
        return self._page(
            "service_login.html", title, None, status, token=token, after=after, wrong=wrong,
            shortest=SHORTEST,
        )  # fmt: skip

    async def log_out(self, form: Any, caller: Caller, request: Request) -> str:  # noqa: ARG002
        """End the session."""
        await self.engine.settle(Call(_auth.close_session, cookie_of(request)))
        return "/login"
