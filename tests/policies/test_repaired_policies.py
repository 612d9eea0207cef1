"""The paper's policies, repaired: plain averages of arms, and widths on all arms."""

import json

import numpy as np
import pytest

import evenhand as eh
from evenhand.policies.saving import from_dict, to_dict

GROUPS = eh.Groups(["F", "F", "M", "M", "M"], sensitive="F")
THREE = eh.Groups(["a", "b", "a", "c", "b", "c", "c"], sensitive="a")
LENGTH = 3


def rows(groups, number=90, seed=1):
    """Unequal numbers of observations per arm, so that pulls and arms weigh differently."""
    generator = np.random.default_rng(seed)
    arms = np.minimum(generator.geometric(0.4, number) - 1, groups.n_arms - 1)
    arms[: 5 * groups.n_arms] = np.repeat(np.arange(groups.n_arms), 5)
    return arms, generator.random((number, LENGTH)), 5.0 + 3.0 * generator.standard_normal(number)


def learned(kind, groups, **settings):
    policy = kind(groups, LENGTH, horizon=200, seed=3, exploration="none", **settings)
    policy.absorb(*rows(groups))
    return policy


def fits(groups, ridge=0.0):
    """beta_hat and (X'X)^-1 of every arm, by NumPy."""
    arms, x, y = rows(groups)
    fitted = []
    for i in range(groups.n_arms):
        mine = x[arms == i]
        inverse = np.linalg.inv(mine.T @ mine + ridge * np.eye(LENGTH))
        fitted.append((inverse @ mine.T @ y[arms == i], inverse))
    return fitted


def averages(groups, contexts, quantiles, by_variance=False, ridge=0.0):
    """psi_j . x_i and b_j by brute force, (groups, arms) each."""
    known = fits(groups, ridge)
    psi, width = np.empty((2, len(groups), groups.n_arms))
    for j in range(len(groups)):
        mine = np.flatnonzero(groups.of == j)
        for i, x in enumerate(contexts):
            psi[j, i] = np.mean([known[a][0] @ x for a in mine])
            variance = np.sum([x @ known[a][1] @ x for a in mine]) / mine.size**2
            width[j, i] = quantiles[j] * (variance if by_variance else variance**0.5)
    return psi, width


def quantiles_of(groups, delta=0.1, horizon=200):
    from scipy.stats import norm

    return norm.isf(delta * groups.sizes / (2.0 * groups.n_arms * horizon))


CONTEXTS = np.random.default_rng(9).random((7, LENGTH))


@pytest.mark.parametrize("on_all", [False, True])
@pytest.mark.parametrize(
    "reading",
    [{}, {"conventions": eh.AUTHORS_CODE}, {"singular": "ridge", "ridge": 0.5}],
    ids=["paper", "authors' code", "ridge"],
)
def test_two_groups_by_brute_force(reading, on_all):
    policy = learned(
        eh.GroupFairTopInterval, GROUPS, group_average="arms", offset=0.7,
        widths="all" if on_all else "sensitive", **reading,
    )  # fmt: skip
    x = CONTEXTS[:5]
    scores = policy.select(x).scores
    psi, width = averages(
        GROUPS, x, quantiles_of(GROUPS), "conventions" in reading, reading.get("ridge", 0.0)
    )
    sensitive = GROUPS.of == 0
    correction = np.where(sensitive, 0.7 - psi[0] + psi[1], 0.0)
    np.testing.assert_allclose(scores.correction, correction, atol=1e-9)
    wide = np.where(sensitive | on_all, width.sum(axis=0), 0.0)
    np.testing.assert_allclose(scores.correction_width, wide, atol=1e-9)
    total = scores.estimate + scores.width + scores.correction + scores.correction_width
    np.testing.assert_allclose(scores.upper, total)


def test_widths_on_all_arms_change_nothing_else():
    published = learned(eh.GroupFairTopInterval, GROUPS).select(CONTEXTS[:5]).scores
    repaired = learned(eh.GroupFairTopInterval, GROUPS, widths="all").select(CONTEXTS[:5]).scores
    np.testing.assert_allclose(repaired.correction, published.correction, rtol=1e-13)
    assert (published.correction_width[2:] == 0.0).all()
    np.testing.assert_allclose(
        repaired.correction_width[:2], published.correction_width[:2], rtol=1e-13
    )
    policy = learned(eh.GroupFairTopInterval, GROUPS)
    _, width = policy.group_intervals(CONTEXTS[:5])
    np.testing.assert_allclose(repaired.correction_width, width.sum(axis=0), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["mean", 4.0])
