"""The groups that candidates bring, as the numbers behind their features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._membership import membership
from evenhand.errors import InputError
from evenhand.groups import Attribute, Groups
from evenhand.service._problems import Refused


def membership_rows(groups: Groups, given: Sequence[Any]) -> NDArray[np.float64]:
    """A row of membership per candidate; what is not allowed is refused, and never repeated.

    Args:
        groups: made by `Groups.per_round`.
        given: per candidate a level, probabilities of the levels, or None for not stated; with
            several attributes a mapping from their names to these, or None.

    Example:
        >>> import evenhand as eh
        >>> from evenhand.service._candidate_groups import membership_rows
        >>> groups = eh.Groups.per_round(2, {"sex": ["F", "M"]})
        >>> membership_rows(groups, ["F", {"F": 0.5, "M": 0.5}]).tolist()
        [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]
    """
    attributes = groups.attributes
    columns: dict[str, Any] = {attributes[0].name: list(given)}
    if len(attributes) > 1:
        for place, group in enumerate(given):
            if group is not None:
                _check_names(attributes, group, place)
        columns = {
            attribute.name: [None if group is None else group[attribute.name] for group in given]
            for attribute in attributes
        }
    try:
        return membership(groups, columns, len(given))
    except InputError:
        raise _refused(groups, columns) from None


def _check_names(attributes: Sequence[Attribute], group: Mapping[str, Any], place: int) -> None:
    where = f"candidates[{place}].group"
    for attribute in attributes:
        if attribute.name not in group:
            raise Refused(
                f"{where}.{attribute.name}", "is missing; give it, or null if they did not say"
            )
    if len(group) > len(attributes):
        known = ", ".join(attribute.name for attribute in attributes)
        raise Refused(where, f"has an attribute that is unknown; known are {known}")


def _refused(groups: Groups, columns: Mapping[str, Sequence[Any]]) -> Refused:
    """The first candidate and attribute that is not allowed."""
    for attribute in groups.attributes:
        alone = Groups.per_round(1, {attribute.name: attribute.levels})
        name = f".{attribute.name}" if len(groups.attributes) > 1 else ""
        for place, group in enumerate(columns[attribute.name]):
            try:
                membership(alone, [group], 1)
            except InputError:
                return Refused(
                    f"candidates[{place}].group{name}",
                    f"allowed is one of {', '.join(attribute.levels)}, null, or probabilities of "
                    "these that sum to 1",
                )
    raise AssertionError
