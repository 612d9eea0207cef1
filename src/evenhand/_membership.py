"""Membership that comes with a round: labels or probabilities become rows of numbers.

A row has a number per level and one for "not stated", attribute after attribute; those of an
attribute sum to 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._checks import is_missing, unmasked
from evenhand.errors import InputError
from evenhand.groups import NOT_STATED, Attribute, Groups

CLOSE = 1e-6  # how far from 1 a sum of probabilities may be
UNCERTAIN = "by probability"
"""The label, in tables of labels, of a candidate who has several levels with a probability each."""

Array = NDArray[np.float64]


def membership(groups: Groups, given: Any, number: int) -> Array:
    """The rows of `number` candidates.

    Args:
        groups: made by `Groups.per_round`.
        given: per candidate a level, None if they did not say, or probabilities by level; or a
            table of probabilities with a column per level. With several attributes, a mapping from
            their names to these, or a DataFrame of levels.
        number: of candidates.

    Example:
        >>> import evenhand as eh
        >>> from evenhand._membership import membership
        >>> groups = eh.Groups.per_round(3, {"sex": ["F", "M"]})
        >>> membership(groups, ["M", None, {"F": 0.9, "M": 0.1}], 3).tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.9, 0.1, 0.0]]
    """
    by_name = _by_attribute(groups, given)
    rows = [_rows(attribute, by_name[attribute.name], number) for attribute in groups.attributes]
    return np.concatenate(rows, axis=1)


def labels_of(groups: Groups, rows: Array) -> list[str]:
    """The groups of candidates in words; probabilities in whole percents.

    Example:
        >>> import evenhand as eh
        >>> from evenhand._membership import labels_of, membership
        >>> groups = eh.Groups.per_round(2, {"sex": ["F", "M"]})
        >>> labels_of(groups, membership(groups, [None, {"F": 0.9, "M": 0.1}], 2))
        ['not stated', 'F 90 %, M 10 %']
    """
    return [" & ".join(_label(groups, row)) for row in rows]


def cells_of(groups: Groups, rows: Array) -> list[str]:
    """The intersection of every candidate, where it is certain; else `UNCERTAIN`.

    Example:
        >>> import evenhand as eh
        >>> from evenhand._membership import cells_of, membership
        >>> groups = eh.Groups.per_round(2, {"sex": ["F", "M"]})
        >>> cells_of(groups, membership(groups, ["F", {"F": 0.9, "M": 0.1}], 2))
        ['F', 'by probability']
    """
    attributes = len(groups.attributes)
    certain = np.count_nonzero(rows, axis=1) == attributes
    labels = labels_of(groups, rows)
    return [label if sure else UNCERTAIN for label, sure in zip(labels, certain, strict=True)]


def _label(groups: Groups, row: Array) -> list[str]:
    parts, first = [], 0
    for attribute in groups.attributes:
        names = (*attribute.levels, NOT_STATED)
        chances = row[first : first + len(names)]
        first += len(names)
        likely = [(name, chance) for name, chance in zip(names, chances, strict=True) if chance > 0]
        certain = len(likely) == 1
        shown = [name if certain else f"{name} {100 * chance:.0f} %" for name, chance in likely]
        parts.append(", ".join(shown))
    return parts


def check_rows(groups: Groups, rows: Array) -> Array:
    """Rows that `membership` made, such as those of a log; refused if it cannot have made them."""
    first = 0
    for attribute in groups.attributes:
        last = first + len(attribute.levels) + 1
        part = rows[:, first:last]
        good = (part >= 0.0).all(axis=1) & (np.abs(part.sum(axis=1) - 1.0) <= CLOSE)
        if not good.all():
            raise _no_chances(attribute, part[int(np.flatnonzero(~good)[0])].tolist())
        first = last
    return rows


def _by_attribute(groups: Groups, given: Any) -> dict[str, Any]:
    names = [attribute.name for attribute in groups.attributes]
    if given is None:
        raise InputError(
            "groups is None; the groups of this policy come with each round: give a level of "
            f"{' and of '.join(names)} for every candidate, or None if they did not say"
        )
    unmasked("groups", given)
    if hasattr(given, "columns"):
        given = {str(name): list(given[name]) for name in given.columns}
    if isinstance(given, Mapping) and set(map(str, given)) == set(names):
        return {str(name): value for name, value in given.items()}
    if len(names) > 1 or isinstance(given, Mapping):
        raise InputError(
            f"groups is {_checks.shown(given)}; allowed is a mapping from {', '.join(names)} to "
            "the levels of the candidates",
            value=given,
        )
    return {names[0]: given}


def _rows(attribute: Attribute, given: Any, number: int) -> Array:
    """The rows of one attribute."""
    levels = len(attribute.levels)
    array = given if isinstance(given, np.ndarray) else None
    if array is not None and array.ndim == 2:
        return _of_table(attribute, array, number)
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise _wrong(attribute, given)
    candidates = list(given)
    if len(candidates) != number:
        raise InputError(
            f"groups has {len(candidates)} candidates of {attribute.name}; allowed is one for each "
            f"of {number}"
        )
    rows = np.zeros((number, levels + 1))
    for row, candidate in zip(rows, candidates, strict=True):
        if isinstance(candidate, Mapping):
            for level, chance in candidate.items():
                row[_level(attribute, level)] = _chance(attribute, chance)
            row /= _sum(attribute, row)
        elif is_missing(candidate):
            row[levels] = 1.0
        else:
            row[_level(attribute, candidate)] = 1.0
    return rows


def _of_table(attribute: Attribute, table: NDArray[Any], number: int) -> Array:
    """Rows from a table of probabilities; a row of NaN is that of a candidate who did not say."""
    levels = len(attribute.levels)
    if table.shape != (number, levels) or table.dtype.kind not in "fiu":
        raise InputError(
            f"groups has shape {table.shape} for {attribute.name}; allowed are numbers of shape "
            f"({number}, {levels}): a row per candidate, a column per level"
        )
    rows = np.zeros((number, levels + 1))
    for row, chances in zip(rows, table.astype(np.float64), strict=True):
        if np.isnan(chances).all():
            row[levels] = 1.0
            continue
        row[:levels] = [_chance(attribute, chance) for chance in chances]
        row /= _sum(attribute, row)
    return rows


def _level(attribute: Attribute, level: object) -> int:
    if str(level) not in attribute.levels:
        raise _wrong(attribute, level)
    return attribute.levels.index(str(level))


def _chance(attribute: Attribute, chance: Any) -> float:
    try:
        number = float(chance)
    except (TypeError, ValueError):
        number = np.nan
    if not 0.0 <= number <= 1.0:
        raise InputError(
            f"groups has the probability {_checks.shown(chance)} for {attribute.name}; allowed is "
            "0 to 1"
        )
    return number


def _sum(attribute: Attribute, row: Array) -> float:
    if not abs(row.sum() - 1.0) <= CLOSE:
        raise _no_chances(attribute, row.tolist())
    return float(row.sum())


def _no_chances(attribute: Attribute, row: list[float]) -> InputError:
    return InputError(
        f"groups has probabilities {row} for {attribute.name}; allowed are numbers from 0 to 1 "
        "that sum to 1"
    )


def _wrong(attribute: Attribute, value: object) -> InputError:
    return InputError(
        f"groups has {_checks.shown(value)} for {attribute.name}; allowed is one of "
        f"{', '.join(attribute.levels)}, None, or probabilities of these"
    )
