"""Waiting for what other processes do, however slow the machine is.

No wait of a test has a limit of its own: pyproject.toml has one of half an hour for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from subprocess import Popen


def until(happened: Callable[[], object], process: Popen) -> None:
    """Wait until something has happened that `process` is to do; it may not end before."""
    while not happened():
        ended = process.poll()
        assert ended is None or happened(), f"it ended too early, with exit code {ended}"
        time.sleep(0.02)
