"""A word when compiling begins: a first use would be silent for a minute otherwise.

It goes to the logger "evenhand", which writes to the error stream unless logging is set up
otherwise. `logging.getLogger("evenhand").setLevel("ERROR")` silences it.
"""

from __future__ import annotations

import logging
import multiprocessing
from typing import Any

from numba.core import event as numba_event

LOGGER = logging.getLogger("evenhand")


class Notice(numba_event.Listener):
    """Says once per process that code of this package is being compiled, and not read from disk.

    Numba tells of a function when it is not in its cache, so nothing is said where it is.
    """

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:
        """Numba holds a lock while it compiles, so threads come here one by one."""
        function = event.data["dispatcher"]
        if self.said or not function.py_func.__module__.startswith("evenhand."):
            return
        self.said = True
        if multiprocessing.parent_process() is not None:  # a worker: its parent speaks
            return
        kept = function.stats.cache_path is not None
        LOGGER.warning(
            "evenhand is compiling, which can take a minute; %s",
            "it is kept on disk, and the next start is quick"
            if kept
            else "it cannot be kept on disk here, and is done once per process",
        )

    def on_end(self, event: Any) -> None:
        """Nothing is said at the end."""


NOTICE = Notice()


def install() -> None:
    """Listen to Numba from now on."""
    numba_event.register("numba:compile", NOTICE)
