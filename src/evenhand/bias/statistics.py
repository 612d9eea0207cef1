"""The input of a bias report: sums per arm or group, which add up in any order.

`statistics_of` gets them from a policy's regressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from evenhand._checks import is_missing, numbers, unmasked
from evenhand.errors import DataError, InputError, setting

if TYPE_CHECKING:
    from evenhand.groups import Groups
    from evenhand.leastsquares import Prior, Regressions

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Whole = NDArray[np.int64]

# The relative error of sums of doubles, with room for a billion rows.
PRECISION = 1e-13

SUMS = ("n", "gram", "moment", "square")


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sufficient statistics of the regressions behind a bias report, a row per arm (or part).

    Everything is a sum over observations or an average, so whoever holds the rows can compute it:
    a policy, a database or a cluster. Statistics of the same arms add up with `+`.

    Args:
        groups: the names of all groups, including those that were never chosen.
        of: the number of the group that each row belongs to.
        n: the number of observations.
        gram: X'X, the sums of products of features: (rows, features, features).
        moment: X'y, the sums of features times rewards: (rows, features).
        square: y'y, the sums of squared rewards.
        means: the mean of each feature: (rows, features). Without them there are no averages to
            report at, and nothing is said about overlap.
        weights: the sum of weights of the observations, if `gram`, `moment`, `square` and `means`
            are weighted. Weights that are not inverse variances need covariances of your own.
        arms: the names of the arms, if each row is an arm. Otherwise a row is a part of a group.
        precision: the relative error of the sums: 1e-13 for sums of doubles.

    Example:
        >>> import numpy as np
        >>> from evenhand.bias import Statistics
        >>> week = Statistics.from_rows(np.ones((3, 1)), [1.0, 2.0, 6.0], groups=["F", "F", "M"])
        >>> (week + week).n.tolist(), (week + week).square.tolist()
        ([4.0, 2.0], [10.0, 72.0])
    """

    groups: tuple[str, ...]
    of: NDArray[np.int64]
    n: Array
    gram: Array
    moment: Array
    square: Array
    means: Array | None = None
    weights: Array | None = None
    arms: tuple[str, ...] | None = None
    precision: float = PRECISION

    def __post_init__(self) -> None:
        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        put("groups", tuple(str(name) for name in self.groups))
        if len(set(self.groups)) < max(len(self.groups), 1):
            raise InputError(
                f"{setting('groups')} is {self.groups!r}; allowed are different names, at "
                "least one",
                value=self.groups,
            )
        put("of", np.asarray(self.of))
        if self.of.ndim != 1 or (self.of.size and self.of.dtype.kind not in "iu"):
            raise InputError(
                f"{setting('of')} is {self.of!r}; allowed is the number of a group for each row",
                value=self.of,
            )
        if self.of.size and not (self.of.min() >= 0 and self.of.max() < len(self.groups)):
            raise InputError(
                f"{setting('of')} has numbers outside 0 to {len(self.groups) - 1}; allowed is "
                "the number of a group for each row"
            )
        put("of", self.of.astype(np.int64))
        rows, d = self.of.size, np.shape(self.moment)[-1] if np.ndim(self.moment) else 0
        shapes = {"gram": (rows, d, d), "moment": (rows, d), "means": (rows, d)}
        for name in ("n", "gram", "moment", "square", "means", "weights"):
            if (given := getattr(self, name)) is not None:
                put(name, numbers(name, given, shapes.get(name, (rows,))))
        if d < 1:
            raise InputError(f"{setting('moment')} has no features; allowed is at least one column")
        for name in ("n", "square", "weights"):
            if (given := getattr(self, name)) is not None and (given < 0.0).any():
                raise InputError(
                    f"{setting(name)} has {given.min():g}; allowed are numbers of at least 0"
                )
        skew = np.abs(self.gram - self.gram.transpose(0, 2, 1))
        if (skew > 1e-6 * np.abs(self.gram) + 1e-300).any():
            raise InputError(
                f"{setting('gram')} is not symmetric; allowed are sums of products of features"
            )
        if self.arms is not None:
            put("arms", tuple(str(name) for name in self.arms))
            if len(set(self.arms)) != rows or len(self.arms) != rows:
                raise InputError(
                    f"{setting('arms')} has {len(self.arms)} names; allowed are {rows} different "
                    "names"
                )

    @property
    def n_features(self) -> int:
        """The length of a context."""
        return int(self.moment.shape[1])

    def __add__(self, other: Statistics) -> Statistics:
        if not isinstance(other, Statistics):
            return NotImplemented
        same = (self.groups, self.arms, self.of.tolist()) == (
            other.groups,
            other.arms,
            other.of.tolist(),
        )
        if not same or self.n_features != other.n_features:
            raise InputError(
                "statistics of other groups, arms or features cannot be added; make both with "
                "the same names in the same order"
            )
        added = {name: getattr(self, name) + getattr(other, name) for name in SUMS}
        weights = [sums.n if sums.weights is None else sums.weights for sums in (self, other)]
        means = None
        if self.means is not None and other.means is not None:
            total = np.maximum(weights[0] + weights[1], 1e-300)[:, None]
            means = (weights[0][:, None] * self.means + weights[1][:, None] * other.means) / total
        weighted = self.weights is not None or other.weights is not None
        return replace(
            self,
            **added,
            means=means,
            weights=weights[0] + weights[1] if weighted else None,
            precision=max(self.precision, other.precision),
        )

    def in_units(self, scales: ArrayLike) -> Statistics:
        """The statistics of the same features, each multiplied by its scale.

        Args:
            scales: what every feature was divided by, such as its standard deviation, to have it
                in the units before that.

        Example:
            >>> from evenhand.bias import Statistics
            >>> halves = Statistics.from_rows([[0.5], [1.5]], [1.0, 2.0], groups=["F", "M"])
            >>> halves.in_units([2.0]).means.tolist()
            [[1.0], [3.0]]
        """
        factors = numbers("scales", scales, (self.n_features,))
        if not (factors > 0.0).all():
            raise InputError(
                f"{setting('scales')} has {factors.min():g}; allowed are numbers above 0"
            )
        return replace(
            self,
            gram=self.gram * factors[:, None] * factors,
            moment=self.moment * factors,
            means=None if self.means is None else self.means * factors,
        )

    @classmethod
    def from_rows(
        cls,
        contexts: ArrayLike,
        rewards: ArrayLike,
        groups: Sequence[object],
        arms: Sequence[object] | None = None,
    ) -> Statistics:
        """Sum up rows that fit into memory.

        Args:
            contexts: (rows, features).
            rewards: the observed reward of each row.
            groups: the group of each row.
            arms: the arm of each row, if there are arms.

        Example:
            >>> import numpy as np
            >>> from evenhand.bias import Statistics
            >>> rows = np.array([[1.0, 2.0], [1.0, 4.0]])
            >>> sums = Statistics.from_rows(rows, [1.0, 3.0], groups=["F", "F"])
            >>> sums.gram[0].tolist(), sums.moment[0].tolist(), sums.means[0].tolist()
            ([[2.0, 6.0], [6.0, 20.0]], [4.0, 14.0], [1.0, 3.0])
        """
        x = numbers("contexts", contexts, None)
        if x.ndim != 2:
            raise InputError(
                f"{setting('contexts')} has shape {x.shape}; allowed is (rows, features)"
            )
        y = numbers("rewards", rewards, (len(x),))
        codes, names = _codes("groups", groups, len(x))
        cells, labels = (codes, names) if arms is None else _codes("arms", arms, len(x))
        of = np.zeros(len(labels), dtype=np.int64)
        of[cells] = codes
        if arms is not None and (split := np.flatnonzero(of[cells] != codes)).size:
            raise InputError(
                f"{setting('arms')} has {labels[cells[split[0]]]!r} in more than one group; "
                "allowed is one: name the arm by its group as well"
            )
        order = np.argsort(cells, kind="stable")
        ends = np.cumsum(np.bincount(cells, minlength=len(labels)))[:-1]
        parts = [(x[rows], y[rows]) for rows in np.split(order, ends)] if len(x) else []
        d = x.shape[1]
        return cls(
            groups=names,
            of=of,
            n=np.array([len(b) for _, b in parts], dtype=np.float64),
            gram=np.array([a.T @ a for a, _ in parts]).reshape(-1, d, d),
            moment=np.array([a.T @ b for a, b in parts]).reshape(-1, d),
            square=np.array([b @ b for _, b in parts], dtype=np.float64),
            means=np.array([a.mean(axis=0) for a, _ in parts]).reshape(-1, d),
            arms=None if arms is None else labels,
        )


