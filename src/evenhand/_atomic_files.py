"""Atomic writes: a crash leaves the old file or the new one, never a partial file."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from evenhand.errors import InputError

# Text is written as UTF-8. A function gets the open file, and may also read it back.
Content = str | bytes | Callable[[IO[bytes]], object]


def write_whole(path: str | Path, content: Content) -> None:
    """Write a file atomically: readers find all of the old content or all of the new.

    Permissions are as with `open`: a new file follows the umask, an existing one keeps its own.
    Links are followed. Devices and pipes, such as /dev/stdout, are written to directly.

    Args:
        path: the file, in a folder that exists.
        content: text, bytes, or a function that writes to the open file. If it raises, the old file
            stays and nothing else is left behind.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from evenhand._atomic_files import write_whole
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_whole(Path(folder) / "a.txt", "all of it")
        ...     [(path.name, path.read_text()) for path in Path(folder).iterdir()]
        [('a.txt', 'all of it')]
    """
    write_all({Path(path): content})


def write_all(
    contents: Mapping[Path, Content], alone: bool = False, like: Path | None = None
) -> None:
    """Write files that belong together: write all of them as parts, then move each to its place.

    They are moved in the order given, and each move is on disk before the next.

    Args:
        contents: the content of each path, as for `write_whole`.
        alone: whether no other process writes these files. Then parts have fixed names, and the
            next call writes over what a killed process left.
        like: the file whose permissions new files get, if it exists.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from evenhand._atomic_files import write_all
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_all({Path(folder) / "a.csv": "n\\n1\\n", Path(folder) / "b.bin": b"2"})
        ...     sorted(path.name for path in Path(folder).iterdir())
        ['a.csv', 'b.bin']
    """
    parts: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            if path.exists() and not path.is_file() and not path.is_dir():  # a device or a pipe
                with path.open("wb") as file:
                    _fill(file, content)
                continue
            target = _target(path)
            part = _part(target, alone)
            flags = os.O_TRUNC if alone else os.O_EXCL
            handle = os.open(part, os.O_RDWR | os.O_CREAT | flags | _BINARY, 0o666)
            parts[target] = part
            with os.fdopen(handle, "wb+") as file:
                copy_permissions(target if target.exists() else like, part)
                _fill(file, content)
                file.flush()
                os.fsync(file.fileno())
        for target, part in parts.items():
            part.replace(target)
            sync_folder(target.parent)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


_BINARY = getattr(os, "O_BINARY", 0)  # without it, Windows writes line feeds as two characters


def _target(path: Path) -> Path:
    target = Path(os.path.realpath(path))
    if target.is_dir() or not target.parent.is_dir():
        raise InputError(f"path is {str(path)!r}; allowed is a file in a folder that exists")
    return target


def _part(target: Path, alone: bool) -> Path:
    """Where a file is written first: a name that is not too long, and hidden if it is unique."""
    if alone:
        return target.with_name(f"{target.name}.part")
    return target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")


def copy_permissions(source: Path | None, path: Path) -> None:
    """Give a file the permissions of another, if that exists."""
    if source is not None and source.exists():
        path.chmod(stat.S_IMODE(source.stat().st_mode))


def _fill(file: IO[bytes], content: Content) -> None:
    if callable(content):
        content(file)
    else:
        file.write(content.encode() if isinstance(content, str) else content)


def sync_folder(folder: Path) -> None:
    """Sync a folder to disk, so that new and removed names outlast a power failure.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from evenhand._atomic_files import sync_folder
        >>> sync_folder(Path(tempfile.gettempdir()))
    """
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
