"""The groups of a log whose membership came with each round: columns such as "sex: F".

A log has such a column for every level of an attribute, and one for "not stated". Those of the rows
are of the candidate that was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.groups import NOT_STATED

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
BETWEEN = " & "
CERTAIN = 1.0 - 1e-6  # a probability from which on a group is known


def membership_columns(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """By attribute, the column of every level; nothing where membership is that of the arms.

    Example:
        >>> from evenhand.events._round_groups import membership_columns
        >>> membership_columns(["age", "sex: F", "sex: M", "sex: not stated"])["sex"]["F"]
        'sex: F'
    """
    end = f": {NOT_STATED}"
    attributes = [name.removesuffix(end) for name in names if name.endswith(end)]
    return {
        attribute: {
            name.removeprefix(f"{attribute}: "): name
            for name in names
            if name.startswith(f"{attribute}: ")
        }
        for attribute in attributes
    }


class RoundGroups(NamedTuple):
    """The group of candidates, by number, -1 where it is not known; and the groups' names."""

    of: Whole
    names: tuple[str, ...]
    uncertain: int  # how many have probabilities of groups instead of one


def groups_of(
    attributes: dict[str, dict[str, str]], columns: Sequence[str], rows: Array
) -> RoundGroups:
    """The groups of candidates; of several attributes their intersections.

    Args:
        attributes: as `membership_columns` gives them.
        columns: the names of the last axis of the rows.
        rows: the numbers of candidates, with any axes before the last. Rows of 0 are nobody.

    Example:
        >>> import numpy as np
        >>> from evenhand.events._round_groups import groups_of, membership_columns
        >>> columns = ["sex: F", "sex: M", "sex: not stated"]
        >>> rows = np.array([[1.0, 0, 0], [0, 0, 1.0], [0.5, 0.5, 0]])
        >>> groups_of(membership_columns(columns), columns, rows)
        RoundGroups(of=array([ 0,  1, -1]), names=('F', 'not stated'), uncertain=1)
    """
    shape = rows.shape[:-1]
    known, there = np.ones(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    words = []
    for levels in attributes.values():
        chances = rows[..., [list(columns).index(name) for name in levels.values()]]
        words.append(np.array(list(levels), dtype=object)[chances.argmax(axis=-1)])
        known &= chances.max(axis=-1) >= CERTAIN
        there |= chances.sum(axis=-1) > 0.0
    labels = [BETWEEN.join(parts) for parts in zip(*(own[known] for own in words), strict=True)]
    names, of = np.unique(np.array(labels, dtype=str), return_inverse=True)
    numbers = np.full(shape, -1, dtype=np.int64)
    numbers[known] = of
    return RoundGroups(numbers, tuple(names.tolist()), int((there & ~known).sum()))
