"""Checking a ledger: the chain, its numbers, and the projections that follow from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.errors import DamagedError, InputError, setting
from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.entries import GENESIS, digest_of, link
from evenhand.service._ledger.sqlite_and_postgres import Connection, Database

_SQL = "SELECT seq, kind, at, subject, event, salt, body, digest, hash FROM entries ORDER BY seq"


class Verified(NamedTuple):
    """The counts and the head of a ledger that passed all checks."""

    entries: int
    hash: str
    decisions: int
    rewards: int
    erased: int

    def to_words(self) -> str:
        """In a sentence."""
        erased = f", {self.erased:,} of them erased" if self.erased else ""
        return (
            f"{self.entries:,} entries{erased}, numbered without a gap, and the chain is whole: "
            f"{self.decisions:,} decisions, {self.rewards:,} rewards; head {self.hash}"
        )


def verify(url: str, head: Path | None = None) -> Verified:
    """Check everything; a DamagedError names the first entry that is wrong.

    A chain alone does not stop somebody who can rewrite all of it. `head` is a file with the head
    of an earlier check, kept where they cannot write: that head must still be in the chain.
    """
    database = Database(url)
    if not database.exists():
        raise InputError(f"{database.name} has no ledger")
    earlier = None if head is None else read_head(head)
    with database.reading() as connection:
        verified = _chain(connection, earlier)
        _projections(connection, verified)
    database.close()
    return verified


def _chain(connection: Connection, earlier: tuple[int, str] | None) -> Verified:
    before, last, events, time = GENESIS, 0, 0, 0
    counts: dict[str, int] = {}
    erased = 0
    for seq, kind, at, subject, event, salt, body, digest, hash in connection.stream(_SQL):
        if seq != last + 1:
            raise DamagedError(f"entry {last + 1} is missing")
        if (body is None) != (salt is None) or (
            body is not None and digest_of(bytes(salt), bytes(body)) != bytes(digest)
        ):
            raise DamagedError(f"entry {seq} was changed after it was written")
        if at < time:
            raise DamagedError(f"entry {seq} is older than the one before it")
        if event is not None and event != events + 1:
            raise DamagedError(f"entry {seq} has event {event}, not {events + 1}")
        before = link(before, seq, kind, at, subject, bytes(digest))
        if before != bytes(hash):
            raise DamagedError(f"entry {seq} does not continue the chain")
        if earlier is not None and seq == earlier[0] and before.hex() != earlier[1]:
            raise DamagedError(f"entry {seq} has a different hash from the head that was kept")
        last, time, events = seq, at, events if event is None else event
        erased += body is None
        counts[kind] = counts.get(kind, 0) + 1
    if earlier is not None and earlier[0] > last:
        raise DamagedError(f"the ledger ends at {last}, but the head that was kept is {earlier[0]}")
    row = connection.row("SELECT seq, hash, events FROM head WHERE one = 1")
    if row is None or (row[0], bytes(row[1]), row[2]) != (last, before, events):
        raise DamagedError(f"the head does not belong to entry {last}")
    rewards = counts.get(kinds.REWARD, 0)
    return Verified(last, before.hex(), counts.get(kinds.DECISION, 0), rewards, erased)


def _projections(connection: Connection, verified: Verified) -> None:
    """Check that the tables for queries have what the entries say."""

    def number(sql: str) -> int:
        row = connection.row(sql)
        return 0 if row is None or row[0] is None else int(row[0])

    if number("SELECT COUNT(*) FROM decisions") != verified.decisions:
        raise DamagedError("the table of decisions does not match the entries")
    if number(
        "SELECT COUNT(*) FROM decisions d LEFT JOIN entries e ON e.seq = d.seq "
        "WHERE e.kind IS NULL OR e.kind <> 'decision' OR e.subject <> d.id"
    ):
        raise DamagedError("a row of decisions belongs to no entry")
    if number(
        "SELECT COUNT(*) FROM rewards r LEFT JOIN entries e ON e.seq = r.seq "
        "WHERE e.kind IS NULL OR e.kind NOT IN ('reward', 'late')"
    ):
        raise DamagedError("a row of rewards belongs to no entry")
    first = number("SELECT MIN(round) FROM decisions")
    last = number("SELECT MAX(round) FROM decisions")
    if verified.decisions and last - first + 1 != verified.decisions:
        raise DamagedError("rounds have a gap")


def write_head(path: Path, verified: Verified) -> None:
    """Keep a head, to be moved to where the ledger's administrator cannot write."""
    data: dict[str, Any] = {"entry": verified.entries, "hash": verified.hash}
    path.write_text(json.dumps(data) + "\n", encoding="utf-8")


def read_head(path: Path) -> tuple[int, str]:
    """A head that was kept."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return int(data["entry"]), str(data["hash"])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise InputError(
            f"{setting('head')} is {str(path)!r}, which does not have the head of a ledger"
        ) from error
