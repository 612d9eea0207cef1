"""The posterior of effects and candidates in the general form, with intervals that cover.

As in `evenhand.policies.pooled_group_fair.beliefs`: the effects of levels have a flat prior,
quantiles are Student's, and tau^2, which rests on few arms, is multiplied by 1 + 2 over its degrees
of freedom. Effects of intersections keep a prior: without one, nothing tells them from those of
their levels. The variance of that prior is uncertain. It is the mean over a grid, which shrinks
less than decisions do; and how much effects differ between the variances of the grid is part of
their own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import compiled
from evenhand.bias.measured import UNKNOWN
from evenhand.groups import Groups
from evenhand.policies.pooled_group_fair._flat_posterior import Flat
from evenhand.policies.pooled_group_fair.general._design import ColumnsOfGroups
from evenhand.policies.pooled_group_fair.general._layout import GeneralRule, GeneralState
from evenhand.policies.pooled_group_fair.general._posterior import (
    add_in_units,
    blank_data,
    blank_posterior,
    units_of,
    work_out,
    work_out_in,
)
from evenhand.policies.pooled_group_fair.general._variances import GRID, chances, estimate_variances

Array = NDArray[np.float64]

# The prior variance of a bias, in units of the model's. If it were larger, true rewards without any
# noise would leave no digits: here levels are not alone in saying what an arm shares with others.
FLAT = 1e6


@compiled
def _flat_posterior(sums, of_arms, kinds, n_kinds, known_sigma2, basis, size, d):  # type: ignore[no-untyped-def]
    """The posterior with flat levels, and by how much the variance of intersections changes it.

    Only few numbers determine k, the variance of intersections. A report that took one value for
    the truth would be too certain, so k is averaged over its grid. By the law of total variance,
    the variance of an effect is then the mean of its variances given k plus the variance of its
    means given k. The first is close to the variance at the mean of k, which is used. For the
    second the effects have to be worked out again at every k: `more` collects the products of how
    far they move, weighted by how likely the k is. It is a covariance, because contrasts of effects
    move less than effects do.

    How likely every k is comes from the model's own priors; only the effects get flat ones.
    """
    n = of_arms.shape[0]
    unit, of_rewards = units_of(sums, size, d)
    data = blank_data(n, size, d)
    add_in_units(data, sums, of_arms, unit, of_rewards)
    known = known_sigma2 / of_rewards / of_rewards
    variances, freedom = estimate_variances(data, kinds, n_kinds, known, d)
    post = blank_posterior(n, size, d)
    work_out(data, kinds, variances, post)
    kappa2, last, more = variances.along[1], n_kinds - 1, np.zeros((size, size))
    weights, mean = np.zeros(len(GRID)), variances.along[last]
    if kinds[kinds.size - 1] == last:
        weights, mean = chances(kinds, variances, post, kappa2), 0.0
        for step in range(len(GRID)):
            mean += weights[step] * GRID[step] * kappa2
        variances.along[last] = variances.across[last] = mean
    # Flat beside the largest variance of the model, so that it is flat for all kinds.
    flat = FLAT * max(np.max(variances.along[1:]), np.max(variances.across[1:]))
    for kind in range(n_kinds - 1):
        variances.along[kind] = variances.across[kind] = flat
    work_out_in(basis, kinds, variances, post)
    effects = post.M.copy()
    for step in range(len(GRID)):
        if weights[step] > 0.0:
            variances.along[last] = variances.across[last] = GRID[step] * kappa2
            work_out_in(basis, kinds, variances, post)
            for k in range(size):
                for c in range(size):
                    apart = (post.M[k] - effects[k]) * (post.M[c] - effects[c])
                    more[k, c] += weights[step] * apart
    variances.along[last] = variances.across[last] = mean
    work_out_in(basis, kinds, variances, post)
    return Flat(unit, of_rewards, variances, freedom, flat, post), more


class GeneralBeliefs:
    """The posterior after some rewards, in the general form: `PooledGroupFair.beliefs` makes it.

    Attributes:
        groups: the groups, with their attributes.
        number: how many rewards it rests on.
        noise: sigma, the standard deviation of rewards around their mean.
        spread: tau, that of the arms' own coefficients, for features in units of their root mean
            square (`units`); 0 where arms come once.
        units: the root mean square of every feature.
        effects: M, a row of coefficients per column: the mean of all, levels, intersections. Only
            differences between the levels of an attribute say something.
        basis: which columns data can tell from each other, see `Design.basis`.
        mass: per level, how many rewards it has; with probabilities, how many are expected.
        weights: of the columns in the reference.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> table = {"sex": ["F", "F", "M", "M"] * 2, "age": ["old", "young"] * 4}
        >>> groups = eh.Groups.of_attributes(table)
        >>> policy = eh.PooledGroupFair(groups, n_features=1, seed=1)
        >>> policy.absorb(np.tile(np.arange(8), 5), np.ones((40, 1)), [1, 2, 6, 7, 1, 2, 6, 7] * 5)
        >>> beliefs = policy.beliefs()
        >>> contrast = np.array([[0.0, -1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])  # M less F
        >>> beliefs.of_contrasts(np.ones((1, 1)), contrast, 0.9)[0].round(1).tolist()
        [5.0]
        >>> weights = beliefs.design.weights(beliefs.design.levels)
        >>> beliefs.of_candidates(np.ones((8, 1)), weights, 0.9)[0].round(1).tolist()
        [1.0, 2.0, 6.0, 7.0, 1.0, 2.0, 6.0, 7.0]
        >>> beliefs.own_share().round(2).tolist()
        [0.99, 0.99, 0.99, 0.99]
    """

    def __init__(
        self,
        groups: Groups,
        design: ColumnsOfGroups,
        rule: GeneralRule,
        own: GeneralState,
        weights: Array,
    ) -> None:
        sums, of_arms = own.settled + own.fresh, own.settled_arms + own.fresh_arms
        self.groups, self.design, self.weights = groups, design, weights
        self.mass, self.recurs = own.mass.copy(), rule.recurs
        self.number, self._d = int(sums[-1]), rule.n_features
        q, d = design.kinds.size, rule.n_features
        self._flat = np.inf
        self.basis = design.basis(self.mass)
        if not self.number:
            self.units, self.noise, self.spread = np.ones(d), np.nan, np.nan
            self.effects = np.full((q, d), np.nan)
            return
        n_kinds = design.cells.shape[1] + 2
        self.flat, self._more = _flat_posterior(
            sums, of_arms, design.kinds, n_kinds, rule.sigma2, self.basis, q * d, d
        )
        self.units, rho, variances, self._freedom, self._flat, self._post = self.flat
        self._unit, self._tau2 = rho, float(variances.tau2[0])
        self._of_cells = float(variances.along[-1])
        self.noise = rho * float(np.sqrt(variances.sigma2[0]))
        self.spread = rho * float(np.sqrt(self._tau2)) if self.recurs else 0.0
        self.effects = rho * self._post.M.reshape(q, d) / self.units
        # A width needs the part of V that is proportional to tau^2, whose degrees of freedom are
        # others than those of sigma^2. It is tau^2 dV/dtau^2. The rewards of an arm have the
        # covariance sigma^2 I + tau^2 X X', and X' times its inverse times Z is p D_i. So V^-1
        # changes by -p^2 D_i' D_i for each unit of tau^2, and V by p^2 V (sum D_i' D_i) V.
        # The variance of effects, and its part proportional to tau^2: V (sum D_i' D_i) V / tau^2.
        V, D = self._post.V, self._post.D.reshape(-1, q * d)
        self._V_tau = V @ (D.T @ D) @ V / self._tau2 if self.recurs else np.zeros_like(V)

    def of_candidates(
        self, rows: Array, weights: Array, level: float, corrected: bool = False
    ) -> tuple[Array, Array]:
        """Estimate and width of every candidate's mean reward, corrected for bias or not.

        Args:
            rows: the context of every arm.
            weights: of every candidate, as `Design.weights` gives them.
            level: of the intervals.
            corrected: whether the reference's weights take the place of the candidate's.
        """
        n = len(rows)
        if not self.number:
            return np.zeros(n), np.full(n, np.inf)
        x = rows / self.units
        z = np.einsum("nq,nk->nqk", weights, x).reshape(n, -1)
        estimate, own, own_tau = np.zeros(n), np.zeros(n), np.zeros(n)
        if self.recurs:
            s = np.einsum("nij,nj->ni", self._post.S, x)
            estimate = np.einsum("ni,ni->n", self._post.u, x)
            z = z - np.einsum("nij,ni->nj", self._post.D, x)
            # The same derivative of S_i: tau^2 dS/dtau^2 = p S S.
            own, own_tau = np.einsum("ni,ni->n", s, x), np.einsum("ni,ni->n", s, s) / self._tau2
        if corrected:
            z = z + np.einsum("nq,nk->nqk", self.weights - weights, x).reshape(n, -1)
        total, part = self._variance(z)
        width = self._width(own + total, part + own_tau, level)
        return self._unit * (estimate + z @ self._post.M), width

    def of_contrasts(self, rows: Array, weights: Array, level: float) -> tuple[Array, Array, Array]:
        """Estimate, width and floor of sums of effects at rows, with a weight per column.

        The floor is the standard deviation that stays however much feedback comes; it is 0 where
        arms come once or membership changes: then the arms' own part is not in the way.
        """
        if not self.number:
            nothing = np.full(len(rows), np.nan)
            return nothing, np.full(len(rows), np.inf), nothing
        x = rows / self.units
        z = np.einsum("rq,rk->rqk", weights, x).reshape(len(rows), -1)
        total, part = self._variance(z)
        width = self._width(total, part, level)
        size = np.sqrt((x**2).sum(axis=1))
        return self._unit * (z @ self._post.M), width, self._unit * size * self._floor(weights)

    def own_share(self) -> Array:
        """Per intersection, how much of its possible difference from its levels was learned.

        It is the part of the variance of that difference that data have removed. Below one half,
        what is said about it comes mostly from its levels. NaN if it cannot differ from them: no
        other intersection shares one of its levels.
        """
        beyond, d = self.design.beyond, self._d
        count = len(beyond)
        if not self.number or not count:
            return np.zeros(count)
        # Intersections are the last columns.
        V = self._post.V[-count * d :, -count * d :].reshape(count, d, count, d)
        left = np.einsum("ic,ckek,ie->i", beyond, V, beyond) / d
        prior = self._of_cells * (beyond**2).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share: Array = 1.0 - np.minimum(left / prior, 1.0)
        return np.where(prior > 1e-9 * self._of_cells, share, np.nan)

    def _floor(self, weights: Array) -> Array:
        """Per unit of context: the standard deviation left if every arm were known exactly.

        With every theta_i known, the effects M still rest on n arms alone: theta_i = w_i . M +
        delta_i is a regression with the noise tau^2, whatever the number of rewards. Its posterior
        variance is that of the contrast in (diag(1 / prior) + W' W / tau^2)^-1, and delta is alike
        in all features, so the floor is that times |x|.
        """
        if not self.recurs or self.groups.changes:
            return np.zeros(len(weights))
        arms, kinds = self.design.weights(self.design.levels), self.design.kinds
        # The last kind is that of intersections, if there are any; otherwise it is that of the last
        # attribute, and all priors are flat.
        prior = np.where(kinds == kinds.max(), self._of_cells, self._flat)
        prior = prior if len(self.design.cells) else np.full(len(kinds), self._flat)
        arms, weights, prior = arms @ self.basis, weights @ self.basis, prior @ self.basis
        # The inverse of diag(1 / prior) + arms' arms / tau2, in a form that no small tau2 breaks.
        # In units of the prior's standard deviations the matrix is I + (W root)' (W root) / tau^2,
        # which has the singular vectors of W root and the variances tau^2 / (tau^2 + s^2). No large
        # number is inverted.
        root = np.sqrt(prior)
        _, sizes, V = np.linalg.svd(arms * root)
        # Directions that no arm shows have s = 0 and keep their prior variance.
        sizes = np.pad(sizes, (0, len(V) - len(sizes)))
        variance = ((weights * root) @ V.T) ** 2 @ (self._tau2 / (self._tau2 + sizes**2))
        floor: Array = np.sqrt(np.maximum(variance, 0.0))
        return floor

    def _variance(self, z: Array) -> tuple[Array, Array]:
        total = np.einsum("ri,ij,rj->r", z, self._post.V + self._more, z)
        return total, np.einsum("ri,ij,rj->r", z, self._V_tau, z)

    def _width(self, total: Array, of_tau: Array, level: float) -> Array:
        """Student's quantile times the standard deviation; infinite where nothing was seen.

        The degrees of freedom are Satterthwaite's, as in
        `evenhand.policies.pooled_group_fair.beliefs`.
        """
        from scipy.stats import t as student

        noise = np.maximum(total - of_tau, 0.0)
        freedom = np.maximum(self._freedom, 1.0)
        of_tau = of_tau * (1.0 + 2.0 / freedom[1])
        total = noise + of_tau
        uncertain = noise**2 / freedom[0] + of_tau**2 / freedom[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            degrees = np.where(uncertain > 0.0, total**2 / uncertain, np.inf)
        width: Array = student.isf(0.5 * (1.0 - level), np.maximum(degrees, 1.0))
        width = self._unit * width * np.sqrt(np.maximum(total, 0.0))
        return np.where(total < UNKNOWN * self._flat, width, np.inf)
