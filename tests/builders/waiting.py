"""Waiting for what other processes do, however slow the machine is.

No wait of a test has a limit of its own: pyproject.toml has one of half an hour for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from subprocess import Popen

import httpx


def until(happened: Callable[[], object], process: Popen) -> None:
    """Wait until something has happened that `process` is to do; it may not end before."""
    while not happened():
        ended = process.poll()
        assert ended is None or happened(), f"it ended too early, with exit code {ended}"
        time.sleep(0.02)


# Requests without a limit in time. httpx has one of five seconds unless told otherwise.

request = partial(httpx.request, timeout=None)
get, post, put = (partial(call, timeout=None) for call in (httpx.get, httpx.post, httpx.put))
Client = partial(httpx.Client, timeout=None)


def pause(seconds: float = 0.01) -> None:
    """Let others work before looking again; nothing may depend on how long it is."""
    time.sleep(seconds)


def stays_silent(url: str, **more: object) -> bool:
    """Whether a server gives no answer for two seconds; a slow one is no reason to fail."""
    try:
        httpx.post(url, timeout=2, **more)
    except httpx.TimeoutException:
        return True
    return False
