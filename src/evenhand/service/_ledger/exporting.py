"""The ledger as a log in files, for audits, evaluations and replays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from evenhand.errors import InputError
from evenhand.events._formats import write_csv, write_parquet
from evenhand.events._header import About
from evenhand.events._rows import Rows, with_unlearned
from evenhand.events.event import Event
from evenhand.events.files import FileLedger
from evenhand.service._ledger.fold import is_erased
from evenhand.service._ledger.log import SqlLedger

TOGETHER = 5000


class Exported(NamedTuple):
    """How many events a file has, and whether others were erased."""

    events: int
    is_part: bool

    def to_words(self) -> str:
        """For the command line."""
        part = "; erased decisions are not in it, so it can be audited and not replayed"
        return f"{self.events:,} events{part if self.is_part else ''}"


def export(url: str, path: Path) -> Exported:
    """Write the events of a ledger to a Parquet or CSV file.

    Rewards that came too late, or wait until all have had the same time, are in it as well; they
    have no number in the order of learning.

    `evenhand audit`, `evenhand value` and `eh.replay` read it like any other log. Where people were
    erased, it is a table of all other decisions without the header of a log: it can be audited, and
    nobody takes it for the whole story of a policy.
    """
    if path.exists():
        raise InputError(f"{path} exists already; give another name")
    ledger = SqlLedger(url, write=False)
    try:
        if ledger.about is None:
            raise InputError(f"{ledger.name} has not begun")
        with ledger.database.reading() as connection:
            is_part = is_erased(connection)
        unlearned = ledger.unlearned()  # before the events: what is learned meanwhile is there
        if is_part:
            return Exported(_write_left(path, ledger, unlearned), True)
        return Exported(_write(path, ledger.about, ledger.read(), unlearned), False)
    finally:
        ledger.release()


def _write(
    path: Path, about: About, events: Iterator[Event], unlearned: Mapping[str, tuple[float, int]]
) -> int:
    file = FileLedger(path, sync=60.0)
    try:
        file.begin(about)
        while some := list(islice(events, TOGETHER)):
            file.append(some)
        number = file.head
        file.close(unlearned=unlearned)
    except BaseException:
        file.release()
        raise
    return number


def _write_left(path: Path, ledger: SqlLedger, unlearned: Mapping[str, tuple[float, int]]) -> int:
    """What is left of a ledger with erased entries, as a table and no log."""
    assert ledger.about is not None
    rows = Rows(ledger.about, gaps=True)
    for event in ledger.left():
        rows.apply(event)
    frame = with_unlearned(rows.to_frame(), unlearned)
    with path.open("xb") as file:
        if path.suffix == ".parquet":
            write_parquet(file, ledger.about, frame, header=False)
        else:
            write_csv(file, ledger.about, frame)
    return rows.head
