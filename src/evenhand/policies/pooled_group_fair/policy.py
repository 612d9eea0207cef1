"""PooledGroupFair: the policy to use unless you have a reason for another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand import _checks
from evenhand._membership import labels_of
from evenhand._random import mix
from evenhand.errors import InputError
from evenhand.groups import Groups
from evenhand.policies import _checks as checking
from evenhand.policies._checks import joined
from evenhand.policies._settings import Common
from evenhand.policies.base import Policy
from evenhand.policies.decision import Decision
from evenhand.policies.pooled_group_fair import _learning as _learning
from evenhand.policies.pooled_group_fair._candidates import explanation_of, intervals_of
from evenhand.policies.pooled_group_fair._choosing import half_normal_draw
from evenhand.policies.pooled_group_fair._layout import (
    EMPTY,
    LATEST,
    LIMIT,
    NUMBER,
    OF_TRUTH,
    SEEN,
    PooledRule,
    PooledState,
    new_state,
)
from evenhand.policies.pooled_group_fair._settings import (
    feature_names_of,
    is_name,
    names_of,
    shares_of,
    units_of,
    weights_of,
)
from evenhand.policies.pooled_group_fair._true_learning import merge_truth
from evenhand.policies.pooled_group_fair.beliefs import Beliefs
from evenhand.policies.pooled_group_fair.general import _choosing as _choosing
from evenhand.policies.pooled_group_fair.general._design import design_of, reference_of
from evenhand.policies.pooled_group_fair.general._layout import (
    OF_GENERAL_TRUTH,
    GeneralRule,
    GeneralState,
)
from evenhand.policies.pooled_group_fair.general._layout import new_state as new_general_state
from evenhand.policies.pooled_group_fair.general._learning import merge_general
from evenhand.policies.pooled_group_fair.general.beliefs import GeneralBeliefs

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.policies.pooled_group_fair.general.report import GeneralBias
    from evenhand.policies.pooled_group_fair.measured import Measured
    from evenhand.policies.pooled_group_fair.report import PooledBias


class PooledGroupFair(Policy):
    """Learn the bias of every group with arms that learn from each other, and correct for it.

    The coefficients of the arms of a group vary around the group's mean, and the means of the
    groups differ by their bias. All variances are estimated, so there is nothing to tune. The score
    of an arm is its estimate, minus the mean of its group, plus that of the reference, plus a bonus
    for what is not known about the arm: z standard deviations, where z = |N(0, 1)| is drawn once a
    round for all arms. docs/explanation/pooling.md has the model, and
    docs/explanation/which-policy.md the cases in which another policy is better.

    It assumes that the true averages of the groups are equal. Feedback alone cannot check that.
    True rewards that come later can, `update(decision, true_reward=...)`: they sharpen the bias,
    and if they contradict equal averages, groups may differ (docs/how-to/true-rewards.md).

    Args:
        groups: two or more; also `Groups.of_attributes`, for a bias per attribute and what an
            intersection adds, and `Groups.per_round`, for groups that come with each round.
        reference: what groups are corrected towards: the name of a group whose feedback is
            undistorted, or a list of such names, or "mean" for the mean of all groups; with
            attributes also a mapping, such as {"sex": "M"}. By default it is the group that is not
            sensitive if there are two groups, and otherwise the mean. Name a group if you know one:
            the mean costs more where the bias of a feature is unlike that of the others.
        probe: whether to pull, now and then, the arm that says most about which group leads. It
            matters where contexts hardly vary, and costs next to nothing elsewhere. There is no
            probe where groups come with the round.
        shares: "proportional" to give every group the same share of the choices as of the arms,
            whatever the features of its candidates: a price per group is then added to scores,
            higher the more choices the group is behind its share. This is a quota: it treats
            candidates of the same corrected worth unequally, which some laws forbid. By default
            shares are what corrected scores make them.
        arms: "recurring" if an arm is the same in every round, such as an office; "once" if arms
            are candidates who come once: then there is one regression for all, with effects of
            groups, in place of one per arm.
        true_units: (scale, offset) if offset + scale * true reward is in units of the observed
            reward; or "estimate" to learn both from the reference, which must then be named.
        noise (float | str): the standard deviation of rewards around their mean if it is known; by
            default it is estimated.

    All other arguments are those of `Policy`. `horizon` and `delta` are taken so that policies can
    be exchanged; nothing here depends on them. `exploration` is "none" unless you ask for it.

    Late, batched and shuffled rewards give the same state: `_learning` says how.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> groups = eh.Groups(["F", "F", "M", "M"], sensitive="F")
        >>> policy = eh.PooledGroupFair(groups, n_features=1, seed=7)
        >>> policy.absorb([0, 1, 2, 3] * 5, np.ones((20, 1)), rewards=[1.0, 2.0, 7.0, 8.0] * 5)
        >>> policy.select(np.ones((4, 1))).scores.correction.round(1).tolist()
        [6.0, 6.0, 0.0, 0.0]
    """

    learns_by_round = True
    learns_truth = True
    added_since = (*OF_TRUTH, *OF_GENERAL_TRUTH)
    estimates_variances = True
    takes_membership = True

    def __init__(
        self,
        groups: Groups | Sequence[object],
        n_features: int,
        horizon: int | None = None,
        delta: float = 0.1,
        *,
        reference: object = None,
        probe: bool = True,
        shares: str | None = None,
        true_units: object = (1.0, 0.0),
        arms: str = "recurring",
        **common: Unpack[Common],
    ) -> None:
        settings: Common = {"noise": "estimate", "exploration": "none"}
        settings.update(common)
        super().__init__(groups, n_features, horizon, delta, **settings)
        if type(self).prior is not Policy.prior:
            raise InputError(
                f"{type(self).__name__} has a prior, which PooledGroupFair does not use: how "
                "coefficients vary is estimated; leave the method out, or derive the class from "
                "a policy of separate regressions, such as GroupFairTopInterval"
            )
        self.arms = _checks.one_of("arms", arms, ("recurring", "once"))
        if len(self.groups) < 2 and not self.groups.changes:
            raise InputError(
                f"groups are {self.groups.names[0]} alone; allowed are two or more: "
                "a bias can only be seen against another group"
            )
        by_name = is_name(reference) or isinstance(reference, Mapping)
        self.reference = reference if by_name else names_of(reference)
        self.probe = _checks.yes_or_no("probe", probe)
        self.shares = shares_of(shares, self._is_general)
        self._design = design_of(self.groups) if self._is_general else None
        self._weights = self._weights_of(self.reference)
        self.true_units = units_of(true_units, self._is_free(self._weights))

    @property
    def _is_general(self) -> bool:
        """Whether the general form is needed."""
        groups = self.groups
        return groups.changes or len(groups.attributes) > 1 or self.arms == "once"

    def _weights_of(self, reference: object) -> NDArray[np.float64]:
        """The weight of every group in the reference; groups that are named weigh by their arms."""
        chosen = self.groups.reference if reference is None else reference
        if self._design is not None:
            return reference_of(self._design, self.groups, chosen)
        return weights_of(self.groups, chosen, reference)

    def _is_free(self, weights: NDArray[np.float64]) -> bool:
        """Whether nobody named the reference, so that it may be distorted itself."""
        if self._design is None:
            return bool((weights > 0.0).all())
        return bool((weights[1 : 1 + self._design.n_levels][self._design.stated] > 0.0).all())

    # The maths ----------------------------------------------------------------------------------

    def learns(self) -> PooledState | GeneralState:
        """Sums of rewards, and the posterior."""
        if self._design is not None:
            columns, levels = self._design.kinds.size, self._design.n_levels
            recurs = self.arms == "recurring"
            return new_general_state(self.n_arms, self.n_features, columns, levels, recurs)
        return new_state(self.n_arms, len(self.groups), self.n_features)

    def rule(self) -> PooledRule | GeneralRule:
        """The groups, and what they are compared with.

        Example:
            >>> import evenhand as eh
            >>> groups = eh.Groups(["F", "F", "M", "M"], sensitive="F")
            >>> policy = eh.PooledGroupFair(groups, n_features=1)
            >>> policy.rule().weights.tolist()  # the reference is M
            [0.0, 1.0]
        """
        units = (0.0, 0.0) if isinstance(self.true_units, str) else self.true_units
        if self._design is not None:
            design, noise = self._design, self.noise
            return GeneralRule(
                self.n_features,
                design.levels,
                design.cells,
                design.kinds,
                self._weights,
                -1.0 if isinstance(noise, str) else noise**2,
                self.arms == "recurring",
                self._is_free(self._weights),
                *units,
                self.probe,
            )
        return PooledRule(
            self.n_features,
            self.groups.of,
            self.groups.sizes.astype(np.float64),
            self._weights,
            self._is_free(self._weights),
            -1.0 if isinstance(self.noise, str) else self.noise**2,
            *units,
            self.probe,
            self.shares == "proportional",
        )

    def merge_own(self, mine: Any, its: Any) -> None:
        """Add the sums of another policy; what was settled in either is settled."""
        mine.settled[...] += its.settled
        mine.fresh[...] += its.fresh
        if self._design is not None:
            merge_general(mine, its)
            return
        mine.groups[:, SEEN] += its.groups[:, SEEN]
        for number in (LATEST, LIMIT):
            mine.common[number] = max(mine.common[number], its.common[number])
        mine.common[NUMBER] += its.common[NUMBER]
        mine.common[EMPTY] = np.count_nonzero(mine.groups[:, SEEN] == 0.0)
        mine.true[...] += its.true
        merge_truth(mine, its)

    # What was learned ---------------------------------------------------------------------------

    def beliefs(self, weights: NDArray[np.float64] | None = None) -> Any:
        """The posterior of everything learned so far, with variances estimated from all of it.

        `GeneralBeliefs` for several attributes, membership by round and arms that come once,
        `Beliefs` otherwise.

        Args:
            weights: of the groups in the reference; the policy's own unless given.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> policy = eh.PooledGroupFair(["F", "F", "M", "M"], n_features=1, seed=1)
            >>> policy.absorb([0, 1, 2, 3] * 5, np.ones((20, 1)), [1.0, 2.0, 7.0, 8.0] * 5)
            >>> policy.beliefs().means.round(1).tolist()
            [[1.5], [7.5]]
        """
        return self._read(weights)[0]

    def _read(self, weights: NDArray[np.float64] | None = None) -> tuple[Any, Measured]:
        """The posterior, and what true rewards say beside it, from the same copy of the state."""
        from evenhand.policies.pooled_group_fair._evidence import evidence_of
        from evenhand.policies.pooled_group_fair.general._evidence import (
            evidence_of as general_evidence_of,
        )
        from evenhand.policies.pooled_group_fair.measured import Measured

        chosen = self._weights if weights is None else weights
        rule: Any = self.rule()
        with self._lock:
            own: Any = type(self._state.own)(*(part.copy() for part in self._state.own))
        if self._design is not None:
            general = GeneralBeliefs(self.groups, self._design, rule, own, chosen)
            free = self._is_free(chosen)
            return general, Measured(
                own.truth, general.number, lambda: general_evidence_of(rule, own, general, free)
            )
        rule = rule._replace(weights=chosen, free=self._is_free(chosen))
        sums = own.settled + own.fresh
        beliefs = Beliefs(self.groups, sums, chosen, rule.sigma2)
        return beliefs, Measured(
            own.truth, beliefs.number, lambda: evidence_of(rule, own.true, sums, beliefs)
        )

    def measured(self, weights: NDArray[np.float64] | None = None) -> Measured:
        """What true rewards say about the bias, and whether averages are still held constant.

        Args:
            weights: of the groups in the reference; the policy's own unless given.

        Example:
            >>> import evenhand as eh
            >>> eh.PooledGroupFair(["F", "F", "M", "M"], n_features=1).measured().number
            0
        """
        return self._read(weights)[1]

    def intervals(
        self, contexts: ArrayLike, level: float = 0.9, *, groups: Any = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Estimate and width of the expected observed reward of every arm, before any correction.

        Args:
            contexts: the context of every arm.
            level: the probability that the interval holds the truth.
            groups: of the candidates, if they come with the round: as for `select`.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> policy = eh.PooledGroupFair(["F", "F", "M", "M"], n_features=1, seed=1)
            >>> rewards = np.repeat([1.0, 2.0, 7.0, 8.0], 5) + np.tile([-1, -0.5, 0, 0.5, 1], 4)
            >>> policy.absorb(np.repeat([0, 1, 2, 3], 5), np.ones((20, 1)), rewards)
            >>> estimate, width = policy.intervals(np.ones((4, 1)))
            >>> estimate.round(1).tolist(), bool((width > 0.5).all())
            ([1.1, 1.9, 7.1, 7.9], True)
        """
        return self._intervals(contexts, level, groups, corrected=False)

    def corrected_intervals(
        self, contexts: ArrayLike, level: float = 0.9, *, groups: Any = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The same for the corrected reward: what the arm is worth if averages are equal.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> policy = eh.PooledGroupFair(["F", "F", "M", "M"], n_features=1, reference="M")
            >>> rewards = np.repeat([1.0, 2.0, 7.0, 8.0], 5) + np.tile([-1, -0.5, 0, 0.5, 1], 4)
            >>> policy.absorb(np.repeat([0, 1, 2, 3], 5), np.ones((20, 1)), rewards)
            >>> policy.corrected_intervals(np.ones((4, 1)))[0].round(1).tolist()
            [7.1, 7.9, 7.1, 7.9]
        """
        return self._intervals(contexts, level, groups, corrected=True)

    def _intervals(
        self, contexts: ArrayLike, level: float, groups: Any, corrected: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rows, chance = self._rows(contexts, groups), self._level(level)
        return intervals_of(
            rows, self._read(), self.groups, self._design, self._weights, chance, corrected
        )

    def _rows(self, contexts: ArrayLike, groups: Any = None) -> NDArray[np.float64]:
        rows = joined(self, contexts, groups)
        bad = np.flatnonzero(~(np.abs(rows) <= _checks.LARGEST).all(axis=1))
        if bad.size:
            raise checking.bad_contexts(int(bad[0]), rows)
        return rows

    @staticmethod
    def _level(level: float) -> float:
        return _checks.number("level", level, 0.0, 1.0, open_ends=True)

    def bias(  # type: ignore[override]
        self,
        reference: object = None,
        level: float = 0.9,
        feature_names: Sequence[object] | None = None,
    ) -> PooledBias | GeneralBias:
        """The bias of every group, feature by feature, with intervals and in words.

        Args:
            reference: what to compare groups with, as in the constructor; the policy's own
                unless given.
            level: the probability that an interval holds the truth.
            feature_names: the names of the features, by default x1, x2, ...

        Example:
            >>> import numpy as np, evenhand as eh
            >>> groups = eh.Groups(["F"] * 3 + ["M"] * 3, sensitive="F")
            >>> policy = eh.PooledGroupFair(groups, n_features=1, seed=1)
            >>> policy.absorb([0, 1, 2, 3, 4, 5] * 5, np.ones((30, 1)), [1, 2, 3, 6, 7, 8] * 5)
            >>> policy.bias().to_frame()[["group", "estimate"]].round(1).values.tolist()
            [['F', -5.0], ['M', 0.0]]
        """
        from evenhand.policies.pooled_group_fair.general.report import GeneralBias
        from evenhand.policies.pooled_group_fair.report import PooledBias

        names = feature_names_of(feature_names, self.n_features)
        weights = self._weights if reference is None else self._weights_of(reference)
        (beliefs, measured), chance = self._read(weights), self._level(level)
        kind = PooledBias if self._design is None else GeneralBias
        return kind(beliefs, chance, names, measured)

    def _labels(self, decision: Decision) -> list[str]:
        """The group of every candidate, in words."""
        if decision.groups is None:
            return list(self.groups.labels)
        return labels_of(self.groups, decision.groups)

    def explain(self, decision: Decision) -> pd.DataFrame:
        """The score of every arm in a decision of this policy, and the parts that add up to it.

        `bonus` is the width times z, the random number of the round; with `shares="proportional"`
        there is also the `price` of the group. The arm with the highest score was chosen, except
        where `probe` or exploration chose.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> policy = eh.PooledGroupFair(["F", "F", "M", "M"], n_features=1, seed=7)
            >>> policy.absorb([0, 1, 2, 3] * 5, np.ones((20, 1)), rewards=[1.0, 2.0, 7.0, 8.0] * 5)
            >>> table = policy.explain(policy.select(np.ones((4, 1))))
            >>> list(table.columns)
            ['group', 'estimate', 'correction', 'bonus', 'score']
            >>> parts = table.estimate + table.correction + table.bonus
            >>> bool(np.allclose(parts, table.score))
            True
        """
        if not isinstance(decision, Decision):
            raise InputError(
                f"decision is {decision!r}; allowed is the result of select", value=decision
            )
        z = half_normal_draw(np.uint64(mix(np.uint64(self._key), decision.round)))
        return explanation_of(decision.scores, z, self._labels(decision), self.shares is not None)
