"""Where compiled code is kept on disk, so that it cannot go stale.

Numba's own cache notices a change in the file of a cached function, but not in another file whose
functions it calls. So the cache lives in a folder named by a hash of every source file of this
package that has to do with compiling: change any of them, and everything is compiled again.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np

Sources = tuple[tuple[Path, str], ...] | None  # a user's files, and the hash of each

HERE = Path(__file__).parent
PACKAGE = HERE.parent
_DIGESTS: dict[Path, str] = {}


def sources_of(*definitions: Any) -> Sources:
    """The files outside this package that define these classes and functions.

    None if one has no file, because it was typed at a prompt, or is defined in the script that
    runs: such code cannot be cached, since another process does not find it under its name.
    """
    files = set()
    for definition in definitions:
        if definition.__module__ == "__main__":
            return None
        code = getattr(definition, "__code__", None)
        name = (
            code.co_filename
            if code
            else getattr(sys.modules[definition.__module__], "__file__", "")
        )
        path = Path(name or "")
        if not path.is_file():
            return None
        if PACKAGE not in path.parents:
            files.add((path, _DIGESTS.get(path) or note_source(path)))
    return tuple(sorted(files))


def note_source(path: Path) -> str:
    """Remember the content of a user's file at the time its functions were defined.

    That is the code that runs, and not the content when they are first compiled.
    """
    _DIGESTS[path] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    return _DIGESTS[path]


@cache
def source_digest(everything: bool = False) -> str:
    """A hash of the sources that have to do with compiling (or of all), and of the compiler."""
    versions = f"{numba.__version__} {np.__version__} {sys.version}"
    digest = hashlib.sha256(versions.encode())
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_bytes()
        concerned = path.parent == HERE or b"evenhand._compile" in text or b"kernel" in text
        if everything or concerned:
            digest.update(text)
    return digest.hexdigest()[:16]


@cache
def cache_folder(sources: Sources = ()) -> Path | None:
    """Where compiled code is kept: a folder per state of the package's (and the user's) sources.

    None where nothing can be written or the code has no file: then every process compiles it again.
    """
    if sources is None:
        return None
    name = source_digest()
    if sources:
        own = hashlib.sha256(repr([(str(path), digest) for path, digest in sources]).encode())
        name += "-" + own.hexdigest()[:16]
    try:
        folder = _cache_root() / name
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except (OSError, RuntimeError):  # nowhere to write, or no home at all
        return None
    return folder


def _cache_root() -> Path:
    """Only folders that belong to the user: compiled code that others could write is not safe."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen) / "evenhand"
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "evenhand" / "compiled"
