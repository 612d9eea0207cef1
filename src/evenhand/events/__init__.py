"""Logs of decisions: one schema, written by policies and the simulator, read by audits.

It knows nothing of policies: `evenhand.recording` writes their decisions and replays them.

For a ledger of your own: `Ledger` is its interface, `About` the header, `Snapshot` a saved state,
and `to_line` and `from_line` turn events into text and back.
"""

from evenhand.events._header import About
from evenhand.events._read import read_log
from evenhand.events.columns import ROLES, Columns, find_columns, find_roles
from evenhand.events.event import (
    DecisionMade,
    Event,
    Overridden,
    RewardObserved,
    RowsAbsorbed,
    TrueRewardObserved,
    from_line,
    to_line,
)
from evenhand.events.file_ledger import FileLedger
from evenhand.events.ledger import Ledger, Snapshot

__all__ = [
    "ROLES",
    "About",
    "Columns",
    "DecisionMade",
    "Event",
    "FileLedger",
    "Ledger",
    "Overridden",
    "RewardObserved",
    "RowsAbsorbed",
    "Snapshot",
    "TrueRewardObserved",
    "find_columns",
    "find_roles",
    "from_line",
    "read_log",
    "to_line",
]
