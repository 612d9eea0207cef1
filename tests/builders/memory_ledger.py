"""A ledger that keeps everything in memory: the least that a log needs."""

from __future__ import annotations

import json

from evenhand.events.ledger import Snapshot


class MemoryLedger:
    """Also what a process finds that starts after this one was killed: `again`."""

    name = "memory"

    def __init__(self):
        self.about, self.events, self.snapshots = None, [], []
        self.ended, self.let_go, self.reads = None, 0, []

    def again(self):
        other = MemoryLedger()
        other.about, other.events = self.about, list(self.events)
        other.snapshots = list(self.snapshots)
        return other

    @property
    def head(self):
        return len(self.events)

    def begin(self, about):
        assert self.about is None
        self.about = about

    def append(self, events):
        assert [event.seq for event in events] == [
            self.head + 1 + number for number in range(len(events))
        ]
        self.events.extend(events)

    def take_back(self, seq):
        del self.events[seq:]

    def read(self, after=0):
        self.reads.append(after)
        return iter(self.events[after:])

    def snapshot(self, state, seq):
        assert seq == self.head
        self.snapshots.append((seq, json.dumps(state)))

    def newest_snapshot(self, before=None):
        for seq, state in reversed(self.snapshots):
            if before is None or seq < before:
                return Snapshot(seq, json.loads(state))
        return None

    def sync(self):
        pass

    def close(self, ended=None):
        self.ended = ended

    def release(self):
        self.let_go += 1
