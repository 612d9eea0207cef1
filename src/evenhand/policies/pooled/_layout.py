"""What PooledGroupFair keeps: sums of the rewards, and the posterior that follows from them.

The sums are what was learned: everything else is a function of them (`_learning`). They come in two
parts. `settled` has the rewards of decisions up to the round `LIMIT`, from which the variances of
the model are estimated. `fresh` has the later ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import woven

# The first numbers of `common`.
SIGMA2, LATEST, LIMIT, STALE, NUMBER, N_NUMBERS = range(6)

# The rows of `groups`, each d numbers but for the first two: how many rewards, tau^2.
SEEN, TAU2, N_OF_GROUP = range(3)


class PooledState(NamedTuple):
    """The own state of a policy with n arms, d features and m groups, in the caller's units."""

    settled: NDArray[np.float64]  # per arm: X'X (d x d), X'y (d), y'y, count
    fresh: NDArray[np.float64]  # the same, of later decisions
    arms: NDArray[np.float64]  # per arm: S (d x d), u (d)
    groups: NDArray[np.float64]  # per group: SEEN, TAU2, P, r, Omega^-1 V r, m (d each), V (d x d)
    common: NDArray[np.float64]  # SIGMA2 ..., then Omega^-1, C (d x d each), mu (d), room (4 d)


def new_state(n_arms: int, n_groups: int, d: int) -> PooledState:
    """A state that has learned nothing."""
    size = d * d + d + 2
    return PooledState(
        np.zeros((n_arms, size)),
        np.zeros((n_arms, size)),
        np.zeros((n_arms, d * d + d)),
        np.zeros((n_groups, N_OF_GROUP + 4 * d + d * d)),
        np.zeros(N_NUMBERS + 2 * d * d + 5 * d),
    )


@woven
def vector_of(d, which):  # type: ignore[no-untyped-def]
    """Where vector `which` of a group begins: 0 is P, 1 is r, 2 is Omega^-1 V r, 3 is m."""
    return N_OF_GROUP + which * d


@woven
def matrix_of_group(d):  # type: ignore[no-untyped-def]
    """Where the matrix V of a group begins."""
    return N_OF_GROUP + 4 * d


@woven
def matrix_of_all(d, which):  # type: ignore[no-untyped-def]
    """Where a matrix of all groups begins in `common`: 0 is Omega^-1, 1 is C; 2 is mu, 3 room."""
    if which == 3:
        return N_NUMBERS + 2 * d * d + d
    return N_NUMBERS + which * d * d
