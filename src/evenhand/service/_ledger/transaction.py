"""One transaction of the writer: entries, and the projections that follow from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from time import time_ns
from typing import Any, NamedTuple

from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.entries import GENESIS, Chain, Entry
from evenhand.service._ledger.membership import Membership
from evenhand.service._ledger.sqlite_and_postgres import Connection, Unavailable, marks

HOUR = 3_600_000_000  # microseconds
CHUNK = 400  # parameters of one query
# What is counted by hour and group. It is here and not in `schema`, which needs SQLAlchemy: a start
# without a migration does not load that.
TALLIED = ("decided", "explored", "rewarded", "late", "missing", "overridden", "expected", "cost",
           "earned")  # fmt: skip
ENTRY = "seq, kind, at, subject, event, salt, body, digest, hash"
_INSERTS = {
    "entries": f"INSERT INTO entries ({ENTRY}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "decisions": "INSERT INTO decisions (seq, id, round, at, arm, grp, person) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)",
    "waiting": "INSERT INTO waiting (decision, due, grp, rewarded) VALUES (?, ?, ?, 0)",
    "held": "UPDATE waiting SET rewarded = 1 WHERE decision = ?",
    "settled": "DELETE FROM waiting WHERE decision = ?",
    "rewards": "INSERT INTO rewards (decision, seq, at, reward, late) VALUES (?, ?, ?, ?, ?)",
    "truths": "INSERT INTO truths (decision, seq, at, reward) VALUES (?, ?, ?, ?)",
    "overrides": "INSERT INTO overrides (decision, seq, at, arm, grp, reason, by, shadow) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    "reviews": "INSERT INTO reviews (decision, asked) VALUES (?, ?)",
    "uses": "INSERT INTO uses (decision, seq, at) VALUES (?, ?, ?)",
}
_ADDED = ", ".join(f"{name} = tallies.{name} + excluded.{name}" for name in TALLIED)
_TALLY = (
    f"INSERT INTO tallies (hour, grp, {', '.join(TALLIED)}) VALUES (?, ?, {marks(TALLIED)}) "
    f"ON CONFLICT (hour, grp) DO UPDATE SET {_ADDED}"
)
_KNOWN = (
    "SELECT d.id, d.seq, d.round, d.at, d.arm, d.grp, w.due, w.rewarded, r.reward, r.late, "
    "t.reward, o.arm, o.grp, u.seq, e.body, oe.body "
    "FROM decisions d JOIN entries e ON e.seq = d.seq "
    "LEFT JOIN waiting w ON w.decision = d.seq LEFT JOIN rewards r ON r.decision = d.seq "
    "LEFT JOIN truths t ON t.decision = d.seq LEFT JOIN overrides o ON o.decision = d.seq "
    "LEFT JOIN entries oe ON oe.seq = o.seq "
    "LEFT JOIN uses u ON u.decision = d.seq WHERE d.id "
)


@dataclass(slots=True)
class Known:
    """A decision as the ledger has it."""

    id: str
    seq: int
    round: int
    at: int
    arm: int
    grp: str
    due: int | None = None
    rewarded: int | None = None
    reward: float | None = None
    late: int | None = None
    truth: float | None = None
    override: int | None = None
    override_grp: str | None = None
    used: int | None = None
    body: bytes | None = None
    override_body: bytes | None = None

    @property
    def waits(self) -> bool:
        """Whether a reward may still come in time."""
        return self.due is not None and not self.rewarded

    @property
    def group_in_force(self) -> str:
        """The group of the arm in force, which an override may have changed."""
        return self.grp if self.override_grp is None else self.override_grp


class Rules(NamedTuple):
    """What the configuration says about rewards, and about groups that candidates bring."""

    wait: int  # microseconds
    after_wait: bool
    confirmed: bool
    default_reward: float | None
    given: Membership | None = None


class Transaction:
    """Entries to be committed together. Nothing is written before `flush`."""

    def __init__(self, connection: Connection, lock: str, rules: Rules) -> None:
        self.connection, self.rules = connection, rules
        # The row `head` is read with a lock: from here to the commit nobody else can write, so
        # numbers have no gap and the chain has one end.
        connection.begin()
        row = connection.row(f"SELECT seq, hash, at, round, events FROM head WHERE one = 1{lock}")
        self.is_new = row is None
        self.chain = (
            Chain(0, GENESIS, 0, 0, 0)
            if row is None
            else Chain(row[0], bytes(row[1]), row[2], row[3], row[4])
        )
        self.first = self.chain.seq + 1
        # The clock may be set back; a ledger's time is not. Two replicas' clocks differ as well.
        self.now = max(time_ns() // 1000, self.chain.at)
        self.entries: list[Entry] = []
        self.fresh: list[tuple[Entry, Any]] = []  # entries with their bodies, as they were given
        self._rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self._tallies: dict[tuple[int, str], list[float]] = {}
        self._known: dict[str, Known] = {}

    def is_over(self, known: Known) -> bool:
        """Whether a decision has waited for its reward, and no longer waits."""
        began = not self.rules.confirmed or known.used is not None
        return began and known.due is None

    def is_open(self, known: Known) -> bool:
        """Whether a human can still choose another arm."""
        return known.reward is None and known.override is None and not self.is_over(known)

    # What is there ------------------------------------------------------------------------------

    def since(self, seq: int) -> list[Entry]:
        """What others wrote after an entry."""
        if self.chain.seq == seq:
            return []
        # A store that was restored from an older copy. Going on would give numbers a second
        # meaning.
        if self.chain.seq < seq:
            raise Unavailable(f"the store ends at {self.chain.seq}, but {seq} was there before")
        return entries_after(self.connection, seq, self.chain.seq)

    def look_up(self, ids: Iterable[str]) -> None:
        """Fetch decisions, so that `known` has them."""
        missing = list({id for id in ids if id not in self._known})
        for first in range(0, len(missing), CHUNK):
            chunk = missing[first : first + CHUNK]
            # PostgreSQL plans a query once for a list of any length, but not for every IN (...).
            if self.connection.is_postgres:
                rows = self.connection.rows(f"{_KNOWN}= ANY(?)", (chunk,))
            else:
                rows = self.connection.rows(f"{_KNOWN}IN ({marks(chunk)})", chunk)
            for row in rows:
                self._known[row[0]] = Known(*row)

    def known(self, id: str) -> Known | None:
        """A decision, if there is one."""
        return self._known.get(id)

    # What is new --------------------------------------------------------------------------------

    def append(self, kind: str, subject: str | None, body: Any, event: bool = False) -> Entry:
        """Add an entry."""
        entry = self.chain.add(kind, subject, body, self.now, event)
        self.entries.append(entry)
        # Kept as objects, so that the loop need not decode what it has just encoded.
        self.fresh.append((entry, body))
        return entry

    def write(self, table: str, *values: Any) -> None:
        """Add a row of a projection."""
        self._rows[table].append(values)

    def label(self, group: str, row: bytes) -> str:
        """The group of an arm, or of the candidate with this context."""
        return group if self.rules.given is None else self.rules.given.label(row)

    def parts(self, group: str, row: bytes) -> Mapping[str, float]:
        """How much each group counts: the arm's fully, or those of the candidate."""
        return {group: 1} if self.rules.given is None else self.rules.given.parts(row)

    def tally(self, at: int, parts: Mapping[str, float], **counts: float) -> None:
        """Count something, by hour and group."""
        for group, part in parts.items():
            row = self._tallies.get((at // HOUR, group))
            if row is None:
                row = self._tallies[at // HOUR, group] = [0] * 6 + [0.0] * 3
            for name, number in counts.items():
                row[_PLACE[name]] += part * number

    def remember(self, known: Known) -> None:
        """Keep a decision of this transaction for the asks that follow in it."""
        self._known[known.id] = known

    def flush(self) -> None:
        """Write everything, in as few statements as possible."""
        connection, chain = self.connection, self.chain
        if not self.entries and not self._rows:
            return
        connection.many(_INSERTS["entries"], self.entries)
        for table, rows in self._rows.items():
            connection.many(_INSERTS[table], rows)
        # In the same order everywhere, so that two replicas never wait for each other.
        tallies = [(*key, *row) for key, row in sorted(self._tallies.items())]
        connection.many(_TALLY, tallies)
        # Last, and in the same transaction: if it is there, all it stands for is.
        values = (chain.seq, chain.hash, chain.at, chain.round, chain.events)
        if self.is_new:
            connection.rows(
                "INSERT INTO head (one, seq, hash, at, round, events) VALUES (1, ?, ?, ?, ?, ?)",
                values,
            )
        else:
            connection.rows(
                "UPDATE head SET seq = ?, hash = ?, at = ?, round = ?, events = ? WHERE one = 1",
                values,
            )


_PLACE = {name: place for place, name in enumerate(TALLIED)}


def entries_after(connection: Connection, seq: int, last: int) -> list[Entry]:
    """The entries after `seq` up to `last`."""
    sql = f"SELECT {ENTRY} FROM entries WHERE seq > ? AND seq <= ? ORDER BY seq"
    return [entry_of(row) for row in connection.rows(sql, (seq, last))]


def entry_of(row: tuple[Any, ...]) -> Entry:
    """A row as an entry; PostgreSQL may give other types of bytes."""
    seq, kind, at, subject, event, salt, body, digest, hash = row
    return Entry(
        seq, kind, at, subject, event,
        None if salt is None else bytes(salt), None if body is None else bytes(body),
        bytes(digest), bytes(hash),
    )  # fmt: skip


def decision_of(known: Known) -> kinds.Decision | None:
    """The body of a decision; None once it was erased."""
    if known.body is None:
        return None
    body: kinds.Decision = kinds.decode(kinds.DECISION, bytes(known.body))
    return body
