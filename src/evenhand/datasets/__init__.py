"""Real data: four sets with their checksums and data cards.

Three are downloaded once, checked and kept; one (mortgage) comes with a package and needs no
network. A data card says what a set is, what is wrong with it and what its traps are. Read it
before you use a number: `print(evenhand.datasets.card("compas"))`.

A file is looked for in the given folder, else in the folder that the environment variable
EVENHAND_DATA names, else in the user's cache. If it is missing, it is downloaded into that folder.
Files are used only after their SHA-256 has been checked.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand import _checks
from evenhand.datasets import _checked_files as files
from evenhand.datasets._checked_files import NAMES
from evenhand.datasets.cards import Card, card
from evenhand.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Card", "card", "fetch", "find", "load", "names"]


def names() -> tuple[str, ...]:
    """The names of the sets.

    Example:
        >>> import evenhand as eh
        >>> eh.datasets.names()
        ('family-income', 'compas', 'student', 'mortgage')
    """
    return NAMES


def load(
    name: str, folder: str | PathLike[str] | None = None, progress: bool = False
) -> pd.DataFrame:
    """A set as a table, downloaded first if necessary. Its card says what was changed in it.

    Args:
        name: One of `names()`.
        folder: Where the file is or will be put; by default EVENHAND_DATA, or else the cache.
        progress: Show a bar on the error stream while downloading.

    Example:
        >>> import evenhand as eh
        >>> loans = eh.datasets.load("mortgage")
        >>> loans.groupby("race")["approve"].mean().round(3).to_dict()
        {'black': 0.675, 'hispanic': 0.766, 'white': 0.908}
    """
    from evenhand.datasets._checked_files import READERS

    path = fetch(name, folder, progress)
    return READERS[name](path)


def fetch(name: str, folder: str | PathLike[str] | None = None, progress: bool = False) -> Path:
    """The path of a set's file, downloaded first if necessary.

    A download is checked before it gets its name, so a broken one is never used. If it fails, the
    error says which file to get, from where, and where to put it.

    Args:
        name: One of `names()`.
        folder: Where the file is or will be put; by default EVENHAND_DATA, or else the cache.
        progress: Show a bar on the error stream while downloading.

    Example:
        >>> import evenhand as eh
        >>> eh.datasets.fetch("mortgage").name
        'loanapp.csv.bz2'
    """
    path = find(name, folder)
    if path is not None:
        return path
    if name == files.PACKAGED:
        raise MissingExtraError(files.MISSING)
    from evenhand.datasets import _download

    return _download.download(name, files.home(folder), progress)


def find(name: str, folder: str | PathLike[str] | None = None) -> Path | None:
    """The path of a set's file, or None: nothing is downloaded.

    A file with the right name but the wrong content is an error in your own folder. In the cache it
    counts as missing and is downloaded again.

    Args:
        name: One of `names()`.
        folder: Where to look; by default EVENHAND_DATA, or else the cache.

    Example:
        >>> import evenhand as eh
        >>> eh.datasets.find("student", folder="an-empty-folder") is None
        True
    """
    _checks.one_of("name", name, NAMES)
    if name == files.PACKAGED:
        return files.find_packaged()
    return files.find(name, files.home(folder), strict=files.given(folder) is not None)
