"""Who may do what: keys of programs, logins of people, and their sessions.

A key has 256 random bits, and only its SHA-256 is kept. Passwords are hashed with argon2. The first
administrator comes from a token that is printed once: there are no default credentials.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import Any, Literal, NamedTuple, get_args

from evenhand.service._ledger.sqlite_and_postgres import Connection

Role = Literal["decide", "reward", "review", "read", "admin"]
ROLES: tuple[str, ...] = get_args(Role)
DECIDE, REWARD, REVIEW, READ, ADMIN = ROLES
SESSION = 12 * 3600  # seconds
TOKEN = 24 * 3600


class Caller(NamedTuple):
    """An authenticated caller."""

    name: str
    roles: frozenset[str]
    csrf: str = ""

    def may(self, role: str) -> bool:
        """Whether a role is among theirs. An administrator may do everything."""
        return role in self.roles or ADMIN in self.roles


def hashed(secret: str) -> bytes:
    """The hash that is kept of a key, a token or a session."""
    return hashlib.sha256(secret.encode()).digest()


def _now() -> int:
    return time.time_ns() // 1000


class Keys:
    """The keys of the ledger, in memory; they are read again whenever one changes."""

    def __init__(self) -> None:
        self._callers: dict[bytes, Caller] = {}
        self._seen: dict[str, Caller] = {}  # by header, so that each is hashed once

    def load(self, connection: Connection) -> None:
        """Read all keys that were not withdrawn."""
        rows = connection.rows("SELECT sha256, name, roles FROM keys WHERE withdrawn IS NULL")
        self._callers = {
            bytes(sha): Caller(name, frozenset(roles.split())) for sha, name, roles in rows
        }
        self._seen = {}

    def of_header(self, header: str) -> Caller | None:
        """The caller of an Authorization header."""
        caller = self._seen.get(header)
        if caller is None:
            scheme, _, key = header.partition(" ")
            if scheme.lower() != "bearer" or len(key) > 200:
                return None
            caller = self._callers.get(hashed(key.strip()))
            if caller is not None:
                self._seen[header] = caller
        return caller


def new_key() -> str:
    """A new key; its prefix says what it is, should it turn up somewhere."""
    return f"eh_{secrets.token_urlsafe(32)}"


def add_key(connection: Connection, name: str, roles: list[str], key: str) -> None:
    """Keep a new key."""
    connection.rows(
        "INSERT INTO keys (sha256, name, roles, made) VALUES (?, ?, ?, ?)",
        (hashed(key), name, " ".join(sorted(set(roles))), _now()),
    )


def withdraw_key(connection: Connection, name: str) -> bool:
    """Withdraw the keys with a name."""
    sql = "SELECT 1 FROM keys WHERE name = ? AND withdrawn IS NULL"
    existed = connection.row(sql, (name,)) is not None
    connection.rows(
        "UPDATE keys SET withdrawn = ? WHERE name = ? AND withdrawn IS NULL", (_now(), name)
    )
    return existed


# People -----------------------------------------------------------------------------------------


def new_token(connection: Connection, roles: list[str]) -> str:
    """A token with which one login can be made, within a day."""
    token = secrets.token_urlsafe(24)
    connection.rows("DELETE FROM tokens WHERE due < ?", (_now(),))
    connection.rows(
        "INSERT INTO tokens (sha256, due, roles) VALUES (?, ?, ?)",
        (hashed(token), _now() + TOKEN * 1_000_000, " ".join(roles)),
    )
    return token


def has_users(connection: Connection) -> bool:
    """Whether anybody can log in."""
    return connection.row("SELECT 1 FROM users") is not None


def take_token(connection: Connection, token: str) -> list[str] | None:
    """The roles of a token, which this uses up; None if it is not valid."""
    row = connection.row(
        "DELETE FROM tokens WHERE sha256 = ? AND due >= ? RETURNING roles", (hashed(token), _now())
    )
    return None if row is None else str(row[0]).split()


def hash_password(password: str) -> str:
    """The hash of a password. It takes a moment, so it is computed outside a transaction."""
    from argon2 import PasswordHasher

    return PasswordHasher().hash(password)


def add_user(connection: Connection, name: str, hashed: str, roles: list[str]) -> bool:
    """Make a login; False if the name is taken."""
    row = connection.row(
        "INSERT INTO users (name, password, roles, made) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (name) DO NOTHING RETURNING name",
        (name, hashed, " ".join(roles), _now()),
    )
    return row is not None


def check_password(connection: Connection, name: str, password: str) -> list[str] | None:
    """The roles of a login; None if the name or the password is wrong.

    A password is hashed in any case, so that the time does not reveal which names exist.
    """
    from argon2 import PasswordHasher
    from argon2.exceptions import Argon2Error, InvalidHashError

    row = connection.row("SELECT password, roles FROM users WHERE name = ?", (name,))
    hasher = PasswordHasher()
    if row is None:
        hasher.hash(password)
        return None
    try:
        hasher.verify(row[0], password)
    except (Argon2Error, InvalidHashError):
        return None
    return str(row[1]).split()


def open_session(connection: Connection, name: str, roles: list[str]) -> tuple[str, str]:
    """A new session: its cookie, and the token that forms have to include."""
    cookie, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(24)
    connection.rows("DELETE FROM sessions WHERE due < ?", (_now(),))
    connection.rows(
        "INSERT INTO sessions (sha256, name, roles, csrf, due) VALUES (?, ?, ?, ?, ?)",
        (hashed(cookie), name, " ".join(roles), csrf, _now() + SESSION * 1_000_000),
    )
    return cookie, csrf


def of_session(connection: Connection, cookie: str) -> Caller | None:
    """Who a session belongs to."""
    row = connection.row(
        "SELECT name, roles, csrf FROM sessions WHERE sha256 = ? AND due >= ?",
        (hashed(cookie), _now()),
    )
    return None if row is None else Caller(row[0], frozenset(str(row[1]).split()), row[2])


def close_session(connection: Connection, cookie: str) -> None:
    """End a session."""
    connection.rows("DELETE FROM sessions WHERE sha256 = ?", (hashed(cookie),))


def roles_of(given: Any) -> list[str]:
    """Roles in their usual order."""
    return [role for role in ROLES if role in given]
