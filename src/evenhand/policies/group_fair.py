"""GroupFairTopInterval: learn the bias of the sensitive group and correct for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Unpack

import numpy as np

from evenhand import _checks
from evenhand._checks import LARGEST
from evenhand.errors import InputError, blank, setting
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

SENSITIVE, ALL = "sensitive", "all"


class _GroupFairRule(NamedTuple):
    """The numbers of the groups P_1 and P_2, and the known offset between them."""

    sensitive: int
    other: int
    offset: float


@kernel(score, _GroupFairRule)
def _score(rule, memory, t):  # type: ignore[no-untyped-def]
    """Algorithm 1: line 16 for the arms of P_1, line 18 for the others."""
    work, members = memory.work, memory.members
    number, first = members.sizes[rule.sensitive], members.starts[rule.sensitive]
    corrected = members.listed[first : members.starts[rule.sensitive + 1]]  # the arms of P_1
    score_arms(memory, t)
    score_group(memory, rule.sensitive, corrected, t)
    for k in range(number):
        i = corrected[k]
        # The correction is -psi_1 . x + psi_2 . x plus the known difference of the true averages.
        work[CORRECTION, i] = rule.offset - work[GROUP_ESTIMATE, k]
        work[CORRECTION_WIDTH, i] = work[GROUP_WIDTH, k]
    # The other group's fit at the contexts of the sensitive arms: the correction of an arm is at
    # its own context. It takes the place of the first in GROUP_ESTIMATE, so that has been used by
    # now.
    score_group(memory, rule.other, corrected, t)
    for k in range(number):
        i = corrected[k]
        work[CORRECTION, i] += work[GROUP_ESTIMATE, k]
        work[CORRECTION_WIDTH, i] += work[GROUP_WIDTH, k]
    add_up(memory)


class _RepairedRule(NamedTuple):
    """The same with plain averages of the groups' arms, or with widths on all arms, or both."""

    sensitive: int
    other: int
    offset: float
    by_arms: bool
    on_all: bool


@kernel(score, _RepairedRule)
def _score_repaired(rule, memory, t):  # type: ignore[no-untyped-def]
    """Line 16 as published, except for the repairs asked for."""
    work, members = memory.work, memory.members
    first, last = members.starts[rule.sensitive], members.starts[rule.sensitive + 1]
    arms, number = members.listed[first:last], members.sizes[rule.sensitive]
    if rule.on_all:
        arms, number = members.everyone, memory.settings.n_arms
    averages = np.zeros((2, 0, 0))
    if rule.by_arms:
        averages = group_averages(memory.arms, members, memory.contexts, memory.room, arms)
    score_arms(memory, t)
    for side in range(2):
        group, sign = (rule.other, 1.0) if side else (rule.sensitive, -1.0)
        if rule.by_arms:
            score_average(memory, averages, group, arms, t)
        else:
            score_group(memory, group, arms, t)
        for k in range(number):
            i = arms[k]
            # With widths on all arms, only the sensitive ones have an estimate corrected.
            if members.group_of[i] == rule.sensitive:
                work[CORRECTION, i] += sign * work[GROUP_ESTIMATE, k] + side * rule.offset
            work[CORRECTION_WIDTH, i] += work[GROUP_WIDTH, k]
    add_up(memory)


class GroupFairTopInterval(Policy):
    """Play argmax of the upper bound, corrected for the learned bias of the sensitive group.

    For an arm of the sensitive group P_1 the upper bound is
    beta_hat . x + w - psi_1 . x + b_1 + psi_2 . x + b_2, for the others beta_hat . x + w, where
    psi_j is the least squares fit to all data of group j and b_j its width. It assumes that the
    true averages of both groups are equal, or differ by a known `offset`.

    The paper bounds true regret by O(T^(2/3)) (Theorem 1), and no faster rate can be promised for
    such feedback without further assumptions. The guarantee fails where the fit psi_j, in which
    arms that are pulled often weigh more, differs from the plain average of the group's arms:
    docs/explanation/theory.md has an example in which regret grows with T.

    Its defaults are the policy as published. `group_average`, `widths`, `singular="ridge"` and
    `exploration="none"` repair it piece by piece; `evenhand run ablation` shows what each brings.

    Args:
        groups: exactly two, with `sensitive` named.
        offset: by how much the true average of the sensitive group is known to exceed the other's.
        group_average: "pulls" if psi_j is the fit to all data of group j, in which arms that are
            pulled often weigh more; "arms" if it is the plain average of its arms' coefficients,
            which takes time in proportion to the square of the number of arms.
        widths: "sensitive" if only sensitive arms have the widths b_1 + b_2 of the correction, or
            "all" if the other arms have them as well, so that uncertainty favours no group.

    All other arguments are those of `Policy`.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> groups = eh.Groups(["F", "F", "M", "M"], sensitive="F")
        >>> policy = eh.GroupFairTopInterval(groups, n_features=1, horizon=100, exploration="none")
        >>> policy.absorb([0, 1, 2, 3], np.ones((4, 1)), rewards=[1.0, 2.0, 7.0, 8.0])
        >>> policy.select(np.ones((4, 1))).scores.correction.round(9).tolist()
        [6.0, 6.0, 0.0, 0.0]
    """

    learns_groups = True

    def __init__(
        self,
        groups: Groups | Sequence[object],
        n_features: int,
        horizon: int | None = None,
        delta: float = 0.1,
        *,
        offset: float = 0.0,
        group_average: str = PULLS,
        widths: str = SENSITIVE,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(groups, n_features, horizon, delta, **common)
        self.offset = _checks.number("offset", offset, -LARGEST, LARGEST)
        self.group_average = _checks.one_of("group_average", group_average, GROUP_AVERAGES)
        self.widths = _checks.one_of("widths", widths, (SENSITIVE, ALL))
        if len(self.groups) != 2:
            raise InputError(
                f"groups are {', '.join(self.groups.names)}; GroupFairTopInterval allows exactly "
                "two: use MultiGroupFairTopInterval for more, or put all but the sensitive one of "
                f"a table together with {setting('others', 'together')}"
            )
        if self.groups.sensitive is None:
            raise InputError(
                "groups name no sensitive group; name it with "
                f"{setting('sensitive', blank('GROUP'))}, one of {', '.join(self.groups.names)}"
            )
        self.groups.warn_of_single_arms()

    def rule(self) -> _GroupFairRule | _RepairedRule:
        """The two groups."""
        sensitive = self.groups.index(self.groups.sensitive)
        published = _GroupFairRule(sensitive, 1 - sensitive, self.offset)
        by_arms, on_all = self.group_average == ARMS, self.widths == ALL
        return _RepairedRule(*published, by_arms, on_all) if by_arms or on_all else published
