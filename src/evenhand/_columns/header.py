"""The column names of a CSV file: without blanks around them, and each of them once."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand._columns.words import tell
from evenhand.errors import setting


def apart(names: Sequence[str]) -> list[str]:
    """Names in which a second "x", or "X", is called "x_1", as DuckDB calls it.

    Example:
        >>> from evenhand._columns.header import apart
        >>> apart(["x", " x ", "X", "y"])
        ['x', 'x_1', 'X_2', 'y']
    """
    times, changed = dict[str, int](), list[str]()
    for given in names:
        name = given.strip()
        while name and name.casefold() in times:
            times[name.casefold()] += 1
            name = f"{name}_{times[name.casefold()]}"
        times[name.casefold()] = 0
        changed.append(name)
    return changed


def tell_of_nameless(label: str, places: Sequence[int]) -> None:
    """Warn of columns that are left out because they have no name.

    Args:
        label: of the table.
        places: which columns, counted from 1.
    """
    for place in places:
        tell(
            f"{label}: column {place} has no name and is left out, because such a column usually "
            "numbers the rows; give it a name to use it"
        )


def tell_of_repeated(label: str, read: str, place: int, name: str) -> None:
    """Warn of a column whose name another has as well.

    Args:
        label: of the table.
        read: the name in the file.
        place: which column it is, counted from 1.
        name: what it is called instead.
    """
    tell(
        f"{label}: column {read!r} occurs more than once, and column {place} is called {name!r} "
        f"here; leave it out with {setting('leave_out', [name])} if it holds the same"
    )
