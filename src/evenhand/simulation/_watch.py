"""Watching a simulation from outside: how far it is, and an end to it."""

from __future__ import annotations

from threading import Event, Lock


class Stopped(Exception):
    """The run was asked to stop."""


class Watch:
    """Shared by the threads of a simulation.

    Example:
        >>> from evenhand.simulation._watch import Watch
        >>> watch = Watch()
        >>> watch.add(20)
        >>> watch.done
        20
    """

    def __init__(self) -> None:
        self.done = 0
        self._lock, self._stop = Lock(), Event()

    def add(self, rounds: int) -> None:
        """So many more rounds are done."""
        with self._lock:
            self.done += rounds

    def stop(self) -> None:
        """Whoever asks next is to stop."""
        self._stop.set()

    def check(self) -> None:
        """Raise `Stopped` if it was asked for."""
        if self._stop.is_set():
            raise Stopped
