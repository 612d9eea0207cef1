"""The journal of a log: a line of JSON per event, written before the call that made it returns.

The first line says what the log is about, the others are events (see `rows`). A line is there
wholly or not at all: what follows the last line break was cut off by a crash, and does not count.
A process that is killed loses nothing of the calls that returned. When the machine goes down, lost
is at most what came after the last fsync, which is made at a cadence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

try:
    import fcntl
except ImportError:  # Windows: a second writer is not noticed there
    fcntl = None  # type: ignore[assignment]

from evenhand.logs.about import About
from evenhand.logs.tables import sync_folder


def journal_of(path: Path) -> Path:
    """Where the journal of a log stands."""
    return path.with_name(path.name + ".journal")


class Journal:
    """A journal open for writing, by this object alone.

    Args:
        path: of the log.
        sync: the most seconds between two fsyncs while calls come in; 0 for one with every call.
    """

    def __init__(self, path: Path, sync: float) -> None:
        self.log, self.path, self._every = path, journal_of(path), sync
        self.broken = ""
        self._process = os.getpid()
        self._file = self._lock()
        content = self.path.read_bytes()
        self.size = content.rfind(b"\n") + 1
        if len(content) > self.size:  # cut off by a crash
            self.cut(self.size)
        self._due = monotonic() + sync

    def _lock(self) -> Any:
        while True:
            file = self.path.open("ab", buffering=0)
            try:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_there(file):
                    return file
            except BlockingIOError as error:
                file.close()
                raise ValueError(
                    f"{self.log} is being written already; close the other writer first"
                ) from error
            file.close()  # whoever had it closed the log in between, and took it away

    def _is_there(self, file: Any) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), self.path.stat())
        except FileNotFoundError:
            return False

    def begin(self, about: About) -> None:
        """Write the first line, if there is none yet."""
        if not self.size:
            self.append(about.to_json().encode() + b"\n")
            self.sync()
            sync_folder(self.path.parent)

    def append(self, line: bytes) -> None:
        """Write a line. After an error it is as if nothing had been written."""
        self.check()
        before = self.size
        try:
            done = self._file.write(line)
            while done < len(line):  # the disk may take a part and then fail
                done += self._file.write(line[done:])
            self.size = before + done
            if monotonic() >= self._due:
                self.sync()
        except BaseException as error:
            self.cut(before)
            if isinstance(error, OSError):
                raise OSError(error.errno, error.strerror, str(self.path)) from error
            raise

    def check(self) -> None:
        """Whether it can be written, here and still."""
        if self.broken or self._process != os.getpid():
            why = self.broken or "it was opened by another process"
            raise ValueError(f"{self.log} cannot go on: {why}; open the log again")

    def cut(self, size: int) -> None:
        """Take back what was written after `size`."""
        try:
            os.truncate(self._file.fileno(), size)
            self.size = size
        except OSError as error:
            self.broken = f"the journal could not be repaired ({error.strerror})"

    def sync(self) -> None:
        """Make what was written outlast a failure of power."""
        os.fsync(self._file.fileno())
        self._due = monotonic() + self._every

    def remove(self) -> None:
        """Its events are in the table: away with it."""
        self.path.unlink()
        sync_folder(self.path.parent)
        self._file.close()

    def release(self) -> None:
        """Let go of it; without a first line it is of no use to anyone."""
        if not self.size:
            self.path.unlink(missing_ok=True)
        self._file.close()


def read_journal(path: Path) -> tuple[About, Iterator[Any]] | None:
    """What the journal of a log is about, and its events; None if there is no journal."""
    file = journal_of(path)
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    first, *lines = content[: content.rfind(b"\n") + 1].split(b"\n")
    if not lines:
        return None
    return About.from_json(first, file), _events(file, lines[:-1])


def _events(file: Path, lines: list[bytes]) -> Iterator[Any]:
    for number, line in enumerate(lines, start=2):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise ValueError(f"{file}: line {number} is damaged: {error}") from error


def reward_line(learned: int, round: int, reward: float) -> bytes:
    """The event of one reward."""
    return b'["r",%d,[%d],[%r]]\n' % (learned, round, reward)


def event_line(*event: Any) -> bytes:
    """Any event."""
    return json.dumps(event, allow_nan=False, separators=(",", ":")).encode() + b"\n"
