"""The general form of PooledGroupFair: its posterior against dense algebra, and what it keeps."""

import json

import numpy as np
import pytest
from scipy.stats import chi2

import evenhand as eh
from evenhand.policies.pooled_group_fair._layout import STALE
from evenhand.policies.pooled_group_fair._posterior import Variances as FixedVariances
from evenhand.policies.pooled_group_fair._posterior import blank_posterior as fixed_blank
from evenhand.policies.pooled_group_fair._posterior import in_units as fixed_in_units
from evenhand.policies.pooled_group_fair._posterior import work_out as fixed_work_out
from evenhand.policies.pooled_group_fair.general._design import design_of
from evenhand.policies.pooled_group_fair.general._posterior import (
    Variances,
    add_in_units,
    blank_data,
    blank_posterior,
    work_out,
)
from evenhand.policies.saving import from_dict, to_dict

TABLE = {"sex": ["F", "F", "M", "M", "F", "M", "M"], "age": ["o", "y", "o", "y", "o", "y", "y"]}
N, D = 7, 2


@eh.compiled
def posterior_of(sums, of_arms, kinds, variances):
    d, n = variances.v.size, of_arms.shape[0]
    data = blank_data(n, kinds.size * d, d)
    add_in_units(data, sums, of_arms, np.ones(d), 1.0)
    post = blank_posterior(n, kinds.size * d, d)
    work_out(data, kinds, variances, post)
    return post


@eh.compiled
def fixed_posterior(sums, group_of, sizes, variances, d):
    post = fixed_blank(sums.shape[0], sizes.size, d)
    fixed_work_out(fixed_in_units(sums, np.ones(d), 1.0, group_of, sizes), variances, post)
    return post


def of_round(number, n_arms=4, missing=True, seed=0):
    """Rows of policies whose groups come with the round: labels, None, or probabilities."""
    generator = np.random.default_rng(seed)
    kinds = generator.integers(4 if missing else 2, size=number)
    chances = generator.random(number)
    given = [
        ["F", "M", None, {"F": p, "M": 1.0 - p}][kind]
        for kind, p in zip(kinds, chances, strict=True)
    ]
    arms = generator.integers(n_arms, size=number)
    contexts = generator.random((number, D)) + 0.1
    rewards = contexts.sum(axis=1) * (3.0 + arms) - 2.0 * (kinds == 0)
    return arms, contexts, rewards + generator.standard_normal(number), given


def per_round(**settings):
    groups = eh.Groups.per_round(4, {"sex": ["F", "M"]})
    return eh.PooledGroupFair(groups, D, **{"seed": 3, "reference": "M", **settings})


def crossed(**settings):
    groups = eh.Groups.of_attributes(TABLE)
    return eh.PooledGroupFair(groups, D, **{"seed": 3, "reference": "M & y", **settings})


def rows_of(number, seed=0):
    generator = np.random.default_rng(seed)
    arms, contexts = generator.integers(N, size=number), generator.random((number, D)) + 0.1
    rewards = contexts.sum(axis=1) * (3.0 + arms) + generator.standard_normal(number)
    return arms, contexts, rewards


