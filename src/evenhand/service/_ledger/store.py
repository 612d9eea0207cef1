"""The ledger in a database: begin it, and write batches of asks."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from evenhand import __version__
from evenhand.errors import InputError
from evenhand.events._header import About
from evenhand.events._ids import new_key
from evenhand.policies.base import Policy
from evenhand.policies.saving import to_dict
from evenhand.recording._decision_records import columns_of
from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.asks import Ask, Note
from evenhand.service._ledger.entries import Entry
from evenhand.service._ledger.fold import LedgerState, restored
from evenhand.service._ledger.sqlite_and_postgres import Connection, Database, InDoubt, Unavailable
from evenhand.service._ledger.transaction import Rules, Transaction, entries_after


class Committed(NamedTuple):
    """The entries since the last one that the writer knew, its own and those of others."""

    told: list[tuple[Entry, Any]]
    head: int


class Store:
    """The writer. Not for several threads at once."""

    def __init__(self, database: Database, rules: Rules) -> None:
        self.database, self.rules = database, rules
        self._connection: Connection | None = None
        self.known = 0  # the last entry that this process has seen

    @property
    def connection(self) -> Connection:
        """The connection, opened again if it was lost."""
        if self._connection is None:
            self._connection = self.database.writer()
        return self._connection

    def drop(self) -> None:
        """Give up the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # The beginning ------------------------------------------------------------------------------

    def begin(self, policy: Policy, arms: Sequence[str], features: Sequence[str]) -> None:
        """Begin a new ledger, unless another process has just done so."""
        about = About(
            columns_of(features, policy),
            to_dict(policy),
            candidates=True,
            key=new_key(),
            truth=policy.learns_truth,
        )
        with _Rollback(self):
            tx = Transaction(self.connection, self.database.lock, self.rules)
            if not tx.is_new:
                self.connection.rollback()
                return
            body = kinds.Begin(about.to_json(), list(arms), list(features))
            tx.append(kinds.BEGIN, about.key, body)
            tx.chain.round = policy.round
            tx.flush()
            sql = "INSERT INTO meta (name, value) VALUES ('secret', ?) ON CONFLICT DO NOTHING"
            self.connection.rows(sql, (secrets.token_bytes(32),))
            self.connection.commit()

    def start(self) -> tuple[int, int, LedgerState]:
        """Record that this process started; return its seed, its entry and the state."""
        seed = secrets.randbits(63)
        state = restored(self.connection)
        self.known = state.version
        note = Note(kinds.START, kinds.Start(seed, __version__))
        committed = self.write([note])
        if state.apply(committed.told):
            state = restored(self.connection, committed.head)
        return seed, note.answer.seq, state

    def secret(self) -> bytes:
        """The key with which the ids of persons are hashed."""
        row = self.connection.row("SELECT value FROM meta WHERE name = 'secret'")
        if row is None:
            raise InputError("the ledger has no secret; it did not begin properly")
        return bytes(row[0])

    # Writing ------------------------------------------------------------------------------------

    def write(self, asks: Sequence[Ask]) -> Committed:
        """Settle asks in one transaction. After an error, assume that nothing was kept."""
        first: Entry | None = None
        try:
            tx = Transaction(self.connection, self.database.lock, self.rules)
            others = [(entry, _decoded(entry)) for entry in tx.since(self.known)]
            tx.look_up([id for ask in asks for id in ask.ids()])
            for ask in asks:
                ask.settle(tx)
            tx.flush()
            first = tx.entries[0] if tx.entries else None
            self.connection.commit()
        except InDoubt:
            self.drop()
            if first is None or not self._is_there(first):
                raise Unavailable("the connection was lost; nothing was kept") from None
        except Exception:
            if self._connection is not None:
                self._connection.rollback()
                if self.database.is_postgres:
                    self.drop()
            raise
        self.known = tx.chain.seq
        return Committed(others + tx.fresh, tx.chain.seq)

    def _is_there(self, entry: Entry) -> bool:
        """Whether a commit in doubt took place: its first entry is there, and not another."""
        row = self.connection.row("SELECT hash FROM entries WHERE seq = ?", (entry.seq,))
        return row is not None and bytes(row[0]) == entry.hash

    def catch_up(self) -> Committed:
        """What others wrote since the last entry seen."""
        row = self.connection.row("SELECT seq FROM head WHERE one = 1")
        head = self.known if row is None else row[0]
        if head < self.known:
            raise Unavailable(f"the store ends at {head}, but {self.known} was there before")
        entries = []
        if head > self.known:
            entries = [(e, _decoded(e)) for e in entries_after(self.connection, self.known, head)]
        self.known = head
        return Committed(entries, head)


def _decoded(entry: Entry) -> Any:
    return None if entry.body is None else kinds.decode(entry.kind, entry.body)


class _Rollback:
    """Undo what is not committed when leaving with an error."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._store.connection.rollback()
