"""Logs as files: Parquet, or CSV with a small JSON file beside it; written atomically."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import pandas as pd

from evenhand._atomic_files import write_all
from evenhand.errors import DamagedError, InputError, setting
from evenhand.events._formats import FORMATS, Format, fingerprint, format_of
from evenhand.events._header import VERSION, About
from evenhand.events._rows import LogRows, typed_rows
from evenhand.events.event import RowsAbsorbed


def log_path(path: str | Path, parameter: str = "path") -> Path:
    """`path`, if it can be a log; links are followed.

    The files of a log are named after it, so it must have a single name.

    Args:
        path: the file.
        parameter: what the caller calls it, for messages.
    """
    file = Path(path)
    if file.is_symlink():
        file = Path(os.path.realpath(file))
    if file.suffix not in FORMATS:
        endings = " or ".join(FORMATS)
        raise InputError(
            f"{setting(parameter)} is {str(path)!r}; allowed is a name that ends in {endings}",
            value=path,
        )
    if file.is_dir() or file.is_symlink() or not file.parent.is_dir():
        raise InputError(
            f"{setting(parameter)} is {str(path)!r}; allowed is a file in a folder that exists",
            value=path,
        )
    format_of(file).need(path)
    return file


def beside(path: Path) -> Path:
    """The file with the header of a log whose format has no place for it."""
    return path.with_name(path.name + ".json")


def write_table(path: Path, about: About, frame: pd.DataFrame) -> None:
    """Write a log, and read it back before it replaces the old one.

    A crash leaves the old file or the new one. A DamagedError means that the rows could not be read
    back unchanged; then nothing was replaced.
    """
    about = replace(about, version=VERSION)
    about = replace(about, rows=fingerprint(about, [frame]))
    form = format_of(path)
    if form.header is not None:  # header and rows are in one file, so they always match
        about = replace(about, before=None)
        write_all({path: lambda file: _write(form, file, about, frame)}, alone=True)
        return
    text = about.to_json().encode()
    write_all(
        {
            beside(path): lambda file: _write_text(file, text),
            path: lambda file: _write(form, file, about, frame),
        },
        alone=True,
        like=path,
    )


def stop_if_unwritable(path: Path, about: About) -> None:
    """Raise an InputError if names of groups or features could not be read back from the file."""
    try:
        "".join((*about.labels, *about.features)).encode()
        rows = LogRows(about)
        for arm in range(len(about.labels)):
            context = (0.0,) * len(about.features)
            rows.apply(RowsAbsorbed(arm + 1, 0, None, (arm,), (context,), (0.0,)))
        frame = rows.to_frame()
        about = replace(about, rows=fingerprint(about, [frame]))
        _write(format_of(path), _Memory(), about, frame)
    except (InputError, UnicodeEncodeError) as error:
        names = dict.fromkeys((*about.labels, *about.features))
        bad = [name for name in names if not _is_text(name)] or list(names)
        raise InputError(
            f"{path} cannot have groups or features called {', '.join(map(ascii, bad))}, which "
            "could not be read back unchanged; use other names"
        ) from error


class _Memory(BytesIO):
    name = "a file"


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _write(form: Format, file: IO[bytes], about: About, frame: pd.DataFrame) -> None:
    form.write(file, about, frame)
    if form.header is not None:
        back = form.header(file)
        _stop_unless(back is not None and back.to_json() == about.to_json())
    _stop_unless(_read_back(about, form.parts(file), form.is_text) == about.rows)


def _write_text(file: IO[bytes], text: bytes) -> None:
    file.write(text)
    file.seek(0)
    _stop_unless(file.read() == text)


def _read_back(about: About, parts: Iterator[pd.DataFrame], texts: bool) -> dict[str, Any]:
    """The fingerprint of the rows that were written, read in parts to save memory."""
    return fingerprint(about, (typed_rows(about, part, 0, texts) for part in parts))


def _stop_unless(same: bool) -> None:
    if not same:
        raise DamagedError("the file could not be read back unchanged; nothing was replaced")
