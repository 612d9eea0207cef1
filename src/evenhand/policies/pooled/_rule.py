"""The numbers of PooledGroupFair that are fixed when it is made."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


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
