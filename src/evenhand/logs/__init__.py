"""Logs of decisions: one schema, written by policies and the simulator, read by audits."""

from evenhand.logs.columns import ROLES, Columns, find_columns

__all__ = ["ROLES", "Columns", "find_columns"]
