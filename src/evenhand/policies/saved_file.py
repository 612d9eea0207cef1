"""Files of saved policies: written whole or not at all, read with care."""

from __future__ import annotations

import json
import os
import secrets
import stat
from pathlib import Path
from typing import Any, NoReturn


def write_whole(path: Path, text: str) -> None:
    """Write `text` to `path`; a crash leaves the old file or the new one, never half of it.

    Who may read it is as with `open`: what the umask leaves to a new file, and as it was for one
    that is there.
    """
    target = Path(os.path.realpath(path))  # a link goes on to point there
    if target.is_dir() or not target.parent.is_dir():
        raise ValueError(f"path is {str(path)!r}; allowed is a file in a folder that exists")
    part = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            if target.exists():
                part.chmod(stat.S_IMODE(target.stat().st_mode))
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def parse(content: bytes) -> Any:
    """The data in the bytes of a file; a ValueError says what is wrong with them."""
    try:
        return json.loads(content.decode(), parse_constant=_not_finite)
    except RecursionError:
        raise ValueError("its lists are nested too deeply") from None
    except (json.JSONDecodeError, UnicodeDecodeError, _NotFinite):
        raise
    except ValueError as error:  # of Python, about the length of a number
        raise ValueError("a whole number in it has too many digits") from error


class _NotFinite(ValueError):
    """A word that stands for no number."""


def _not_finite(word: str) -> NoReturn:
    raise _NotFinite(f"it has {word}, where only finite numbers are allowed")
