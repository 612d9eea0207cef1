"""The pages for the people in charge. They are drawn by the server, and need no script."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

from evenhand import __version__
from evenhand._html import render, stylesheet
from evenhand.service import _auth, _looks, _views
from evenhand.service._asgi import Answer, Request, in_thread
from evenhand.service._auth import ADMIN, READ, REVIEW, Caller
from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.asks import Call
from evenhand.service._ledger.fold import restored
from evenhand.service._ledger.reviewing import AskReview, Claim, Judge, queue, reviewers
from evenhand.service._problems import TITLES, Problem

if TYPE_CHECKING:
    from evenhand.service._service import Service

HTML, CSS, SVG = b"text/html; charset=utf-8", b"text/css; charset=utf-8", b"image/svg+xml"
COOKIE = "evenhand"
POLICY = (
    b"default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    b"base-uri 'none'; frame-ancestors 'none'"
)
SAFE = ((b"content-security-policy", POLICY), (b"x-frame-options", b"DENY"))
SHORTEST = 10  # characters of a password
LINKS = (("/", "Overview"), ("/bias", "Bias"), ("/decisions", "Decisions"), ("/review", "Review"),
         ("/model", "Model"))  # fmt: skip


class Pages:
    """Answers what is not under /v1."""

    def __init__(self, service: Service) -> None:
        self.service, self.engine = service, service.engine
        self.admin = service.admin
        self._tries = _auth.Bucket(1 / 12, 5)  # logins: five at once, then five a minute
        self._read = service.admin.read
        self._shown: dict[str, str] = {}  # what a page shows once, by session
        self._gets: dict[str, Callable[[Request, Caller], Awaitable[Answer]]] = {
            "/": self.overview, "/bias": self.bias, "/decisions": self.decisions,
            "/review": self.review, "/model": self.model,
            "/charts/shares.svg": self.shares_chart, "/charts/bias.svg": self.bias_chart,
        }  # fmt: skip
        self._posts: dict[str, tuple[str, Callable[..., Awaitable[str]]]] = {
            "/logout": (READ, self.log_out), "/review/ask": (REVIEW, self.ask_review),
            "/review/claim": (REVIEW, self.claim), "/review/judge": (REVIEW, self.judge),
            "/model/pause": (REVIEW, self.pause), "/model/resume": (ADMIN, self.resume),
            "/model/rollback": (ADMIN, self.rollback), "/model/invite": (ADMIN, self.invite),
            "/model/key": (ADMIN, self.make_key),
        }  # fmt: skip

    async def answer(self, request: Request) -> Answer:
        """A page; a problem is one too."""
        try:
            return await self._answer(request)
        except Problem as problem:
            return self._page(
                "service_problem.html", TITLES.get(problem.status, "An error"), None,
                problem.status, detail=problem.detail, headers=tuple(
                    (k.lower().encode(), v.encode()) for k, v in problem.headers.items()
                ),
            )  # fmt: skip

    async def _answer(self, request: Request) -> Answer:
        path = request.path
        if request.method in ("GET", "HEAD") and path == "/style.css":
            return Answer(200, stylesheet("service.css").encode(), CSS, SAFE)
        if path == "/favicon.ico":
            return Answer(204, b"", SVG, SAFE)
        if path == "/login":
            return await self._log_in(request)
        caller = await self._caller(request)
        if request.method in ("GET", "HEAD"):
            handler = self._gets.get(path)
            name = path.removeprefix("/decisions/")
            if handler is None and name != path and "/" not in name:
                handler = self.decision
            if handler is None:
                raise Problem(404, "there is no such page")
            if caller is None:
                return _to(f"/login?next={quote(path, safe='')}")
            if not caller.may(READ) and not caller.may(REVIEW):
                raise Problem(403, "your login does not allow this")
            return await handler(request, caller)
        if request.method != "POST" or path not in self._posts:
            raise Problem(405 if path in self._gets else 404, "there is no such page")
        if caller is None:
            raise Problem(401, "log in first")
        role, act = self._posts[path]
        form = _form(request)
        if not _same(form.get("csrf", ""), caller.csrf):
            raise Problem(403, "the form is not from this session; load the page again")
        if not caller.may(role):
            raise Problem(403, f"it needs the role {role}")
        return _to(await act(form, caller, request))

    async def _caller(self, request: Request) -> Caller | None:
        cookie = _cookie(request)
        if not cookie:
            return None
        caller: Caller | None = await in_thread(self._read, _auth.of_session, cookie)
        return caller

    def _page(
        self, template: str, title: str, caller: Caller | None, status: int = 200,
        headers: tuple[tuple[bytes, bytes], ...] = (), **names: Any,
    ) -> Answer:  # fmt: skip
        state = self.engine.state
        text = render(
            template, title=title, service=self.service.config.title, caller=caller,
            links=LINKS, version=__version__, paused=state.paused, pinned=state.pinned,
            csrf=caller.csrf if caller else "", now=_views.moment(time.time_ns() // 1000),
            **names,
        )  # fmt: skip
        return Answer(status, text.encode(), HTML, (*SAFE, *headers))

    # Logging in ---------------------------------------------------------------------------------

    async def _log_in(self, request: Request) -> Answer:
        if request.method in ("GET", "HEAD"):
            query = dict(parse_qsl(request.query))
            return self._login_page(query.get("token", ""), query.get("next", "/"), "")
        form = _form(request)
        name, password = form.get("name", "").strip(), form.get("password", "")
        token, after = form.get("token", ""), form.get("next", "/")
        # A page elsewhere cannot send this header as it likes: browsers set it.
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
        local = after if after.startswith("/") and not after.startswith(("//", "/\\")) else "/"
        return _to(local, ((b"set-cookie", f"{value}{secure}".encode()),))

    async def _first(self, name: str, password: str, token: str) -> tuple[list[str] | None, str]:
        """A login made with a token, which is used up by this."""
        if len(password) < SHORTEST:
            return None, f"The password needs at least {SHORTEST} characters."

        kept = await in_thread(_auth.hash_password, password)
        wrong = ["The link was used before, or is older than a day."]

        def make(connection: Any) -> list[str] | bool:
            roles = _auth.take_token(connection, token)
            if roles is None:
                return False
            if not _auth.add_user(connection, name, kept, roles):
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
        await self.engine.settle(Call(_auth.close_session, _cookie(request)))
        return "/login"

    # The five pages -----------------------------------------------------------------------------

    async def overview(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        """Shares over time, rewards that wait and miss, the cost of exploring."""
        shares = await in_thread(self._read, _views.shares)
        waiting = await in_thread(self._read, _views.waiting)
        return self._page(
            "service_overview.html", "Overview", caller, table=_looks.shares_table(shares, waiting),
            words=_looks.shares_words(shares, waiting), decided=any(r["decisions"] for r in shares),
        )  # fmt: skip

    async def bias(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        """What was learned per feature and group, with intervals, and what is not known."""
        state = await in_thread(self._read, restored)
        report = await in_thread(_looks.bias_of, state)
        return self._page("service_bias.html", "Bias", caller, learned=state.learned, **report)

    async def decisions(self, request: Request, caller: Caller) -> Answer:
        """Search."""
        known = {"after": 20, "arm": 200, "group": 200, "status": 20, "id": 200}
        given = {k: v for k, v in request.given(known).items() if v}
        if "id" in given:
            return _to(f"/decisions/{quote(given['id'], safe='')}")
        state = self.engine.state
        after = given.get("after", "")
        before = int(after) if after.isascii() and after.isdigit() else None
        status = given.get("status")
        page = await in_thread(
            self._read, _views.page, state, before, 50, arm=given.get("arm"),
            group=given.get("group"), status=status if status in _looks.STATUSES else None,
        )  # fmt: skip
        kept = "&".join(f"{k}={quote(v)}" for k, v in given.items() if k != "after")
        return self._page(
            "service_decisions.html", "Decisions", caller, page=page, given=given, kept=kept,
            arms=[arm.name for arm in state.arms], statuses=_looks.STATUSES,
            groups=sorted({arm.group for arm in state.arms}),
        )  # fmt: skip

    async def decision(self, request: Request, caller: Caller) -> Answer:
        """One decision, and why."""
        id = request.path.removeprefix("/decisions/")
        state = self.engine.state
        view, reasons = await asyncio.gather(
            in_thread(self._read, _views.one, id, state),
            in_thread(self._read, _views.reasons, id, list(state.arms), self.engine.encoder.labels),
        )
        return self._page(
            "service_decision.html", f"Decision {id}", caller, view=view, reasons=reasons,
            scores=_looks.scores_table(view), may_review=caller.may(REVIEW),
            others=[name for name in view.candidates.arm if name != view.arm],
        )  # fmt: skip

    async def review(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        """The queue, and how often reviewers change anything."""
        now = time.time_ns() // 1000
        waiting = await in_thread(self._read, queue, now)
        people = await in_thread(self._read, reviewers, self.service.config.claim)
        arms = self.engine.state.arms
        for case in waiting:
            case["arm"], case["at"] = arms[case["arm"]].name, _views.moment(case["at"])
        return self._page(
            "service_review.html", "Review", caller, queue=waiting,
            people=_looks.reviewers_table(people), may_review=caller.may(REVIEW),
            minutes=round(self.service.config.claim / 60),
        )  # fmt: skip

    async def model(self, request: Request, caller: Caller) -> Answer:
        """The card of the model, its versions, pause and roll back."""
        state, decider = self.engine.state, self.engine.decider
        versions = await in_thread(self._read, _views.versions)
        given = request.given({"compare": 15}).get("compare", "")
        compared = None
        if given:
            if not (given.isascii() and given.isdigit() and 0 < int(given) <= state.version):
                raise Problem(422, "choose a version up to the newest")
            compared = await in_thread(self._compared, int(given))
        card = _looks.card(self.service.config, state, decider)
        return self._page(
            "service_model.html", "Model", caller, card=card, versions=versions[:20],
            newest=state.version, admin=caller.may(ADMIN), may_review=caller.may(REVIEW),
            roles=_auth.ROLES, shown=self._shown.pop(caller.csrf, ""),
            arms=state.arms, compared=compared, given=given,
        )  # fmt: skip

    def _compared(self, version: int) -> Any:
        try:
            then = self._read(restored, version)
        except ValueError as error:
            raise Problem(410, "an erasure makes this version unknown") from error
        return _looks.comparison(then, self._read(restored))

    async def shares_chart(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        """The picture of the overview."""
        rows = await in_thread(self._read, _views.tallies)
        rounds = await in_thread(self._read, _views.latest_rounds)
        return Answer(200, (await in_thread(_looks.shares_svg, rows, rounds)).encode(), SVG, SAFE)

    async def bias_chart(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        """The picture of the bias."""
        state = await in_thread(self._read, restored)
        return Answer(200, (await in_thread(_looks.bias_svg, state)).encode(), SVG, SAFE)

    # What forms do ------------------------------------------------------------------------------

    async def _asked(self, ask: Any) -> None:
        await self.engine.submit(ask)
        if ask.status >= 400:
            raise Problem(ask.status, str(ask.answer))

    async def ask_review(self, form: dict[str, str], caller: Caller, request: Request) -> str:  # noqa: ARG002
        """Put a decision into the queue."""
        await self._asked(AskReview(form.get("id", "")))
        return "/review"

    async def claim(self, form: dict[str, str], caller: Caller, request: Request) -> str:  # noqa: ARG002
        """Take a decision to look at."""
        id = form.get("id", "")
        await self._asked(Claim(id, caller.name, self.service.config.claim))
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
        await self.admin.control("pause", caller.name, _reason(form))
        return "/model"

    async def resume(self, form: dict[str, str], caller: Caller, request: Request) -> str:  # noqa: ARG002
        """Go on."""
        await self.admin.control("resume", caller.name, _reason(form))
        return "/model"

    async def rollback(self, form: dict[str, str], caller: Caller, request: Request) -> str:  # noqa: ARG002
        """Decide with another version."""
        text = form.get("version", "0")
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise Problem(422, "the version is a whole number")
        await self.admin.roll_back(int(text), caller.name, _reason(form))
        return "/model"

    async def invite(self, form: dict[str, str], caller: Caller, request: Request) -> str:  # noqa: ARG002
        """A link with which a colleague makes a login."""
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


def _form(request: Request) -> dict[str, str]:
    try:
        pairs = parse_qsl(request.body.decode(), keep_blank_values=True, max_num_fields=50)
    except ValueError as error:
        raise Problem(400, "the form cannot be read") from error
    form = dict(pairs)
    if any("\0" in value for value in form.values()):
        raise Problem(400, "the form has a character that cannot be kept")
    return form


def _reason(form: dict[str, str]) -> str:
    reason = form.get("reason", "").strip()[:2000]
    if not reason:
        raise Problem(422, "give a reason; it is kept in the ledger")
    return reason


def _cookie(request: Request) -> str:
    text = request.headers.get(b"cookie", b"").decode("latin-1")
    try:
        morsel = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel is not None and len(morsel.value) < 200 else ""


def _same(given: str, kept: str) -> bool:
    return bool(kept) and hmac.compare_digest(given.encode(), kept.encode())


def _to(path: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Answer:
    return Answer(303, b"", HTML, ((b"location", path.encode()), *SAFE, *headers))
