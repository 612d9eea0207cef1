"""A ledger in files: a table, Parquet or CSV, with a journal and snapshots beside it.

Events go to the journal, and into the table on `close`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

from evenhand.errors import DamagedError, DataError, InputError
from evenhand.events._events_of_rows import events_of
from evenhand.events._header import About
from evenhand.events._journal import Journal, Mark, sum_after
from evenhand.events._read import Whole, read_whole
from evenhand.events._rows import with_unlearned
from evenhand.events._snapshot_files import Kept, read_snapshots, write_snapshot
from evenhand.events._tables import log_path, stop_if_unwritable, write_table
from evenhand.events.event import Event, to_line
from evenhand.events.ledger import Snapshot


class FileLedger:
    """The events of a log in files, for reading, or for writing by this object alone.

    Args:
        path: a name that ends in .parquet or .csv.
        sync: the longest time between two fsyncs, in seconds, while calls come in; 0 for an fsync
            with every call.
        write: whether to write. Readers need not wait for a writer. A log that evenhand did not
            write can only be read, and has no events.

    Example:
        >>> import evenhand as eh, tempfile, pathlib
        >>> from evenhand.events.file_ledger import FileLedger
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.csv"
        >>> with eh.log_to(path, eh.TopInterval(["F", "M"], n_features=1, seed=1)) as logged:
        ...     logged.update(logged.select([[1.0], [2.0]]), reward=0.5)
        >>> ledger = FileLedger(path, write=False)
        >>> ledger.head, [type(event).__name__ for event in ledger.read()]
        (2, ['DecisionMade', 'RewardObserved'])
        >>> copy = FileLedger(path.with_name("copy.csv"))
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
        >>> eh.replay(path.with_name("copy.csv")).counts.sum().item()
        1
    """

    def __init__(self, path: str | Path, sync: float = 1.0, write: bool = True) -> None:
        self.path = log_path(path)
        self._journal = Journal(self.path, sync) if write else None
        try:
            self._whole = read_whole(self.path)  # for the first `read`
            if write and self._whole is not None and self._whole.about is None:
                raise DataError(
                    f"path is {str(path)!r}, a log that evenhand did not write; use another name"
                )
            self._about = None if self._whole is None else self._whole.about
            self._head = self._found = 0 if self._whole is None else self._whole.head
        except BaseException:
            self.release()
            raise
        self._last = (
            self._head,
            Mark(0, 0),
        )  # the last event before the last call, to take it back

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    @property
    def about(self) -> About | None:
        """The header of the log; None before `begin`."""
        return self._about

    @property
    def head(self) -> int:
        """The number of the last event; 0 if there is none."""
        return self._head

    def begin(self, about: About) -> None:
        """Write the first line of the journal."""
        stop_if_unwritable(self.path, about)
        self._about = About.from_json(about.to_json(), self.path)
        self._writing().begin(self._about)

    # Events -------------------------------------------------------------------------------------

    def append(self, events: Sequence[Event]) -> None:
        """Write events as one line of the journal: all or none of them."""
        if not events:
            return
        journal, before = self._writing(), self._head
        self._whole = None
        if events[0].seq != before + 1:
            raise InputError(
                f"seq is {events[0].seq}; allowed is {before + 1}, the number after the last event "
                f"of {self.path}: open the log again"
            )
        if self._about is None:
            raise InputError(f"{self.path} has not begun; call begin first")
        journal.begin(self._about)  # does nothing unless the journal is new
        mark = journal.mark
        journal.append(to_line(events))
        self._head, self._last = events[-1].seq, (before, mark)

    def take_back(self, seq: int) -> None:
        """Remove the last line."""
        if seq == self._head:
            return
        before, mark = self._last
        if seq != before:
            raise InputError(
                f"seq is {seq}; allowed is {before}, the last event before the last call"
            )
        self._writing().cut(mark)
        self._head = before

    def read(self, after: int = 0) -> Iterator[Event]:
        """The events after number `after`, in their order. All files are read."""
        whole, self._whole = self._whole or read_whole(self.path), None
        if whole is None or whole.about is None:
            return iter(())
        return events_of(whole.about, whole, after)

    # Snapshots ----------------------------------------------------------------------------------

    def snapshot(self, state: Mapping[str, Any], seq: int) -> None:
        """Write the state beside the log. The snapshot before it is kept, older ones are not."""
        journal = self._writing()
        journal.check()
        if seq != self._head or self._about is None:
            raise InputError(
                f"seq is {seq}; allowed is {self._head}, the last event of {self.path}"
            )
        journal.sync()  # a snapshot of events that are lost later would be useless
        write_snapshot(self.path, self._about.key, seq, self._sum(), state)

    def newest_snapshot(self, before: int | None = None) -> Snapshot | None:
        """The newest undamaged snapshot of these events."""
        for snapshot in read_snapshots(self.path):
            if (before is None or snapshot.seq < before) and self._is_of_this(snapshot):
                return Snapshot(snapshot.seq, snapshot.state)
        return None

    def _is_of_this(self, snapshot: Kept) -> bool:
        """Whether it belongs to this log and these events: the log may have been restored."""
        if self._about is None or snapshot.log != self._about.key or snapshot.seq > self._head:
            return False
        if (snapshot.seq, snapshot.sum) == (self._about.head, _sum_of(self._about)):
            return True
        return snapshot.sum == sum_after(self.path, snapshot.seq)

    def _sum(self) -> int:
        """The checksum of everything up to the last event, in this journal or before it."""
        if self._head != self._found:
            return self._writing().mark.sum
        assert self._about is not None
        checksum = sum_after(self.path, self._head)
        return _sum_of(self._about) if checksum is None else checksum

    # The end ------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Wait until everything so far would survive a power failure."""
        self._writing().sync()

    def close(
        self,
        ended: Mapping[str, Any] | None = None,
        unlearned: Mapping[str, tuple[float, int]] | None = None,
    ) -> None:
        """Put everything into the table, and release the files.

        The journal is removed only after the table was read back and found correct.

        Args:
            ended: `round`, `learned` and `sha256` of the policy at the end.
            unlearned: by decision, rewards that were observed but not learned, and when they came.
        """
        journal = self._writing()
        try:
            journal.check()
            journal.sync()
            whole = read_whole(self.path)
            assert whole is not None and whole.about is not None
            self._stop_unless_all(whole)
            about = replace(
                whole.about,
                state=None if ended is None else dict(ended),
                before=whole.about.rows if self.path.exists() else None,
                head=self._head,
                sum=self._sum(),
                replaced=tuple(map(tuple, whole.replaced)),  # type: ignore[arg-type]
            )
            write_table(self.path, about, with_unlearned(whole.frame, unlearned or {}))
            journal.remove()
        finally:
            self.release()

    def release(self) -> None:
        """Release the files as they are."""
        if self._journal is not None:
            self._journal.release()

    def _stop_unless_all(self, whole: Whole) -> None:
        if whole.head != self._head:
            raise DamagedError(
                f"{self.path} would have events up to {whole.head}, but there were {self._head}; "
                "it is left unchanged, with its journal"
            )

    def _writing(self) -> Journal:
        if self._journal is None:
            raise InputError(f"{self.path} was opened for reading; open it with log_to to write")
        return self._journal


def _sum_of(about: About) -> int:
    """The checksum of a table's events or, if no journal made it, of its rows."""
    return about.sum or (0 if about.rows is None else crc32(about.rows["sha256"].encode()))
