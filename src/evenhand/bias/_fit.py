"""A coefficient vector per group, weighted by pulls or balanced over arms, with its covariance.

A direction of the features that the contexts never showed has no estimate, whatever their scales.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from evenhand._checks import numbers
from evenhand.bias.statistics import Array, Bools, Statistics, Whole, totals
from evenhand.errors import InputError, setting

# Sums with a relative error p show directions down to 1000 p of their size.
ROOM = 1000.0
# A context is outside the directions seen if more than this part of its length is.
OUTSIDE = 1e-6
FEWER = "features that vary in fewer directions than"


@dataclass(frozen=True, eq=False)
class Designs:
    """X'X of several regressions, solved: what is identified in each, and how exactly.

    `inverse` is (X'X)^-1, or a generalised inverse where directions are missing. All features are
    scaled to unit length first, so units do not matter.
    """

    inverse: Array  # (rows, d, d)
    rank: Whole  # (rows,)
    scale: Array  # (rows, d): the length of each feature, 1 where it is always zero
    absent: Bools  # (rows, d): features that are always zero
    missing: Array  # (rows, d, d): the projection on the missing directions, of scaled features

    def reaches(self, contexts: Array) -> Bools:
        """Whether each regression covers each context: (rows, contexts)."""
        reached = np.ones((len(self.rank), len(contexts)), dtype=np.bool_)
        for row in np.flatnonzero(self.rank < contexts.shape[1]):
            scaled = contexts / self.scale[row]
            left = np.linalg.norm(scaled @ self.missing[row], axis=1)
            inside = left <= OUTSIDE * np.linalg.norm(scaled, axis=1)
            reached[row] = inside & ~(contexts[:, self.absent[row]] != 0.0).any(axis=1)
        return reached

    def partners(self, row: int, features: Whole) -> Whole:
        """The features that are collinear with these in a regression, these included."""
        linked = (np.abs(self.missing[row][features]) > OUTSIDE).any(axis=0)
        return np.flatnonzero(linked).astype(np.int64)

    def sets(self, row: int) -> list[list[int]]:
        """The sets of collinear features in a regression: those that share a missing direction."""
        from scipy.sparse.csgraph import connected_components  # 0.06 s, and rarely needed

        links = np.abs(self.missing[row]) > OUTSIDE
        _, label = connected_components(links, directed=False)
        sets = [np.flatnonzero(label == number).tolist() for number in dict.fromkeys(label)]
        return [features for features in sets if links[features].any()]


def solve_designs(gram: Array, precision: float) -> Designs:
    """Solve X'X of several regressions.

    A direction of the scaled features counts as seen if it holds more than 1000 times the
    precision of their sum of squares: with sums of doubles, if no feature is matched by the others
    to within one part in 100,000.
    """
    d = gram.shape[1]
    sizes = np.einsum("ikk->ik", gram)
    absent = sizes <= 0.0
    scale = np.sqrt(np.where(absent, 1.0, sizes))
    held, directions = np.linalg.eigh(gram / (scale[:, :, None] * scale[:, None, :]))
    # The eigenvalues of scaled features add up to d, so the limit is relative to all of them.
    seen = held > ROOM * precision * d
    # The root of the inverse, without the directions that were not seen: a generalised inverse that
    # is a square has no negative variance.
    inside = directions * np.where(seen, 1.0 / np.sqrt(np.where(seen, held, 1.0)), 0.0)[:, None]
    root = inside / scale[:, :, None]
    outside = directions * ~seen[:, None]
    outside = np.where(absent[:, :, None], 0.0, outside)  # `absent` says it for these
    return Designs(
        inverse=root @ root.transpose(0, 2, 1),
        rank=seen.sum(axis=1),
        scale=scale,
        absent=absent,
        missing=outside @ outside.transpose(0, 2, 1),
    )


PULLS, ARMS, AUTO = "pulls", "arms", "auto"
WEIGHTINGS = (AUTO, PULLS, ARMS)


@dataclass(frozen=True, eq=False)
class Fit:
    """The coefficient vector of each group, (groups, d), with its covariance.

    `blocked` says in words why nothing is known about a group, and is empty otherwise. Directions
    that a group's contexts never showed are in `designs`: by group, or by arm.
    """

    vectors: Array
    covariances: Array  # (groups, d, d)
    freedom: Array  # of the noise of each group; infinite where it is known
    noise: Array  # sigma^2 of each group
    blocked: tuple[str, ...]
    designs: Designs
    of: Whole  # the group of each design
    labels: tuple[str, ...]  # the name of each design
    homes: tuple[str, ...]  # the name of each group
    rounding: Array  # (groups, d, d): the covariance that the rounding of the sums alone gives
    # (groups, groups, d, d) if the vectors of groups depend on each other; None if they do not.
    between: Array | None = None

    @cached_property
    def usable(self) -> Bools:
        """The groups that are known in some direction."""
        return np.array([not reason for reason in self.blocked])

    def reaches(self, shown: Bools) -> Bools:
        """Whether each group's vector is known at each context: (groups, contexts).

        `shown` is what `designs.reaches` said of them.
        """
        reached = np.ones((len(self.blocked), shown.shape[1]), dtype=np.bool_)
        np.logical_and.at(reached, self.of, shown)
        return reached & self.usable[:, None]

    def covariance(self, group: int, other: int, context: Array) -> float:
        """The covariance of two groups' feedback at a context."""
        if group == other:
            return float(context @ self.covariances[group] @ context)
        if self.between is None:
            return 0.0
        return float(context @ self.between[group, other] @ context)


def by_pulls(stats: Statistics, noise: float | None) -> Fit:
    """Least squares on all data of each group, psi_j in the paper: arms weigh by their pulls.

    The vector b = (X'X)^-1 X'y has the covariance sigma^2 (X'X)^-1. The noise of a group, sigma^2,
    is estimated from the residuals of its fit, with n - d degrees of freedom. They include the
    differences between its arms, so the estimate is not too small.
    """
    groups = len(stats.groups)
    n, gram = totals(stats.n, stats.of, groups), totals(stats.gram, stats.of, groups)
    moment, square = totals(stats.moment, stats.of, groups), totals(stats.square, stats.of, groups)
    designs = solve_designs(gram, stats.precision)
    vectors = np.einsum("gij,gj->gi", designs.inverse, moment)
    residual = _residual(square, moment, vectors, stats.precision)
    variance, freedom = _noise(residual, n - designs.rank, noise)
    blocked = tuple(_blocked(stats, g, n[g], freedom[g]) for g in range(groups))
    return Fit(
        vectors,
        variance[:, None, None] * designs.inverse,
        freedom,
        variance,
        blocked,
        designs,
        np.arange(groups),
        _homes(stats),
        _homes(stats),
        _floor(stats, square, freedom)[:, None, None] * designs.inverse,
    )


def by_arms(stats: Statistics, noise: float | None) -> Fit:
    """The plain average of the arms' own coefficients in each group: every arm weighs the same.

    With K arms its covariance is sigma^2 / K^2 times the sum of (X_a'X_a)^-1. The noise of a group
    is estimated from the residuals of all its arms' fits, with n - d |P_j| degrees of freedom.
    """
    groups, names = len(stats.groups), stats.arms or ()
    designs = solve_designs(stats.gram, stats.precision)
    own = np.einsum("aij,aj->ai", designs.inverse, stats.moment)
    residual = _residual(stats.square, stats.moment, own, stats.precision)
    freedom = totals(stats.n - designs.rank, stats.of, groups)
    variance, freedom = _noise(totals(residual, stats.of, groups), freedom, noise)
    # Var of a mean of K independent vectors: the sum of theirs over K^2.
    sizes = np.maximum(np.bincount(stats.of, minlength=groups), 1.0)
    blocked = []
    for g, name in enumerate(stats.groups):
        arms = np.flatnonzero(stats.of == g)
        reason = _blocked(stats, g, stats.n[arms].sum(), freedom[g])
        # One arm that is not known leaves the plain average unknown, so the group is blocked by it.
        few = arms[stats.n[arms] < stats.n_features]
        if few.size and arms.size > 1 and stats.n[arms].any():
            who = f"arm {names[few[0]]} of group {name}"
            reason = _too_few(who, stats.n[few[0]], stats.n_features)
        blocked.append(reason)
    inverse = totals(designs.inverse, stats.of, groups) / sizes[:, None, None] ** 2
    return Fit(
        totals(own, stats.of, groups) / sizes[:, None],
        variance[:, None, None] * inverse,
        freedom,
        variance,
        tuple(blocked),
        designs,
        stats.of,
        tuple(
            f"arm {arm} of group {stats.groups[g]}" for arm, g in zip(names, stats.of, strict=True)
        ),
        _homes(stats),
        _floor(stats, totals(stats.square, stats.of, groups), freedom)[:, None, None] * inverse,
    )


def settled(stats: Statistics, weighting: str, noise: float | None = None) -> tuple[str, str]:
    """The weighting to use, and, if "auto" cannot average over arms, why.

    The assumption of equal averages is about arms, so their average is the answer if it is known.
    """
    if weighting != AUTO or stats.arms is None:
        return (PULLS if weighting == AUTO else weighting), ""
    pulls, arms = by_pulls(stats, noise), by_arms(stats, noise)
    for own, whole in zip(arms.blocked, pulls.blocked, strict=True):
        if own and not whole:
            return PULLS, own
    short = (arms.designs.rank < pulls.designs.rank[stats.of]) & pulls.usable[stats.of]
    if short.any():
        return PULLS, f"{arms.labels[int(np.argmax(short))]} has {FEWER} those of its group"
    return ARMS, ""


def between_weightings(stats: Statistics, noise: float | None) -> Fit:
    """The difference of the two vectors of each group, with its covariance.

    Both are averages of the arms' own coefficients. If the arms are alike, the fit by pulls has the
    smallest variance of all such averages. So the covariance of the difference is the difference of
    the covariances, with the noise of the arms' own fits.
    """
    pulls, arms = by_pulls(stats, noise), by_arms(stats, noise)
    # Hausman's argument: an efficient estimate is uncorrelated with its difference from any other,
    # so Var(a - b) = Var(a) - Var(b).
    best = arms.noise[:, None, None] * pulls.designs.inverse
    apart = arms.covariances - best
    sizes = np.einsum("gkk->gk", arms.covariances)
    # Arms with equal designs have no difference at all: keep rounding from looking like one.
    apart = apart + 1e-9 * sizes[:, :, None] * np.eye(sizes.shape[1])
    return replace(arms, vectors=pulls.vectors - arms.vectors, covariances=apart)


def with_covariances(
    fit: Fit,
    names: tuple[str, ...],
    covariances: Mapping[str, ArrayLike],
    freedom: Mapping[str, float] | None,
    blocked: tuple[str, ...],
    between: Mapping[tuple[str, str], ArrayLike] | None = None,
) -> Fit:
    """The fit with covariances from elsewhere for some groups, such as robust ones.

    `blocked` has the reasons that remain if the noise need not be known; `between` the covariances
    of the vectors of two groups that are not independent.
    """
    matrices, degrees, reasons = fit.covariances.copy(), fit.freedom.copy(), list(fit.blocked)
    given = freedom or {}
    for name in [*covariances, *given]:
        if str(name) not in names or name not in covariances:
            raise InputError(
                f"{setting('covariances')} has {', '.join(map(str, covariances))} and freedom is "
                f"given for {', '.join(map(str, given)) or 'none'}; allowed are groups: "
                f"{', '.join(names)}"
            )
    d = matrices.shape[1]
    for name, matrix in covariances.items():
        g = names.index(str(name))
        own = numbers(f"covariances of group {name}", matrix, (d, d))
        size = np.abs(np.diag(own)).max(initial=0.0)
        if np.abs(own - own.T).max() > 1e-8 * size or np.linalg.eigvalsh(own)[0] < -1e-8 * size:
            raise InputError(
                f"covariances of group {name} is not a covariance matrix: it is not symmetric, or "
                "has a negative variance; allowed is a symmetric matrix with no negative variance"
            )
        degree = float(given.get(name, np.inf))
        if not degree > 0.0:
            raise InputError(f"freedom of group {name} is {degree}; allowed is a number above 0")
        # A fit without residuals is still only exact to its rounding.
        matrices[g], degrees[g], reasons[g] = own + fit.rounding[g], degree, blocked[g]
    return replace(
        fit,
        covariances=matrices,
        freedom=degrees,
        blocked=tuple(reasons),
        between=_between(between, names, matrices),
    )


def _between(
    given: Mapping[tuple[str, str], ArrayLike] | None, names: tuple[str, ...], own: Array
) -> Array | None:
    if not given:
        return None
    m, d = own.shape[:2]
    covariances = np.zeros((m, m, d, d))
    covariances[np.arange(m), np.arange(m)] = own
    for pair, matrix in given.items():
        if len(set(pair)) != 2 or not set(pair) <= set(names):
            raise InputError(
                f"{setting('between')} has {pair!r}; allowed are pairs of different groups: "
                f"{', '.join(names)}"
            )
        a, b = (names.index(name) for name in pair)
        covariances[a, b] = numbers(f"between {pair[0]} and {pair[1]}", matrix, (d, d))
        covariances[b, a] = covariances[a, b].T
    return covariances


def _homes(stats: Statistics) -> tuple[str, ...]:
    return tuple(f"group {name}" for name in stats.groups)


def _residual(square: Array, moment: Array, vectors: Array, precision: float) -> Array:
    """y'y - b'X'y, and at least the rounding of y'y: smaller numbers mean nothing."""
    residual: Array = np.maximum(square - np.sum(moment * vectors, axis=1), precision * square)
    return residual


def _floor(stats: Statistics, square: Array, freedom: Array) -> Array:
    """The variance that the rounding of the sums alone gives."""
    floor: Array = stats.precision * square / np.maximum(np.where(freedom > 0, freedom, 1.0), 1.0)
    return np.where(np.isfinite(floor), floor, 0.0)


def _noise(residual: Array, freedom: Array, known: float | None) -> tuple[Array, Array]:
    if known is not None:
        return np.full(len(residual), known**2), np.full(len(residual), np.inf)
    return np.where(freedom > 0.0, residual / np.maximum(freedom, 1.0), np.nan), freedom


def _blocked(stats: Statistics, g: int, n: float, freedom: float) -> str:
    """Why nothing is known about a group; empty if something is."""
    who = f"group {stats.groups[g]}"
    if n > 0.0 and stats.arms is not None and np.count_nonzero(stats.of == g) == 1:
        return f"{who} has a single arm, whose worth cannot be told apart from bias"
    if n < stats.n_features:
        return _too_few(who, n, stats.n_features)
    if freedom < 1.0:
        return f"{who} has too few observations to estimate its noise as well"
    return ""


def _too_few(who: str, n: float, d: int) -> str:
    if n == 0.0:
        return f"{who} was never chosen"
    ones, features = "s" if n != 1.0 else "", "s" if d != 1 else ""
    return f"{who} has too few observations: {n:.0f} observation{ones} of {d} feature{features}"
