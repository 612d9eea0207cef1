"""The bias after true rewards: what rests on equal averages, what on measured truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._compile import compiled
from evenhand.policies.pooled._flat import flat_posterior
from evenhand.policies.pooled._layout import FIRST_TRUE, IN_USE, KAPPA2, TRUE_NUMBER
from evenhand.policies.pooled._posterior import in_units
from evenhand.policies.pooled._rule import PooledRule
from evenhand.policies.pooled._true_rewards import truth_in_units, units_of_truth
from evenhand.policies.pooled._truth import blend, corrected

Array = NDArray[np.float64]

FREE = 1e6  # of kappa^2: averages may differ by anything
_RANK = 1e-9  # of the largest eigenvalue: directions of which true rewards say nothing


@compiled
def _after_truth(rule, sums, true, kappa2, d):  # type: ignore[no-untyped-def]
    """Units, scale, offset, what tau^2 rests on, the posterior, and means and -psi after truth."""
    unit, of_rewards, variances, freedom, _, post = flat_posterior(
        sums, rule.group_of, rule.sizes, rule.sigma2, d
    )
    m = rule.sizes.size
    shifted, correction, means = np.zeros(m * d), np.zeros(m * d), np.empty(m * d)
    scale, offset = units_of_truth(rule, true, post, variances, unit, of_rewards)
    truth = truth_in_units(true, max(scale, 1e-300), offset, unit, of_rewards)
    data = in_units(sums, unit, of_rewards, rule.group_of, rule.sizes)
    after = blend(data, variances, post, truth, rule.weights, rule.free, kappa2)
    for k in range(m * d):
        means[k] = post.m[k // d, k % d]
    corrected(after, rule.weights, means, m, d, rule.free, shifted, correction)
    return unit, of_rewards, scale, offset, freedom, after, correction, post, variances


class Measured:
    """What true rewards say of the bias: `PooledGroupFair.measured` makes it.

    Attributes:
        number: how many true rewards there are.
        feedback: how many observed rewards there are to compare them with.
        since: the round of the first decision with a true reward; 0 if it is not known.
        usable: whether they are used: where units are estimated, that takes some of the reference.
        scale: offset + scale * true reward is in units of the observed reward.
        offset: the same.
        p_equal: the p-value of the test that the groups' true averages are equal.
        equal: whether averages are still held equal; if not, groups may differ.
        p_arrival: the p-value of the test that arrival does not depend on the outcome; NaN where
            it cannot be tested, because no observed reward of the same decisions is known.
        arrived_better: whether decisions with a true reward had better feedback than others.
        bias: psi by group and feature, from everything.
        by_averages: the same from equal averages and feedback alone.
        by_truth: the same if averages may differ by anything.
        advantage: by how much a group's true coefficients exceed those of the reference.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> groups = eh.Groups(["F", "F", "F", "M", "M", "M"], sensitive="F")
        >>> policy = eh.PooledGroupFair(groups, n_features=1, seed=1)
        >>> worth, lost = [5.0, 6.0, 7.0, 6.0, 7.0, 8.0], [4.0, 4.0, 4.0, 0.0, 0.0, 0.0]
        >>> for _ in range(60):
        ...     decision = policy.select(np.ones((6, 1)))
        ...     policy.update(decision, worth[decision.arm] - lost[decision.arm])
        ...     policy.update(decision, true_reward=worth[decision.arm])
        >>> policy.measured().number, (policy.measured().bias.round(0) + 0.0).tolist()
        (60, [[-4.0], [0.0]])
    """

    def __init__(self, rule: PooledRule, own: Any, sums: Array) -> None:
        d = rule.n_features
        m = rule.sizes.size
        self.number, self.since = int(own.truth[TRUE_NUMBER]), int(own.truth[FIRST_TRUE])
        self.p_equal = self.p_arrival = float("nan")
        self.usable, self.equal, self.arrived_better, self._rule = False, True, False, rule
        self.feedback = int(sums[:, -1].sum())
        if not self.number or not self.feedback:
            return
        # Whether averages are held equal, and how far they may differ, is what decisions use.
        kappa2 = float(own.truth[KAPPA2]) if own.truth[IN_USE] else 0.0
        unit, rho, scale, offset, freedom, after, correction, post, variances = _after_truth(
            rule, sums, own.true, kappa2, d
        )
        self.usable, self.scale, self.offset = bool(scale > 0.0), float(scale), float(offset)
        self._unit, self._rho, self._m, self._d = unit, rho, m, d
        self.p_arrival = self._arrival(own.true, post, variances, rho, unit)
        if not self.usable:
            return
        self.equal = kappa2 == 0.0
        self._freedom = max(float(freedom[1:].sum()), 1.0)
        self._left = max(self.number - float(after.numbers[2]), 1.0)
        reference = rule.weights @ post.m
        self.by_averages = rho * (post.m - reference) / unit
        self.bias = -rho * correction.reshape(m, d) / unit
        self._covariance = self._of_bias(after)
        free = _after_truth(rule, sums, own.true, FREE, d)
        self.by_truth = -rho * free[6].reshape(m, d) / unit
        self.p_equal = self._test(_after_truth(rule, sums, own.true, 0.0, d)[5])
        at_means = after.e_map @ post.m.ravel() + after.e_at_0
        eta = at_means[: m * d].reshape(m, d)
        self.advantage = rho * (eta - rule.weights @ eta) / unit

    def _to_bias(self, after: Any) -> Array:
        """The bias of all groups as a linear function of m and e."""
        m, d, weights = self._m, self._d, self._rule.weights
        size = m * d
        share = np.kron(np.eye(m) - weights[None, :], np.eye(d))
        rows = np.hstack([share, -share, np.zeros((size, after.n.size - size))])
        if after.n.size > size:
            rows[:, 2 * size :] = np.tile(after.root, (m, 1))
        return rows

    def _of_bias(self, after: Any) -> Array:
        R, X, H, rows = after.R, after.X, after.H, self._to_bias(after)
        joint = np.block([[R + X @ H @ X.T, -X @ H], [-(X @ H).T, H]])
        covariance: Array = rows @ joint @ rows.T
        return covariance

    def _test(self, after: Any) -> float:
        """Whether eta, left free, is further from 0 than chance would have it (Wald)."""
        from scipy.stats import f

        size = self._m * self._d
        N, n = after.N[:size, :size], after.n[:size]
        if after.n.size > size:
            rest = np.eye(self._d) + after.N[size:, size:]
            cross = after.N[:size, size:]
            N = N - cross @ np.linalg.solve(rest, cross.T)
            n = n - cross @ np.linalg.solve(rest, after.n[size:])
        if not np.isfinite(N).all():
            return float("nan")
        values, vectors = np.linalg.eigh(0.5 * (N + N.T))
        seen = values > _RANK * max(values[-1], 0.0)
        rank = int(seen.sum())
        if not rank:
            return float("nan")
        statistic = float(((vectors.T @ n)[seen] ** 2 / values[seen]).sum()) / rank
        return float(f.sf(statistic, rank, min(self._freedom, self._left)))

    def _arrival(self, true: Array, post: Any, variances: Any, rho: float, unit: Array) -> float:
        """Whether decisions with a true reward had better or worse feedback than others like them.

        Without a dependence on the outcome, their residuals have the mean 0.
        """
        from scipy.stats import norm

        d, group = self._d, self._rule.group_of
        p = 1.0 / variances.tau2[group]
        pull = np.einsum("nij,nj->ni", post.S, post.m[group]) * p[:, None]
        theta = rho * (post.u + pull) / unit
        x, y, number = true[:, -d - 2 : -2], true[:, -2], true[:, -1]
        total = number.sum()
        if total < 2 * d:
            return float("nan")
        residual = float((y - np.einsum("ni,ni->n", theta, x)).sum())
        self.arrived_better = residual > 0.0
        # What the fit takes off the variance of the sum: about x' S x / sigma^2 of each arm's sum.
        in_units = x / unit
        fitted = np.einsum("ni,nij,nj->n", in_units, post.S, in_units).sum()
        variance = rho**2 * max(variances.sigma2[0] * total - fitted, 0.1 * variances.sigma2[0])
        return float(2.0 * norm.sf(abs(residual) / np.sqrt(variance)))

    def of_contexts(
        self, rows: Array, groups: NDArray[np.int64], level: float
    ) -> tuple[Array, Array]:
        """Estimate and width of the bias of groups at rows."""
        from scipy.stats import t as student

        d = self._d
        x = rows / self._unit
        estimate = np.einsum("ri,ri->r", self.bias[groups], rows)
        blocks = self._covariance.reshape(self._m, d, self._m, d)
        own = np.einsum("ri,rij,rj->r", x, blocks[groups, :, groups, :], x)
        wider = own * (1.0 + 2.0 / self._freedom)
        width = float(student.isf(0.5 * (1.0 - level), self._freedom)) * self._rho
        return estimate, width * np.sqrt(np.maximum(wider, 0.0))
