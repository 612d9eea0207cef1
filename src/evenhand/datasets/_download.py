"""Downloads with pooch: into a temporary file, which gets its name only after it is checked.

The progress bar on the error stream has the methods that pooch needs: total, update, reset, close.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from evenhand._atomic_files import write_whole
from evenhand.datasets import _checked_files as files
from evenhand.datasets._checked_files import File
from evenhand.errors import DataError, DownloadError

PIECE = 2**16  # bytes; pooch's own 1,024 would flush a large file twenty thousand times


class _Limited:
    """A file with a limit on its bytes: a source may send anything."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file, self._most, self._left = file, most, most
        self.flush = file.flush

    def write(self, content: bytes) -> int:
        """Write, up to the limit."""
        self._left -= len(content)
        if self._left < 0:
            raise OSError(f"it sends more than the {self._most:,} bytes of the file")
        return self._file.write(content)


def download(name: str, folder: Path, progress: bool) -> Path:
    """Get a set from the first source that works; an error says why none did."""
    files.pooch()
    _make_writable(name, folder)
    reasons = []
    for file in files.FILES[name]:
        try:
            return _retrieve(file, folder, progress)
        except (OSError, ValueError) as error:  # what requests raises is an OSError
            reasons.append(f"{urlsplit(file.address).hostname}: {_why(error)}")
    why = "; ".join(dict.fromkeys(reasons))
    raise DownloadError(f"{name} could not be downloaded ({why}): {files.by_hand(name, folder)}")


def _retrieve(file: File, folder: Path, progress: bool) -> Path:
    path = folder / file.name
    with bar(file.name, shown=progress) as shown:
        get = files.pooch().HTTPDownloader(progressbar=shown or False, chunk_size=PIECE)

        def checked(content: IO[bytes]) -> None:
            get(file.address, _Limited(content, file.size), None)
            content.seek(0)
            digest = hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]
            if digest != file.sha256:
                raise DataError(
                    f"it sends another file: its SHA-256 is {digest}, not the known {file.sha256}"
                )

        write_whole(path, checked)
    return path


def _make_writable(name: str, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DownloadError(
            f"{name} is not in {folder}, and nothing can be written there "
            f"({error.strerror or error}): {files.by_hand(name, folder)}"
        ) from error


def _why(error: Exception) -> str:
    """The reason in a few words; messages of requests have several lines."""
    from requests import exceptions

    if isinstance(error, exceptions.HTTPError) and error.response is not None:
        return f"it replied {error.response.status_code}"
    known = {  # the first that fits; some are special cases of later ones
        exceptions.Timeout: "no answer in time",
        exceptions.SSLError: "its certificate is not trusted",
        exceptions.ProxyError: "no connection through the proxy",
        exceptions.ConnectionError: "no connection",
        exceptions.ChunkedEncodingError: "the download was interrupted",
        exceptions.ContentDecodingError: "the download was interrupted",
    }
    for kind, words in known.items():
        if isinstance(error, kind):
            return words
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)


class Bar:
    """One task of a rich display."""

    def __init__(self, display: Any, name: str) -> None:
        self._display = display
        self._task = display.add_task(name, total=None)
        self._total = self._done = 0

    @property
    def total(self) -> int:
        """How many bytes there are; pooch sets it, to 0 if the server does not say."""
        return self._total

    @total.setter
    def total(self, value: int) -> None:
        self._total = value
        self._display.update(self._task, total=value or None)

    def update(self, n: int) -> None:
        """Add n bytes. Pooch counts whole pieces, which can be more than the total."""
        self._done = min(self._done + n, self._total or self._done + n)
        self._display.update(self._task, completed=self._done)

    def reset(self) -> None:
        """Start again from 0; pooch does so before it fills the bar at the end."""
        self._done = 0

    def close(self) -> None:
        """The display is closed by its context."""


@contextmanager
def bar(name: str, shown: bool) -> Iterator[Bar | None]:
    """A bar while the block runs; one line without rich, and nothing unless `shown`."""
    if not shown:
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
    except ImportError:
        sys.stderr.write(f"downloading {name}\n")
        yield None
        return
    columns = (BarColumn(bar_width=30), DownloadColumn(), TextColumn("{task.description}"))
    console = Console(stderr=True)
    if not console.is_terminal:  # a bar in a log is noise
        yield None
        return
    with Progress(*columns, console=console, transient=True) as display:
        yield Bar(display, name)
