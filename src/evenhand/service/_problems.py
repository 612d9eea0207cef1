"""Errors of the service as problem+json (RFC 9457). They name fields and never repeat values."""

from __future__ import annotations

import re
from typing import Any

import msgspec

TITLES = {
    400: "The request cannot be read",
    401: "A key is needed",
    403: "The key does not allow this",
    404: "Not found",
    405: "The method is not allowed here",
    409: "It contradicts an earlier record",
    410: "It came too late, or was erased",
    413: "The request is too large",
    421: "This host is not served here",
    422: "A field is not allowed",
    429: "Too many requests",
    500: "An error in the service",
    503: "Not available now; try again",
}


class Problem(Exception):
    """An answer that is an error."""

    def __init__(
        self,
        status: int,
        detail: str = "",
        field: str | None = None,
        headers: dict[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.field = status, detail, field
        self.headers, self.more = headers or {}, more

    def body(self) -> bytes:
        """The JSON of the answer."""
        data: dict[str, Any] = {
            "type": "about:blank",
            "title": TITLES.get(self.status, "An error"),
            "status": self.status,
        }
        if self.detail:
            data["detail"] = self.detail
        if self.field:
            data["field"] = self.field
        return msgspec.json.encode({**data, **self.more})


class Refused(Problem):
    """A field that is not allowed."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(422, detail, field)


_AT = re.compile(r" - at `(\$[^`]*)`$")
_EXPECTED = re.compile(r"^(Expected `[^`]*`(?:, got `[a-z]+`)?)")
_MISSING = re.compile(r"^Object missing required field `(\w+)`")
_UNKNOWN = "Object contains unknown field"


def of_decoding(error: msgspec.DecodeError) -> Problem:
    """What msgspec found, without the caller's values, which its own message may repeat."""
    if not isinstance(error, msgspec.ValidationError):
        return Problem(400, "the body is not valid JSON in UTF-8")
    text = str(error)
    place = _AT.search(text)
    expected, missing = _EXPECTED.match(text), _MISSING.match(text)
    # A part of the path may be a key that the caller chose, which msgspec shows as [...].
    field = place[1].removeprefix("$").removeprefix(".") if place else ""
    if missing:
        return Problem(422, "is missing", f"{field}.{missing[1]}".removeprefix("."))
    if text.startswith(_UNKNOWN):  # its name is the caller's
        return Problem(422, "has a field that is not known here", field or "body")
    return Problem(422, expected[1] if expected else "is not allowed here", field or "body")
