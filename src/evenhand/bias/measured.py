"""The bias after true rewards: what rests on equal averages, and what on measured truth.

This is the one estimator of policies and audits. Each brings its `Evidence`: what feedback says of
the groups' means, and a function that gives the joint posterior of means and of true differences,
`evenhand.leastsquares._blend`. How far averages may differ (kappa^2), the precision-weighted bias,
the test of equal averages, when equality is given up, and the test of arrival are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.bias._evidence import Evidence

Array = NDArray[np.float64]

FREE = 1e6  # of kappa^2: averages may differ by anything
ESTIMATED = -1.0  # of kappa^2: it is chosen by its likelihood
UNKNOWN = 1e-2  # of a flat prior's variance: what still varies by so much has not been seen
_RANK = 1e-9  # of the largest eigenvalue: true rewards say nothing about directions below it


class Measured:
    """What true rewards say about the bias: `PooledGroupFair.measured` and audits create it.

    With several attributes, groups by round or arms that come once, the rows of `bias`,
    `by_averages`, `by_truth` and `advantage` are levels and intersections, as in `bias().at`.

    Args:
        number: how many true rewards there are.
        feedback: how many observed rewards there are.
        start: called for what both say, if there are some of both.
        kappa2: how far averages may differ; estimated unless given.
        since: the round of the first decision with a true reward, if it is known.

    Attributes:
        number: how many true rewards there are.
        feedback: how many observed rewards there are to compare them with.
        since: the round of the first decision with a true reward; 0 if it is not known.
        kappa2: how far averages may differ, as a variance in the units of the model.
        usable: whether they are used: where units are estimated, some must be of the reference.
        scale: offset + scale * true reward is in units of the observed reward.
        offset: the same.
        p_equal: the p-value of the test that the groups' true averages are equal.
        equal: whether averages are still held constant; if not, groups may differ.
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
        >>> measured = policy.measured()
        >>> measured.of_contexts([[1.0], [2.0]], np.array([0, 0]), 0.9)[0].round(3).tolist()
        [-4.0, -8.0]
        >>> estimate, covariance = measured.of_groups()
        >>> (estimate[0] - estimate[1]).round(3).tolist()
        [-4.0]
        >>> contrast = np.array([[1.0, -1.0]])  # F less M, which has the reference's bias of 0
        >>> whole = np.array([False])
        >>> measured.of_contrasts(np.ones((1, 1)), contrast, whole, 0.9)[0].round(3).tolist()
        [-4.0]
    """

    def __init__(
        self,
        number: int,
        feedback: int,
        start: Callable[[], Evidence],
        kappa2: float = ESTIMATED,
        since: int = 0,
    ) -> None:
        self.number, self.since, self.feedback = number, since, feedback
        self.p_equal = self.p_arrival = float("nan")
        self.usable, self.equal, self.arrived_better = False, True, False
        if not self.number or not self.feedback:
            return
        self._start = start()
        self.scale, self.offset = self._start.scale, self._start.offset
        self.usable = self.scale > 0.0
        self.p_arrival = self._arrival()
        if not self.usable:
            return
        self._after = self._start.blended(kappa2)
        self.kappa2 = float(self._after.numbers[0])
        self.equal = self.kappa2 == 0.0
        self._left = max(self.number - float(self._after.numbers[2]), 1.0)
        self.by_averages = self._in_units(
            self._start.contrasts @ self._start.basis @ self._start.means
        )
        self.bias = self._bias(self._after)
        self.by_truth = self._bias(self._start.blended(FREE))
        self.p_equal = self._test(self._start.blended(0.0))
        eta = self._means_and_e(self._after)[1]
        self.advantage = self._in_units(self._start.contrasts[:, self._start.first :] @ eta)

    def of_contexts(
        self, rows: Array, groups: NDArray[np.int64], level: float
    ) -> tuple[Array, Array]:
        """Estimate and width of the bias of groups, by their rows in `bias`, at contexts."""
        contrasts, whole = self._start.contrasts[groups], self._start.whole[groups]
        return self.of_contrasts(rows, contrasts, whole, level)

    def of_contrasts(
        self, rows: Array, contrasts: Array, whole: NDArray[np.bool_], level: float
    ) -> tuple[Array, Array]:
        """The same for sums of columns, each at its row; `whole` ones have the reference's bias."""
        from scipy.stats import t as student

        start, after, number = self._start, self._after, len(rows)
        x = rows / start.unit
        M, eta, psi_0 = self._means_and_e(after)
        of_eta = contrasts[:, start.first :]
        of_means = contrasts @ start.basis
        coefficients = of_means @ M - of_eta @ eta + np.outer(whole, psi_0)
        estimate = start.rho * np.einsum("ri,ri->r", coefficients, x)
        of_m = np.einsum("rq,rk->rqk", of_means, x).reshape(number, -1)
        of_e = -np.einsum("rq,rk->rqk", of_eta, x).reshape(number, -1)
        if len(after.root):
            of_e = np.hstack([of_e, whole[:, None] * (x @ after.root)])
        # The variance of m is R + X H X', that of e is H, and they have -X H in common.
        # With m = m^ - X e + an error of its own with the variance R: of the combination of_m . m +
        # of_e . e, the part of e is (of_e - of_m X).
        left = of_e - of_m @ after.X
        own = np.einsum("ri,ij,rj->r", of_m, after.R, of_m)
        own += np.einsum("ri,ij,rj->r", left, after.H, left)
        # Variances are estimates. Student's quantile allows for that in the width. But they also
        # weigh feedback against truth, so the variance is multiplied by 1 + 2 / freedom.
        wider = np.maximum(own * (1.0 + 2.0 / start.freedom), 0.0)
        width = float(student.isf(0.5 * (1.0 - level), start.freedom)) * start.rho
        # Data leave next to nothing of a flat prior's variance where they say anything at all. What
        # still has a hundredth of it is not identified.
        known = (own < UNKNOWN * start.flat) & ~contrasts[:, ~start.seen].any(axis=1)
        return estimate, np.where(known, width * np.sqrt(wider), np.inf)

    def of_groups(self) -> tuple[Array, Array]:
        """m - eta of every group, and its covariance: (groups, d) and (groups, groups, d, d).

        Only differences between groups mean something: these are differences of bias. For a start
        whose columns are groups, each with an eta.
        """
        start, after = self._start, self._after
        M, eta, _ = self._means_and_e(after)
        m, d = M.shape
        XH = after.X @ after.H
        # Var(m) + Var(eta) - Cov(m, eta) - its transpose, where Cov(m, eta) is -X H.
        joint = after.R + XH @ after.X.T + XH + XH.T + after.H
        scale = start.rho / np.tile(start.unit, m)
        blocks = (scale[:, None] * joint * scale).reshape(m, d, m, d).transpose(0, 2, 1, 3)
        return self._in_units(M - eta), blocks

    # Inside -------------------------------------------------------------------------------------

    def _in_units(self, coefficients: Array) -> Array:
        """From the model's units to those of features and rewards."""
        in_units: Array = self._start.rho * coefficients / self._start.unit
        return in_units

    def _means_and_e(self, after: Any) -> tuple[Array, Array, Array]:
        """The means, eta and psi_0 after truth."""
        d, means = self._start.unit.size, self._start.means.ravel()
        M = (after.m_map @ means + after.m_at_0).reshape(-1, d)
        e = (after.e_map @ means + after.e_at_0).reshape(-1, d)
        return (M, e[:-1], e[-1]) if len(after.root) else (M, e, np.zeros(d))

    def _bias(self, after: Any) -> Array:
        """The bias of every row of the report, by feature."""
        start = self._start
        M, eta, psi_0 = self._means_and_e(after)
        bias = start.contrasts @ start.basis @ M - start.contrasts[:, start.first :] @ eta
        return self._in_units(bias + np.outer(start.whole, psi_0))

    def _test(self, after: Any) -> float:
        """The p-value of the test that eta, left free, is 0 (Wald): of n'N^-1 n / rank."""
        from scipy.stats import f

        size = after.n.size - len(after.root)
        N, n = after.N[:size, :size], after.n[:size]
        if len(after.root):
            rest = np.eye(len(after.root)) + after.N[size:, size:]
            cross = after.N[:size, size:]
            # psi_0 has a prior and is integrated out, so that only eta is tested.
            N = N - cross @ np.linalg.solve(rest, cross.T)
            n = n - cross @ np.linalg.solve(rest, after.n[size:])
        if not np.isfinite(N).all():
            return float("nan")
        values, vectors = np.linalg.eigh(0.5 * (N + N.T))
        # Only differences of eta are identified, so N is singular by construction; and rounding
        # would divide by what is left there.
        seen = values > _RANK * max(values[-1], 0.0)
        rank = int(seen.sum())
        if not rank:
            return float("nan")
        statistic = float(((vectors.T @ n)[seen] ** 2 / values[seen]).sum()) / rank
        freedom = min(self._start.freedom, self._left)
        whole = self._start.of_covariance
        if np.isfinite(whole):  # Hotelling's: an estimate is too small in some direction
            freedom = min(freedom, whole - rank + 1.0)
            statistic *= (whole - rank + 1.0) / whole
        return float(f.sf(statistic, rank, freedom)) if freedom >= 1.0 else float("nan")

    def _arrival(self) -> float:
        if self._start.arrival is None:
            return float("nan")
        residuals, covariance = self._start.arrival
        self.arrived_better = bool(residuals.sum() > 0.0)
        return p_of_arrival(residuals, covariance)


def p_of_arrival(residuals: Array, covariance: Array) -> float:
    """The p-value of the test that decisions with a true reward had the feedback of others.

    Without a dependence on the outcome, their residuals r have the mean 0, and with their
    covariance C, r'C^-1 r has a chi-squared distribution.

    Args:
        residuals: the sum of residuals of feedback where true rewards came: in all, or by group.
        covariance: of these.

    Example:
        >>> import numpy as np
        >>> from evenhand.bias.measured import p_of_arrival
        >>> round(p_of_arrival(np.array([1.96]), np.eye(1)), 3)
        0.05
    """
    from scipy.stats import chi2

    statistic = float(residuals @ np.linalg.solve(covariance, residuals))
    return float(chi2.sf(statistic, len(residuals)))
