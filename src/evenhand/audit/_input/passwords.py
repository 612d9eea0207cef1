"""Addresses of databases without the password in them, for reports and messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote_plus

# Between the user and the last @ before the host; a password may have any character in it.
IN_FRONT = re.compile(r"^(?P<kept>[\w+]+://[^:@/?]*):(?P<secret>.*)@")
PORT = re.compile(r"\d+(/[^@?]*)?\?")  # and a query string, which may have an @ in it
IN_QUERY = re.compile(r"(?P<kept>[?&;\s]\w*(?:passw(?:or)?d|pwd)=)(?P<secret>[^&;\s]*)", re.I)
HIDDEN = "***"


def without_password(log: str) -> str:
    """A log's name as it may be shown.

    Example:
        >>> from evenhand.audit._input.passwords import without_password
        >>> without_password("postgresql://ann:s3cret@host/bank::loans")
        'postgresql://ann@host/bank::loans'
        >>> without_password("postgresql://host/bank?password=s3cret&user=ann::loans")
        'postgresql://host/bank?password=***&user=ann::loans'
    """
    where, mark, table = log.rpartition("::")
    front = _in_front(where)
    if front is not None:
        where = front["kept"] + where[front.end() - 1 :]
    return (IN_QUERY.sub(rf"\g<kept>{HIDDEN}", where) if "://" in where else where) + mark + table


def passwords_in(log: str) -> tuple[str, ...]:
    """The passwords in a log's name, as they are written and as they are decoded."""
    where, _, _ = log.rpartition("::")
    front = _in_front(where)
    secrets = [match["secret"] for match in IN_QUERY.finditer(where)] if "://" in where else []
    secrets += [] if front is None else [front["secret"]]
    spellings = {*secrets, *map(unquote_plus, secrets)}
    return tuple(sorted(filter(None, spellings), key=len, reverse=True))


def hidden(text: str, passwords: Sequence[str]) -> str:
    """A text without these passwords in it."""
    for password in passwords:
        text = text.replace(password, HIDDEN)
    return text


def _in_front(where: str) -> re.Match[str] | None:
    match = IN_FRONT.match(where.partition("?")[0]) or IN_FRONT.match(where)
    return None if match is None or PORT.match(match["secret"]) else match
