"""Whether a command can write where it was told to, asked before it does any work."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path


def check_folder(out: Path, folders: Iterable[str] = (), files: Iterable[str] = ()) -> None:
    """Refuse a folder that cannot be made or written to.

    Args:
        out: the folder, which need not be there.
        folders: what will be a folder inside of it.
        files: what will be a file inside of it.
    """
    for one in (out, *(out / name for name in folders)):
        _check_writable(out, one)
    for name in files:
        _check_no_folder(out, out / name)


def check_file(out: Path) -> None:
    """Refuse a file that cannot be written."""
    _check_no_folder(out, out)
    _check_writable(out, out.parent)
    if out.exists():
        try:
            out.open("ab").close()
        except OSError as error:
            raise _refusal(out, f"it cannot be written ({error.strerror})") from error


def _check_no_folder(out: Path, path: Path) -> None:
    if path.is_dir():
        raise _refusal(out, f"{str(path)!r} is a folder, where a file is to be written")


def _check_writable(out: Path, folder: Path) -> None:
    """That a folder can be made and filled: tried in the nearest one that is there."""
    there = folder.absolute()
    try:
        while not there.exists():
            there = there.parent
        if not there.is_dir():
            raise _refusal(out, f"{str(there)!r} is a file and no folder")
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        why = f"nothing can be written to {str(there)!r} ({error.strerror or error})"
        raise _refusal(out, why) from error


def _refusal(out: Path, why: str) -> ValueError:
    return ValueError(f"--out is {str(out)!r}, but {why}; name another place")
