"""MultiGroupFairTopInterval: learn and correct the bias of any number of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._checks import LARGEST
from evenhand._compile import woven
from evenhand.errors import InputError
from evenhand.groups import Groups
from evenhand.policies._kernels import kernel, score
from evenhand.policies._scores import (
    ARMS,
    GROUP_AVERAGES,
    PULLS,
    add_up,
    group_averages,
    score_arms,
    score_average,
    score_group,
)
from evenhand.policies._settings import Common
from evenhand.policies._state import CORRECTION, CORRECTION_WIDTH, GROUP_ESTIMATE, GROUP_WIDTH
from evenhand.policies.base import Policy


class _MeanReferenceRule(NamedTuple):
    """The reference is the mean of the groups' vectors, so it depends on the context."""

    scale: float


class _ConstantReferenceRule(NamedTuple):
    """The reference is the same number rho for all arms and contexts."""

    rho: float
    scale: float


class _BalancedMeanRule(_MeanReferenceRule):
    """The same with plain averages of the groups' arms."""


class _BalancedConstantRule(_ConstantReferenceRule):
    """The same with plain averages of the groups' arms."""


@kernel(score, _MeanReferenceRule)
def _score_mean(rule, memory, t):  # type: ignore[no-untyped-def]
    """beta_hat . x + w - psi_j . x + mean over k of psi_k . x, with widths weighted alike."""
    members = memory.members
    score_arms(memory, t)
    for k in range(members.sizes.size):
        score_group(memory, k, members.everyone, t)
        _compare(rule, memory, k)
    add_up(memory)


@kernel(score, _BalancedMeanRule)
def _score_balanced_mean(rule, memory, t):  # type: ignore[no-untyped-def]
    members = memory.members
    arms = members.everyone
    averages = group_averages(memory.arms, members, memory.contexts, memory.room, arms)
    score_arms(memory, t)
    for k in range(members.sizes.size):
        score_average(memory, averages, k, arms, t)
        _compare(rule, memory, k)
    add_up(memory)


@woven
def _compare(rule, memory, k):  # type: ignore[no-untyped-def]
    """Group k's part of the correction of every arm."""
    work, members = memory.work, memory.members
    m = members.sizes.size
    for i in range(memory.settings.n_arms):
        # -psi_j + (1 / m) sum of psi_k has the weight 1 / m - 1 on the own group and 1 / m on each
        # of the others.
        weight = rule.scale * (1.0 / m - (1.0 if members.group_of[i] == k else 0.0))
        # Not for weights of 0: an unseen group has an infinite width, and infinity times 0 is NaN.
        if weight != 0.0:
            work[CORRECTION, i] += weight * work[GROUP_ESTIMATE, i]
            work[CORRECTION_WIDTH, i] += abs(weight) * work[GROUP_WIDTH, i]


@kernel(score, _ConstantReferenceRule)
def _score_constant(rule, memory, t):  # type: ignore[no-untyped-def]
    """Algorithm 3, line 12: beta_hat . x + w + rho - psi_j . x + b_j."""
    work, members = memory.work, memory.members
    score_arms(memory, t)
    for k in range(members.sizes.size):
        arms = members.listed[members.starts[k] : members.starts[k + 1]]
        score_group(memory, k, arms, t)
        for place in range(arms.size):
            i = arms[place]
            work[CORRECTION, i] = rule.scale * (rule.rho - work[GROUP_ESTIMATE, place])
            work[CORRECTION_WIDTH, i] = rule.scale * work[GROUP_WIDTH, place]
    add_up(memory)


@kernel(score, _BalancedConstantRule)
def _score_balanced_constant(rule, memory, t):  # type: ignore[no-untyped-def]
    work, members = memory.work, memory.members
    arms = members.everyone
    averages = group_averages(memory.arms, members, memory.contexts, memory.room, arms)
    score_arms(memory, t)
    for k in range(members.sizes.size):
        score_average(memory, averages, k, arms, t)
        for i in range(memory.settings.n_arms):
            if members.group_of[i] == k:
                work[CORRECTION, i] = rule.scale * (rule.rho - work[GROUP_ESTIMATE, i])
                work[CORRECTION_WIDTH, i] = rule.scale * work[GROUP_WIDTH, i]
    add_up(memory)


class MultiGroupFairTopInterval(Policy):
    """Play argmax of the upper bound, corrected for the learned bias of every group.

    With `reference="mean"`, which is recommended, an arm of group j is corrected by
    -psi_j . x + the mean over all groups of psi_k . x. No group is special. With two groups it
    ranks the arms like GroupFairTopInterval, except that all arms have correction widths.

    With a number it is the paper's Algorithm 3: + rho - psi_j . x. The constant is added to every
    arm, so **rho changes nothing**, and the rest subtracts the worth of the context itself: an arm
    is judged by how it compares with its group at its own context, not by its reward. In the
    paper's synthetic world that costs about four times the true regret (see
    docs/explanation/conventions.md). It is here because the paper has it.

    Args:
        groups: two or more; a group of one arm warns.
        reference: "mean", or the paper's constant rho.
        group_average: "pulls" if psi_j is the fit to all data of group j, in which arms that are
            pulled often weigh more; "arms" if it is the plain average of its arms' coefficients,
            which takes time in proportion to the square of the number of arms.

    All other arguments are those of `Policy`.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> policy = eh.MultiGroupFairTopInterval(
        ...     ["a", "a", "b", "b", "c", "c"], n_features=1, horizon=100, exploration="none")
        >>> policy.absorb(range(6), np.ones((6, 1)), rewards=[1.0, 1.0, 2.0, 2.0, 6.0, 6.0])
        >>> policy.select(np.ones((6, 1))).scores.correction.round(9).tolist()
        [2.0, 2.0, 1.0, 1.0, -3.0, -3.0]
    """

    learns_groups = True

    def __init__(
        self,
        groups: Groups | Sequence[object],
        n_features: int,
        horizon: int | None = None,
        delta: float = 0.1,
        *,
        reference: float | str = "mean",
        group_average: str = PULLS,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(groups, n_features, horizon, delta, **common)
        self.reference = (
            "mean"
            if reference == "mean"
            else _checks.number("reference", reference, -LARGEST, LARGEST)
        )
        self.group_average = _checks.one_of("group_average", group_average, GROUP_AVERAGES)
        if len(self.groups) < 2:
            raise InputError(
                f"groups are {self.groups.names[0]} alone; allowed are two or more: "
                "a bias can only be seen against another group"
            )
        self.groups.warn_of_single_arms()

    def _group_sizes(self) -> NDArray[np.int64]:
        sizes = super()._group_sizes()
        if self.conventions.group_size == "own":
            return sizes
        sensitive = self.groups.sensitive or self.groups.names[0]
        return np.full_like(sizes, sizes[self.groups.index(sensitive)])

    def rule(self) -> _MeanReferenceRule | _ConstantReferenceRule:
        """The reference of the groups, and how their averages are made."""
        scale, by_arms = self.conventions.correction_scale, self.group_average == ARMS
        if isinstance(self.reference, str):
            return _BalancedMeanRule(scale) if by_arms else _MeanReferenceRule(scale)
        kind = _BalancedConstantRule if by_arms else _ConstantReferenceRule
        return kind(self.reference, scale)
