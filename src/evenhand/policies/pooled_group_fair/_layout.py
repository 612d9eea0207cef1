"""The state of PooledGroupFair: sums of the rewards, and the posterior that follows from them.

The sums are what was learned; everything else is a function of them (`_learning`). They come in two
parts. `settled` has the rewards of decisions up to the round `LIMIT`, from which the variances of
the model are estimated. `fresh` has the later ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import woven
from evenhand.leastsquares import LANES, padded
from evenhand.leastsquares._simd import place


class PooledRule(NamedTuple):
    """The groups of the arms, what their means are compared with, and the noise if it is known."""

    n_features: int
    group_of: NDArray[np.int64]
    sizes: NDArray[np.float64]  # how many arms each group has
    weights: NDArray[np.float64]  # of the groups in the reference; they sum to 1
    free: bool  # whether nobody named the reference, so that it may be distorted itself
    sigma2: float  # negative: estimated
    true_scale: float  # of true rewards in units of feedback; 0: estimated, with the offset
    true_offset: float
    probes: bool
    proportional: bool  # whether a price per group holds shares in proportion to its arms


# The first numbers of `common`: the noise, the unit of rewards (their root mean square), the
# latest round with a reward, the limit, whether the posterior is stale, how many rewards there are,
# and how many groups are without any.
SIGMA2, REWARD_UNIT, LATEST, LIMIT, STALE, NUMBER, EMPTY, N_NUMBERS = range(8)

# The numbers of `truth`: how many true rewards there are, the first round that has one (0 if none
# is known), whether they are in use, kappa^2, sigma_z^2, and the offset and scale that turn true
# rewards into units of feedback.
TRUE_NUMBER, FIRST_TRUE, IN_USE, KAPPA2, TRUE_SIGMA2, OFFSET, SCALE, N_OF_TRUTH = range(8)

# Behind the numbers of `common`: two matrices, and vectors: mu, one over the units of features, and
# working memory.
OMEGA_INVERSE, C, MU, PER_UNIT, ROOM = range(5)
_MATRICES, _ROOM = 2, 4

# The first numbers of a group: how many rewards it has, and tau^2. Five vectors follow: r_g,
# Omega^-1 V_g r_g, m_g^, and for its arms p m_g^ and the correction; and then V_g.
SEEN, TAU2, N_OF_GROUP = range(3)
R, SHRUNK, MEAN, PULL, _CORRECTION, V = range(6)


class PooledState(NamedTuple):
    """The own state of a policy with n arms, d features and m groups.

    The sums are in the caller's units, all else in units of the root mean square of features and
    rewards. Four arms share a block of `arms`, a lane each, to be scored at once: S by rows up to
    its diagonal, u, p m_g (the pull of the group's mean), and the correction's coefficients.
    """

    settled: NDArray[np.float64]  # per arm: X'X (d x d), X'y (d), y'y, count
    fresh: NDArray[np.float64]  # the same, of later decisions
    arms: NDArray[np.float64]  # (blocks, rows, LANES)
    groups: NDArray[np.float64]  # (groups, 2 + 5 d + d^2)
    common: NDArray[np.float64]
    # Per arm, of true rewards z: sums of x x', x z, z^2, 1, x, z; and, of those whose feedback y is
    # known as well, of x, y and 1.
    true: NDArray[np.float64]
    truth: NDArray[np.float64]
    # The maps of `_blend.Blend`, from the means of feedback to the means and e after truth.
    m_map: NDArray[np.float64]
    m_at_0: NDArray[np.float64]
    e_map: NDArray[np.float64]
    e_at_0: NDArray[np.float64]


# Policies saved before there were true rewards do not have these.
OF_TRUTH = ("true", "truth", "m_map", "m_at_0", "e_map", "e_at_0")


def new_state(n_arms: int, n_groups: int, d: int) -> PooledState:
    """A state that has learned nothing."""
    sums = d * d + d + 2
    state = PooledState(
        np.zeros((n_arms, sums)),
        np.zeros((n_arms, sums)),
        np.zeros((padded(n_arms) // LANES, d * (d + 1) // 2 + 3 * d, LANES)),
        np.zeros((n_groups, N_OF_GROUP + 5 * d + d * d)),
        np.zeros(N_NUMBERS + _MATRICES * d * d + (2 + _ROOM) * d),
        np.zeros((n_arms, d * d + 3 * d + 5)),
        np.zeros(N_OF_TRUTH),
        np.zeros((n_groups * d, n_groups * d)),
        np.zeros(n_groups * d),
        np.zeros(((n_groups + 1) * d, n_groups * d)),
        np.zeros((n_groups + 1) * d),
    )
    state.truth[SCALE] = state.common[REWARD_UNIT] = 1.0
    state.common[EMPTY] = n_groups
    return state


@woven
def lane_of(own, i):  # type: ignore[no-untyped-def]
    """The place of arm i; its number of row k is LANES * k further."""
    return place(own.arms, i // LANES * own.arms.shape[1] * LANES + i % LANES)


@woven
def of_group(own, g, which, d):  # type: ignore[no-untyped-def]
    """A vector of group g, or its matrix V."""
    return place(own.groups, g * own.groups.shape[1] + N_OF_GROUP + which * d)


@woven
def of_all(own, which, d):  # type: ignore[no-untyped-def]
    """A matrix or vector of `common`; ROOM, ROOM + 1, ... are vectors to work in."""
    matrices, vectors = min(which, _MATRICES), max(which - _MATRICES, 0)
    return place(own.common, N_NUMBERS + matrices * d * d + vectors * d)
