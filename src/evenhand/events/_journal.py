"""The journal of a log: a line of JSON per call, written before the call returns.

The first line is the header of the log. Each of the others has the events of one call (see
`event`), with a checksum of everything up to it. Only whole lines count: text after the last line
break was cut off by a crash.
If the process is killed, no call that returned is lost. If the machine goes down, only events after
the last fsync can be lost; an fsync is made at regular intervals.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple
from zlib import crc32

try:
    import fcntl
except ImportError:  # Windows: a second writer is not detected there
    fcntl = None  # type: ignore[assignment]

from evenhand._atomic_files import copy_permissions, sync_folder
from evenhand.errors import DamagedError, InputError
from evenhand.events._header import About, one_line


def journal_of(path: Path) -> Path:
    """The path of a log's journal."""
    return path.with_name(path.name + ".journal")


class Mark(NamedTuple):
    """A position in a journal, and the checksum of everything before it."""

    size: int
    sum: int


class _Locked(FileIO):
    """The file of a journal, and that of the table: closing it releases both locks."""

    table: FileIO | None = None

    def close(self) -> None:
        if self.table is not None:
            self.table.close()
        super().close()


class Journal:
    """A journal open for writing, by this object alone.

    Args:
        path: the path of the log.
        sync: the longest time between two fsyncs, in seconds, while calls come in; 0 for an fsync
            with every call.
    """

    def __init__(self, path: Path, sync: float) -> None:
        self.log, self.path, self._every = path, journal_of(path), sync
        self.broken = ""
        self._process = os.getpid()
        self._file = self._lock()
        content = self.path.read_bytes()
        size = content.rfind(b"\n") + 1
        # Only whole lines count. What follows the last line break was never acknowledged.
        self.mark = Mark(size, crc32(content[:size]))
        """Where the next line will begin."""
        if len(content) > size:  # cut off by a crash
            self.cut(self.mark)
        self._due = monotonic() + sync

    def _lock(self) -> _Locked:
        while True:
            file = _Locked(self.path, "ab")
            try:
                # The lock is taken first and the path looked up after: between opening and locking,
                # another writer may have closed the log and removed this file. Then the lock is on
                # a file without a name, and we try again.
                self._take(file)
                if self._is_there(file):
                    self._take_table(file)
                    if not self.path.stat().st_size:  # new: who may not read the log, nor this
                        copy_permissions(self.log, self.path)
                    return file
            except BaseException:
                file.close()
                raise
            file.close()  # another writer closed the log in between, and removed the journal

    def _take(self, file: FileIO) -> None:
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"{self.log} already has a writer; close it first") from error

    def _take_table(self, file: _Locked) -> None:
        """The table may have another name (a hard link), with its own journal."""
        try:
            file.table = FileIO(self.log, "rb")
            self._take(file.table)
        except InputError:
            if not self.path.stat().st_size:
                self.path.unlink()
            raise
        except OSError:  # there is none yet, or the system locks only writable files
            pass

    def _is_there(self, file: FileIO) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), self.path.stat())
        except FileNotFoundError:
            return False

    def begin(self, about: About) -> None:
        """Write the first line, if there is none yet."""
        if not self.mark.size:
            self._write(about.to_json().encode() + b"\n")
            self.sync()
            # A new file is on disk only once its folder is: the fsync of a file does not cover its
            # name.
            sync_folder(self.path.parent)

    def append(self, event: bytes) -> None:
        """Write a line of events. After an error, no part of it is kept."""
        self._write(b"%b %08x\n" % (event, crc32(event, self.mark.sum)))

    def _write(self, line: bytes) -> None:
        self.check()
        before = self.mark
        try:
            # The file is unbuffered and open for appending: after this call the line is in the
            # system's memory, and outlives this process.
            written = self._file.write(line)
            while written < len(line):  # the disk may accept a part and then fail
                written += self._file.write(line[written:])
            self.mark = Mark(before.size + written, crc32(line, before.sum))
            if monotonic() >= self._due:
                self.sync()
        except BaseException as error:
            # Half a line, or one whose fsync failed, would count as written when the log is read
            # again. The caller gets an error, so it must not be there.
            self.cut(before)
            if isinstance(error, OSError):
                raise OSError(error.errno, error.strerror, str(self.path)) from error
            raise

    def check(self) -> None:
        """Raise an error if this process cannot write to the journal any more."""
        # After a fork, two processes would have one file position and two checksums.
        if self.broken or self._process != os.getpid():
            why = self.broken or "it was opened by another process"
            raise InputError(f"{self.log} cannot be continued: {why}; open the log again")

    def cut(self, mark: Mark) -> None:
        """Remove everything after a mark."""
        try:
            os.truncate(self._file.fileno(), mark.size)
            self.mark = mark
        except OSError as error:
            # Nothing may be written behind a line that should not be there.
            self.broken = f"the journal could not be repaired ({error.strerror})"

    def sync(self) -> None:
        """Sync to disk, so that everything so far would survive a power failure."""
        os.fsync(self._file.fileno())
        self._due = monotonic() + self._every

    def remove(self) -> None:
        """Delete the journal, once its events are in the table."""
        self.path.unlink()
        sync_folder(self.path.parent)

    def release(self) -> None:
        """Release the journal; delete it if it has no header."""
        if not self.mark.size:
            self.path.unlink(missing_ok=True)
        self._file.close()


