"""Waiting for DuckDB: how far a query is, and an end to it on Ctrl-C.

The query runs in a thread of its own, for a thread that is inside of DuckDB hears of Ctrl-C late
or not at all. Other engines' drivers see to that themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

PAUSE = 0.1  # seconds between two looks at how far it is

Answer = TypeVar("Answer")
Progress = Callable[[float], None]


def answer_of(
    query: Callable[[], Answer], connection: Any, progress: Progress | None = None
) -> Answer:
    """What a query gives; Ctrl-C ends it.

    Args:
        query: runs it.
        connection: of DuckDB, on which it runs.
        progress: called with the percentage that is done, again and again, where it is known.

    Example:
        >>> import duckdb
        >>> from evenhand.audit.waiting import answer_of
        >>> con = duckdb.connect()
        >>> answer_of(lambda: con.execute("SELECT 6 * 7").fetchall(), con)
        [(42,)]
    """
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(query)
        try:
            while not wait([running], timeout=PAUSE).done:
                if progress is not None:
                    _tell(connection, progress)
        except BaseException:
            # It may not have begun yet, and then there is nothing to interrupt: try until it ends.
            while not running.done():
                connection.interrupt()
                wait([running], timeout=PAUSE)
            raise
        return running.result()


def _tell(connection: Any, progress: Progress) -> None:
    part = connection.query_progress()
    if part >= 0.0:  # below, it is not known
        progress(min(float(part), 100.0))
