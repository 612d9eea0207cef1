"""Reading what a policy has learned: counts, intervals, the bias; merging, saving, more arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import InputError
from evenhand.groups import Groups
from evenhand.leastsquares import counts, merge
from evenhand.leastsquares._saved import from_saved, to_saved
from evenhand.policies import _calls as calls
from evenhand.policies import _checks as checking
from evenhand.policies._live import Live
from evenhand.policies._settings import same_kind
from evenhand.policies._state import estimate_noise

if TYPE_CHECKING:
    from evenhand.bias import BiasReport
    from evenhand.policies.base import Policy


class Learned(Live):
    """The part of `Policy` that reads what was learned."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many rewards each arm has learned from."""
        return counts(self._state.arms)

    def merge(self, other: Policy) -> None:
        """Learn everything that another policy of the same class has learned, such as a replica.

        The other policy is not changed. Rounds are not added: they count this policy's decisions.

        Args:
            other: a policy of the same class and settings; the seed may differ.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> here = eh.TopInterval(["F", "M"], n_features=1, horizon=100, seed=1)
            >>> there = here.clone(seed=2)
            >>> here.absorb([0], np.ones((1, 1)), [1.0])
            >>> there.absorb([0, 1], np.ones((2, 1)), [3.0, 5.0])
            >>> here.merge(there)
            >>> here.counts.tolist(), here.intervals(np.ones((2, 1)))[0].round(9).tolist()
            ([2, 1], [2.0, 5.0])
        """
        same_kind(self, other)
        with self._lock:
            mine, its = self._state, other._state
            merge(mine.arms, its.arms, self.prior())
            merge(mine.groups, its.groups, self.prior())
            self.merge_own(mine.own, its.own)
            if mine.settings.noise < 0.0:
                estimate_noise(mine.arms, mine.levels)

    def merge_own(self, mine: Any, its: Any) -> None:
        """Add what another policy's `learns` has to this one's; sums are added.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> from typing import NamedTuple
            >>> class Highest(NamedTuple):
            ...     reward: np.ndarray
            >>> class Best(eh.TopInterval):
            ...     def merge_own(self, mine, its):
            ...         np.maximum(mine.reward, its.reward, out=mine.reward)
            >>> mine = Highest(np.array([1.0, 5.0]))
            >>> Best(["F", "M"], n_features=1).merge_own(mine, Highest(np.array([2.0, 3.0])))
            >>> mine.reward.tolist()
            [2.0, 5.0]
        """
        for table, added in zip(mine, its, strict=True):
            table += added

    def intervals(self, contexts: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Estimate and width of every arm at its context, before any correction.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> policy = eh.TopInterval(["F", "M"], n_features=1, horizon=100)
            >>> policy.absorb(arms=[0], contexts=[[1.0]], rewards=[2.0])
            >>> estimate, width = policy.intervals(np.ones((2, 1)))
            >>> estimate.tolist(), width.round(2).tolist()
            ([2.0, 0.0], [3.48, inf])
        """
        rows, out = checking.rows_of(contexts, self._shape), np.empty((2, self.n_arms))
        bad = calls.arm_intervals(self._regressions, self._members, self.round + 1, rows, out)
        if bad >= 0:
            raise checking.bad_contexts(bad, rows)
        return out[0], out[1]

    def group_intervals(
        self, contexts: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """psi_j . x_i and its width b_j, a row per group and a column per arm.

        For policies with `learns_groups`.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> groups = eh.Groups(["F", "F", "M", "M"], sensitive="F")
            >>> policy = eh.GroupFairTopInterval(groups, n_features=1, horizon=100)
            >>> policy.absorb([0, 1, 2, 3], np.ones((4, 1)), rewards=[1.0, 2.0, 7.0, 8.0])
            >>> policy.group_intervals(np.ones((4, 1)))[0].round(9).tolist()
            [[1.5, 1.5, 1.5, 1.5], [7.5, 7.5, 7.5, 7.5]]
        """
        if not self.learns_groups:
            raise InputError(
                f"{type(self).__name__} keeps no group regressions; set learns_groups to True"
            )
        rows = checking.rows_of(contexts, self._shape)
        out = np.empty((2, len(self.groups), self.n_arms))
        bad = calls.group_intervals(self._regressions, self._members, self.round + 1, rows, out)
        if bad >= 0:
            raise checking.bad_contexts(bad, rows)
        return out[0], out[1]

    def bias(
        self,
        reference: object = None,
        level: float = 0.95,
        weighting: str = "auto",
        noise: float | None = None,
        feature_names: Sequence[object] | None = None,
        units: Mapping[str, float] | None = None,
        average: ArrayLike | None = None,
        scales: ArrayLike | None = None,
    ) -> BiasReport:
        """How the feedback for each group is distorted, feature by feature, with intervals.

        It assumes that the true averages of the groups are equal. Any policy has the report: the
        sums of a group are those of its arms. docs/explanation/reading-bias.md says how to read it.

        Args:
            reference: the group to compare with, or "mean" for the mean of the groups. The default
                is the mean or, with two groups, the one that is not sensitive (if neither is, the
                one with more observations).
            level: the level of the intervals.
            weighting: "pulls" for the fit to all data of a group as in the paper, "arms" for the
                plain average of its arms' own coefficients, or "auto" for arms if every arm has
                enough observations.
            noise: the standard deviation of rewards if it is known; by default it is estimated
                from the residuals of each group's fit, whatever the policy's setting is.
            feature_names: the names of the features, by default x1, x2, ...
            units: the step of a feature that sentences mention, such as {"income": 1000}.
            average: the context to report totals at, one for all or a row per group. A policy
                knows the average of its contexts only if one of the features is always 1.
            scales: what each feature was divided by before the policy saw it, such as its standard
                deviation: the report is then in the original units.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> policy = eh.TopInterval(["F", "F", "M", "M"], n_features=1, seed=1)
            >>> policy.absorb([0, 0, 1, 1, 2, 2, 3, 3], np.ones((8, 1)), [1, 2, 2, 3, 5, 6, 6, 7])
            >>> print(policy.bias(reference="M").to_words().split(",")[0])
            At the average context the feedback for group F is 4.0 lower than that for group M
        """
        from evenhand.bias import bias_report, statistics_of

        return bias_report(
            statistics_of(self.groups, self._state.arms, self.prior()),
            reference=self.groups.reference if reference is None else reference,
            level=level,
            weighting=weighting,
            noise=noise,
            feature_names=feature_names,
            units=units,
            average=average,
            scales=scales,
        )

    def save(self, path: str | Path) -> None:
        """Write settings and everything learned to a JSON file that `evenhand.load` reads."""
        from evenhand.policies.saving import save

        save(cast("Policy", self), Path(path))


def with_more_arms(policy: Policy, groups: Groups) -> Policy:
    """A policy with more arms that has learned what `policy` has; `policy` is not changed.

    Sums by arm and by group are copied; what follows from them is worked out again. So it is the
    policy that would have learned the same with these arms, up to rounding.

    Args:
        policy: the policy that has learned.
        groups: those of its arms, in their order, and those of new arms. New groups are refused.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> from evenhand.policies._learned import with_more_arms
        >>> policy = eh.TopInterval(["F", "M"], n_features=1, horizon=100)
        >>> policy.absorb([0, 1], np.ones((2, 1)), [3.0, 5.0])
        >>> with_more_arms(policy, eh.Groups(["F", "M", "F"])).counts.tolist()
        [1, 1, 0]
    """
    n = policy.n_arms
    if groups.names != policy.groups.names or groups.labels[:n] != policy.groups.labels:
        raise InputError(
            f"groups are {', '.join(groups.labels)}; allowed are those of the present arms, "
            f"{', '.join(policy.groups.labels)}, and more arms of the same groups"
        )
    grown = policy.clone(groups=groups)
    mine, its = grown._state, policy._state
    for fits, old in ((mine.arms, its.arms), (mine.groups, its.groups)):
        saved = to_saved(old)
        if saved.size:  # arms fill blocks; lanes of a block without an arm yet are blank
            table = to_saved(fits)
            table[: len(saved)] = saved
            from_saved(fits, table)
    tables = zip(mine.own, its.own, strict=True)
    padded = (
        np.pad(old, [(0, new - size) for new, size in zip(fresh.shape, old.shape, strict=True)])
        for fresh, old in tables
    )
    grown.merge_own(mine.own, type(its.own)(*padded))
    if grown.noise == "estimate":
        estimate_noise(mine.arms, mine.levels)
    grown.round = policy.round
    return grown
