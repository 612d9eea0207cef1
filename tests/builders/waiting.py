"""Waiting for what other processes do, however slow the machine is.

No wait of a test has a limit of its own: pyproject.toml has one of half an hour for all of them.
"""

from __future__ import annotations

import ssl
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


# Requests without a limit in time. httpx has one of five seconds unless told otherwise. All servers
# of tests speak plain HTTP; without a context, every request reads all certificates, in 50 ms.

_PLAIN = {"verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), "trust_env": False}
_HOW = {"timeout": None, **_PLAIN}
request = partial(httpx.request, **_HOW)
get, post, put = (partial(call, **_HOW) for call in (httpx.get, httpx.post, httpx.put))
Client = partial(httpx.Client, **_HOW)


def pause(seconds: float = 0.01) -> None:
    """Let others work before looking again; nothing may depend on how long it is."""
    time.sleep(seconds)


def stays_silent(url: str, **more: object) -> bool:
    """Whether a server gives no answer for two seconds; a slow one is no reason to fail."""
    try:
        httpx.post(url, timeout=2, **_PLAIN, **more)
    except httpx.TimeoutException:
        return True
    return False
