"""The core of the service: the event loop owns the policy, one thread writes.

A handler selects on the state that it finds, and puts an ask into the queue. The writer takes all
that are waiting, writes one transaction, and reports back in one call. Then the loop learns in the
order of the ledger and answers. There is no timer: batches form while the writer is busy.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import structlog

from evenhand.errors import InputError
from evenhand.service import _policy_calls
from evenhand.service._chooser import Chooser
from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.asks import Ask, Decide, Expire, Keep
from evenhand.service._ledger.erasure import EraseAsk
from evenhand.service._ledger.fold import LedgerState, restored
from evenhand.service._ledger.membership import membership_of
from evenhand.service._ledger.sqlite_and_postgres import Database, Unavailable
from evenhand.service._ledger.store import Committed, Store
from evenhand.service._ledger.transaction import Rules
from evenhand.service._problems import Problem
from evenhand.service.config import AFTER_WAIT, CONFIRMED, Config

log = structlog.get_logger("evenhand.service")
POLL = 0.1  # seconds between checks for what other replicas wrote
TICK = 1.0  # seconds between checks for what has waited long enough


class Engine(Chooser):
    """Decides, records and learns."""

    def __init__(self, config: Config) -> None:
        self.config, self.database = config, Database(config.store)
        self.encoder = config.encoder()
        self.rules = Rules(
            int(config.wait * 1e6),
            config.learn == AFTER_WAIT,
            config.use == CONFIRMED,
            config.default_reward,
            membership_of(config.groups, len(self.encoder.columns)),
        )
        self.state: LedgerState
        self.decider: (
            LedgerState  # the state that decides: the newest, or one that was rolled back to
        )
        self.draws = 0  # the last round whose random numbers this process used
        self.flying = 0  # decisions that are not yet in the ledger
        self.lag = 0.0
        self.failure = "starting"
        self._queue: deque[tuple[Ask, asyncio.Future[Ask] | None]] = deque()
        self._there = threading.Event()
        self._stop = False
        self._thread: threading.Thread | None = None
        self._snapshots: threading.Thread | None = None
        self._expected: dict[bytes, dict[str, float]] = {}
        self.listeners: list[Callable[[list[tuple[Any, Any]]], None]] = []

    # Start and stop -----------------------------------------------------------------------------

    def open(self) -> None:
        """Open the ledger, or begin it; find the state. Blocks."""
        self.prepare_store()
        self.seed, self.started, self.state = self.store.start()
        self.secret = self.store.secret()
        self._compare()
        self._snapshot_at = self.state.version
        self._use_state(self.state)
        self._warm()

    def prepare_store(self) -> None:
        """Create what is missing: tables, and the beginning of the ledger."""
        self.database.upgrade()
        self.store = Store(self.database, self.rules)
        config = self.config
        self.store.begin(config.policy(), list(config.arms), self.encoder.columns)

    def _compare(self) -> None:
        """Refuse a configuration that does not match the ledger."""
        config, state = self.config, self.state
        if state.features != self.encoder.columns:
            raise InputError(
                f"{config.path.name}: features are {', '.join(self.encoder.columns)}, but the "
                f"ledger {self.database.name} began with {', '.join(state.features)}; use another "
                "store for other features"
            )
        groups = state.policy.groups
        if groups.changes != config.groups.changes or (
            groups.changes and groups.attributes != config.groups.attributes
        ):
            how = "with each candidate" if groups.changes else "by arm"
            levels = f", {', '.join(groups.columns)}" if groups.changes else ""
            raise InputError(
                f"{config.path.name}: groups are not those that the ledger {self.database.name} "
                f"began with ({how}{levels}); use another store for other groups"
            )
        known = {arm.name for arm in state.arms}
        first = [name for name in config.arms if name not in known]
        if first and len(config.arms) > len(state.arms):
            raise InputError(
                f"{config.path.name}: arms has {first[0]!r}, which the ledger "
                f"{self.database.name} does not have; add it with POST /v1/arms"
            )
        if type(state.policy).__name__ != config.policy_name:
            raise InputError(
                f"{config.path.name}: policy is {config.policy_name}, but the ledger "
                f"{self.database.name} began with {type(state.policy).__name__}; use another store"
            )

    def _warm(self) -> None:
        """Compile what the first request would wait for."""
        copy = restored(self.store.connection)
        row = _policy_calls.blank(copy).copy()
        row[: len(copy.features)] = 1.0
        chosen = _policy_calls.choose(copy.policy, np.tile(row, (len(copy.arms), 1)), None, 1)
        copy.policy.absorb(np.array([chosen.decision.arm]), row[None], np.zeros(1))

    def run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the writer, in its own thread."""
        self.loop = loop
        self.failure = ""
        self._thread = threading.Thread(target=self._write_all, name="ledger", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, after everything in the queue is written."""
        self._stop = True
        self._there.set()
        if self._thread is not None:
            self._thread.join()
        if self._snapshots is not None:
            self._snapshots.join()
        with suppress(Exception):  # a snapshot only saves time
            state = restored(self.store.connection)
            self.store.write([Keep(state.version, state.to_bytes())])
        self.store.drop()
        self.database.close()

    @property
    def ready(self) -> str:
        """Empty if it can answer; else what is wrong."""
        if self._thread is None or not self._thread.is_alive():
            return "the writer has stopped"
        return self.failure

    @property
    def waiting(self) -> int:
        """How many asks are not yet written."""
        return len(self._queue)

    # In the event loop --------------------------------------------------------------------------

    def submit(self, ask: Ask) -> asyncio.Future[Ask]:
        """Hand an ask to the writer."""
        # Refused at once: a longer queue would only mean longer waits.
        if len(self._queue) >= self.config.server.queue:
            raise Problem(503, "too much is waiting to be written", headers={"Retry-After": "1"})
        future: asyncio.Future[Ask] = self.loop.create_future()
        self.flying += isinstance(ask, Decide)
        self._queue.append((ask, future))
        self._there.set()
        return future

    async def settle(self, ask: Ask) -> Ask:
        """Hand an ask to the writer, and wait for the answer."""
        return await self.submit(ask)

    def _use_state(self, state: LedgerState) -> None:
        """Take over a state, and find the one that decides."""
        _policy_calls.seeded(state, self.seed)
        self.state = state
        self._expected.clear()
        if not state.pinned:
            self.decider = state
            return
        with self.database.reading() as connection:
            self.decider = restored(connection, state.pinned)
        _policy_calls.seeded(self.decider, self.seed)

    def _done(
        self,
        batch: list[tuple[Ask, asyncio.Future[Ask] | None]],
        committed: Committed | None,
        fresh: LedgerState | None,
        error: Exception | None,
    ) -> None:
        """Learn what was written, in its order, and answer."""
        if committed is not None:
            pinned = self.state.pinned
            # An arm was added, so all was learned again with one more; what was told is in it.
            if fresh is not None:
                self._use_state(fresh)
            else:
                # Learned before anything is answered: whoever has an answer finds it in the next
                # decision.
                self.state.apply(committed.told)
                if self.state.pinned != pinned:
                    self._use_state(self.state)
            for listener in self.listeners:
                listener(committed.told)
        for ask, future in batch:
            if isinstance(ask, Decide):
                self.flying -= 1
            # The caller may have gone away; its ask is written all the same.
            if future is None or future.done():
                continue
            if error is not None:
                future.set_exception(error)
            elif ask.error is not None:
                future.set_exception(ask.error)
            else:
                future.set_result(ask)
        if self.state.version - self._snapshot_at >= self.config.snapshot_every:
            self._snapshot_at = self.state.version
            self._snapshots = threading.Thread(target=self._keep_snapshot, daemon=True)
            self._snapshots.start()

    # In the writer's thread ---------------------------------------------------------------------

    def _write_all(self) -> None:
        poll = POLL if self.database.is_postgres else TICK
        ticked = 0.0
        while True:
            self._there.wait(poll)
            # Cleared before the queue is read: an ask that comes in between sets it again, and is
            # found now or in the next round.
            self._there.clear()
            batch = []
            while self._queue:  # taken one by one: the loop may add to it meanwhile
                batch.append(self._queue.popleft())
            # Only with an empty queue: what was accepted before is still written.
            if not batch and self._stop:
                return
            if time.monotonic() - ticked >= TICK and not self._stop:
                ticked = time.monotonic()
                batch.append((Expire(), None))
            # In order: an erasure must not overtake what was asked before it.
            for part in _apart(batch):
                self._write_some(part)

    def _write_some(self, batch: list[tuple[Ask, asyncio.Future[Ask] | None]]) -> None:
        committed: Committed | None = None
        fresh: LedgerState | None = None
        error: Exception | None = None
        try:
            began = time.monotonic()
            # A look costs no lock; a transaction would, every second on every replica.
            if all(isinstance(ask, Expire) for ask, _ in batch) and not self._is_due():
                committed = self.store.catch_up()
            else:
                committed = self.store.write([ask for ask, _ in batch])
            if any(e.kind == kinds.ARM and b.what == "add" for e, b in committed.told):
                fresh = restored(self.store.connection, committed.head)
            self.lag = time.monotonic() - began
            self.failure = ""
        except Unavailable as problem:
            self.failure = "the store is not available"
            log.warning("store unavailable", error=type(problem.__cause__).__name__)
            error = Problem(503, self.failure, headers={"Retry-After": "1"})
            # The connection may be broken in any state; the next transaction starts with a new one.
            self.store.drop()
            time.sleep(0.05)
        except Exception as problem:
            if len(batch) > 1:  # one that fails must not affect the others
                for item in batch:
                    self._write_some([item])
                return
            log.error("writing failed", error=type(problem).__name__, exc_info=not _quiet(problem))
            self.store.drop()
            error = Problem(500, "the ledger could not be written")
        if batch or (committed is not None and committed.told):
            with suppress(RuntimeError):  # the loop is closed
                # The state belongs to the loop. This thread only hands over what was committed, in
                # the order of the ledger.
                self.loop.call_soon_threadsafe(self._done, batch, committed, fresh, error)

    def _is_due(self) -> bool:
        """Whether anything has waited long enough; if not, no transaction is needed."""
        sql = "SELECT 1 FROM waiting WHERE due <= ? LIMIT 1"
        now = time.time_ns() // 1000
        return self.store.connection.row(sql, (now,)) is not None

    def _keep_snapshot(self) -> None:
        """Fold the ledger up to now in its own thread, and keep the state."""
        try:
            with self.database.reading() as connection:
                state = restored(connection)
            self._queue.append((Keep(state.version, state.to_bytes()), None))
            self._there.set()
        except Exception as problem:  # a snapshot only saves time
            log.warning("no snapshot", error=type(problem).__name__)


Asked = list[tuple[Ask, "asyncio.Future[Ask] | None"]]


def _apart(batch: Asked) -> list[Asked]:
    """A batch split into transactions: each erasure has its own."""
    if not any(isinstance(ask, EraseAsk) for ask, _ in batch):
        return [batch]
    parts: list[Asked] = [[]]
    for item in batch:
        if isinstance(item[0], EraseAsk):
            parts.extend([[item], []])
        else:
            parts[-1].append(item)
    return [part for part in parts if part]


def _quiet(problem: Exception) -> bool:
    return isinstance(problem, InputError)
