"""What the authors' code computes, step by step, against ours on the same data.

A trace is 60 rounds of contexts, arm and reward, with what the authors' code had computed before
each update. `AUTHORS_CODE` must agree with it, singular designs included; `PAPER` must agree with
the paper's formulas, evaluated beside it, from full rank on.
"""

from __future__ import annotations

import contextlib
import json
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import evenhand as eh
from evenhand.leastsquares import coefficients, counts
from evenhand.policies.exploration import probability, schedule
from evenhand.policies.interval_chaining import _chain
from reference import REFERENCE, needs_shared

pytestmark = needs_shared

POLICIES = [
    "TopInterval",
    "IntervalChaining",
    "GroupFairTopInterval",
    "MultiGroupFairTopInterval",
]
WITH_GROUPS = POLICIES[2:]


class Trace(NamedTuple):
    header: dict[str, Any]
    steps: list[dict[str, Any]]

    @property
    def groups(self):
        labels = {arm: name for name, members in self.header["groups"].items() for arm in members}
        return eh.Groups(
            [labels[arm] for arm in range(self.header["n"])],
            sensitive=self.header["sensitive_group"],
        )

    def column(self, name):
        """(steps, arms) numbers; NaN where the authors' code had none."""
        return table(step[name] for step in self.steps)

    def group_column(self, name, group):
        return table(step[name][group] for step in self.steps)

    def full_rank(self):
        """(steps, arms): whose own design has full rank."""
        arms = range(self.header["n"])
        return np.array(
            [[arm not in step["rank_deficient_arms"] for arm in arms] for step in self.steps]
        )

    def full_rank_groups(self):
        """(steps, groups in the order of `groups.names`)."""
        return np.array(
            [
                [name not in step["rank_deficient_groups"] for name in self.groups.names]
                for step in self.steps
            ]
        )


class Replay(NamedTuple):
    """What our policy computes at every step of a trace, before its update."""

    scores: dict[str, np.ndarray]  # by name, (steps, arms)
    arms: np.ndarray  # coefficients, (steps, arms, features)
    groups: np.ndarray  # coefficients, (steps, groups, features)
    counts: np.ndarray  # of the group regressions, (steps, groups)
    chosen: np.ndarray
    propensity: np.ndarray
    chains: list[list[int]]


def table(rows):
    special = {None: np.nan, "inf": np.inf, "-inf": -np.inf}
    return np.array([[special.get(value, value) for value in row] for row in rows], dtype=float)


@cache
def trace(name):
    lines = (REFERENCE / f"trace_{name}.jsonl").read_text().splitlines()
    header, *steps = map(json.loads, lines)
    return Trace(header["header"], steps)


@cache
def replay(name, conventions):
    header, steps = trace(name)
    groups = trace(name).groups
    more, lonely = {}, contextlib.nullcontext()
    if name == "MultiGroupFairTopInterval":  # it has a group of one arm
        more = {"reference": header["mu"]}
        lonely = pytest.warns(UserWarning, match="group g3 has a single arm")
    with lonely:
        policy = getattr(eh, name)(
            groups,
            header["d"],
            horizon=header["T"],
            delta=header["delta"],
            exploration="none",
            conventions=conventions,
            seed=1,
            **more,
        )
    decisions, arms, of_groups, seen, chains = [], [], [], [], []
    for step in steps:
        decisions.append(policy.select(step["contexts"]))
        memory = policy._state
        arms.append([coefficients(memory.arms, arm) for arm in range(header["n"])])
        of_groups.append([coefficients(memory.groups, g) for g in range(memory.groups.number)])
        seen.append(counts(memory.groups))
        two_passes = conventions.chain == "two passes"
        table = decisions[-1].scores.table
        top = int(np.argmax(decisions[-1].scores.upper))
        chained = _chain(two_passes, table, np.ones(header["n"], dtype=bool), top)
        chains.append(np.flatnonzero(chained).tolist())
        policy.absorb([step["arm"]], [step["contexts"][step["arm"]]], [step["reward"]])
    names = ("estimate", "width", "correction", "correction_width", "upper")
    return Replay(
        {key: np.array([getattr(decision.scores, key) for decision in decisions]) for key in names},
        np.array(arms),
        np.array(of_groups),
        np.array(seen),
        np.array([decision.arm for decision in decisions]),
        np.array([decision.propensity for decision in decisions]),
        chains,
    )


