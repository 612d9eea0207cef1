"""Linear algebra on one thread while an audit runs.

The matrices of an audit are small, and OpenBLAS wakes its threads for them all the same: the
eigenvalues of one with 28 columns then take milliseconds instead of 60 microseconds where other
processes are busy, and half a second of processor time in an audit. Batches of rows need no more
threads either: meanwhile the engine reads the next ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock

from evenhand.errors import MissingExtraError

_lock, _held = Lock(), ExitStack()
_inside = 0  # audits that run now; the number of threads is a setting of the whole process


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra on one thread until the last of the audits that run is done."""
    global _inside
    try:
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise MissingExtraError(
            "audits need threadpoolctl: install it with pip install 'evenhand[audit]'"
        ) from error
    with _lock:
        if not _inside:
            _held.enter_context(threadpool_limits(1, "blas"))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _held.close()
