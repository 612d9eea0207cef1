"""Checks of the settings of synthetic worlds that are groups or lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand import _checks
from evenhand._prose import number_of
from evenhand.errors import InputError, setting
from evenhand.groups import Groups

MOST_ARMS = 10**7


def groups_by_size(
    n_arms: int | None, n_sensitive: int | None, group_sizes: Sequence[int] | None
) -> Groups:
    """The groups of the arms: two by their numbers, or any number by their sizes."""
    if group_sizes is None:
        n = 10 if n_arms is None else _checks.whole("n_arms", n_arms, least=2, most=MOST_ARMS)
        first = n // 2 if n_sensitive is None else _checks.whole("n_sensitive", n_sensitive)
        if first >= n:
            raise InputError(
                f"{setting('n_sensitive')} is {n_sensitive}; allowed is 1 to {n - 1} of {n} arms"
            )
        sizes = [first, n - first]
    else:
        if isinstance(group_sizes, str) or not isinstance(group_sizes, Sequence | np.ndarray):
            raise InputError(
                f"{setting('group_sizes')} is {group_sizes!r}; allowed is a list of numbers of "
                "arms",
                value=group_sizes,
            )
        sizes = [_checks.whole("group_sizes", size, most=MOST_ARMS) for size in group_sizes]
        if not len(sizes) >= 2 or sum(sizes) > MOST_ARMS:
            raise InputError(
                f"{setting('group_sizes')} is {_checks.shown(sizes)}; allowed are two or more "
                f"numbers, up to {MOST_ARMS} in all",
                value=sizes,
            )
        given = {"n_arms": (n_arms, sum(sizes)), "n_sensitive": (n_sensitive, sizes[0])}
        for name, (value, fitting) in given.items():
            if value not in (None, fitting):
                raise InputError(
                    f"{setting(name)} is {value}, but by group_sizes it is {fitting}; leave it out"
                )
    names = ["sensitive", "other"]
    if len(sizes) > 2:
        names = [f"group {number}" for number in range(1, len(sizes) + 1)]
    labels = [name for name, size in zip(names, sizes, strict=True) for _ in range(size)]
    return Groups(labels, names[0])


def one_or_several(
    name: str, given: float | Sequence[float], number: int, low: float
) -> float | tuple[float, ...]:
    """A finite number, or this many."""
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        return _checks.number(name, given, low, np.inf)
    if len(given) != number:
        raise InputError(
            f"{setting(name)} is {_checks.shown(given)}; allowed is a number, or a list of "
            f"{number}",
            value=given,
        )
    return tuple(_checks.number(name, value, low, np.inf) for value in given)


def scales_of(given: Sequence[float], n_features: int) -> tuple[float, ...]:
    """A positive number per feature."""
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        given = [given]
    scales = tuple(_checks.number("scales", value, 0.0, np.inf, open_ends=True) for value in given)
    if len(scales) != n_features:
        raise InputError(
            f"{setting('scales')} has {number_of(len(scales), 'number')}; allowed is one for "
            f"each of {n_features} features"
        )
    return scales
