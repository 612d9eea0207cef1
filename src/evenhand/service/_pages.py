"""The pages for the people in charge. They are rendered by the server, and need no script."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from evenhand import __version__
from evenhand._html import render, stylesheet
from evenhand.service import _auth
from evenhand.service import _page_parts as parts
from evenhand.service import _queries as queries
from evenhand.service._api import STATUSES
from evenhand.service._asgi import Answer, Request, in_thread
from evenhand.service._auth import ADMIN, READ, REVIEW, Caller
from evenhand.service._forms import Forms
from evenhand.service._ledger.fold import restored
from evenhand.service._ledger.review_queue import reviewers, standing
from evenhand.service._logins import Logins
from evenhand.service._page_requests import CSS, HTML, SAFE, SVG, cookie_of, form_of, is_same, to
from evenhand.service._problems import TITLES, Problem
from evenhand.service._reasons import reasons
from evenhand.service._review import cases

if TYPE_CHECKING:
    from evenhand.service._service import Service
from evenhand.service._rate_limit import Bucket

LINKS = (("/", "Overview"), ("/bias", "Bias"), ("/decisions", "Decisions"), ("/review", "Review"),
         ("/model", "Model"))  # fmt: skip


class Pages(Forms, Logins):
    """Answers every path that is not under /v1."""

    def __init__(self, service: Service) -> None:
        self.service, self.engine = service, service.engine
        self.admin = service.admin
        self._tries = Bucket(1 / 12, 5)  # logins: five at once, then five a minute
        self._read = service.admin.read
        self._shown = {}
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
        """A page; a problem is shown as one, too."""
        try:
            return await self._answer(request)
        except Problem as problem:
            caller = await self._caller(request)
            if caller is not None and not (caller.may(READ) or caller.may(REVIEW)):
                caller = None  # there is no page to go to
            return self._page(
                "service_problem.html", TITLES.get(problem.status, "An error"), caller,
                problem.status, detail=problem.detail, headers=tuple(
                    (k.lower().encode(), v.encode()) for k, v in problem.headers.items()
                ),
            )  # fmt: skip

    async def _answer(self, request: Request) -> Answer:
        path = request.path
        if request.method in ("GET", "HEAD") and path == "/style.css":
            return Answer(200, stylesheet().encode(), CSS, SAFE)
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
                return to(f"/login?next={quote(path, safe='')}")
            if not caller.may(READ) and not caller.may(REVIEW):
                raise Problem(403, "your login does not allow this")
            return await handler(request, caller)
        if request.method != "POST" or path not in self._posts:
            raise Problem(405 if path in self._gets else 404, "there is no such page")
        if caller is None:
            raise Problem(401, "log in first")
        role, act = self._posts[path]
        form = form_of(request)
        if not is_same(form.get("csrf", ""), caller.csrf):
            raise Problem(403, "the form is not from this session; load the page again")
        if not caller.may(role):
            raise Problem(403, f"this needs the role {role}")
        return to(await act(form, caller, request))

    @property
    def _confirmed(self) -> bool:
        return self.engine.rules.confirmed

    async def _caller(self, request: Request) -> Caller | None:
        cookie = cookie_of(request)
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
            csrf=caller.csrf if caller else "", now=queries.moment(time.time_ns() // 1000),
            **names,
        )  # fmt: skip
        return Answer(status, text.encode(), HTML, (*SAFE, *headers))

    # The five pages -----------------------------------------------------------------------------

    async def overview(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        """Shares over time, waiting and missing rewards, the cost of exploring."""
        shares = await in_thread(self._read, queries.shares)
        waiting = await in_thread(self._read, queries.waiting)
        return self._page(
            "service_overview.html", "Overview", caller, table=parts.shares_table(shares, waiting),
            words=parts.shares_words(shares, waiting, self.engine.state),
            decided=any(r["decisions"] for r in shares),
        )  # fmt: skip

    async def bias(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        """What was learned per feature and group, with intervals, and what is not known."""
        state = await in_thread(self._read, restored)
        report = await in_thread(parts.bias_of, state)
        return self._page("service_bias.html", "Bias", caller, learned=state.learned, **report)

    async def decisions(self, request: Request, caller: Caller) -> Answer:
        """Search."""
        known = {"after": 20, "arm": 200, "group": 200, "status": 20, "id": 200}
        given = {k: v for k, v in request.given(known).items() if v}
        if "id" in given:
            return to(f"/decisions/{quote(given['id'], safe='')}")
        state = self.engine.state
        after = given.get("after", "")
        before = int(after) if after.isascii() and after.isdigit() else None
        status = given.get("status")
        page = await in_thread(
            self._read, queries.page, state, before, 50, self._confirmed, arm=given.get("arm"),
            group=given.get("group"), status=status if status in STATUSES else None,
        )  # fmt: skip
        query = "&".join(f"{k}={quote(v)}" for k, v in given.items() if k != "after")
        return self._page(
            "service_decisions.html", "Decisions", caller, page=page, given=given, kept=query,
            arms=[arm.name for arm in state.arms], statuses=STATUSES,
            groups=parts.group_names(state),
        )  # fmt: skip

    async def decision(self, request: Request, caller: Caller) -> Answer:
        """One decision, and why."""
        id = request.path.removeprefix("/decisions/")
        state = self.engine.state
        now = time.time_ns() // 1000
        view, why, standing_of = await asyncio.gather(
            in_thread(self._read, queries.decision_view, id, state),
            in_thread(self._read, reasons, id, list(state.arms), self.engine.encoder),
            in_thread(self._read, standing, id, caller.name, now, self._confirmed),
        )
        stands, is_open = standing_of
        began = not self._confirmed or view.used_at is not None
        missing = began and view.reward is None and view.waits_until is None
        return self._page(
            "service_decision.html", f"Decision {id}", caller, view=view, reasons=why,
            scores=parts.scores_table(view), may_review=caller.may(REVIEW), standing=stands,
            missing=missing,
            others=[name for name in view.candidates.arm if is_open and name != view.arm],
        )  # fmt: skip

    async def review(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        """The queue, and how often reviewers change anything."""
        waiting = await in_thread(self._read, cases, self.engine, 50)
        people = await in_thread(self._read, reviewers, self.service.config.claim)
        return self._page(
            "service_review.html", "Review", caller, queue=waiting,
            people=parts.reviewers_table(people), may_review=caller.may(REVIEW),
            minutes=round(self.service.config.claim / 60),
        )  # fmt: skip

    async def model(self, request: Request, caller: Caller) -> Answer:
        """The card of the model, its versions, pause and rollback."""
        state, decider = self.engine.state, self.engine.decider
        versions = await in_thread(self._read, queries.versions)
        given = request.given({"compare": 15}).get("compare", "")
        compared = None
        if given:
            if not (given.isascii() and given.isdigit() and 0 < int(given) <= state.version):
                raise Problem(422, "choose a version up to the newest")
            compared = await in_thread(self._compared, int(given))
        card = parts.card(self.service.config, state, decider)
        return self._page(
            "service_model.html", "Model", caller, card=card, versions=versions[:20],
            newest=state.version, admin=caller.may(ADMIN), may_review=caller.may(REVIEW),
            roles=_auth.ROLES, shown=self._shown.pop(caller.csrf, ""),
            arms=state.arms, given_groups=state.given is not None,
            compared=compared, given=given,
        )  # fmt: skip

    def _compared(self, version: int) -> Any:
        try:
            then = self._read(restored, version)
        except ValueError as error:
            raise Problem(
                410, "this version can no longer be restored, because of an erasure"
            ) from error
        return parts.comparison(then, self._read(restored))

    async def shares_chart(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        """The picture of the overview."""
        rows = await in_thread(self._read, queries.tallies)
        given = self.engine.state.given
        rounds = await in_thread(self._read, queries.latest_rounds, given)
        return Answer(200, (await in_thread(parts.shares_svg, rows, rounds)).encode(), SVG, SAFE)

    async def bias_chart(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        """The picture of the bias."""
        state = await in_thread(self._read, restored)
        return Answer(200, (await in_thread(parts.bias_svg, state)).encode(), SVG, SAFE)