def read_journal(path: Path) -> tuple[About, Iterator[Any]] | None:
    """The header of a log's journal, and its events; None if there is no journal."""
    file = journal_of(path)
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    first, *lines = content[: content.rfind(b"\n") + 1].split(b"\n")
    if not lines:
        return None
    return About.from_json(first, file), _events(file, lines[:-1], crc32(first + b"\n"))


def is_older(line: bytes) -> bool:
    """Whether a line has version 1 or 2: then it begins with its kind, not with a number."""
    return line[:2] == b'["'


def sum_after(path: Path, seq: int) -> int | None:
    """The checksum of a log's journal up to and including the line that ends with event `seq`.

    None if no line ends with this event.
    """
    try:
        content = journal_of(path).read_bytes()
    except FileNotFoundError:
        return None
    place = content.find(b"\n") + 1
    while (end := content.find(b"\n", place)) >= 0:
        line = content[place:end]
        if not is_older(line) and _last(line) == seq:
            return crc32(content[: end + 1])
        place = end + 1
    return None


def _last(line: bytes) -> int | None:
    """The number of the last event in a line."""
    try:
        if line[:2] != b"[[":
            return int(line[1 : line.index(b",")])
        return int(json.loads(line[: line.rindex(b"]") + 1])[-1][0])
    except (ValueError, LookupError, TypeError, RecursionError, MemoryError):
        return None


def _events(file: Path, lines: list[bytes], sum: int) -> Iterator[Any]:
    """The events of the lines. Older versions wrote lines without a checksum."""
    for number, line in enumerate(lines, start=2):
        event, checksum = (line[:-9], line[-8:]) if line[-10:-8] == b"] " else (line, b"")
        try:
            yield json.loads(event)
        except (ValueError, RecursionError, MemoryError) as error:
            raise DamagedError(f"{file}: line {number} is damaged: {one_line(error)}") from error
        # Only now, because applying the event may give a clearer error.
        if not checksum and not is_older(event):
            raise DamagedError(f"{file}: line {number} is damaged: it has no checksum")
        if checksum and checksum != b"%08x" % crc32(event, sum):
            raise DamagedError(
                f"{file}: line {number} is damaged: its checksum is wrong, so a byte was changed, "
                "or lines before it were lost"
            )
        # Chained: the checksum of a line covers all lines before it, so a lost or swapped line is
        # noticed too.
        sum = crc32(line + b"\n", sum)
