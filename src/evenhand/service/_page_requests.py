"""Shared by pages and forms: cookies, forms, redirects, and headers that keep pages safe."""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl

from evenhand.service._asgi import Answer, Request
from evenhand.service._problems import Problem

HTML, CSS, SVG = b"text/html; charset=utf-8", b"text/css; charset=utf-8", b"image/svg+xml"
COOKIE = "evenhand"
POLICY = (
    b"default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    b"base-uri 'none'; frame-ancestors 'none'"
)
SAFE = ((b"content-security-policy", POLICY), (b"x-frame-options", b"DENY"))


def form_of(request: Request) -> dict[str, str]:
    try:
        pairs = parse_qsl(request.body.decode(), keep_blank_values=True, max_num_fields=50)
    except ValueError as error:
        raise Problem(400, "the form cannot be read") from error
    form = dict(pairs)
    if any("\0" in value for value in form.values()):
        raise Problem(400, "the form has a character that cannot be stored")
    return form


def reason_of(form: dict[str, str]) -> str:
    reason = form.get("reason", "").strip()[:2000]
    if not reason:
        raise Problem(422, "give a reason; it is kept in the ledger")
    return reason


def cookie_of(request: Request) -> str:
    text = request.headers.get(b"cookie", b"").decode("latin-1")
    try:
        morsel = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel is not None and len(morsel.value) < 200 else ""


def is_same(given: str, expected: str) -> bool:
    return bool(expected) and hmac.compare_digest(given.encode(), expected.encode())


def to(path: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Answer:
    return Answer(303, b"", HTML, ((b"location", path.encode()), *SAFE, *headers))