def agree(given, expected):
    """To 1e-9 of max(1, |expected|); infinities must be the same. Asks for something to compare."""
    assert given.shape == expected.shape
    assert expected.size
    finite = np.isfinite(expected)
    assert (given[~finite] == expected[~finite]).all()
    error = np.abs(given[finite] - expected[finite]) / np.maximum(1.0, np.abs(expected[finite]))
    assert error.max(initial=0.0) < 1e-9


# As the authors' code ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLICIES)
def test_estimates_and_widths(name):
    """An arm without data has no estimate there, and 0 with an infinite width here."""
    given, unseen = replay(name, eh.AUTHORS_CODE).scores, np.isnan(trace(name).column("beta_x"))
    expected = np.where(unseen, 0.0, trace(name).column("beta_x"))
    agree(given["estimate"], expected)
    agree(given["width"], trace(name).column("w"))
    assert (np.isinf(given["width"]) == unseen).all()
    # Singular designs are among them.
    assert (~trace(name).full_rank() & ~unseen).any()


@pytest.mark.parametrize("name", POLICIES)
def test_coefficients_of_arms(name):
    d = trace(name).header["d"]
    expected = [
        [[0.0] * d if beta is None else beta for beta in step["beta_hat"]]
        for step in trace(name).steps
    ]
    agree(replay(name, eh.AUTHORS_CODE).arms, np.array(expected))


@pytest.mark.parametrize("name", WITH_GROUPS)
def test_coefficients_of_groups(name):
    """psi_hat of every group."""
    d, names = trace(name).header["d"], trace(name).groups.names
    expected = [
        [step["psi_hat"][group] or [0.0] * d for group in names] for step in trace(name).steps
    ]
    given = replay(name, eh.AUTHORS_CODE)
    agree(given.groups, np.array(expected))
    unseen = [[step["psi_hat"][group] is None for group in names] for step in trace(name).steps]
    assert ((given.counts == 0) == np.array(unseen)).all()


def test_correction_of_two_groups():
    """-psi_1 . x + psi_2 . x and b_1 + b_2 on sensitive arms, nothing on the others."""
    name = "GroupFairTopInterval"
    given = replay(name, eh.AUTHORS_CODE).scores
    psi = {group: trace(name).group_column("psi_x", group) for group in ("g1", "g2")}
    widths = {group: trace(name).group_column("b", group) for group in ("g1", "g2")}
    sensitive = np.array(trace(name).groups.labels) == "g1"
    known = {group: np.nan_to_num(values, nan=0.0) for group, values in psi.items()}
    agree(given["correction"], np.where(sensitive, known["g2"] - known["g1"], 0.0))
    agree(given["correction_width"], np.where(sensitive, widths["g1"] + widths["g2"], 0.0))


def test_correction_of_many_groups():
    """0.9 (rho - psi_j . x) and 0.9 b_j, j the arm's own group."""
    name = "MultiGroupFairTopInterval"
    given, labels = replay(name, eh.AUTHORS_CODE).scores, np.array(trace(name).groups.labels)
    rho = trace(name).header["mu"]
    for group in trace(name).groups.names:
        own = labels == group
        psi = np.nan_to_num(trace(name).group_column("psi_x", group), nan=0.0)
        agree(given["correction"][:, own], 0.9 * (rho - psi[:, own]))
        widths = trace(name).group_column("b", group)
        agree(given["correction_width"][:, own], 0.9 * widths[:, own])


@pytest.mark.parametrize("name", POLICIES)
def test_upper_bounds(name):
    given = replay(name, eh.AUTHORS_CODE).scores
    agree(given["upper"], trace(name).column("u"))
    highest = [step["argmax"] for step in trace(name).steps]
    assert given["upper"].argmax(axis=1).tolist() == highest
    if name == "IntervalChaining":
        agree(given["estimate"] - given["width"], trace(name).column("lower"))


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "IntervalChaining"])
def test_decisions_are_the_argmax_for_certain(name):
    """Without exploration, and with ties going to the lowest index, nothing is left to chance."""
    given = replay(name, eh.AUTHORS_CODE)
    assert given.chosen.tolist() == [step["argmax"] for step in trace(name).steps]
    assert given.propensity.tolist() == [1.0] * len(trace(name).steps)


