"""A bar on the error stream in the form that pooch asks for: total, update, reset, close."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Bar:
    """One task of a rich display."""

    def __init__(self, display: Any, what: str) -> None:
        self._display = display
        self._task = display.add_task(what, total=None)
        self._total = self._done = 0

    @property
    def total(self) -> int:
        """How many bytes there are; pooch sets it, to 0 if the server does not say."""
        return self._total

    @total.setter
    def total(self, value: int) -> None:
        self._total = value
        self._display.update(self._task, total=value or None)

    def update(self, n: int) -> None:
        """So many more. Pooch counts whole pieces, which can be more than there is."""
        self._done = min(self._done + n, self._total or self._done + n)
        self._display.update(self._task, completed=self._done)

    def reset(self) -> None:
        """From the start; pooch does so before it fills the bar at the end."""
        self._done = 0

    def close(self) -> None:
        """The display is closed by its context."""


@contextmanager
def bar(what: str, shown: bool) -> Iterator[Bar | None]:
    """A bar while the block runs; without rich one line, and nothing if it shall not be shown."""
    if not shown:
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
    except ImportError:
        sys.stderr.write(f"downloading {what}\n")
        yield None
        return
    columns = (BarColumn(bar_width=30), DownloadColumn(), TextColumn("{task.description}"))
    console = Console(stderr=True)
    if not console.is_terminal:  # a bar in a log is noise
        yield None
        return
    with Progress(*columns, console=console, transient=True) as display:
        yield Bar(display, what)
