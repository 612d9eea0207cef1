"""Where the events of a log are kept: what `log_to` and `replay` need of a file, or of a database.

A ledger is written by one at a time. It keeps events in their order, and now and then a snapshot
of the state that they lead to. Snapshots save time and nothing else: without them the state is
what all events from the first on make of the policy in `about`. In files, the newest snapshot and
the one before it are kept; a damaged one is as if it were not there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable
from zlib import crc32

from evenhand.events._header import About
from evenhand.events._tables import sync_folder
from evenhand.events.event import Event


class Snapshot(NamedTuple):
    """The state after event `seq`, as plain data that JSON can have."""

    seq: int
    state: dict[str, Any]


@runtime_checkable
class Ledger(Protocol):
    """Events in their order, kept for good.

    `docs/reference/log-format.md` says what each has to promise.
    """

    @property
    def name(self) -> str:
        """Where it is, for messages."""

    @property
    def about(self) -> About | None:
        """What the log is about; None before `begin`."""

    @property
    def head(self) -> int:
        """The number of the last event; 0 if there is none."""

    def begin(self, about: About) -> None:
        """Say what a new log is about, before its first event."""

    def append(self, events: Sequence[Event]) -> None:
        """Keep events: all or none of them, and for good when this returns.

        The first has the number `head` + 1, and the others follow. After an error nothing is kept.
        """

    def take_back(self, seq: int) -> None:
        """Remove the events after `seq`, which were appended just now and told to nobody."""

    def read(self, after: int = 0) -> Iterator[Event]:
        """The events after number `after`, in their order."""

    def snapshot(self, state: Mapping[str, Any], seq: int) -> None:
        """Keep the state after event `seq`, which is the last. It may replace older ones."""

    def newest_snapshot(self, before: int | None = None) -> Snapshot | None:
        """The newest snapshot that is whole and of these events; None if there is none.

        Args:
            before: only of events before this number, if a newer one turned out to be of no use.
        """

    def sync(self) -> None:
        """Wait until everything so far outlasts a failure of power."""

    def close(self, ended: Mapping[str, Any] | None = None) -> None:
        """End the writing in good order, and let go.

        Args:
            ended: `round`, `learned` and `sha256` of the policy, which replays are held to.
        """

    def release(self) -> None:
        """Let go as it is, as if the process had ended here."""


FORMAT, VERSION = "evenhand snapshot", 1


class Kept(NamedTuple):
    """What a file has: of which log, after which event, and the checksum of the log up to it."""

    log: str
    seq: int
    sum: int
    state: dict[str, Any]


def snapshot_files(path: Path) -> tuple[Path, Path]:
    """Where the snapshots of a log stand, the newest first."""
    return path.with_name(path.name + ".snapshot"), path.with_name(path.name + ".snapshot.before")


def write_snapshot(path: Path, log: str, seq: int, sum: int, state: Mapping[str, Any]) -> None:
    """Put a snapshot beside a log, whole or not at all. The newest so far becomes the one before.

    Args:
        path: of the log.
        log: its key.
        seq: the last event in the state.
        sum: the checksum of the log up to it.
        state: plain data.
    """
    told = {"format": FORMAT, "version": VERSION, "log": log, "seq": seq, "sum": sum}
    text = json.dumps({**told, "state": state}, allow_nan=False).encode()
    newest, before = snapshot_files(path)
    part = newest.with_name(newest.name + ".part")
    try:
        with part.open("wb") as file:
            file.write(b"%b\n%08x\n" % (text, crc32(text)))
            file.flush()
            os.fsync(file.fileno())
        if newest.exists():
            newest.replace(before)
        part.replace(newest)
        sync_folder(path.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def read_snapshots(path: Path) -> list[Kept]:
    """The snapshots of a log that are whole, the newest first."""
    found = [_read(file) for file in snapshot_files(path)]
    return sorted((one for one in found if one is not None), key=lambda one: -one.seq)


def _read(file: Path) -> Kept | None:
    try:
        text, told, rest = file.read_bytes().split(b"\n")
        if rest or told != b"%08x" % crc32(text):
            return None
        found = json.loads(text)
        if (found["format"], found["version"]) != (FORMAT, VERSION):
            return None
        return Kept(str(found["log"]), int(found["seq"]), int(found["sum"]), dict(found["state"]))
    except (OSError, ValueError, LookupError, TypeError, RecursionError, MemoryError):
        return None
