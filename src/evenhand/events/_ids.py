"""Ids of decisions: those that a log gives, and those that its user gives.

Every log has its own key, and the id of a decision is the key and the round. So ids are unique and
ordered by time, and the round of an id is known without a table of all ids.
"""

from __future__ import annotations

import secrets
from time import time_ns
from typing import Any

from evenhand.errors import InputError

LONGEST = 200
_DIGITS = 10


def new_key() -> str:
    """The key of a new log: 48 bits of milliseconds and 32 random bits, in hexadecimal."""
    return f"{time_ns() // 1_000_000 & (1 << 48) - 1:012x}{secrets.token_hex(4)}"


def id_of(key: str, round: int) -> str:
    """The id that a log gives to the decision of a round.

    Example:
        >>> from evenhand.events._ids import id_of, round_of
        >>> id_of("0192f3a1b2c3deadbeef", 17)
        '0192f3a1b2c3deadbeef-0000000017'
        >>> round_of("0192f3a1b2c3deadbeef", "0192f3a1b2c3deadbeef-0000000017")
        17
    """
    return f"{key}-{round:0{_DIGITS}d}"


def round_of(key: str, id: str) -> int | None:
    """The round of an id that the log gave; None for all others."""
    place = len(key) + 1
    number = id[place:]
    if id[:place] != f"{key}-" or not (number.isascii() and number.isdigit()):
        return None
    # A number is written in one way only: leading zeros only up to the usual length.
    usual = len(number) == _DIGITS or (len(number) > _DIGITS and number[0] != "0")
    return int(number) if usual else None


def checked_id(key: str, id: Any) -> str:
    """The id that a user gives to a decision, if it is allowed."""
    if not isinstance(id, str) or not 0 < len(id) <= LONGEST or not _is_plain(id):
        raise InputError(
            parameter="id",
            value=id,
            allowed=f"text of 1 to {LONGEST} printable characters, without blanks at either end",
            hint="leave it out to let the log choose one",
        )
    if id.startswith(f"{key}-"):
        raise InputError(
            parameter="id",
            value=id,
            allowed="an id that does not begin like those of this log",
            hint="leave it out to let the log choose one",
        )
    return id


def _is_plain(id: str) -> bool:
    """Whether files can contain it, and people can tell it from others."""
    return id.isprintable() and id.strip() == id
