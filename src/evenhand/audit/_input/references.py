"""What to compare with where there are several attributes: "M", "sex=M" or "M & white"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from evenhand._columns.words import meant, shown
from evenhand.bias.estimate import MEAN
from evenhand.errors import InputError, as_given, setting


class CellCounts(NamedTuple):
    """The categories of each cell, a column per attribute, and how many people are in it."""

    categories: pd.DataFrame
    n: pd.Series[float]

    def of(self, attribute: str) -> list[str]:
        """The categories of an attribute."""
        return sorted(set(self.categories[attribute]))


def as_text(given: object) -> str | None:
    """A reference as it is written on the command line, whatever it was given as.

    Example:
        >>> from evenhand.audit._input.references import as_text
        >>> as_text({"sex": "M", "race": "white"}), as_text(1), as_text(None)
        ('sex=M,race=white', '1', None)
    """
    if given is None:
        return None
    if isinstance(given, Mapping):
        return ",".join(f"{name}={category}" for name, category in given.items())
    if isinstance(given, (list, tuple, set)):
        raise InputError(
            f"{setting('reference')} is {as_given(given)}; allowed is a group, or a category of "
            "each group column",
            value=given,
        )
    return str(given)


def find_references(given: str | None, cells: CellCounts) -> tuple[dict[str, str], str | None]:
    """The category to compare with for each attribute that has one, and the cell.

    The cell is the largest of those that have all the categories that are named.

    Example:
        >>> import pandas as pd
        >>> from evenhand.audit._input.references import CellCounts, find_references
        >>> table = pd.DataFrame({"sex": ["F", "M", "M"], "race": ["a", "a", "b"]})
        >>> table.index = ["F & a", "M & a", "M & b"]
        >>> cells = CellCounts(table, pd.Series([9.0, 5.0, 7.0], index=table.index))
        >>> find_references("M", cells), find_references("F & a", cells)
        (({'sex': 'M'}, 'M & b'), ({'sex': 'F', 'race': 'a'}, 'F & a'))
    """
    table = cells.categories
    if given is None:
        return {}, None
    if given in table.index:
        return {str(name): str(category) for name, category in table.loc[given].items()}, given
    named = _named(given, cells)
    named_categories = {
        name: category
        for name, category in named.items()
        if category != MEAN or category in cells.of(name)
    }
    if not named_categories:
        return named, MEAN if len(named) == len(table.columns) else None
    matches = (table[list(named_categories)] == pd.Series(named_categories)).all(axis=1)
    if not matches.any():
        raise InputError(
            f"{setting('reference')} is {given!r}, and no row has "
            f"{shown(named_categories.values())} at once; name categories that meet"
        )
    return named, str(cells.n[matches].idxmax())


def _named(given: str, cells: CellCounts) -> dict[str, str]:
    """A category, or "mean", by attribute."""
    names = [str(name) for name in cells.categories]
    if given == MEAN and not any(given in cells.of(name) for name in names):
        return dict.fromkeys(names, MEAN)
    places = _places(given, cells)
    if places:  # a category may have commas in it
        return {_alone(given, given, list(places)): next(iter(places.values()))}
    front = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    parts = re.split(rf"(?:^|,)\s*({front})=", given)
    named, bare = dict[str, str](), parts[0].split(",")
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        named[name], *rest = [text] if _known(text, cells.of(name)) else text.split(",")
        bare += rest
    named = {name: category.strip() for name, category in named.items()}
    for value in filter(None, (part.strip() for part in bare)):
        named[_alone(given, value, list(_places(value, cells)))] = value
    return {
        name: _category(given, name, category, cells.of(name)) for name, category in named.items()
    }


def _places(value: str, cells: CellCounts) -> dict[str, str]:
    """The attributes that have a category, and how each spells it."""
    known = {str(name): _known(value, cells.of(str(name))) for name in cells.categories}
    return {name: spelled for name, spelled in known.items() if spelled is not None}


def _known(value: str, known: list[str]) -> str | None:
    """A category as the log spells it: "black=1" for 1. Of "sex=M", only the M is a category."""
    if "=" in value:
        return value if value in known else None
    return meant(value, known)


def _alone(given: str, value: str, places: list[str]) -> str:
    """The one attribute that has a category."""
    if len(places) == 1:
        return places[0]
    if places:
        raise InputError(
            f"{setting('reference')} is {given!r}, and {shown([value])} is a category of "
            f"{shown(places)}; say which, such as {setting('reference', {places[0]: value})}",
            value=given,
        )
    raise InputError(
        f"{setting('reference')} is {given!r}, and {shown([value])} is a category of none of the "
        f"groups; name one, such as {setting('reference', {'sex': 'M'})}",
        value=given,
    )


def _category(given: str, name: str, value: str, known: list[str]) -> str:
    spelled = MEAN if value == MEAN and MEAN not in known else _known(value, known)
    if spelled is not None:
        return spelled
    raise InputError(
        f"{setting('reference')} is {given!r}; allowed for {shown([name])} are {shown(known)}",
        value=given,
    )
