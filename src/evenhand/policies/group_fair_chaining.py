"""GroupFairIntervalChaining: individual fairness after the correction for the bias of groups.

The corrected value of an arm i of group j at its context x is

    beta_hat_i . x - psi_j . x + sum over groups k of c_k psi_k . x

where psi_k is the plain average of the arms of group k and c_k the weight of the group in the
reference: 1 for the group that is named, or 1/m for each of m groups. It is a weighted sum of the
arms' estimates, which come from different data. So its variance over sigma^2 is

    v_i (1 - 2 (1 - c_j) / |P_j|) + sum over k of (c_k - [k = j])^2 V_k

where v_i is that of the arm's own estimate and V_k that of psi_k . x. The interval has the quantile
of an arm's, at level delta / (2 n T): there are n such intervals a round, so all of them hold in T
rounds with probability 1 - delta. It is never narrower than that of the arm's own estimate. Fits to
all data of a group instead of plain averages would not do, because they do not estimate what is
assumed to be equal.

Arms of a named reference are not corrected, so their intervals are narrower. If only the group of
the highest upper end is chained, the reference would then lose to groups about which less is known.
So there its arms get the variance that the correction of another group's arm would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Unpack

import numpy as np

from evenhand import _checks
from evenhand._compile import compiled
from evenhand._compile.intrinsics import stays_a_function
from evenhand._random import uniform
from evenhand.errors import InputError
from evenhand.groups import Groups
from evenhand.policies._best_arm import best, best_chance, pick
from evenhand.policies._group_choice import GROUP, open_arms_of
from evenhand.policies._kernels import PICKS, chance, draw, kernel, score
from evenhand.policies._scores import add_up, group_averages, group_widths, score_arms
from evenhand.policies._settings import Common
from evenhand.policies._state import (
    ARM,
    CORRECTION,
    CORRECTION_WIDTH,
    GROUP_WIDTH,
    UPPER,
    VARIANCE,
    WIDTH,
)
from evenhand.policies.base import Policy
from evenhand.policies.interval_chaining import _chained_arms

ALL, GROUP_OF_BEST = "all", "group"
MEAN = -1


class _GroupFairChainingRule(NamedTuple):
    """What groups are corrected towards (MEAN or a group's number), and who is chained."""

    reference: int
    in_group: bool
    two_passes: bool


@kernel(score, _GroupFairChainingRule)
def _score(rule, memory, t):  # type: ignore[no-untyped-def]
    work, members, n = memory.work, memory.members, memory.settings.n_arms
    arms = members.everyone
    averages = group_averages(memory.arms, members, memory.contexts, memory.room, arms)
    score_arms(memory, t)
    _correct(rule.reference, rule.in_group, work, members, averages, n)
    group_widths(memory, ARM, n, t)  # of the corrected values, whose variances are in VARIANCE now
    for i in range(n):
        # Never narrower than the arm's own interval: the smaller variance of an average would let a
        # correction make an arm look better known than it is.
        if work[GROUP_WIDTH, i] > work[WIDTH, i]:
            work[CORRECTION_WIDTH, i] = work[GROUP_WIDTH, i] - work[WIDTH, i]
    add_up(memory)


@compiled
def _correct(reference, in_group, work, members, averages, n):  # type: ignore[no-untyped-def]
    """The correction of every arm, and in VARIANCE that of its corrected value (see above)."""
    stays_a_function()
    m = members.sizes.size
    for i in range(n):
        # Groups have the weights c_k - [k = j] in the corrected value. Arm i is in the average of
        # its own group with 1 / |P_j|, so its covariance with that average is v_i / |P_j|: the term
        # 2 (c_j - 1) v_i / |P_j|, beside v_i and the sum of squares times V_k.
        own, added = 1.0, 0.0
        for k in range(m):
            weight = 1.0 / m if reference == MEAN else (1.0 if k == reference else 0.0)
            if k == members.group_of[i]:
                weight -= 1.0
                own += 2.0 * weight / members.sizes[k]
            if weight != 0.0:  # infinity times 0 is NaN
                work[CORRECTION, i] += weight * averages[0, k, i]
                added += weight**2 * averages[1, k, i]
        if in_group and members.group_of[i] == reference:  # uncertainty favours no group
            own -= 2.0 / members.sizes[reference]
            for k in range(m):
                added += averages[1, k, i] / (1.0 if k == reference else m - 1.0)
        if added < np.inf:
            # An infinite variance times an `own` of 0 would be NaN; then `added` is infinite as
            # well.
            work[VARIANCE, i] = max(own * work[VARIANCE, i] + added, 0.0)
        else:
            work[VARIANCE, i] = np.inf


@kernel(draw, _GroupFairChainingRule)
def _draw(rule, memory, available, key):  # type: ignore[no-untyped-def]
    allowed = available
    if rule.in_group:
        top = best(memory, available, uniform(key, GROUP))
        allowed = open_arms_of(memory.members, memory.members.group_of[top], available)
    return pick(_chained_arms(rule, memory, allowed), uniform(key, PICKS))


@kernel(chance, _GroupFairChainingRule)
def _chance(rule, memory, available, arm):  # type: ignore[no-untyped-def]
    if not available[arm]:
        return 0.0
    allowed, probability = available, 1.0
    if rule.in_group:  # the probability that the best one, ties at random, is of the arm's group
        allowed = open_arms_of(memory.members, memory.members.group_of[arm], available)
        highest = memory.work[UPPER, best(memory, allowed, 0.0)]
        probability = 0.0
        for i in range(allowed.size):
            if allowed[i] and memory.work[UPPER, i] == highest:
                probability += best_chance(memory, available, i)
    if probability == 0.0:
        return 0.0
    chained = _chained_arms(rule, memory, allowed)
    return probability * chained[arm] / np.sum(chained)


class GroupFairIntervalChaining(Policy):
    """Play uniformly among the arms whose *corrected* intervals are chained to the highest one.

    The bias of every group is learned and corrected for as by GroupFairTopInterval with
    `group_average="arms"`. Then arms that the data cannot tell apart are equally likely, as with
    IntervalChaining. `correction_width` in the scores is what the correction adds to the width.

    It is delta-fair in the sense of Joseph et al. (2016): with probability at least 1 - delta, in
    no round up to the horizon is an arm more likely than one with a higher true expected reward.
    That takes groups whose true averages are exactly equal, a reference whose feedback is right,
    rewards that are linear in the context, independent normal noise, a `horizon`, `chain="all"`,
    and the defaults of `singular` and `conventions`. It is proved if pulls do not depend on
    earlier rewards; the pulls of a bandit do, and `python -m benchmarks.chaining` measures that
    case. Exploration is uniform, so it favours nobody. docs/how-to/individual-fairness.md says
    when to use it, and what it costs.

    Args:
        groups: two or more; a group of one arm warns.
        chain: "all" to chain the candidates of all groups; "group" to chain those of the group of
            the best candidate alone. That costs less, and is delta-fair among candidates of the
            same group only.
        reference: what groups are corrected towards: the name of a group whose feedback is
            undistorted, or "mean" for the mean of all groups. By default it is the group that is
            not sensitive if there are two groups, and otherwise the mean. With the mean, corrected
            values are right up to the mean of the biases, so candidates are compared correctly only
            where their contexts are the same.

    All other arguments are those of `Policy`. A round takes time in proportion to the square of the
    number of arms.

    References:
        Joseph, Kearns, Morgenstern and Roth (2016), on the corrected values of Schumann et al.
        (2022).

    Example:
        >>> import numpy as np, evenhand as eh
        >>> groups = eh.Groups(["F", "F", "M", "M"], sensitive="F")
        >>> policy = eh.GroupFairIntervalChaining(
        ...     groups, n_features=1, horizon=100, exploration="none")
        >>> policy.absorb([0, 1, 2, 3] * 9, np.ones((36, 1)), rewards=[1.0, 5.0, 7.0, 11.0] * 9)
        >>> decision = policy.select(np.ones((4, 1)))
        >>> decision.scores.correction.round(9).tolist(), decision.scores.width.round(2).tolist()
        ([6.0, 6.0, 0.0, 0.0], [1.22, 1.22, 1.22, 1.22])
        >>> policy.propensities(np.ones((4, 1))).tolist()
        [0.0, 0.5, 0.0, 0.5]
    """

    def __init__(
        self,
        groups: Groups | Sequence[object],
        n_features: int,
        horizon: int | None = None,
        delta: float = 0.1,
        *,
        chain: str = ALL,
        reference: object = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(groups, n_features, horizon, delta, **common)
        self.chain = _checks.one_of("chain", chain, (ALL, GROUP_OF_BEST))
        self.reference = reference
        if len(self.groups) < 2:
            raise InputError(
                f"groups are {self.groups.names[0]} alone; allowed are two or more: "
                "a bias can only be seen against another group"
            )
        self._towards = self._number_of(reference)
        self.groups.warn_of_single_arms()

    def _number_of(self, reference: object) -> int:
        """The number of the reference among the groups, or MEAN."""
        chosen = self.groups.reference if reference is None else reference
        if chosen is None or (chosen == "mean" and "mean" not in self.groups.names):
            return MEAN
        if str(chosen) not in self.groups.names:
            raise InputError(
                f"reference is {_checks.shown(reference)}; allowed are 'mean' or one of "
                f"{', '.join(self.groups.names)}",
                value=reference,
            )
        return self.groups.index(chosen)

    def rule(self) -> _GroupFairChainingRule:
        """The reference, and how to chain."""
        return _GroupFairChainingRule(
            self._towards,
            self.chain == GROUP_OF_BEST,
            self.conventions.chain == "two passes",
        )
