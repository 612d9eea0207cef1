"""Checks of a policy's input: contexts, with the membership behind them, arms and rewards."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand import _checks
from evenhand._checks import LARGEST, unmasked
from evenhand._membership import check_rows, membership
from evenhand._prose import number_of
from evenhand.errors import InputError, InputWarning, setting
from evenhand.leastsquares._layout import NEW_DIRECTION, SMALLEST
from evenhand.policies.decision import Decision

ALLOWED = f"allowed are finite numbers up to {LARGEST:g}"


def bad_contexts(arm: int, rows: NDArray[np.float64]) -> InputError:
    """The error for contexts with a NaN, an infinity or a number that is too large."""
    return InputError(f"contexts of arm {arm} have {_first_bad(rows[arm])}; {ALLOWED}")


def bad_context(context: NDArray[np.float64]) -> InputError:
    """The error for a bad context of a decision."""
    return InputError(f"decision has a context with {_first_bad(context)}; {ALLOWED}")


def _first_bad(values: NDArray[np.float64]) -> str:
    """The first number of a row that is not allowed."""
    place = int(np.flatnonzero(~(np.abs(values) <= LARGEST))[0])
    return f"{values[place]:g}" if values.size == 1 else f"{values[place]:g} in place {place}"


def rows_of(contexts: ArrayLike, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Contexts as an array of the right shape."""
    if type(contexts) is np.ndarray and contexts.dtype == np.float64:
        rows = np.ascontiguousarray(contexts)
    else:
        rows = _numbers("contexts", contexts)
    if rows.shape != shape:
        raise InputError(
            f"contexts has shape {rows.shape}; allowed is {shape}: "
            "a row per arm, a column per feature"
        )
    return rows


def table_of(contexts: ArrayLike, widths: tuple[int, ...]) -> NDArray[np.float64]:
    """Contexts as a table with any number of rows, of one of these widths."""
    rows = _numbers("contexts", contexts)
    if rows.ndim != 2 or rows.shape[1] not in widths:
        raise InputError(
            f"contexts has shape {rows.shape}; allowed are rows of {widths[0]} features"
        )
    return rows


def _numbers(name: str, values: Any) -> NDArray[np.float64]:
    """`values` as an array of numbers; text, and rows of several lengths, are refused."""
    unmasked(name, values)
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{name} has rows of different lengths; allowed is a table") from None
    if array.dtype.kind == "O":
        array = _from_objects(array)
    if array.dtype.kind not in "biuf":
        shown = "None" if values is None else f"of type {array.dtype}"
        raise InputError(f"{name} is {shown}; allowed are numbers")
    return np.ascontiguousarray(array, dtype=np.float64)


def _from_objects(array: NDArray[Any]) -> NDArray[Any]:
    try:
        return array.astype(np.float64) if array.ndim else array
    except (TypeError, ValueError, OverflowError):
        return array


def reward_of(value: Any, name: str = "reward") -> float:
    """A finite number."""
    unmasked(name, value)
    try:
        reward = np.nan if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        reward = np.nan
    if not abs(reward) <= LARGEST:
        shown = _checks.shown(value)
        raise InputError(
            f"{name} is {shown}; allowed is any finite number up to {LARGEST:g}",
            parameter=name,
            value=value,
        )
    return reward


def arm_numbers(name: str, numbers: NDArray[Any], n_arms: int) -> NDArray[np.int64]:
    """Numbers of arms that exist."""
    ok = numbers.dtype.kind in "iu" and numbers.ndim == 1
    if numbers.size and not (ok and numbers.min() >= 0 and numbers.max() < n_arms):
        raise InputError(
            f"{name} is {numbers.tolist()}; allowed are whole numbers from 0 to {n_arms - 1}"
        )
    return numbers.astype(np.int64)


def open_arms(available: ArrayLike, n_arms: int) -> NDArray[np.bool_]:
    """The arms of a round as a mask, from a mask or from numbers."""
    unmasked("available", available)
    given = np.asarray(sorted(available) if isinstance(available, (set, frozenset)) else available)
    if given.dtype == np.bool_:
        if given.shape != (n_arms,):
            raise InputError(
                f"available has shape {given.shape}; allowed is ({n_arms},) or arm numbers"
            )
        mask = given
    else:
        mask = np.zeros(n_arms, dtype=np.bool_)
        numbers = arm_numbers("available", np.atleast_1d(given), n_arms)
        mask[numbers] = True
        if mask.sum() < numbers.size:
            raise InputError(
                f"available is {given.tolist()}, which names an arm twice; allowed are different "
                "arm numbers, or True and False for every arm"
            )
    if not mask.any():
        raise InputError("available leaves no arm; allowed is at least one")
    return np.ascontiguousarray(mask)


