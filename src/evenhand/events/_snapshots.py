"""Snapshots of a log in files beside it: the newest, and the one before it.

They save time and nothing else. A file that is damaged, cut off or of another log is as if it
were not there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from evenhand.events.tables import sync_folder

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
