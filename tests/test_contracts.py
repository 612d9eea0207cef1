"""Every contract on every policy, found by themselves; and policies that break them are caught."""

import pytest

import evenhand as eh
from evenhand.contracts import CONTRACTS
from evenhand.policies import POLICIES
from evenhand.policies.base import Policy

OURS = [kind for kind in POLICIES.values() if kind.__module__.startswith("evenhand.")]


class Thompson(eh.NaiveFair):
    """NaiveFair with Thompson sampling inside: the other half of that policy."""

    def __init__(self, groups, n_features, inside="thompson", **settings):
        super().__init__(groups, n_features, inside=inside, **settings)

    def settings(self):
        names = eh.NaiveFair.settings
        return {**names(self), "inside": "thompson"}


class PlainTopInterval(Policy):
    """TopInterval in plain Python, as a user would write it."""

    def score(self, contexts):
        estimate, width = self.intervals(contexts)
        return estimate + width


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("kind", [*OURS, PlainTopInterval], ids=lambda one: one.__name__)
def test_contract(kind, contract):
    contract(kind)


def test_all_policies_are_found():
    assert {kind.__name__ for kind in OURS} == {
        "TopInterval",
        "IntervalChaining",
        "NaiveFair",
        "GroupFairTopInterval",
        "MultiGroupFairTopInterval",
        "UniformRandom",
    }
