"""Files of snapshots beside a log: the newest one, and the one before it.

A snapshot that is damaged, or belongs to other events, is ignored. `recording/logged.py` decides
when one is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from evenhand._atomic_files import sync_folder

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
