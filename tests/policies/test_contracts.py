"""Every contract on every policy, found by themselves; and policies that break them are caught."""

import numpy as np
import pytest

import evenhand as eh
from evenhand.contracts import CONTRACTS
from evenhand.policies import POLICIES
from evenhand.policies.base import Policy

OURS = [kind for kind in POLICIES.values() if kind.__module__.startswith("evenhand.")]


class NaiveFairThompson(eh.NaiveFair):
    """The other half of NaiveFair: Thompson sampling inside the group."""

    def __init__(self, groups, n_features, horizon=None, delta=0.1, inside="thompson", **common):
        super().__init__(groups, n_features, horizon, delta, inside=inside, **common)


class ConstantReference(eh.MultiGroupFairTopInterval):
    """The other half of the m-group policy: the paper's constant rho."""

    def __init__(self, groups, n_features, horizon=None, delta=0.1, reference=0.0, **common):
        super().__init__(groups, n_features, horizon, delta, reference=reference, **common)


class Repaired(eh.GroupFairTopInterval):
    """The paper's policy with plain averages of the groups' arms and widths on all arms."""

    def __init__(self, groups, n_features, horizon=None, delta=0.1, group_average="arms",
                 widths="all", **common):  # fmt: skip
        settings = {"group_average": group_average, "widths": widths, **common}
        super().__init__(groups, n_features, horizon, delta, **settings)


class BalancedMean(eh.MultiGroupFairTopInterval):
    """The m-group policy with plain averages of the groups' arms."""

    def __init__(self, groups, n_features, horizon=None, delta=0.1, group_average="arms", **common):
        super().__init__(groups, n_features, horizon, delta, group_average=group_average, **common)


class ChainInGroup(eh.GroupFairIntervalChaining):
    """Chains in the group of the best candidate alone."""

    def __init__(self, groups, n_features, horizon=None, delta=0.1, chain="group", **common):
        super().__init__(groups, n_features, horizon, delta, chain=chain, **common)


class Once(eh.PooledGroupFair):
    """The general form of the pooled policy: candidates that come once."""

    def __init__(self, groups, n_features, horizon=None, delta=0.1, arms="once", **common):
        super().__init__(groups, n_features, horizon, delta, arms=arms, **common)


class TwoAttributes(eh.PooledGroupFair):
    """The general form with two attributes that say the same."""

    def __init__(self, groups, n_features, horizon=None, delta=0.1, **common):
        if not groups.attributes:
            table = {"sex": groups.labels, "again": [label.lower() for label in groups.labels]}
            groups = eh.Groups.of_attributes(table)
        super().__init__(groups, n_features, horizon, delta, **common)


class PlainTopInterval(Policy):
    """TopInterval in plain Python, as a user would write it."""

    def score(self, contexts):
        estimate, width = self.intervals(contexts)
        return estimate + width


@pytest.mark.slow
@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
@pytest.mark.parametrize(
    "kind",
    [
        *OURS,
        NaiveFairThompson,
        ConstantReference,
        Repaired,
        BalancedMean,
        ChainInGroup,
        Once,
        TwoAttributes,
        PlainTopInterval,
    ],
    ids=lambda kind: kind.__name__,
)
def test_contract(kind, contract):
    contract(kind)


def test_all_policies_are_found():
    assert {kind.__name__ for kind in OURS} == {
        "TopInterval",
        "IntervalChaining",
        "NaiveFair",
        "GroupFairTopInterval",
        "GroupFairIntervalChaining",
        "MultiGroupFairTopInterval",
        "PooledGroupFair",
        "UniformRandom",
    }


class FirstArmBonus(PlainTopInterval):
    """Prefers an arm for its place in the list."""

    def score(self, contexts):
        return super().score(contexts) + np.eye(self.n_arms)[0]


class ForgetsOnSave(PlainTopInterval):
    """Learns while it decides."""

    def score(self, contexts):
        self.absorb([0], contexts[:1], [0.0])
        return super().score(contexts)


class Careless(PlainTopInterval):
    """Gives NaN where it knows nothing."""

    def score(self, contexts):
        estimate, width = self.intervals(contexts)
        return estimate + width * 0.0


@pytest.mark.parametrize(
    ("kind", "broken"),
    [
        (FirstArmBonus, "permuting_arms_permutes_scores"),
        (ForgetsOnSave, "select_learns_nothing"),
        (Careless, "never_nan"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_broken_policy_is_caught(kind, broken):
    contract = next(check for check in CONTRACTS if check.__name__ == broken)
    with pytest.raises((AssertionError, ValueError)):
        contract(kind)
