"""The ledger of a service as the log of the library: the same events, the same protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError, setting
from evenhand.events._header import About
from evenhand.events.event import (
    DecisionMade,
    Event,
    Overridden,
    RewardObserved,
    RowsAbsorbed,
    TrueRewardObserved,
)
from evenhand.events.ledger import Snapshot
from evenhand.policies.saving import to_dict
from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.asks import reward_of, true_of
from evenhand.service._ledger.fold import _beginning, described, erased
from evenhand.service._ledger.sqlite_and_postgres import Connection, Database
from evenhand.service._ledger.transaction import Known, Rules, Transaction

_NEVER = 2**62  # decisions of a log wait for their reward as long as it takes
_EVENTS = "('decision', 'reward', 'learn', 'true', 'override', 'rows')"


class SqlLedger:
    """The events of a ledger in SQLite or PostgreSQL: what `replay` and `log_to` take.

    Args:
        url: `sqlite:FILE` or `postgresql://USER@HOST/DATABASE`.
        write: whether to write. A running service writes its ledger itself.

    Example:
        >>> import evenhand as eh, tempfile
        >>> from evenhand.service import SqlLedger
        >>> url = f"sqlite:{tempfile.mkdtemp()}/loans.db"
        >>> with eh.log_to(SqlLedger(url), eh.TopInterval(["F", "M"], n_features=1)) as logged:
        ...     logged.update(logged.select([[1.0], [2.0]]), reward=0.5)
        >>> eh.replay(SqlLedger(url, write=False)).counts.sum().item()
        1
        >>> ledger = SqlLedger(url, write=False)
        >>> [type(event).__name__ for event in ledger.read()]
        ['DecisionMade', 'RewardObserved']
        >>> list(ledger.left()) == list(ledger.read()), ledger.unlearned()
        (True, {})
        >>> copy = SqlLedger(f"sqlite:{tempfile.mkdtemp()}/copy.db")
        >>> copy.begin(ledger.about)
        >>> copy.append(list(ledger.read()))
        >>> copy.take_back(0)  # the last call
        >>> copy.head
        0
        >>> copy.append(list(ledger.read()))
        >>> copy.snapshot({"round": 1}, seq=2)
        >>> copy.newest_snapshot()
        Snapshot(seq=2, state={'round': 1})
        >>> copy.sync()
        >>> copy.close()
        >>> ledger.release()
    """

    def __init__(self, url: str, write: bool = True) -> None:
        self._writer: Connection | None = None
        self.database = Database(url)
        self._write = write
        if write:
            self.database.upgrade()
        elif not self.database.exists():
            raise InputError(f"log is {self.database.name!r}, where there is no ledger")
        self._last = 0  # the event the last event before the last call
        self._about = self._read_about()

    @property
    def name(self) -> str:
        """Where it is, without a password."""
        return self.database.name

    @property
    def about(self) -> About | None:
        """The header of the log, with the arms of today; None before `begin`."""
        return self._about

    @property
    def head(self) -> int:
        """The number of the last event."""
        with self.database.reading() as connection:
            row = connection.row("SELECT events FROM head WHERE one = 1")
        return 0 if row is None else int(row[0])

    def _read_about(self) -> About | None:
        with self.database.reading() as connection:
            row = connection.row("SELECT seq FROM head WHERE one = 1")
            if row is None:
                return None
            header = described(connection, row[0])
        return replace(header.about, policy=to_dict(_beginning(header.about, header.arms)))

    def begin(self, about: About) -> None:
        """Begin a new log with this header."""
        tx = self._transaction()
        names = [str(number) for number in range(len(about.labels))]
        tx.append(kinds.BEGIN, about.key, kinds.Begin(about.to_json(), names, list(about.features)))
        tx.chain.round = about.first_round
        tx.flush()
        tx.connection.commit()
        self._about = about

    # Events -------------------------------------------------------------------------------------

    def append(self, events: Sequence[Event]) -> None:
        """Keep all of these events or none."""
        if not events:
            return
        tx = self._transaction()
        try:
            if self._about is None:
                raise InputError(f"{self.name} has not begun; call begin first")
            if events[0].seq != tx.chain.events + 1:
                raise InputError(
                    f"seq is {events[0].seq}; allowed is {tx.chain.events + 1}, the number after "
                    f"the last event of {self.name}: open the log again"
                )
            before = tx.chain.events
            tx.look_up([event.id for event in events if event.id is not None])
            for event in events:
                self._add(tx, event)
            tx.flush()
            tx.connection.commit()
        except BaseException:
            tx.connection.rollback()
            raise
        self._last = before

    def _add(self, tx: Transaction, event: Event) -> None:
        assert self._about is not None
        labels = self._about.labels
        tx.now = max(tx.chain.at, event.at or tx.now)
        if isinstance(event, DecisionMade):
            body = kinds.Decision(
                event.round, event.arm, event.propensity, event.explored, _bytes(event.context),
                _bytes(event.contexts), _bytes(event.propensities),
            )  # fmt: skip
            tx.chain.round = event.round
            entry = tx.append(kinds.DECISION, event.id, body, True)
            group = labels[event.arm]
            tx.write(
                "decisions", entry.seq, event.id, event.round, entry.at, event.arm, group, None
            )
            tx.write("waiting", entry.seq, _NEVER, group)
            place = (event.id, entry.seq, event.round, entry.at, event.arm, group)
            tx.remember(Known(*place, due=_NEVER, rewarded=0, body=entry.body))
            return
        if isinstance(event, RowsAbsorbed):
            rows = kinds.Rows(
                list(event.arms), _bytes(np.array(event.contexts)), list(event.rewards)
            )
            tx.append(kinds.ROWS, None, rows, True)
            return
        known = tx.known(event.id)
        if known is None:
            raise InputError(f"decision {event.id!r} is not in {self.name}")
        if isinstance(event, RewardObserved):
            entry = tx.append(kinds.REWARD, event.id, reward_of(known, event.reward, True), True)
            tx.write("rewards", known.seq, entry.seq, entry.at, event.reward, 0)
            tx.write("settled", known.seq)
            known.reward, known.due = event.reward, None
        elif isinstance(event, Overridden):
            override = kinds.Override(known.seq, event.arm, _bytes(event.context))
            entry = tx.append(kinds.OVERRIDE, event.id, override, True)
            tx.write(
                "overrides",
                known.seq,
                entry.seq,
                entry.at,
                event.arm,
                labels[event.arm],
                "",
                "",
                0,
            )
            known.override, known.override_body = event.arm, entry.body
        else:
            entry = tx.append(
                kinds.TRUE, event.id, true_of(known, event.reward, self._learns_truth), True
            )
            tx.connection.rows("DELETE FROM truths WHERE decision = ?", (known.seq,))
            tx.write("truths", known.seq, entry.seq, entry.at, event.reward)

    def take_back(self, seq: int) -> None:
        """Remove the events of the last call."""
        if seq == self.head:
            return
        if seq != self._last:
            raise InputError(
                f"seq is {seq}; allowed is {self._last}, the last event before the last call"
            )
        tx = self._transaction()
        row = tx.connection.row("SELECT MIN(seq) FROM entries WHERE event > ?", (seq,))
        assert row is not None and row[0] is not None
        first = row[0]
        for sql in (
            "INSERT INTO waiting (decision, due, grp, rewarded) SELECT r.decision, "
            f"{_NEVER}, d.grp, 0 FROM rewards r JOIN decisions d ON d.seq = r.decision "
            "WHERE r.seq >= ?",
            "DELETE FROM waiting WHERE decision >= ?",
            "DELETE FROM rewards WHERE seq >= ?",
            "DELETE FROM truths WHERE seq >= ?",
            "DELETE FROM overrides WHERE seq >= ?",
            "DELETE FROM decisions WHERE seq >= ?",
            "DELETE FROM entries WHERE seq >= ?",
        ):
            tx.connection.rows(sql, (first,))
        last = tx.connection.row("SELECT hash, at FROM entries WHERE seq = ?", (first - 1,))
        newest = tx.connection.row("SELECT MAX(round) FROM decisions")
        assert last is not None and newest is not None and self._about is not None
        round = self._about.first_round if newest[0] is None else newest[0]
        tx.connection.rows(
            "UPDATE head SET seq = ?, hash = ?, at = ?, round = ?, events = ? WHERE one = 1",
            (first - 1, last[0], last[1], round, seq),
        )
        tx.connection.commit()

    def read(self, after: int = 0) -> Iterator[Event]:
        """The events after number `after`, in their order."""
        assert self._about is not None or self.head == 0
        sql = (
            f"SELECT seq, kind, at, subject, event, body FROM entries WHERE kind IN {_EVENTS} "
            "AND (event > ? OR body IS NULL) ORDER BY seq"
        )
        n_arms = 0 if self._about is None else len(self._about.labels)
        with self.database.reading() as connection:
            for seq, kind, at, subject, event, body in connection.stream(sql, (after,)):
                if body is None:
                    raise erased(seq)
                yield event_of(kind, event, at, subject, kinds.decode(kind, bytes(body)), n_arms)

    def left(self) -> Iterator[Event]:
        """The events of all decisions that were not erased, renumbered."""
        sql = (
            f"SELECT kind, at, subject, body FROM entries WHERE kind IN {_EVENTS} "
            "AND event IS NOT NULL AND body IS NOT NULL ORDER BY seq"
        )
        assert self._about is not None
        n_arms = len(self._about.labels)
        with self.database.reading() as connection:
            for number, (kind, at, subject, body) in enumerate(connection.stream(sql), 1):
                yield event_of(kind, number, at, subject, kinds.decode(kind, bytes(body)), n_arms)

    def unlearned(self) -> dict[str, tuple[float, int]]:
        """By decision: rewards that are recorded but not learned, and when they came."""
        sql = (
            "SELECT d.id, r.reward, r.at FROM rewards r JOIN decisions d ON d.seq = r.decision "
            "LEFT JOIN waiting w ON w.decision = r.decision WHERE r.late = 1 OR w.rewarded = 1"
        )
        with self.database.reading() as connection:
            return {id: (reward, at) for id, reward, at in connection.stream(sql)}

    # Snapshots ----------------------------------------------------------------------------------

    def snapshot(self, state: Mapping[str, Any], seq: int) -> None:
        """Keep the state after event `seq`, with the hash of the ledger there."""
        tx = self._transaction()
        try:
            saved = {"seq": seq, "head": tx.chain.seq, "hash": tx.chain.hash.hex(), "state": state}
            tx.connection.rows(
                "INSERT INTO meta (name, value) VALUES ('log snapshot', ?) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (json.dumps(saved, allow_nan=False).encode(),),
            )
            tx.connection.commit()
        except BaseException:  # otherwise the next call would find a transaction that is open
            tx.connection.rollback()
            raise

    def newest_snapshot(self, before: int | None = None) -> Snapshot | None:
        """The newest snapshot of these events."""
        with self.database.reading() as connection:
            row = connection.row("SELECT value FROM meta WHERE name = 'log snapshot'")
            if row is None:
                return None
            saved = json.loads(bytes(row[0]))
            entry = connection.row("SELECT hash FROM entries WHERE seq = ?", (saved["head"],))
        if entry is None or bytes(entry[0]).hex() != saved["hash"]:
            return None
        if before is not None and saved["seq"] >= before:
            return None
        return Snapshot(saved["seq"], saved["state"])

    # The end ------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Every call is on disk when it returns."""

    def close(self, ended: Mapping[str, Any] | None = None) -> None:  # noqa: ARG002
        """Release the connections; nothing has to be finished."""
        self.release()

    def release(self) -> None:
        """Release the connections."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self.database.close()

    def __del__(self) -> None:
        self.release()

    @property
    def _learns_truth(self) -> bool:
        return self.about is not None and self.about.truth

    def _transaction(self) -> Transaction:
        if not self._write:
            raise InputError(
                f"{self.name} was opened for reading; open it with {setting('write', True)}"
            )
        if self._writer is None:
            self._writer = self.database.writer()
        return Transaction(self._writer, self.database.lock, Rules(_NEVER, False, False, None))


def event_of(kind: str, seq: int, at: int, id: str, body: Any, n_arms: int) -> Event:
    """An entry as an event of the library, in a log of `n_arms` arms."""
    if kind == kinds.DECISION:
        contexts, chances = _padded(body, n_arms)
        return DecisionMade(
            seq, at, id, body.round, body.arm, body.propensity, body.explored,
            _numbers(body.row(body.arm)), contexts, chances,
        )  # fmt: skip
    if kind in (kinds.REWARD, kinds.LEARN):
        return RewardObserved(seq, at, id, body.reward)
    if kind == kinds.TRUE:
        return TrueRewardObserved(seq, at, id, body.reward)
    if kind == kinds.OVERRIDE:
        return Overridden(seq, at, id, body.arm, _numbers(body.context))
    rows = np.frombuffer(body.contexts).reshape(len(body.arms), -1)
    contexts_ = tuple(map(tuple, rows.tolist()))
    return RowsAbsorbed(seq, at, None, tuple(body.arms), contexts_, tuple(body.rewards))


def _padded(
    body: kinds.Decision, n_arms: int
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Contexts and propensities; arms that came later were not available."""
    if body.contexts is None:
        return None, None
    contexts = np.frombuffer(body.contexts)
    if body.propensities is None:
        return contexts, None
    chances, d = np.frombuffer(body.propensities), body.width // 8
    new = n_arms - chances.size
    if new > 0:
        if contexts.size == d:
            contexts = np.tile(contexts, chances.size)
        contexts = np.concatenate([contexts, np.full(new * d, np.nan)])
        chances = np.concatenate([chances, np.zeros(new)])
    return contexts, chances


def _numbers(packed: bytes) -> tuple[float, ...]:
    return tuple(np.frombuffer(packed).tolist())


def _bytes(values: Any) -> Any:
    return None if values is None else np.asarray(values, dtype="<f8").tobytes()
