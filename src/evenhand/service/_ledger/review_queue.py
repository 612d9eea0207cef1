"""The queue of decisions that humans look at: claims that expire, verdicts, and how many differ."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from statistics import median
from typing import Any

from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.asks import OfDecision, Override
from evenhand.service._ledger.database import Connection
from evenhand.service._ledger.transaction import Transaction

ACCEPTED, OVERRIDDEN = "accepted", "overridden"


def is_sampled(id: str, share: float) -> bool:
    """Whether a decision is one of the share that is reviewed; the id alone decides."""
    number = int.from_bytes(blake2b(id.encode(), digest_size=8).digest(), "big")
    return number < share * 2**64


class AskReview(OfDecision):
    """Put a decision into the queue."""

    def __init__(self, id: str) -> None:
        self.id = id

    def settle(self, tx: Transaction) -> None:
        """Add it, unless it is there."""
        known = tx.known(self.id)
        if known is None:
            self.status, self.answer = 404, "there is no decision with this id"
            return
        tx.connection.rows(
            "INSERT INTO reviews (decision, asked) VALUES (?, ?) ON CONFLICT (decision) DO NOTHING",
            (known.seq, tx.now),
        )
        self.status = 201


class Claim(OfDecision):
    """Take a decision to look at, for some time; others cannot take it meanwhile."""

    def __init__(self, id: str, by: str, seconds: float) -> None:
        self.id, self.by, self.length = id, by, int(seconds * 1e6)

    def settle(self, tx: Transaction) -> None:
        """Claim it, unless another did."""
        known = tx.known(self.id)
        row = None
        if known is not None:
            row = tx.connection.row(
                "SELECT claimed_by, claimed_until, verdict FROM reviews WHERE decision = ?",
                (known.seq,),
            )
        if known is None or row is None:
            self.status, self.answer = 404, "this decision is not to be reviewed"
        elif row[2] is not None:
            self.status, self.answer = 409, "this decision was reviewed before"
        elif row[0] not in (None, self.by) and row[1] > tx.now:
            self.status, self.answer = 409, "somebody else looks at this decision now"
        else:
            tx.connection.rows(
                "UPDATE reviews SET claimed_by = ?, claimed_until = ? WHERE decision = ?",
                (self.by, tx.now + self.length, known.seq),
            )
            self.status = 201


class Judge(OfDecision):
    """Accept a decision, or override it with a reason; by whoever has claimed it."""

    def __init__(
        self, id: str, by: str, reason: str, arm: int | None, groups: Callable[[int], str]
    ) -> None:
        self.id, self.by, self.reason = id, by, reason
        self.arm, self.groups = arm, groups

    def settle(self, tx: Transaction) -> None:
        """Record the verdict and, if it is another arm, the override."""
        known = tx.known(self.id)
        if known is None:
            self.status, self.answer = 404, "there is no decision with this id"
            return
        row = tx.connection.row(
            'SELECT claimed_by, claimed_until, verdict, "by" FROM reviews WHERE decision = ?',
            (known.seq,),
        )
        verdict = ACCEPTED if self.arm is None else OVERRIDDEN
        if row is not None and row[2:] == (verdict, self.by) and known.override == self.arm:
            self.status = 200  # the same again, because an answer was lost
            return
        if row is not None and row[2] is not None:
            self.status, self.answer = 409, "this decision was reviewed before"
            return
        if row is None or row[0] != self.by or row[1] <= tx.now:
            self.status, self.answer = 409, "claim this decision first; your claim may have expired"
            return
        if self.arm is not None:
            override = Override(self.id, self.arm, self.groups, self.reason, self.by)
            override.settle(tx)
            if override.status >= 300:
                self.status, self.answer = override.status, override.answer
                return
        tx.append(kinds.REVIEW, self.id, kinds.Review(known.seq, verdict, self.by, self.reason))
        tx.connection.rows(
            'UPDATE reviews SET verdict = ?, "by" = ?, at = ? WHERE decision = ?',
            (verdict, self.by, tx.now, known.seq),
        )
        self.status = 201


def standing(connection: Connection, id: str, by: str, now: int) -> str:
    """How far the review of a decision is, for somebody who looks at it."""
    row = connection.row(
        "SELECT v.claimed_by, v.claimed_until, v.verdict FROM reviews v "
        "JOIN decisions d ON d.seq = v.decision WHERE d.id = ?",
        (id,),
    )
    if row is None:
        return "not asked"
    who, until, verdict = row
    if verdict is not None:
        return "reviewed"
    if who is None or until <= now:
        return "waits"
    return "mine" if who == by else "another's"


def queue(connection: Connection, now: int, limit: int = 50) -> list[dict[str, Any]]:
    """What waits for a human, the oldest first."""
    rows = connection.rows(
        "SELECT d.id, d.at, d.arm, d.grp, v.claimed_by, v.claimed_until FROM reviews v "
        "JOIN decisions d ON d.seq = v.decision WHERE v.verdict IS NULL ORDER BY v.decision "
        "LIMIT ?",
        (limit,),
    )
    return [
        {"id": id, "at": at, "arm": arm, "group": group,
         "claimed_by": who if who is not None and until > now else None,
         "claimed_until": until if who is not None and until > now else None}
        for id, at, arm, group, who, until in rows
    ]  # fmt: skip


def reviewers(connection: Connection, claim: float) -> list[dict[str, Any]]:
    """By reviewer: how many, how often they changed anything, and how long they looked."""
    rows = connection.rows(
        'SELECT "by", verdict, at, claimed_until FROM reviews WHERE verdict IS NOT NULL'
    )
    people: dict[str, list[tuple[bool, float]]] = {}
    for by, verdict, at, until in rows:
        seconds = (at - until) / 1e6 + claim
        people.setdefault(by, []).append((verdict == OVERRIDDEN, seconds))
    return [
        {"reviewer": name, "reviewed": len(cases),
         "changed": sum(changed for changed, _ in cases) / len(cases),
         "median_seconds": median(seconds for _, seconds in cases)}
        for name, cases in sorted(people.items())
    ]  # fmt: skip