def _codes(
    name: str, labels: Sequence[object], rows: int
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    unmasked(name, labels)
    given = list(labels)
    if len(given) != rows:
        raise DataError(
            f"{setting(name)} has {len(given)} labels; allowed are {rows}, one for each row"
        )
    missing = [row for row, label in enumerate(given) if is_missing(label)]
    if missing:
        raise DataError(f"{setting(name)} has no label in row {missing[0]}; give one for every row")
    codes, names = pd.factorize(np.array([str(label) for label in given], dtype=object))
    return codes.astype(np.int64), tuple(str(label) for label in names)


def totals(values: Array, of: Whole, count: int) -> Array:
    """The sums of rows that belong together: `of` is the number of the sum to which a row adds.

    Example:
        >>> import numpy as np
        >>> from evenhand.bias.statistics import totals
        >>> totals(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 1]), 2).tolist()
        [[0.0, 0.0], [4.0, 6.0]]
    """
    added = np.zeros((count, *values.shape[1:]))
    np.add.at(added, of, values)
    return added


def statistics_of(groups: Groups, fits: Regressions, prior: Prior | None = None) -> Statistics:
    """The statistics of a policy: of its arms' regressions, with any ridge or prior taken out.

    Policies keep products of features and not their sums. So the means are known only if there is
    an intercept, whose products with the other features are their sums. A feature counts as an
    intercept if its square is 1 on average in every arm.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> from evenhand.bias import statistics_of
        >>> policy = eh.TopInterval(["F", "M"], n_features=2)
        >>> policy.absorb([0, 0, 1], [[1.0, 2.0], [1.0, 4.0], [1.0, 7.0]], [1.0, 2.0, 3.0])
        >>> statistics_of(policy.groups, policy._state.arms).means.round(9).tolist()
        [[1.0, 3.0], [1.0, 7.0]]
    """
    from evenhand.leastsquares._sums import sums  # loads Numba, which an audit does not need

    summed = sums(fits, prior)
    seen = summed.n > 0.0
    sizes = np.einsum("ikk->ik", summed.gram)[seen]
    precision = PRECISION
    if fits.ridge > 0.0 and sizes.any():  # taking it out leaves an error of its own size
        precision = max(precision, 100.0 * 2.0**-52 * fits.ridge / sizes[sizes > 0.0].min())
    return Statistics(
        groups=groups.names,
        of=groups.of,
        n=summed.n,
        gram=summed.gram,
        moment=summed.moment,
        square=np.maximum(summed.square, 0.0),
        means=_means_by_intercept(summed.n, summed.gram, max(1e-9, precision)),
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
    # Of two such features, say an intercept and a column of -1 and 1, neither is taken.
    if any((np.abs(means[:, k] - first) > 1e-6 * (1.0 + np.abs(first))).any() for k in ones):
        return None
    return first