def test_many_groups_by_brute_force(reference):
    settings = {"group_average": "arms", "reference": reference}
    scores = learned(eh.MultiGroupFairTopInterval, THREE, **settings).select(CONTEXTS).scores
    psi, width = averages(THREE, CONTEXTS, quantiles_of(THREE))
    own = np.arange(7)
    if reference == "mean":
        correction = psi.mean(axis=0) - psi[THREE.of, own]
        weights = np.abs(1.0 / 3.0 - (THREE.of == np.arange(3)[:, None]))
        wide = (weights * width).sum(axis=0)
    else:
        correction, wide = reference - psi[THREE.of, own], width[THREE.of, own]
    np.testing.assert_allclose(scores.correction, correction, atol=1e-9)
    np.testing.assert_allclose(scores.correction_width, wide, atol=1e-9)


@pytest.mark.parametrize(
    "kind",
    [
        eh.GroupFairTopInterval,
        pytest.param(eh.MultiGroupFairTopInterval, marks=pytest.mark.slow),
    ],
)
def test_equal_arms_are_averaged_alike_in_both_ways(kind):
    """If all arms of a group saw the same rows, the fit to all of them is the plain average."""
    generator = np.random.default_rng(2)
    x, y = generator.random((8, LENGTH)), generator.standard_normal(8)
    corrections = []
    for how in ("pulls", "arms"):
        policy = kind(GROUPS, LENGTH, horizon=100, exploration="none", seed=1, group_average=how)
        for arm in range(5):
            policy.absorb(np.full(8, arm), x, y + arm)
        corrections.append(policy.select(CONTEXTS[:5]).scores.correction)
    np.testing.assert_allclose(*corrections, atol=1e-9)


def test_an_arm_never_seen_makes_the_average_unknown():
    policy = eh.GroupFairTopInterval(
        GROUPS, 1, horizon=100, exploration="none", seed=1, group_average="arms", widths="all"
    )
    policy.absorb([0, 1, 2, 3], np.ones((4, 1)), [1.0, 2.0, 3.0, 4.0])  # not the last arm
    assert np.isinf(policy.select(np.ones((5, 1))).scores.correction_width).all()
    policy.absorb([4], np.ones((1, 1)), [5.0])
    assert np.isfinite(policy.select(np.ones((5, 1))).scores.correction_width).all()


def test_repairs_are_saved_loaded_and_cloned():
    policy = learned(eh.GroupFairTopInterval, GROUPS, group_average="arms", widths="all")
    again = from_dict(json.loads(json.dumps(to_dict(policy))))
    assert (again.group_average, again.widths) == ("arms", "all")
    before, after = (each.select(CONTEXTS[:5]).scores.table for each in (policy, again))
    assert (before == after).all()
    assert policy.clone(widths="sensitive").widths == "sensitive"
    old = to_dict(learned(eh.GroupFairTopInterval, GROUPS))["settings"]
    assert (old["group_average"], old["widths"]) == ("pulls", "sensitive")


@pytest.mark.slow
def test_plain_averages_make_regret_vanish_where_one_group_is_spread():
    """The fit by pulls leans to the arms pulled most, and regret does not fall any more."""
    world = eh.SyntheticWorld(spread=[6, 1], averages="equal")
    late = {}
    for how in ("pulls", "arms"):
        runs = eh.simulate(
            [eh.GroupFairTopInterval], world, horizon=4000, replications=20, seed=1, trace=True,
            exploration="none", group_average=how,
        )  # fmt: skip
        late[how] = runs.trace.query("round > 3800")["true_regret"].mean()
    assert late["pulls"] > 0.1 > 10.0 * late["arms"]


@pytest.mark.parametrize("name", ["group_average", "widths"])
def test_other_words_are_refused(name):
    with pytest.raises(eh.InputError, match=f"{name} is 'both'; allowed is one of"):
        eh.GroupFairTopInterval(GROUPS, 1, **{name: "both"})
