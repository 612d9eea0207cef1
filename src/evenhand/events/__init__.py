"""Logs of decisions: one schema, written by policies and the simulator, read by audits.

Nothing here knows policies: `evenhand.recording` writes their decisions and replays them.
"""

from evenhand.events.columns import ROLES, Columns, find_columns, find_roles
from evenhand.events.read import read_log

__all__ = ["ROLES", "Columns", "find_columns", "find_roles", "read_log"]
