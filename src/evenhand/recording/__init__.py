"""Policies that write logs, and policies restored from logs."""

from evenhand.recording._log_to import log_to
from evenhand.recording._replay import replay
from evenhand.recording.logged import LoggedPolicy
from evenhand.recording.simulated import simulate_log

__all__ = ["LoggedPolicy", "log_to", "replay", "simulate_log"]
