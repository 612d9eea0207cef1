"""The interface of a place that keeps the events of a log, in files or in a database.

A ledger has one writer at a time. It keeps events in their order and, now and then, a snapshot of
the state after them. Snapshots only save time: without them, the state is found by replaying all
events on the policy in `about`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from evenhand.events._header import About
from evenhand.events.event import Event


class Snapshot(NamedTuple):
    """The state after event `seq`, as plain data for JSON.

    Example:
        >>> from evenhand.events.ledger import Snapshot
        >>> Snapshot(seq=17, state={"round": 9}).seq
        17
    """

    seq: int
    state: dict[str, Any]


@runtime_checkable
class Ledger(Protocol):
    """Events in their order, kept permanently.

    docs/reference/log-format.md says what a ledger has to promise, and has one for SQLite.

    Example:
        >>> import tempfile, pathlib
        >>> from evenhand.events.file_ledger import FileLedger
        >>> from evenhand.events.ledger import Ledger
        >>> ledger = FileLedger(pathlib.Path(tempfile.mkdtemp()) / "decisions.csv", write=False)
        >>> isinstance(ledger, Ledger), ledger.head, list(ledger.read(after=0))
        (True, 0, [])
        >>> class MemoryLedger:
        ...     name, about = "memory", None
        ...     def __init__(self):
        ...         self.events = []
        ...     @property
        ...     def head(self):
        ...         return len(self.events)
        ...     def begin(self, about):
        ...         self.about = about
        ...     def append(self, events):
        ...         self.events.extend(events)
        ...     def take_back(self, seq):
        ...         del self.events[seq:]
        ...     def read(self, after=0):
        ...         return iter(self.events[after:])
        ...     def snapshot(self, state, seq):
        ...         pass
        ...     def newest_snapshot(self, before=None):
        ...         return None
        ...     def sync(self):
        ...         pass
        ...     def close(self, ended=None):
        ...         pass
        ...     def release(self):
        ...         pass
        >>> import evenhand as eh
        >>> ledger = MemoryLedger()
        >>> with eh.log_to(ledger, eh.UniformRandom(["F", "M"], n_features=1)) as logged:
        ...     logged.update(logged.select([[1.0], [2.0]]), reward=0.5)
        >>> isinstance(ledger, Ledger), ledger.head, eh.replay(ledger).counts.sum().item()
        (True, 2, 1)
    """

    @property
    def name(self) -> str:
        """Where it is, for messages."""

    @property
    def about(self) -> About | None:
        """The header of the log; None before `begin`."""

    @property
    def head(self) -> int:
        """The number of the last event; 0 if there is none."""

    def begin(self, about: About) -> None:
        """Begin a new log with this header, before its first event."""

    def append(self, events: Sequence[Event]) -> None:
        """Keep all of these events or none; when this returns, they are kept permanently.

        The first has the number `head` + 1, and the others follow. After an error none is kept.
        """

    def take_back(self, seq: int) -> None:
        """Remove the events after `seq`, which the last call appended and nobody has read.

        It is only called after `append` has returned, if the policy then fails to learn.
        """

    def read(self, after: int = 0) -> Iterator[Event]:
        """The events after number `after`, in their order."""

    def snapshot(self, state: Mapping[str, Any], seq: int) -> None:
        """Keep the state after event `seq`, the last one. It may replace older snapshots.

        An error is only a warning: a snapshot saves time, and nothing else.
        """

    def newest_snapshot(self, before: int | None = None) -> Snapshot | None:
        """The newest undamaged snapshot of these events; None if there is none.

        Args:
            before: only snapshots before this event, if a newer one turned out to be useless.
        """

    def sync(self) -> None:
        """Wait until everything so far would survive a power failure."""

    def close(self, ended: Mapping[str, Any] | None = None) -> None:
        """Finish writing, and release the log.

        Args:
            ended: `round`, `learned` and `sha256` of the policy, to check replays against.
        """

    def release(self) -> None:
        """Release the log as it is, as if the process had ended here."""
