"""Files of snapshots beside a log: the newest one, and the one before it.

A snapshot that is damaged, or belongs to other events, is ignored. `recording/logged.py` decides
when one is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from evenhand._atomic_files import write_all
from evenhand.events._journal import journal_of

FORMAT, VERSION = "evenhand snapshot", 1


class Kept(NamedTuple):
    """A snapshot file: the log, the event, the log's checksum up to it, and the state."""

    log: str
    seq: int
    sum: int
    state: dict[str, Any]


def snapshot_files(path: Path) -> tuple[Path, Path]:
    """The snapshot files of a log, the newest first."""
    return path.with_name(path.name + ".snapshot"), path.with_name(path.name + ".snapshot.before")


def write_snapshot(path: Path, log: str, seq: int, sum: int, state: Mapping[str, Any]) -> None:
    """Write a snapshot beside a log, atomically. The newest so far becomes the one before it.

    Args:
        path: the path of the log.
        log: the key of the log.
        seq: the last event in the state.
        sum: the checksum of the log up to this event.
        state: plain data.
    """
    head = {"format": FORMAT, "version": VERSION, "log": log, "seq": seq, "sum": sum}
    text = json.dumps({**head, "state": state}, allow_nan=False).encode()
    newest, before = snapshot_files(path)
    if newest.exists():  # if the new one cannot be written, this one is still found
        newest.replace(before)
    # It holds contexts of people, so nobody may read it who may not read the log.
    write_all({newest: b"%b\n%08x\n" % (text, crc32(text))}, alone=True, like=journal_of(path))


def read_snapshots(path: Path) -> list[Kept]:
    """The undamaged snapshots of a log, the newest first."""
    snapshots = [_read(file) for file in snapshot_files(path)]
    return sorted(
        (snapshot for snapshot in snapshots if snapshot is not None),
        key=lambda snapshot: -snapshot.seq,
    )


def _read(file: Path) -> Kept | None:
    try:
        text, checksum, rest = file.read_bytes().split(b"\n")
        if rest or checksum != b"%08x" % crc32(text):
            return None
        data = json.loads(text)
        if (data["format"], data["version"]) != (FORMAT, VERSION):
            return None
        return Kept(str(data["log"]), int(data["seq"]), int(data["sum"]), dict(data["state"]))
    except (OSError, ValueError, LookupError, TypeError, RecursionError, MemoryError):
        return None
