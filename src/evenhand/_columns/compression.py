"""Compressed files: which endings they have, and reading what is inside."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from zipfile import BadZipFile, ZipFile

from evenhand.errors import DataError, MissingExtraError

GZIP, ZSTANDARD, ZIP = ".gz", ".zst", ".zip"
COMPRESSED = (GZIP, ZSTANDARD, ZIP)
# What reading a damaged file raises; an encrypted archive is a RuntimeError.
DAMAGED = (OSError, EOFError, zlib.error, BadZipFile, RuntimeError)
CALLED = {GZIP: "a gzip file", ZSTANDARD: "a zstandard file", ZIP: "a ZIP archive"}


def damaged(path: str | Path, error: BaseException) -> DataError:
    """The error for a file that raised one of `DAMAGED`.

    Example:
        >>> from evenhand._columns.compression import damaged
        >>> print(damaged("log.csv.gz", EOFError()))
        log.csv.gz is not a gzip file, or is incomplete; write it again
    """
    kind = CALLED.get(Path(path).suffix.lower())
    if isinstance(error, NotImplementedError):
        return DataError(f"{path} is compressed in a way that is not supported; unpack it first")
    if isinstance(error, RuntimeError) and "encrypted" in str(error):
        return DataError(f"{path} is protected by a password; unpack it first")
    if kind is None or (isinstance(error, OSError) and error.errno is not None):
        why = getattr(error, "strerror", None) or type(error).__name__
        return DataError(f"{path} cannot be read ({why}); give a file that can be read")
    return DataError(f"{path} is not {kind}, or is incomplete; write it again")


def is_compressed(path: str | Path) -> bool:
    """Whether the name of a file says that it is compressed."""
    return Path(path).suffix.lower() in COMPRESSED


@contextmanager
def opened(path: str | Path) -> Iterator[IO[bytes]]:
    """A file as bytes, decompressed if its name says that it is compressed.

    Example:
        >>> import gzip, tempfile
        >>> from pathlib import Path
        >>> from evenhand._columns.compression import opened
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "log.csv.gz"
        ...     _ = path.write_bytes(gzip.compress(b"sex,paid"))
        ...     with opened(path) as file:
        ...         file.read()
        b'sex,paid'
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending == GZIP:
        with gzip.open(path) as file:
            yield file  # type: ignore[misc]
    elif ending == ZSTANDARD:
        with _zstandard(path) as file:
            yield file
    elif ending == ZIP:
        with ZipFile(path) as archive, archive.open(_only_table(archive, path)) as file:
            yield file
    else:
        with path.open("rb") as file:
            yield file


def _zstandard(path: Path) -> IO[bytes]:
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError(
            f"{ZSTANDARD} files need pyarrow: install it with pip install 'evenhand[data]'"
        ) from error
    stream: IO[bytes] = pyarrow.input_stream(str(path), compression="zstd")
    return stream


def _only_table(archive: ZipFile, path: Path) -> str:
    """The one file in an archive; folders, and what macOS adds, do not count."""
    inside = [
        name
        for name in archive.namelist()
        if not name.endswith("/") and not name.startswith("__MACOSX/")
    ]
    if len(inside) != 1:
        raise DataError(
            f"{path.name} holds {len(inside)} files; give one that holds a single table"
        )
    return inside[0]
