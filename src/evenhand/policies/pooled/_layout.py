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
from evenhand.leastsquares import LANES, padded
from evenhand.leastsquares._vectors import place

# The first numbers of `common`: the noise, the latest round with a reward, the limit, whether the
# posterior is stale, and how many rewards there are, how many groups are without any.
SIGMA2, LATEST, LIMIT, STALE, NUMBER, EMPTY, N_NUMBERS = range(7)

# The first numbers of a group: how many rewards it has, and tau^2. Vectors of d numbers follow, and
# then V: P is the prior's precision, R is r_g, SHRUNK is Omega^-1 V r, MEAN is m_g^.
SEEN, TAU2, N_OF_GROUP = range(3)
PRECISION, R, SHRUNK, MEAN, V = range(5)

# The parts of `common` behind its numbers, in units of d.
MATRICES = 2  # Omega^-1 and C; then mu, and room for four vectors


class PooledState(NamedTuple):
    """The own state of a policy with n arms, d features and m groups, in the caller's units.

    Four arms share a block of `arms`, a lane each, to be scored at once: S by rows up to its
    diagonal, u, P m (the pull of the group's mean), and the correction's coefficients.
    """

    settled: NDArray[np.float64]  # per arm: X'X (d x d), X'y (d), y'y, count
    fresh: NDArray[np.float64]  # the same, of later decisions
    arms: NDArray[np.float64]  # (blocks, rows, LANES)
    groups: NDArray[np.float64]  # (groups, 2 + 4 d + d^2)
    common: NDArray[np.float64]


def new_state(n_arms: int, n_groups: int, d: int) -> PooledState:
    """A state that has learned nothing."""
    sums = d * d + d + 2
    state = PooledState(
        np.zeros((n_arms, sums)),
        np.zeros((n_arms, sums)),
        np.zeros((padded(n_arms) // LANES, d * (d + 1) // 2 + 3 * d, LANES)),
        np.zeros((n_groups, N_OF_GROUP + 4 * d + d * d)),
        np.zeros(N_NUMBERS + MATRICES * d * d + 5 * d),
    )
    state.common[EMPTY] = n_groups
    return state


@woven
def lane_of(own, i):  # type: ignore[no-untyped-def]
    """Where arm i is: its number of row k is LANES * k further."""
    return place(own.arms, i // LANES * own.arms.shape[1] * LANES + i % LANES)


@woven
def of_group(own, g, which, d):  # type: ignore[no-untyped-def]
    """A vector of group g, or its matrix V."""
    return place(own.groups, g * own.groups.shape[1] + N_OF_GROUP + which * d)


@woven
def of_all(own, which, d):  # type: ignore[no-untyped-def]
    """0 is Omega^-1, 1 is C; 2 is mu; 3 to 6 are room."""
    return place(own.common, N_NUMBERS + min(which, MATRICES) * d * d + max(which - MATRICES, 0) * d)