def observations(
    arms: ArrayLike, contexts: ArrayLike, rewards: ArrayLike, n_arms: int, n_features: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Rows to learn from, checked before any of them is learned."""
    unmasked("arms", arms)
    numbers = arm_numbers("arms", np.atleast_1d(np.asarray(arms)), n_arms)
    rows = _numbers("contexts", contexts)
    values = np.atleast_1d(_numbers("rewards", rewards))
    if rows.shape != (numbers.size, n_features):
        raise InputError(
            f"contexts has shape {rows.shape}; allowed is ({numbers.size}, {n_features}): "
            "one row for each of the arms"
        )
    if values.shape != (numbers.size,):
        raise InputError(f"rewards has shape {values.shape}; allowed is ({numbers.size},)")
    for name, array in (("contexts", rows), ("rewards", values)):
        bad = np.argwhere(~(np.abs(array) <= LARGEST))
        if bad.size:
            row = int(bad[0][0])
            shown = _first_bad(np.atleast_1d(array[row]))
            raise InputError(f"{name} in row {row} have {shown}; {ALLOWED}")
    return numbers, rows, values


def true_rewards(
    decisions: Sequence[Any], values: ArrayLike, shape: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """The arms and contexts of decisions and their true rewards, checked before any is learned."""
    wrong = [item for item in decisions if not isinstance(item, Decision)]
    if wrong:
        raise InputError(
            f"decision is {wrong[0]!r}; allowed is the result of select", value=wrong[0]
        )
    if len(decisions) == 1 and np.ndim(values) == 0:
        reward_of(values, "true_reward")
    elif np.shape(values) != (len(decisions),):
        raise InputError(
            f"true_reward has shape {np.shape(values)}; "
            f"allowed is ({len(decisions)},): one for each decision"
        )
    unmasked("context of a decision", [item.row for item in decisions])
    arms = np.array([item.arm for item in decisions], dtype=np.int64)
    rows = np.reshape([item.row for item in decisions], (len(decisions), -1))
    return observations(arms, rows, values, *shape)


def rounds_of(rounds: Sequence[int] | None, number: int) -> list[int]:
    """The rounds of `number` rewards; 0 where they are not known."""
    if rounds is None:
        return [0] * number
    numbers = [_checks.whole("rounds", item, least=0, most=2**53) for item in rounds]
    if len(numbers) != number:
        raise InputError(
            f"rounds has {number_of(len(numbers), 'number')}; give one for each of {number} rewards"
        )
    return numbers


def warn_of_unlike_features(rows: NDArray[np.float64]) -> None:
    """Warn of features of very different sizes, of which the pseudo-inverse drops the smallest."""
    if len(rows) <= rows.shape[1]:  # a few numbers may be small by chance
        return
    sizes = np.abs(rows).max(axis=0)
    seen = sizes[sizes >= SMALLEST]
    if seen.size and seen.max() * NEW_DIRECTION["pseudo-inverse"] > seen.min():
        small, large = (int(np.flatnonzero(sizes == end)[0]) for end in (seen.min(), seen.max()))
        warnings.warn(
            InputWarning(
                f"feature {small} is up to {seen.min():g} in size and feature {large} up to "
                f"{seen.max():g}; the pseudo-inverse drops the smaller one: scale them, or use "
                f"{setting('singular', 'infinite')}"
            ),
            stacklevel=3,
        )


def joined(
    policy: Any, contexts: ArrayLike, groups: Any, of_arms: bool = True
) -> NDArray[np.float64]:
    """The rows that compiled code takes: contexts and, behind them, the membership in `groups`.

    Contexts that already have the columns of membership, such as those of a log, are taken as they
    are.

    Args:
        policy: the policy, with its groups and its numbers of arms and features.
        contexts: a row per arm or, unless `of_arms`, any number of rows.
        groups: the membership of the rows; None if it is fixed, or in the rows already.
        of_arms: whether there is a row for every arm.
    """
    if not policy.groups.changes:
        if groups is not None:
            raise InputError(
                "groups is given, but the groups of this policy are fixed; leave it out, or make "
                "its groups with Groups.per_round"
            )
        return rows_of(contexts, policy._shape)
    n_arms, width = policy._shape
    d = policy.n_features
    rows = table_of(contexts, (d, width) if groups is None else (d,))
    if of_arms and len(rows) != n_arms:
        raise InputError(
            f"contexts has shape {rows.shape}; allowed is ({n_arms}, {d}): "
            "a row per arm, a column per feature"
        )
    if groups is None and rows.shape[1] == width:
        check_rows(policy.groups, rows[:, d:])
        return rows
    members = membership(policy.groups, groups, len(rows))
    return np.ascontiguousarray(np.concatenate([rows, members], axis=1))


def refuse_membership(policy: str) -> NoReturn:
    """Refuse groups per round for a policy whose arms belong to groups."""
    raise InputError(
        f"groups come with each round, but {policy} compares arms by the group that each belongs "
        "to; allowed are fixed groups, or PooledGroupFair, TopInterval or UniformRandom"
    )
