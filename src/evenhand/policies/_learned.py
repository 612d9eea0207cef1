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
from evenhand.policies import _checks as checking
from evenhand.policies import _live_calls as calls
from evenhand.policies._policy_state import Live
from evenhand.policies._settings import declared, same_kind
from evenhand.policies._state import (
    NOTHING,
    State,
    copied,
    estimate_noise,
    tables_of,
    wipe,
)

if TYPE_CHECKING:
    from evenhand.bias import BiasReport
    from evenhand.policies.base import Policy


class Learned(Live):
    """The part of `Policy` that reads what was learned."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many rewards each arm has learned from."""
        with self._lock:
            return counts(self._state.arms)

    @property
    def own(self) -> Any:
        """What `learns` declares, with what was learned so far: the policy's own arrays.

        Example:
            >>> import evenhand as eh
            >>> eh.TopInterval(["F", "M"], n_features=1).own  # it learns regressions alone
            Nothing()
        """
        with self._lock:  # first, as everywhere: `cached_property` has a lock too before 3.12
            return self._state.own

    def merge(self, other: Policy) -> None:
        """Learn everything that another policy of the same class has learned, such as a replica.

        The other policy is not changed. Rounds are not added: they count this policy's decisions.
        If `merge_own` fails, nothing is merged.

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
        declared(self)
        declared(other)
        its, _ = other._learned_so_far()  # a copy, so that nobody holds two locks
        with self._lock:
            mine = copied(self._state)
            merge(mine.arms, its.arms, self._prior)
            merge(mine.groups, its.groups, self._prior)
            other.merge_own(mine.own, its.own)  # its sums began with the initial values of `other`
            self._after_merging(mine)
            self._changes[0] += 1
            wipe(self._state, tables_of(mine))

    def _after_merging(self, state: State) -> None:
        """Work out what follows from sums that were merged."""
        if state.settings.noise < 0.0:
            estimate_noise(state.arms, state.levels)
        if self._rule_of_learning is not NOTHING:
            self._settle(self._rule_of_learning, state)

    def merge_own(self, mine: Any, its: Any) -> None:
        """Add what another policy has learned in its `own` arrays to this one's.

        By default they are sums: what was added to the other's initial values is added here.
        `merge` calls this method of the other policy, so `self.learns()` has those values.

        Args:
            mine: what the policy that merges has learned: arrays to be changed.
            its: what the other policy has learned.

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
        names = type(its)._fields
        for name, table, other, initial in zip(names, mine, its, self.learns(), strict=True):
            if table.shape != other.shape:
                raise InputError(
                    f"other has {name} of shape {other.shape}, this policy of shape {table.shape}; "
                    "allowed is the same shape, unless merge_own says what to do"
                )
            changed = other != initial  # an infinity that nothing was added to stays as it is
            table[changed] += other[changed] - initial[changed]

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
        with self._lock:
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
        with self._lock:
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

        with self._lock:
            statistics = statistics_of(self.groups, self._state.arms, self._prior)
        return bias_report(
            statistics,
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
        """Write settings and everything learned to a JSON file that `evenhand.load` reads.

        Example:
            >>> import pathlib, tempfile, evenhand as eh
            >>> policy = eh.UniformRandom(["F", "M"], n_features=1)
            >>> policy.absorb([0, 1, 1], [[1.0], [1.0], [2.0]], [3.0, 4.0, 5.0])
            >>> path = pathlib.Path(tempfile.mkdtemp()) / "loans.json"
            >>> policy.save(path)
            >>> eh.load(path).counts.tolist()
            [1, 2]
        """
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
    declared(policy)
    grown, (its, round) = policy.clone(groups=groups), policy._learned_so_far()
    mine = grown._state
    for fits, old in ((mine.arms, its.arms), (mine.groups, its.groups)):
        saved = to_saved(old)
        if saved.size:  # arms fill blocks; lanes of a block without an arm yet are blank
            table = to_saved(fits)
            table[: len(saved)] = saved
            from_saved(fits, table)
    wider = type(its.own)(*(table.copy() for table in mine.own))
    for fresh, old in zip(wider, its.own, strict=True):
        fresh[tuple(map(slice, old.shape))] = old
    grown.merge_own(mine.own, wider)
    grown._after_merging(mine)
    grown.round = round
    return grown