def test_chains():
    """The arms in the chain, and the decision: one of them, all equally likely."""
    given = replay("IntervalChaining", eh.AUTHORS_CODE)
    chains = [sorted(step["chained"]) for step in trace("IntervalChaining").steps]
    assert given.chains == chains
    assert all(arm in chained for arm, chained in zip(given.chosen, chains, strict=True))
    assert given.propensity == pytest.approx([1.0 / len(chained) for chained in chains])
    assert len({len(chained) for chained in chains}) > 1  # not always the same, so it says a lot


@pytest.mark.parametrize("name", POLICIES)
def test_exploration(name):
    plan = schedule("paper", trace(name).header["T"])
    given = [probability(plan, step["t"]) for step in trace(name).steps]
    assert given == pytest.approx([step["eta"] for step in trace(name).steps], rel=1e-12)


# As the paper ------------------------------------------------------------------------------------


def formula(name, key):
    return table(step["paper_formula"][key] for step in trace(name).steps)


def formula_group(name, key, group):
    return table(step["paper_formula"][key][group] for step in trace(name).steps)


@pytest.mark.parametrize("name", POLICIES)
def test_paper_widths(name):
    given, full = replay(name, eh.PAPER).scores, trace(name).full_rank()
    agree(given["width"][full], formula(name, "w_sqrt")[full])
    agree(given["estimate"][full], trace(name).column("beta_x")[full])
    # Contexts are random, so before full rank they leave the directions seen.
    assert (given["width"][~full] == np.inf).all()
    assert (~full).any()


def test_paper_correction_of_two_groups():
    name = "GroupFairTopInterval"
    given = replay(name, eh.PAPER).scores
    both = trace(name).full_rank_groups().all(axis=1)
    sensitive = np.array(trace(name).groups.labels) == "g1"
    width = formula_group(name, "b_sqrt", "g1") + formula_group(name, "b_sqrt", "g2")
    psi = trace(name).group_column("psi_x", "g2") - trace(name).group_column("psi_x", "g1")
    agree(given["correction_width"][both][:, sensitive], width[both][:, sensitive])
    agree(given["correction"][both][:, sensitive], psi[both][:, sensitive])
    assert (given["correction"][:, ~sensitive] == 0.0).all()
    assert (given["correction_width"][:, ~sensitive] == 0.0).all()


def test_paper_correction_of_many_groups():
    """rho - psi_j . x and b_j, with the arm's own group in its level."""
    name = "MultiGroupFairTopInterval"
    given, labels = replay(name, eh.PAPER).scores, np.array(trace(name).groups.labels)
    for g, group in enumerate(trace(name).groups.names):
        full, own = trace(name).full_rank_groups()[:, g], labels == group
        width = formula_group(name, "b_sqrt", group)[full][:, own]
        psi = trace(name).group_column("psi_x", group)[full][:, own]
        agree(given["correction_width"][full][:, own], width)
        agree(given["correction"][full][:, own], trace(name).header["mu"] - psi)


@pytest.mark.parametrize("name", WITH_GROUPS)
def test_paper_upper_bounds(name):
    """Where the arm and all groups have full rank."""
    given = replay(name, eh.PAPER).scores["upper"]
    full = trace(name).full_rank() & trace(name).full_rank_groups().all(axis=1)[:, None]
    agree(given[full], formula(name, "u")[full])


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "IntervalChaining"])
def test_paper_decisions_are_drawn_among_the_highest(name):
    """Ties, which are infinite bounds here, are broken at random and not by index."""
    given = replay(name, eh.PAPER)
    upper = given.scores["upper"]
    highest = upper == upper.max(axis=1, keepdims=True)
    assert highest[np.arange(len(upper)), given.chosen].all()
    assert given.propensity == pytest.approx(1.0 / highest.sum(axis=1))
    assert (highest.argmax(axis=1) != given.chosen).any()


def test_paper_chains_are_the_closure_of_overlap():
    """Against the plainest search: join whoever overlaps a member, until nobody does."""
    given = replay("IntervalChaining", eh.PAPER)
    low, high = (given.scores["estimate"] + s * given.scores["width"] for s in (-1, 1))
    for step in range(len(low)):
        a, b = low[step], high[step]
        chained = {int(np.argmax(b))}
        while True:
            joined = {
                i for i in range(b.size) for j in chained if a[i] <= b[j] and a[j] <= b[i]
            } | chained
            if joined == chained:
                break
            chained = joined
        assert given.chains[step] == sorted(chained)
        assert given.propensity[step] == pytest.approx(1.0 / len(chained))
        assert given.chosen[step] in chained
