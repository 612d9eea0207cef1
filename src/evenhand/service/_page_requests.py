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
    """The fields of a form; of a name that comes twice the last.

    Their number is limited, so that a small body cannot make a large dictionary. A NUL is refused
    here, because PostgreSQL cannot store it and would fail much later.
    """
    try:
        pairs = parse_qsl(request.body.decode(), keep_blank_values=True, max_num_fields=50)
    except ValueError as error:
        raise Problem(400, "the form cannot be read") from error
    form = dict(pairs)
    if any("\0" in value for value in form.values()):
        raise Problem(400, "the form has a character that cannot be stored")
    return form


def reason_of(form: dict[str, str]) -> str:
    """The reason given in a form; an error without one, because the ledger is read by others."""
    reason = form.get("reason", "").strip()[:2000]
    if not reason:
        raise Problem(422, "give a reason; it is kept in the ledger")
    return reason


def cookie_of(request: Request) -> str:
    """The value of our cookie; empty if there is none, or none that we could have set.

    Headers are Latin-1 by definition, so decoding cannot fail. The value is not trusted: what it
    stands for is looked up.
    """
    text = request.headers.get(b"cookie", b"").decode("latin-1")
    try:
        morsel = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel is not None and len(morsel.value) < 200 else ""


def is_same(given: str, expected: str) -> bool:
    """Whether a secret is right, in a time that does not say how much of it is.

    An empty expectation matches nothing: it stands for a secret that was never set.
    """
    return bool(expected) and hmac.compare_digest(given.encode(), expected.encode())


def local(after: str) -> str:
    """Where to go after a login, if that is a page of this service; the first page otherwise.

    Browsers drop tabs and line breaks from addresses, so "/\\t/other" is another host, and a line
    break would end the header.

    Example:
        >>> from evenhand.service._page_requests import local
        >>> local("/decisions?arm=3"), local("//other.example"), local("/\\t/other.example")
        ('/decisions?arm=3', '/', '/')
    """
    is_page = after.startswith("/") and not after.startswith(("//", "/\\"))
    return after if is_page and after.isascii() and after.isprintable() else "/"


def to(path: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Answer:
    """A redirect after a form. 303 makes the browser ask by GET, so reloading sends nothing again.

    Whoever calls this has made sure that the path is one of ours.
    """
    return Answer(303, b"", HTML, ((b"location", path.encode()), *SAFE, *headers))
