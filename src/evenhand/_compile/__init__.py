"""Compiling with Numba: the kinds of compiled functions, and what happens while they compile.

A notice says when compiling begins: otherwise a first use would be silent for a minute. It goes to
the logger "evenhand", which writes to the error stream unless logging is set up otherwise.
`logging.getLogger("evenhand").setLevel("ERROR")` silences it.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import numba
from numba.core import config as numba_config
from numba.core import event as numba_event

from evenhand._compile import linker
from evenhand._compile.disk_cache import Sources, cache_folder, sources_of

Function = TypeVar("Function", bound=Callable[..., Any])

config: Any = numba_config  # its settings are attributes made at run time

_LOCK = RLock()
_COPIES: dict[tuple[Any, Sources], Any] = {}
_KEEP_LOCK: set[Any] = set()  # the functions made by `live`

# No fastmath: the same lines inlined in the live decision and in the simulation must give the
# same bits. The NumPy error model keeps a division by zero from becoming an exception branch.
# Unless `forceinline` is set, a function takes it over from its caller.
OPTIONS: Any = {"error_model": "numpy", "forceinline": False, **linker.options()}
LIVE: Any = {**OPTIONS, **linker.options(live=True)}
SUBROUTINE: Any = {
    **OPTIONS,
    "no_cpython_wrapper": True,  # an entry from Python takes as long to compile as the function
    "no_cfunc_wrapper": True,
    **linker.options(inner=True),
}
INLINED: Any = {**SUBROUTINE, "forceinline": True}
WOVEN: Any = {**OPTIONS, "inline": "always"}


def compiled(function: Function) -> Function:
    """Compile `function` with Numba when it is first called, and cache it on disk.

    Use it for the helper functions of a policy of your own; it can be called from Python and from
    other compiled functions.

    Example:
        >>> from evenhand import compiled
        >>> @compiled
        ... def double(x):
        ...     return 2.0 * x
        >>> double(21.0)
        42.0
    """
    return _njit(function, OPTIONS, cache_folder(sources_of(function)))


def live(function: Function) -> Function:
    """Like `compiled`, for functions called in every live decision, and by many threads.

    They keep the interpreter's lock, so two of them never run at once: none sees what another has
    half written. They take microseconds, so nobody waits long.
    """
    keeps_lock = _njit(function, LIVE, cache_folder(sources_of(function)))
    _KEEP_LOCK.add(keeps_lock)
    return keeps_lock


def subroutine(function: Function) -> Function:
    """Compile `function` for other compiled functions alone; it cannot be called from Python."""
    return _njit(function, SUBROUTINE, cache_folder(sources_of(function)))


def inlined(function: Function) -> Function:
    """Compile `function` into each of its callers; it cannot be called from Python.

    For code that runs in every round: a call that is not inlined writes its arguments to memory and
    reads them again.
    """
    return _njit(function, INLINED, cache_folder(sources_of(function)))


def woven(function: Function) -> Function:
    """Put the lines of `function` into each of its callers, before anything is compiled.

    For functions that are short, or take a policy's memory of some fifty machine words. Unlike an
    inlined function it is not compiled on its own first, and then again in each function around it:
    that was half of the time to compile. Not for functions called often in one place, since their
    lines are analysed once per call.
    """
    return _njit(function, WOVEN, cache_folder(sources_of(function)))


def open_to_users(function: Function) -> Function:
    """Like `woven`, for a function that takes a user's rules or worlds: never cached itself.

    Numba can no longer read a function's cache once it holds a type whose module is gone. So users'
    types stay out of our caches: the callers of such a function are compiled by `for_sources`.
    """
    return _njit(function, WOVEN, None)


def for_sources(function: Function, sources: Sources) -> Function:
    """`function` or, for a user's types, a copy with a cache that follows their files."""
    return function if sources == () else _copy(function, sources)


def _copy(function: Function, sources: Sources) -> Function:
    key = (function, sources)
    with _LOCK:
        if key not in _COPIES:
            options = LIVE if function in _KEEP_LOCK else OPTIONS
            _COPIES[key] = _njit(function.py_func, options, cache_folder(sources))  # type: ignore[attr-defined]
    return _COPIES[key]  # type: ignore[no-any-return]


def entry_point(function: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """`function` compiled for arguments of exactly these types, without Numba's dispatch.

    Dispatch costs more than a decision does. The caller of the result vouches for the types.
    """
    if config.DISABLE_JIT:
        return function
    return function.compile(tuple(numba.typeof(value) for value in arguments))  # type: ignore[attr-defined,no-any-return]


def _njit(function: Function, options: Any, folder: Path | None) -> Function:
    return linker.once(_dispatcher(function, options, folder))  # type: ignore[no-any-return]


def _dispatcher(function: Function, options: Any, folder: Path | None) -> Any:
    if folder is None:
        return numba.njit(**options)(function)
    with _LOCK:
        before = config.CACHE_DIR
        config.CACHE_DIR = str(folder)  # read once, while the decorator runs
        try:
            return numba.njit(cache=True, **options)(function)
        finally:
            config.CACHE_DIR = before


LOGGER = logging.getLogger("evenhand")


class Notice(numba_event.Listener):
    """Says once per process that code of this package is being compiled, and not read from disk.

    Numba sends the event only for a function that is not in its cache.
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
        cached = function.stats.cache_path is not None
        LOGGER.warning(
            "evenhand is compiling, which can take a minute; %s",
            "the result is kept on disk, so the next start is quick"
            if cached
            else "the result cannot be kept on disk here, so every process compiles again",
        )

    def on_end(self, event: Any) -> None:
        """Nothing is said at the end."""


class Undisturbed(numba_event.Listener):
    """Pauses the cyclic garbage collector while anything is compiled.

    Numba makes objects all the time then, and searching them was about a tenth of the time to the
    first decision (10.4 against 11.7 seconds of processor time). It costs memory: 306 MB at the
    peak against 244.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._searched = False

    def on_start(self, event: Any) -> None:  # noqa: ARG002
        """One function is compiled within another; the outermost counts."""
        if self._depth == 0:
            self._searched = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        """Also after an error."""
        self._depth -= 1
        if self._depth == 0 and self._searched:
            # Unless others froze objects, all of them now count as old: they are not searched at
            # once, which took 0.3 seconds.
            if gc.get_freeze_count() == 0:
                gc.freeze()
                gc.unfreeze()
            gc.enable()


NOTICE = Notice()
for _listener in (NOTICE, Undisturbed()):
    numba_event.register("numba:compile", _listener)  # from now on
