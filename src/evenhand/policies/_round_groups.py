"""Contexts with the membership that came with them: rows of features, then of levels."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._membership import check_rows, membership
from evenhand.errors import InputError
from evenhand.policies import _checks as checking


def joined(
    policy: Any, contexts: ArrayLike, groups: Any, of_arms: bool = True
) -> NDArray[np.float64]:
    """The rows that compiled code takes: contexts and, behind them, what `groups` says.

    Contexts that have the columns of membership already, such as those of a log, are taken as they
    are.

    Args:
        policy: whose groups and numbers count.
        contexts: a row per arm or, unless `of_arms`, any number of rows.
        groups: the membership of the rows; None if it is fixed, or in the rows already.
        of_arms: whether there is a row for every arm.
    """
    if not policy.groups.changes:
        if groups is not None:
            raise InputError(
                "groups is given, but the groups of this policy are fixed; leave it out, or make "
                "the policy with eh.Groups.per_round"
            )
        return checking.rows_of(contexts, policy._shape)
    n_arms, width = policy._shape
    d = policy.n_features
    rows = checking.table_of(contexts, (d, width) if groups is None else (d,))
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
    """Groups per round, for a policy whose arms belong to groups."""
    raise InputError(
        f"groups come with each round, but {policy} compares arms by the group that each belongs "
        "to; allowed are fixed groups, or PooledGroupFair, TopInterval or UniformRandom"
    )
