"""The statistics of a policy, from the regressions of its arms."""

from __future__ import annotations

import numpy as np

from evenhand.bias.statistics import PRECISION, Array, Statistics
from evenhand.groups import Groups
from evenhand.leastsquares import Regressions
from evenhand.leastsquares.reading import sums


def statistics_of(groups: Groups, fits: Regressions) -> Statistics:
    """The statistics of a policy: of its arms' regressions, with any ridge taken out.

    Policies keep products of features and not their sums, so the means are known only if one of the
    features is an intercept: its products with the others are their sums. A feature counts as one
    if its square is 1 on average in every arm.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> from evenhand.bias import statistics_of
        >>> policy = eh.TopInterval(["F", "M"], n_features=2)
        >>> policy.absorb([0, 0, 1], [[1.0, 2.0], [1.0, 4.0], [1.0, 7.0]], [1.0, 2.0, 3.0])
        >>> statistics_of(policy.groups, policy._memory.arms).means.round(9).tolist()
        [[1.0, 3.0], [1.0, 7.0]]
    """
    found = sums(fits)
    seen = found.n > 0.0
    sizes = np.einsum("ikk->ik", found.gram)[seen]
    precision = PRECISION
    if fits.ridge > 0.0 and sizes.any():  # taking it out leaves an error of its own size
        precision = max(precision, 100.0 * 2.0**-52 * fits.ridge / sizes[sizes > 0.0].min())
    return Statistics(
        groups=groups.names,
        of=groups.of,
        n=found.n,
        gram=found.gram,
        moment=found.moment,
        square=np.maximum(found.square, 0.0),
        means=_means_by_intercept(found.n, found.gram, max(1e-9, precision)),
        arms=tuple(str(arm) for arm in range(groups.n_arms)),
        precision=min(precision, 1e-3),
    )


def _means_by_intercept(n: Array, gram: Array, tolerance: float) -> Array | None:
    seen = n > 0.0
    sizes = np.einsum("ikk->ik", gram)[seen]
    ones = np.flatnonzero((np.abs(sizes - n[seen, None]) <= tolerance * n[seen, None]).all(axis=0))
    if not seen.any() or not ones.size:
        return None
    means = gram / np.maximum(n, 1.0)[:, None, None]
    first: Array = means[:, ones[0]]
    # Two such features, say an intercept and one of -1 and 1, could both be it: then none is.
    if any((np.abs(means[:, k] - first) > 1e-6 * (1.0 + np.abs(first))).any() for k in ones):
        return None
    return first
