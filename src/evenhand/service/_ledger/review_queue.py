"""The queue of decisions that humans look at: expiring claims, verdicts, and how many differ."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from statistics import median
from typing import Any

from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.asks import OfDecision, Override
from evenhand.service._ledger.sqlite_and_postgres import Connection
from evenhand.service._ledger.transaction import Transaction

ACCEPTED, OVERRIDDEN = "accepted", "overridden"
# A verdict can no longer change anything once a decision has its reward, was overridden, or has
# waited long enough. Where use is confirmed, a decision starts to wait when it is used.
SETTLED = "the decision has its reward, was overridden, or no longer waits: nothing to review"
_OPEN = (
    "NOT EXISTS (SELECT 1 FROM rewards r WHERE r.decision = d.seq) "
    "AND NOT EXISTS (SELECT 1 FROM overrides o WHERE o.decision = d.seq) "
    "AND (EXISTS (SELECT 1 FROM waiting w WHERE w.decision = d.seq) {unused})"
)
_UNUSED = "OR NOT EXISTS (SELECT 1 FROM uses u WHERE u.decision = d.seq)"


def is_sampled(id: str, share: float) -> bool:
    """Whether a decision is one of the share that is reviewed; the id alone decides."""
    number = int.from_bytes(blake2b(id.encode(), digest_size=8).digest(), "big")
    return number < share * 2**64


def open_test(confirmed: bool) -> str:
    """The condition, on decisions `d`, that a verdict can still change something."""
    return _OPEN.format(unused=_UNUSED if confirmed else "")


class AskReview(OfDecision):
    """Put a decision into the queue."""

    def __init__(self, id: str) -> None:
        self.id = id

    def settle(self, tx: Transaction) -> None:
        """Add it, unless it is there already."""
        known = tx.known(self.id)
        if known is None:
            self.status, self.answer = 404, "there is no decision with this id"
            return
        if not tx.is_open(known):
            self.status, self.answer = 409, SETTLED
            return
        tx.connection.rows(
            "INSERT INTO reviews (decision, asked) VALUES (?, ?) ON CONFLICT (decision) DO NOTHING",
            (known.seq, tx.now),
        )
        self.status = 201


class ReviewClaim(OfDecision):
    """Claim a decision to review, for some time; others cannot claim it meanwhile."""

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
            self.status, self.answer = 404, "this decision is not in the queue for review"
        elif row[2] is not None:
            self.status, self.answer = 409, "this decision was already reviewed"
        elif row[0] not in (None, self.by) and row[1] > tx.now:
            self.status, self.answer = 409, "somebody else has claimed this decision"
        elif not tx.is_open(known):
            self.status, self.answer = 409, SETTLED
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
            self.status, self.answer = 409, "this decision was already reviewed"
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


def standing(
    connection: Connection, id: str, by: str, now: int, confirmed: bool
) -> tuple[str, bool]:
    """The status of the review of a decision, for a reviewer; and whether it is still open."""
    row = connection.row(
        "SELECT v.decision, v.claimed_by, v.claimed_until, v.verdict, "
        f"CASE WHEN {open_test(confirmed)} THEN 1 ELSE 0 END "
        "FROM decisions d LEFT JOIN reviews v ON d.seq = v.decision WHERE d.id = ?",
        (id,),
    )
    if row is None:
        return "not asked", False
    queued, claimant, until, verdict, is_open = row
    claimed = claimant is not None and until > now
    if verdict is not None:
        status = "reviewed"
    elif claimed:
        status = "mine" if claimant == by else "another's"
    elif not is_open:
        status = "settled"
    else:
        status = "not asked" if queued is None else "waits"
    return status, bool(is_open)


def queue(connection: Connection, now: int, limit: int, confirmed: bool) -> list[dict[str, Any]]:
    """The decisions that wait for a human, the oldest first: a verdict can still change them."""
    rows = connection.rows(
        "SELECT d.id, d.at, d.arm, d.grp, v.claimed_by, v.claimed_until FROM reviews v "
        f"JOIN decisions d ON d.seq = v.decision WHERE v.verdict IS NULL "
        f"AND {open_test(confirmed)} ORDER BY v.decision LIMIT ?",
        (limit,),
    )
    return [
        {"id": id, "at": at, "arm": arm, "group": group,
         "claimed_by": claimant if claimant is not None and until > now else None,
         "claimed_until": until if claimant is not None and until > now else None}
        for id, at, arm, group, claimant, until in rows
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
