"""Erasing a person: bodies and salts are removed, the chain stays whole."""

from __future__ import annotations

from evenhand.errors import InputError
from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.asks import Ask, Keep
from evenhand.service._ledger.fold import restored
from evenhand.service._ledger.membership import ERASED
from evenhand.service._ledger.sqlite_and_postgres import Connection, marks
from evenhand.service._ledger.transaction import CHUNK, Transaction

_PROJECTIONS = ("rewards", "truths", "overrides", "uses", "waiting", "reviews")


class EraseAsk(Ask):
    """Remove what is known about a person, after a snapshot of what was learned.

    It has its own transaction, because the snapshot must have everything before it.
    """

    def __init__(self, person: bytes, by: str, reason: str, retention: int, force: bool) -> None:
        self.person, self.by, self.reason = person, by, reason
        self.kept, self.force = retention, force  # microseconds that records have to be kept

    def settle(self, tx: Transaction) -> None:
        """Erase, or say why not."""
        connection = tx.connection
        sql = "SELECT seq, id, at FROM decisions WHERE person = ?"
        rows = connection.rows(sql, (self.person,))
        if not rows:
            self.status, self.answer = 404, "nothing is known about this person"
            return
        if not self.force and any(at > tx.now - self.kept for _, _, at in rows):
            self.status = 409
            self.answer = (
                "a decision is in its retention period; force the erasure if the law requires it"
            )
            return
        try:
            state = restored(connection)
            # After a rollback, the version that decides must stay restorable as well.
            pinned = [restored(connection, state.pinned)] if state.pinned else []
        except InputError as error:
            self.status, self.answer = 409, str(error)
            return
        for version in (*pinned, state):
            Keep(version.version, version.to_bytes()).settle(tx)
        tx.append(kinds.SNAPSHOT, None, kinds.Snapshot(state.checksum(), state.learned))
        decisions, ids = [row[0] for row in rows], [row[1] for row in rows]
        seqs = sorted(_entries_about(connection, ids))
        # The group of an arm is not the person's; one that came with a candidate is.
        group = "" if tx.rules.given is None else f", grp = '{ERASED}'"
        for chunk in _chunks(seqs):
            connection.rows(
                f"UPDATE entries SET body = NULL, salt = NULL WHERE seq IN ({marks(chunk)})", chunk
            )
        for chunk in _chunks(decisions):
            for table in _PROJECTIONS:
                connection.rows(f"DELETE FROM {table} WHERE decision IN ({marks(chunk)})", chunk)
            connection.rows(
                f"UPDATE decisions SET person = NULL{group} WHERE seq IN ({marks(chunk)})", chunk
            )
        tx.append(kinds.ERASE, None, kinds.Erase(seqs, self.by, self.reason))
        self.status, self.answer = 200, len(decisions)


def _entries_about(connection: Connection, ids: list[str]) -> set[int]:
    """All entries about decisions. There is no index for it, as this is rare."""
    seqs: set[int] = set()
    for first in range(0, len(ids), CHUNK):
        chunk = ids[first : first + CHUNK]
        sql = f"SELECT seq FROM entries WHERE subject IN ({marks(chunk)})"
        seqs.update(row[0] for row in connection.rows(sql, chunk))
    return seqs


def _chunks(values: list[int]) -> list[list[int]]:
    return [values[first : first + CHUNK] for first in range(0, len(values), CHUNK)]
