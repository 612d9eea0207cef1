"""Logs of decisions: one schema, written by policies and the simulator, read by audits.

It knows nothing of policies: `evenhand.recording` writes their decisions and replays them.
"""

from evenhand.events._read import read_log
from evenhand.events.columns import ROLES, Columns, find_columns, find_roles

__all__ = ["ROLES", "Columns", "find_columns", "find_roles", "read_log"]
