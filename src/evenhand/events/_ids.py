"""Ids of decisions: those that a log gives, and those that its user gives.

A log has a key of its own, and its decisions are called by the key and their round. So ids are
unique and in the order of time, and the round of an id is known without a table of all ids.
"""

from __future__ import annotations

import secrets
from time import time_ns
from typing import Any

from evenhand.errors import InputError

LONGEST = 200
_DIGITS = 10


def new_key() -> str:
    """Of a log that begins now: 48 bits of milliseconds and 32 random ones, in hexadecimal."""
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
    """The round of an id that a log gave; None for all others."""
    place = len(key) + 1
    number = id[place:]
    if id[:place] != f"{key}-" or not (number.isascii() and number.isdigit()):
        return None
    # One way of writing a number: zeros in front only up to the usual length.
    usual = len(number) == _DIGITS or (len(number) > _DIGITS and number[0] != "0")
    return int(number) if usual else None


def checked_id(key: str, id: Any) -> str:
    """An id that a user gives to a decision, or an error that says what is allowed."""
    if not isinstance(id, str) or not 0 < len(id) <= LONGEST or not _is_plain(id):
        raise InputError(
            parameter="id",
            value=id,
            allowed=f"text of 1 to {LONGEST} characters that can be printed, with no blank at "
            "either end",
            hint="leave it out for an id of the log's own",
        )
    if id.startswith(f"{key}-"):
        raise InputError(
            parameter="id",
            value=id,
            allowed="an id that does not begin like those of this log",
            hint="leave it out for an id of the log's own",
        )
    return id


def _is_plain(id: str) -> bool:
    """Files can have it, and people can tell it from others."""
    return id.isprintable() and id.strip() == id
