"""The settings of PooledGroupFair, checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._columns.words import meant
from evenhand.errors import InputError
from evenhand.groups import Groups


def units_of(given: object, free: bool) -> tuple[float, float] | str:
    """The setting `true_units`; `free` if nobody named the reference."""
    if isinstance(given, str) and given == "estimate":
        if free:
            raise InputError(
                "true_units is 'estimate', and the reference is the mean of the groups; name "
                "a group as reference whose feedback is undistorted, or give (scale, offset)"
            )
        return given
    try:
        scale, offset = (float(number) for number in given)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        scale = offset = np.nan
    if not (0.0 < scale < np.inf and np.isfinite(offset)):
        raise InputError(
            f"true_units is {_checks.shown(given)}; allowed are 'estimate', and two numbers, "
            "a scale above 0 and an offset",
            value=given,
        )
    return scale, offset


def shares_of(given: object, is_general: bool) -> str | None:
    """The setting `shares`; `is_general` if arms do not have one fixed group each, or come once."""
    if given is None:
        return None
    if not (isinstance(given, str) and given == "proportional"):
        raise InputError(
            f"shares is {_checks.shown(given)}; allowed is 'proportional': leave it out for shares "
            "as scores make them",
            value=given,
        )
    if is_general:
        raise InputError(
            "shares is 'proportional', which needs recurring arms with one fixed group each; "
            "leave it out where arms have several attributes or come once, or groups come with "
            "the round"
        )
    return given


def weights_of(groups: Groups, chosen: Any, reference: object) -> NDArray[np.float64]:
    """The weight of every group in the reference; groups that are named weigh by their arms."""
    m = len(groups)
    if chosen is None or (chosen == "mean" and "mean" not in groups.names):
        return np.full(m, 1.0 / m)
    weights = np.zeros(m)
    for name in [chosen] if is_name(chosen) else names_of(chosen):
        named = meant(name, groups.names)
        if named is None:
            raise InputError(
                f"reference is {_checks.shown(reference)}; allowed are 'mean', one of "
                f"{', '.join(groups.names)}, or a list of these",
                value=reference,
            )
        g = groups.index(named)
        weights[g] = groups.sizes[g]
    if not weights.any():
        raise InputError("reference is an empty list; name a group, or leave it out")
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def is_name(reference: object) -> bool:
    """Whether a reference is one name, or none."""
    return reference is None or isinstance(reference, str) or not isinstance(reference, Iterable)


def names_of(reference: Any) -> tuple[str, ...]:
    """The names of a list."""
    return tuple(str(name) for name in reference)


def feature_names_of(given: Sequence[object] | None, number: int) -> tuple[str, ...]:
    """The names of features, x1, x2, ... unless given."""
    if given is None:
        return tuple(f"x{k}" for k in range(1, number + 1))
    names = tuple(str(name) for name in given)
    if len(names) != number or len(set(names)) != number or isinstance(given, str):
        raise InputError(
            f"feature_names is {_checks.shown(given)}; allowed are {number} different names",
            value=given,
        )
    return names
