"""The ledger as a log in files, for audits, evaluations and replays."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from evenhand.errors import InputError
from evenhand.events.files import FileLedger
from evenhand.service._ledger.fold import is_erased
from evenhand.service._ledger.log import SqlLedger

TOGETHER = 5000


def export(url: str, path: Path) -> int:
    """Write the events of a ledger to a Parquet or CSV file, and return their number.

    Rewards that came too late, or wait until all have had the same time, are in it as well; they
    have no number in the order of learning.

    `evenhand audit`, `evenhand value` and `eh.replay` read it like any other log.
    """
    if path.exists():
        raise InputError(f"{path} exists already; give another name")
    ledger = SqlLedger(url, write=False)
    try:
        if ledger.about is None:
            raise InputError(f"{ledger.name} has not begun")
        with ledger.database.reading() as connection:
            if is_erased(connection):
                raise InputError(
                    f"{ledger.name} has entries that were erased, so it cannot be exported as a "
                    "log that can be replayed"
                )
            unlearned = ledger.unlearned()  # before the events: what is learned meanwhile is there
        file = FileLedger(path, sync=60.0)
        try:
            file.begin(ledger.about)
            events = ledger.read()
            while some := list(islice(events, TOGETHER)):
                file.append(some)
            number = file.head
            file.close(unlearned=unlearned)
        except BaseException:
            file.release()
            raise
    finally:
        ledger.release()
    return number
