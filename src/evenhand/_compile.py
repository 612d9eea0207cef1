"""Compiling with Numba, and a disk cache that cannot go stale.

Numba's own cache notices a change in the file of a cached function, but not in another file whose
functions it calls. So the cache lives in a folder named by a hash of every source file of this
package that has to do with compiling: change any of them, and everything is compiled once more.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import config as numba_config

Function = TypeVar("Function", bound=Callable[..., Any])

config: Any = numba_config  # its settings are attributes made at run time

PACKAGE = Path(__file__).parent

# No fastmath: the same lines inlined in the live decision and in the simulation must give the
# same bits. The NumPy error model keeps a division by zero from becoming an exception branch.
OPTIONS: Any = {"nogil": True, "error_model": "numpy"}
INLINED: Any = {**OPTIONS, "forceinline": True}


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
    return _cached_in(function, cache_folder(_source_of(function)))


def inlined(function: Function) -> Function:
    """Compile `function` into each of its callers.

    For what runs in every round: a policy's memory is a hundred machine words, and a call that is
    not inlined copies them all.
    """
    return _cached_in(function, cache_folder(_source_of(function)), forceinline=True)


def entry_point(function: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """`function` compiled for arguments of just these types, without Numba's look at them.

    That look costs more than a decision does. Whoever calls the result vouches for the types.
    """
    return function.compile(tuple(numba.typeof(value) for value in arguments))  # type: ignore[attr-defined,no-any-return]


def compiled_for(function: Function, source: Path | None) -> Function:
    """A copy of `function` with a cache of its own for code of the user's in the file `source`."""
    return _cached_in(function, cache_folder(source))


def _cached_in(function: Function, folder: Path | None, forceinline: bool = False) -> Function:
    options = {**OPTIONS, "forceinline": forceinline}
    if folder is None:
        return numba.njit(**options)(function)  # type: ignore[no-any-return]
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)  # read once, while the decorator runs
    try:
        return numba.njit(cache=True, **options)(function)  # type: ignore[no-any-return]
    finally:
        config.CACHE_DIR = before


def _source_of(function: Callable[..., Any]) -> Path | None:
    path = Path(function.__code__.co_filename)
    return path if path.exists() else None


@cache
def source_digest() -> str:
    """A hash of all sources that have to do with compiling, and of the compiler."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_bytes()
        if b"compiled" in text or b"kernel" in text:
            digest.update(text)
    return digest.hexdigest()[:16]


@cache
def cache_folder(source: Path | None = None) -> Path | None:
    """Where compiled code is kept: a folder per state of the package's (and the user's) sources.

    None where nothing can be written or the code has no file (a prompt): then it is compiled in
    every process anew.
    """
    if source is None:
        return None
    name = source_digest()
    if PACKAGE not in source.parents:
        own = hashlib.sha256(str(source).encode() + source.read_bytes())
        name += "-" + own.hexdigest()[:16]
    for root in _cache_roots():
        folder = root / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    return None


def _cache_roots() -> list[Path]:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return [Path(chosen) / "evenhand"]
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or base
    user = f"evenhand-{os.getuid()}" if hasattr(os, "getuid") else "evenhand"
    return [Path(base) / "evenhand" / "compiled", Path(tempfile.gettempdir()) / user]
