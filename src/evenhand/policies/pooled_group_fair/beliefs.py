"""The posterior of arms and groups, with intervals that cover.

Decisions use the posterior as it is. Intervals are more careful. The bias has a flat prior, so that
nothing is shrunk. Quantiles are Student's, because the variances are estimates: one part is
proportional to sigma^2 and one to tau^2, each with its own degrees of freedom (Satterthwaite). And
tau^2, which rests on few arms and also decides how much they are shrunk, is multiplied by 1 + 2
over its degrees of freedom. `python -m benchmarks.pooled` measures the coverage.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand.bias.measured import UNKNOWN
from evenhand.groups import Groups
from evenhand.policies.pooled_group_fair._flat_posterior import flat_posterior

Array = NDArray[np.float64]


class Beliefs:
    """The posterior after some rewards: `PooledGroupFair.beliefs` makes it.

    Attributes:
        groups: the groups of the arms.
        number: how many rewards it rests on.
        noise: sigma, the standard deviation of rewards around their mean.
        spread: tau per group, that of the arms' coefficients around the mean of their group, for
            features in units of their root mean square (`units`).
        units: the root mean square of every feature.
        means: m_g, the mean coefficients of every group.
        weights: of the groups in the reference.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> policy = eh.PooledGroupFair(["F", "F", "M", "M"], n_features=1, seed=1)
        >>> policy.absorb([0, 1, 2, 3] * 5, 2.0 * np.ones((20, 1)), [1.0, 2.0, 7.0, 8.0] * 5)
        >>> beliefs = policy.beliefs()
        >>> beliefs.number, beliefs.units.tolist(), beliefs.means.round(2).tolist()
        (20, [2.0], [[0.75], [3.75]])
        >>> contrast = np.array([[-1.0, 1.0]])  # M less F
        >>> beliefs.of_contrasts(np.ones((1, 1)), contrast, 0.9)[0].round(2).tolist()
        [3.0]
    """

    def __init__(
        self, groups: Groups, sums: Array, weights: Array, known_sigma2: float = -1.0
    ) -> None:
        m, d = len(groups), _features(sums)
        self.groups, self.weights = groups, weights
        self.number = int(sums[:, -1].sum())
        self._flat = np.inf
        if not self.number:
            self.units = np.ones(d)
            nothing = np.full(m, np.nan)
            self.noise, self.spread, self.means = np.nan, nothing, np.full((m, d), np.nan)
            return
        sizes = groups.sizes.astype(np.float64)
        self.flat = flat_posterior(sums, groups.of, sizes, known_sigma2, d)
        self.units, rho, variances, self._freedom, self._flat, self._post = self.flat
        self._unit = rho
        self.noise = rho * float(np.sqrt(variances.sigma2[0]))
        self._tau2 = variances.tau2
        self.spread = rho * np.sqrt(variances.tau2)
        self.means = rho * self._post.m / self.units
        # Intervals have to know how much of a variance comes from sigma^2 and how much from tau^2,
        # because these have been estimated with different degrees of freedom. With a flat prior, V
        # is homogeneous of degree one in (sigma^2, tau^2): if both double, V doubles. By Euler's
        # theorem it is then sigma^2 dV/dsigma^2 + tau^2 dV/dtau^2, one part for each, and the
        # second is the matrix below.
        # The variance of group means, and its part proportional to tau^2, V (sum B_i B_i) V / tau^2
        # with B_i = I - p S_i.
        p = 1.0 / variances.tau2[groups.of][:, None, None]
        B = np.eye(d) - p * self._post.S
        of_arms = np.zeros((m, d, d))
        np.add.at(of_arms, groups.of, B @ B)
        self._V = self._post.V
        self._V_tau = np.einsum("gij,gjk,gkl->gil", self._V, of_arms, self._V)
        self._V_tau /= variances.tau2[:, None, None]

    # Intervals ----------------------------------------------------------------------------------

    def of_arms(self, rows: Array, level: float, corrected: bool = False) -> tuple[Array, Array]:
        """Estimate and width of every arm's mean reward at its row, corrected for bias or not.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> policy = eh.PooledGroupFair(["F", "F", "M", "M"], n_features=1, reference="M")
            >>> policy.absorb([0, 1, 2, 3] * 5, np.ones((20, 1)), [1.0, 2.0, 7.0, 8.0] * 5)
            >>> policy.beliefs().of_arms(np.ones((4, 1)), 0.9, corrected=True)[0].round(1).tolist()
            [7.0, 8.0, 7.0, 8.0]
        """
        n, (m, d) = len(rows), self.means.shape
        if not self.number:
            return np.zeros(n), np.full(n, np.inf)
        x, group, post = rows / self.units, self.groups.of, self._post
        # Here too the part of tau^2 comes from a derivative: that of S is tau^2 dS/dtau^2 = p S S,
        # so at x it is p |S x|^2.
        p = 1.0 / self._tau2[group]
        s = np.einsum("nij,nj->ni", post.S, x)
        pull = p[:, None] * s  # the weight of the group's mean, at x
        estimate = np.einsum("ni,ni->n", post.u, x) + np.einsum("ni,ni->n", pull, post.m[group])
        weights = np.zeros((n, m, d))  # of the means of all groups in the estimate
        weights[np.arange(n), group] = pull
        if corrected:
            # The correction m_ref - m_g, added to the pull before squaring: the same means are in
            # both, so their errors partly cancel.
            weights[np.arange(n), group] -= x
            weights += self.weights[None, :, None] * x[:, None, :]
            mean = self.weights @ post.m
            estimate = estimate + np.einsum("ni,ni->n", mean[None, :] - post.m[group], x)
        own, own_tau = np.einsum("ni,ni->n", s, x), p * np.einsum("ni,ni->n", s, s)
        total, part = self._variance(weights)
        width = self._width(own + total, own - own_tau, part, own_tau, group, level)
        return self._unit * estimate, width

    def of_contrasts(self, rows: Array, weights: Array, level: float) -> tuple[Array, Array, Array]:
        """Estimate, width and floor of sums of group means at rows, with a weight per group.

        The floor is the standard deviation that stays however much feedback comes: the averages of
        a few arms differ even if those of all possible arms are the same.
        """
        number = len(rows)
        if not self.number:
            nothing = np.full(number, np.nan)
            return nothing, np.full(number, np.inf), nothing
        x = rows / self.units
        estimate = np.einsum("rg,gi,ri->r", weights, self._post.m, x)
        total, part = self._variance(weights[:, :, None] * x[:, None, :])
        zero = np.zeros(number)
        width = self._width(total, zero, part, zero, None, level)
        # Were every theta_i known, m_g would be the mean of n_g of them, with the variance tau^2 /
        # n_g.
        floor = (weights**2 @ (self._tau2 / self.groups.sizes)) * (x**2).sum(axis=1)
        return self._unit * estimate, width, self._unit * np.sqrt(floor)

    def _variance(self, weights: Array) -> tuple[Array, Array]:
        """The variance of sums of group means, and per group its part proportional to tau^2."""
        total = np.einsum("rgi,gij,rgj->r", weights, self._V, weights)
        part = np.einsum("rgi,gij,rgj->rg", weights, self._V_tau, weights)
        return total, part

    def _width(
        self,
        total: Array,
        own_noise: Array,
        part: Array,
        own_tau: Array,
        group: NDArray[np.int64] | None,
        level: float,
    ) -> Array:
        """Student's quantile times the standard deviation; infinite where nothing was seen.

        With parts v_k of the variance, each estimated with f_k degrees of freedom, the quantile has
        (sum v_k)^2 / sum (v_k^2 / f_k) degrees of freedom (Satterthwaite).
        """
        from scipy.stats import t as student

        of_tau = part.copy()
        if group is not None:
            of_tau[np.arange(len(total)), group] += own_tau
        # The parts leave out that an arm is itself in the mean of its group, so they may add up to
        # more than the whole. What is left for the noise is at least that of the arm alone.
        noise = np.maximum(total - of_tau.sum(axis=1), own_noise)
        freedom = np.maximum(self._freedom, 1.0)
        of_tau *= 1.0 + 2.0 / freedom[1:]
        total = noise + of_tau.sum(axis=1)
        uncertain = noise**2 / freedom[0] + (of_tau**2 / freedom[1:]).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            degrees = np.where(uncertain > 0.0, total**2 / uncertain, np.inf)
        width: Array = student.isf(0.5 * (1.0 - level), np.maximum(degrees, 1.0))
        width = self._unit * width * np.sqrt(np.maximum(total, 0.0))
        # A context in a direction without any data keeps the flat prior's variance.
        return np.where(total < UNKNOWN * self._flat, width, np.inf)


def _features(sums: Array) -> int:
    """d of the d^2 + d + 2 columns of a table of sums."""
    return round((float(np.sqrt(4 * sums.shape[1] - 7)) - 1) / 2)