# The posterior ----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [per_round, crossed])
@pytest.mark.parametrize("recurs", [True, False])
def test_the_posterior_is_that_of_the_joint_normal_distribution(make, recurs):
    """Effects and what is the arms' own at once, by conditioning one big Gaussian."""
    policy = make(arms="recurring" if recurs else "once")
    changes, n = policy.groups.changes, policy.n_arms
    arms, contexts, rewards, given = of_round(60) if changes else (*rows_of(60), None)
    policy.absorb(arms, contexts, rewards, groups=given)
    own, design = policy._state.own, design_of(policy.groups)
    sigma2, tau2, v = 0.5, 0.3, np.array([0.6, 0.8])
    along, across = np.array([9.0, 4.0, 1.0, 3.0]), np.array([2.0, 0.7, 1.0, 0.5])
    variances = Variances(np.array([sigma2]), np.array([tau2]), along, across, v)
    post = posterior_of(
        own.settled + own.fresh, own.settled_arms + own.fresh_arms, design.kinds, variances
    )

    q = design.kinds.size
    levels = eh._membership.membership(policy.groups, given, 60) if changes else design.levels[arms]
    Z = np.einsum("nq,nk->nqk", design.weights(levels), contexts).reshape(60, q * D)
    blocks = [
        across[kind] * np.eye(D) + (along[kind] - across[kind]) * np.outer(v, v)
        for kind in design.kinds
    ]
    prior = np.zeros((q * D, q * D))
    for column, block in enumerate(blocks):
        prior[column * D : column * D + D, column * D : column * D + D] = block
    X = np.zeros((60, n * D))
    for row, arm in enumerate(arms):
        X[row, arm * D : arm * D + D] = contexts[row]
    own_part = tau2 * (X @ X.T) if recurs else 0.0
    covariance = Z @ prior @ Z.T + own_part + sigma2 * np.eye(60)
    gain = prior @ Z.T @ np.linalg.inv(covariance)
    np.testing.assert_allclose(post.M, gain @ rewards, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(post.V, prior - gain @ Z @ prior, rtol=1e-7, atol=1e-8)
    if recurs:
        delta = tau2 * X.T @ np.linalg.solve(covariance, rewards)
        mine = post.u - np.einsum("nij,j->ni", post.D, post.M)
        np.testing.assert_allclose(mine.ravel(), delta, rtol=1e-7, atol=1e-8)


def test_one_attribute_is_the_fixed_form():
    """Given the same variances, and one tau for all groups."""
    groups = eh.Groups(["F", "M", "F", "M", "X", "F", "M"])
    arms, contexts, rewards = rows_of(50)
    fixed = eh.PooledGroupFair(groups, D, seed=1)
    fixed.absorb(arms, contexts, rewards)
    design = design_of(groups)
    z = np.einsum("nq,nk->nqk", design.weights(design.levels)[arms], contexts)
    z = z.reshape(50, -1)
    size = z.shape[1]
    sums = np.concatenate([(z.T @ z).ravel(), z.T @ rewards, [rewards @ rewards, 50.0]])
    of_arms = np.zeros((N, size * D + D + 1))
    for i in range(N):
        mine = arms == i
        of_arms[i, : size * D] = (z[mine].T @ contexts[mine]).ravel()
        of_arms[i, size * D : -1] = contexts[mine].T @ rewards[mine]
        of_arms[i, -1] = mine.sum()
    v, (k1, w1, k0, w0) = np.array([0.6, 0.8]), (4.0, 0.7, 9.0, 2.0)

    def inverse(along, across):
        return np.eye(D) / across + (1.0 / along - 1.0 / across) * np.outer(v, v)

    post = posterior_of(
        sums,
        of_arms,
        design.kinds,
        Variances(np.array([0.5]), np.array([0.3]), np.array([k0, k1, 1.0]),
                  np.array([w0, w1, 1.0]), v),
    )  # fmt: skip
    theirs = fixed_posterior(
        fixed._state.own.settled + fixed._state.own.fresh,
        groups.of,
        groups.sizes.astype(float),
        FixedVariances(np.array([0.5]), np.full(3, 0.3), inverse(k1, w1), inverse(k0, w0),
                       np.array([1.0 / k1, 1.0 / k0])),
        D,
    )  # fmt: skip
    M = post.M.reshape(-1, D)
    np.testing.assert_allclose(M[0] + M[1:], theirs.m, rtol=1e-8, atol=1e-9)
    theta = post.u - np.einsum("nij,j->ni", post.D, post.M) + (M[0] + M[1:])[groups.of]
    expected = theirs.u + np.einsum("nij,nj->ni", theirs.S, theirs.m[groups.of]) / 0.3
    np.testing.assert_allclose(theta, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("make", [per_round, crossed, lambda: per_round(arms="once")])
def test_steps_are_the_posterior(make):
    """Kalman's steps between two limits lead to what is worked out from the sums."""
    policy, generator = make(), np.random.default_rng(4)
    for _ in range(55):
        contexts = generator.random((policy.n_arms, D))
        more = {"groups": ["F", "M", None, {"F": 0.2, "M": 0.8}]} if policy.groups.changes else {}
        decision = policy.select(contexts, **more)
        policy.update(decision, decision.context.sum() * decision.arm + generator.normal())
    own = policy._state.own
    assert own.fresh[-1] > 0
    means, arms = own.means.copy(), own.arms.copy()
    own.common[STALE] = 1.0
    policy._settle(policy._rule, policy._state)
    np.testing.assert_allclose(own.means, means, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(own.arms, arms, rtol=1e-6, atol=1e-8)


# Order, saving, merging ------------------------------------------------------------------------


@pytest.mark.parametrize("make", [per_round, crossed])
@pytest.mark.parametrize("arms", ["recurring", "once"])
def test_late_and_shuffled_rewards_give_the_same_state(make, arms):
    """Each reward with the groups of its own round, which differ from round to round."""
    generator = np.random.default_rng(4)
    prompt, late = make(arms=arms), make(arms=arms)
    changes, n = prompt.groups.changes, prompt.n_arms
    made = []
    for t in range(60):
        contexts = generator.random((n, D))
        given = np.roll(["F", "M", None, {"F": 0.2, "M": 0.8}], t).tolist() if changes else None
        decision = prompt.select(contexts, groups=given)
        reward = decision.context.sum() * decision.arm + generator.normal()
        made.append((decision, reward))
        prompt.update(decision, reward)
    for place in generator.permutation(60):
        late.update(*made[place])
    late.round = prompt.round
    contexts = generator.random((n, D))
    first, second = (
        policy.select(contexts, groups=["F", "M", "M", None] if changes else None).scores.table
        for policy in (prompt, late)
    )
    np.testing.assert_allclose(first, second, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("arms", ["recurring", "once"])
@pytest.mark.parametrize("make", [per_round, crossed])
def test_whichever_reward_comes_first_the_state_is_that_of_their_set(make, arms):
    """Also if no decision of the early rounds has a reward, so that nothing is settled yet."""
    generator = np.random.default_rng(4)
    one, other = make(arms=arms), make(arms=arms)
    n = one.n_arms
    given = {"groups": ["F", "M", None, "F"][:n]} if one.groups.changes else {}
    made = [one.select(generator.random((n, D)), **given) for _ in range(30)]
    late = [made[t] for t in (5, 4, 29, 7, 26, 28)]  # the limit is 26: rounds 27, 29, 30 are fresh
    for number, decision in enumerate(late):
        one.update(decision, decision.context.sum() * decision.arm)
        assert all(np.isfinite(table).all() for table in one.own), number
    other.round = one.round
    for decision in late[::-1]:
        other.update(decision, decision.context.sum() * decision.arm)
    contexts = generator.random((n, D))
    first, second = (policy.select(contexts, **given).scores.table for policy in (one, other))
    np.testing.assert_allclose(first, second, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("make", [per_round, crossed])
def test_saving_and_decisions_as_dicts_keep_every_bit(make):
    policy, generator = make(), np.random.default_rng(4)
    more = {"groups": ["F", "M", None, {"F": 0.2, "M": 0.8}]} if policy.groups.changes else {}
    for _ in range(20):
        decision = policy.select(generator.random((policy.n_arms, D)), **more)
        text = json.dumps(decision.to_dict())
        policy.update(eh.Decision.from_dict(json.loads(text)), generator.normal())
    twin = from_dict(json.loads(json.dumps(to_dict(policy))))
    assert twin.groups == policy.groups
    contexts = generator.random((policy.n_arms, D))
    first, second = policy.select(contexts, **more), twin.select(contexts, **more)
    assert json.dumps(first.to_dict()) == json.dumps(second.to_dict())


def test_merged_policies_know_what_both_learned():
    arms, contexts, rewards, given = of_round(80)
    whole, here = per_round(), per_round()
    there = here.clone(seed=9)
    whole.absorb(arms, contexts, rewards, groups=given)
    here.absorb(arms[:30], contexts[:30], rewards[:30], groups=given[:30])
    there.absorb(arms[30:], contexts[30:], rewards[30:], groups=given[30:])
    here.merge(there)
    now = {"contexts": np.ones((4, D)), "groups": ["F", "M", None, "M"]}
    np.testing.assert_allclose(
        here.select(**now).scores.table, whole.select(**now).scores.table, rtol=1e-8, atol=1e-8
    )


@pytest.mark.parametrize("candidates", [False, True])
def test_a_log_replays_bit_for_bit(tmp_path, candidates):
    path, generator = tmp_path / "log.csv", np.random.default_rng(2)
    with eh.log_to(path, per_round(), candidates=candidates) as logged:
        logged.absorb(*of_round(5)[:3], groups=of_round(5)[3])
        for t in range(30):
            given = ["F", "M", None, {"F": 0.2, "M": 0.8}]
            decision = logged.select(generator.random((4, D)), groups=given)
            if t == 3:
                other = (decision.arm + 1) % 4
                logged.override(decision, arm=other, context=[0.5, 0.5], groups=["F"])
            if t % 3:
                logged.update(decision, generator.normal())
        logged.update(logged.waiting[:4], [1.0, 2.0, 3.0, 4.0])
        text = json.dumps(to_dict(logged.policy))
    assert json.dumps(to_dict(eh.replay(path))) == text
    with eh.log_to(path) as logged:  # from its snapshot
        assert json.dumps(to_dict(logged.policy)) == text
    other = eh.replay(path, per_round(seed=8, arms="once"))
    assert other.counts.tolist() == logged.policy.counts.tolist()
    frame = eh.read_log(path)
    assert frame[["sex: F", "sex: M", "sex: not stated"]].sum(axis=1).to_numpy() == pytest.approx(1)


# Choosing ---------------------------------------------------------------------------------------


def test_propensities_are_frequencies():
    arms, contexts, rewards, given = of_round(40)
    policy = per_round()
    policy.absorb(arms, contexts, rewards, groups=given)
    now = {"contexts": np.random.default_rng(1).random((4, D)), "groups": ["F", "M", None, "F"]}
    chances = policy.propensities(**now)
    assert chances.sum() == pytest.approx(1.0)
    counted = np.zeros(4)
    for key in range(4000):
        policy.round, policy._key = 0, key
        decision = policy.select(**now)
        counted[decision.arm] += 1
        assert decision.propensity == pytest.approx(chances[decision.arm], abs=1e-9)
    assert np.abs(counted / 4000 - chances).max() < 5 * np.sqrt(0.25 / 4000)


def test_levels_without_a_reward_come_first():
    policy = per_round()
    contexts = np.ones((4, D))
    policy.absorb([0], [[1.0, 1.0]], [5.0], groups=["M"])
    chances = policy.propensities(contexts, groups=["F", "M", "M", "F"])
    assert (chances > 0.0).tolist() == [True, False, False, True]
    policy.absorb([0], [[1.0, 1.0]], [5.0], groups=["F"])
    assert policy.propensities(contexts, groups=["F", "M", "M", None])[3] == 1.0


def test_the_correction_is_what_the_candidate_would_get_in_the_reference():
    """The same candidate as a woman and as a man has the same corrected value."""
    arms, contexts, rewards, given = of_round(200)
    policy = per_round()
    policy.absorb(arms, contexts, rewards, groups=given)
    x = np.tile([0.4, 0.7], (4, 1))
    as_women = policy.select(x, groups=["F"] * 4).scores
    as_men = policy.select(x, groups=["M"] * 4).scores
    np.testing.assert_allclose(
        as_women.estimate + as_women.correction, as_men.estimate + as_men.correction, rtol=1e-9
    )
    assert (as_men.correction == 0.0).all() and (as_women.correction > 0.5).all()


def test_six_attributes_of_four_levels():
    """4,096 intersections are possible; only those that occur count."""
    generator = np.random.default_rng(1)
    table = {f"a{k}": generator.integers(4, size=40).tolist() for k in range(6)}
    groups = eh.Groups.of_attributes(table)
    policy = eh.PooledGroupFair(groups, 2, seed=1)
    assert policy._design.kinds.size == 1 + 24 + len(groups) <= 65
    for _ in range(30):
        decision = policy.select(generator.random((40, 2)))
        policy.update(decision, decision.context.sum())
    assert np.isfinite(policy.select(generator.random((40, 2))).scores.table).all()
    by_round = eh.Groups.per_round(5, {f"a{k}": list("wxyz") for k in range(6)})
    policy = eh.PooledGroupFair(by_round, 2, seed=1)
    assert policy._design.kinds.size == 1 + 6 * 5
    given = {f"a{k}": list("wxyzw") for k in range(6)}
    policy.update(policy.select(np.ones((5, 2)), groups=given), 1.0)


# Input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "groups is None"),
        (["F", "M", "M"], "3 candidates of sex"),
        (["F", "M", "M", "X"], "'X' for sex"),
        (["F", "M", "M", {"F": 0.5, "M": 0.6}], "sum to 1"),
        (["F", "M", "M", {"F": -0.5, "M": 1.5}], "probability -0.5"),
        (np.full((4, 3), 1 / 3), "shape (4, 3)"),
        ({"race": ["F"] * 4}, "mapping from sex"),
        ("FMFM", "'FMFM' for sex"),
    ],
)
def test_bad_membership_is_refused_in_one_line(given, words):
    policy = per_round()
    with pytest.raises(eh.InputError) as caught:
        policy.select(np.ones((4, D)), groups=given)
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert policy.round == 0


def test_membership_in_many_forms_is_the_same():
    import pandas as pd

    policy = per_round()
    rows = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    labels = ["F", "M", None, "M"]
    table = np.array([[1, 0], [0, 1], [np.nan, np.nan], [0, 1]])
    for given in (labels, {"sex": labels}, pd.DataFrame({"sex": labels}), table, np.array(labels)):
        assert policy.select(np.ones((4, D)), groups=given).groups.tolist() == rows


class OfTheFirstGroup(eh.TopInterval):
    """A rule of its own, which may go by `members.group_of`."""

    def rule(self):
        return super().rule()


class OnMembership(OfTheFirstGroup):
    takes_membership = True


def test_a_rule_says_itself_whether_it_takes_membership():
    """`members.group_of` has no groups that come with the round, and nobody would notice."""
    groups = eh.Groups.per_round(2, {"sex": ["F", "M"]})
    with pytest.raises(eh.InputError, match="OfTheFirstGroup compares arms by the group"):
        OfTheFirstGroup(groups, n_features=1)
    assert OnMembership(groups, n_features=1).select(np.ones((2, 1)), groups=["F", "M"]).arm < 2


def test_fixed_groups_take_no_groups_and_other_policies_no_membership():
    with pytest.raises(eh.InputError, match="groups of this policy are fixed"):
        eh.TopInterval(["F", "M"], 1).select(np.ones((2, 1)), groups=["F", "M"])
    groups = eh.Groups.per_round(4, {"sex": ["F", "M"]})
    for kind in (eh.GroupFairTopInterval, eh.MultiGroupFairTopInterval, eh.NaiveFair):
        with pytest.raises(eh.InputError, match="allowed are fixed groups"):
            kind(groups, 2)


def test_references():
    groups = eh.Groups.of_attributes(TABLE)
    names = ["1", "F", "M", "o", "y", *groups.names]

    def of(reference):
        weights = eh.PooledGroupFair(groups, 1, reference=reference)._weights
        return {name: round(w, 3) for name, w in zip(names, weights, strict=True) if w}

    assert of("M & y") == {"1": 1, "M": 1, "y": 1, "M & y": 1}
    assert of({"sex": "F"}) == {"1": 1, "F": 1, "o": 0.667, "y": 0.333, "F & o": 0.667,
                                "F & y": 0.333}  # fmt: skip
    assert of(None) == of("mean") == {**dict.fromkeys(["F", "M", "o", "y"], 0.5), "1": 1,
                                      **dict.fromkeys(groups.names, 0.25)}  # fmt: skip
    table = {"sex": TABLE["sex"], "age": [f"old={age == 'o'}" for age in TABLE["age"]]}
    flags, expected = eh.Groups.of_attributes(table), of({"age": "o"})
    for level in (True, "true", "old=True"):
        weights = eh.PooledGroupFair(flags, 1, reference={"age": level})._weights
        assert sorted(weights[weights > 0.0].round(3)) == sorted(expected.values())
    for wrong in ("X", {"sex": "X"}, {"race": "F"}, []):
        with pytest.raises(eh.InputError, match="reference is"):
            of(wrong)


def test_rewards_without_noise_leave_a_report():
    """A spread of arms near zero is no singular matrix."""
    table = {"sex": ["F", "F", "M", "M"], "age": ["old", "young"] * 2}
    policy = eh.PooledGroupFair(eh.Groups.of_attributes(table), n_features=3, seed=7)
    for k in range(12):
        rows = np.column_stack([np.ones(4), 20 + 10 * np.arange(4) + k % 7, 30 + 5 * np.arange(4)])
        decision = policy.select(rows)
        policy.update(decision, float(decision.arm))
    frame = policy.bias().to_frame()
    assert len(frame) == 24 and (frame["floor"].dropna() >= 0.0).all()


@pytest.mark.parametrize("first", range(1, 12))
@pytest.mark.parametrize("reward", [0.0, 5.0])
def test_the_first_reward_to_come_may_be_of_any_round(first, reward):
    """Nothing is settled then, and the state is still made of numbers, in any order."""
    groups = eh.Groups.per_round(4, {"sex": ["F", "M"]})
    rng = np.random.default_rng(first)
    rows, members = rng.normal(size=(3, 2)), [["F"], ["M"], [None]]
    rewards, rounds = [reward, 1.0, -2.0], [first, first + 3, max(first - 1, 1)]
    tables = []
    for order in ([0, 1, 2], [2, 1, 0]):
        policy = eh.PooledGroupFair(groups, n_features=2, seed=7)
        for k in order:
            policy.absorb([k], rows[[k]], [rewards[k]], rounds=[rounds[k]], groups=members[k])
            for table in policy._state.own:
                assert np.isfinite(table).all()
        policy.round = 20
        tables.append(policy.select(np.ones((4, 2)), groups=["F", "M"] * 2))
    first_table, second_table = (decision.scores.table for decision in tables)
    np.testing.assert_allclose(first_table, second_table, rtol=1e-8, atol=1e-8)


# The probe --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["recurring", "once"])
def test_the_probe_is_part_of_the_propensities(form):
    """Where contexts do not vary, the probe fires; counts against propensities, alarm 1e-6."""
    table = {"sex": ["F"] * 4 + ["M"] * 4, "age": ["o", "y"] * 4}
    groups = eh.Groups.of_attributes(table)
    policy = eh.PooledGroupFair(groups, 1, reference="M & y", arms=form, seed=1)
    without = policy.clone(probe=False)
    for learner in (policy, without):
        generator = np.random.default_rng(17)
        arms = np.repeat(np.arange(8), [1, 4, 2, 3, 1, 4, 2, 3])
        rewards = 3.0 + 0.3 * generator.normal(size=8)[arms] + 0.5 * generator.normal(size=20)
        learner.absorb(arms, np.ones((20, 1)), rewards)
        learner.round = 40
    contexts = np.ones((8, 1))
    chances = policy.propensities(contexts)
    plain = without.propensities(contexts)
    assert chances.sum() == pytest.approx(1.0)
    more = chances - (1.0 - 41**-0.5) * plain
    probed = np.flatnonzero(more > 1e-12)
    assert probed.size == 1, "the probe does not fire here, so nothing would be tested"
    assert more[probed[0]] == pytest.approx(41**-0.5)
    counts = np.zeros(8)
    for seed in range(4000):
        policy._restart(seed)  # what was learned stays
        policy.round = 40
        counts[policy.select(contexts).arm] += 1
    policy.round = 40
    np.testing.assert_array_equal(policy.propensities(contexts), chances)
    expected = 4000 * chances
    seen = expected > 0.0
    assert not counts[~seen].any()
    assert seen.sum() > 1
    statistic = ((counts - expected)[seen] ** 2 / expected[seen]).sum()
    assert statistic < chi2.isf(1e-6, seen.sum() - 1)


def test_no_probe_where_groups_come_with_the_round():
    policy, without = per_round(), per_round(probe=False)
    arms, contexts, rewards, given = of_round(40)
    for learner in (policy, without):
        learner.absorb(arms, contexts, rewards, groups=given)
        learner.round = 40
    told = ["F", "M", None, {"F": 0.4, "M": 0.6}]
    np.testing.assert_array_equal(
        policy.propensities(np.ones((4, D)), groups=told),
        without.propensities(np.ones((4, D)), groups=told),
    )
