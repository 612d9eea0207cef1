"""PooledGroupFair: its posterior against dense algebra, and a state that knows no order."""

import json
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh
from evenhand.policies.pooled_group_fair._hyperparameters import estimate_variances
from evenhand.policies.pooled_group_fair._layout import LIMIT, STALE
from evenhand.policies.pooled_group_fair._learning import next_limit
from evenhand.policies.pooled_group_fair._posterior import (
    Variances,
    blank_posterior,
    in_units,
    work_out,
)
from evenhand.policies.saving import from_dict, to_dict

LABELS = ("F", "M", "F", "M", "X", "F", "M")


@eh.compiled
def posterior_of(sums, unit, group_of, sizes, variances):
    post = blank_posterior(sums.shape[0], sizes.size, unit.size)
    work_out(in_units(sums, unit, 1.0, group_of, sizes), variances, post)
    return post


@eh.compiled
def variances_of(sums, group_of, sizes, d):
    post = blank_posterior(sums.shape[0], sizes.size, d)
    return estimate_variances(in_units(sums, np.ones(d), 1.0, group_of, sizes), -1.0, post)


def some_rows(number, d=3, seed=0, labels=LABELS, spread=0.5):
    generator = np.random.default_rng(seed)
    means = {"F": -2.0, "M": 0.0, "X": 1.0}
    worth = np.array([means[label] + 3.0 for label in labels])[:, None]
    worth = worth + spread * generator.standard_normal((len(labels), d))
    arms = generator.integers(len(labels), size=number)
    contexts = generator.random((number, d)) + 0.1
    rewards = (worth[arms] * contexts).sum(axis=1) + 0.7 * generator.standard_normal(number)
    return arms, contexts, rewards


def policy_of(labels=LABELS, d=3, **settings):
    return eh.PooledGroupFair(eh.Groups(labels), d, **{"seed": 5, "reference": "M", **settings})


def scores(policy, seed=3):
    twin = from_dict(to_dict(policy))
    contexts = np.random.default_rng(seed).random((policy.n_arms, policy.n_features))
    return twin.select(contexts).scores.table


# The posterior ---------------------------------------------------------------------------------


def conditioned(groups, d, data, sigma2, tau2, Omega, Lambda):
    """Mean and variance of all of theta, m and mu at once: one big Gaussian, given the rewards."""
    n, m = groups.n_arms, len(groups)
    arms, contexts, rewards = data

    def put(block, rows, columns, matrix):
        block[rows * d : rows * d + d, columns * d : columns * d + d] = matrix

    size = (n + m + 1) * d  # theta, m, mu
    prior = np.zeros((size, size))
    for i in range(n + m + 1):
        for j in range(n + m + 1):
            both = Lambda.copy()  # everything has mu in common
            gi = groups.of[i] if i < n else i - n
            gj = groups.of[j] if j < n else j - n
            if i < n + m and j < n + m and gi == gj:
                both += Omega
            if i == j and i < n:
                both += tau2[gi] * np.eye(d)
            put(prior, i, j, both)
    design = np.zeros((len(arms), size))
    for row, (arm, x) in enumerate(zip(arms, contexts, strict=True)):
        design[row, arm * d : arm * d + d] = x
    gain = prior @ design.T @ np.linalg.inv(design @ prior @ design.T + sigma2 * np.eye(len(arms)))
    return gain @ rewards, prior - gain @ design @ prior


def test_the_posterior_is_that_of_the_joint_normal_distribution():
    d, groups = 2, eh.Groups(LABELS)
    n, m = groups.n_arms, len(groups)
    arms, contexts, rewards = some_rows(25, d)
    arms = np.where(arms == 1, 0, arms)  # arm 1 is never seen
    sigma2, tau2 = 0.4, np.array([0.3, 0.8, 0.5])
    generator = np.random.default_rng(8)
    roots = generator.standard_normal((2, d, d))
    Omega, Lambda = roots[0] @ roots[0].T + np.eye(d), roots[1] @ roots[1].T + 3 * np.eye(d)
    mean, variance = conditioned(groups, d, (arms, contexts, rewards), sigma2, tau2, Omega, Lambda)

    policy = policy_of(d=d)
    policy.absorb(arms, contexts, rewards)
    sums, sizes = policy._state.own.settled, groups.sizes.astype(float)
    inverses = np.linalg.inv(Omega), np.linalg.inv(Lambda)
    least = np.array([np.linalg.eigvalsh(matrix).min() for matrix in inverses])
    variances = Variances(np.array([sigma2]), tau2, *inverses, least)
    post = posterior_of(sums, np.ones(d), groups.of, sizes, variances)

    p = 1.0 / tau2[groups.of]
    pulled = p[:, None] * np.einsum("nij,nj->ni", post.S, post.m[groups.of])
    np.testing.assert_allclose((post.u + pulled).ravel(), mean[: n * d], atol=1e-10)
    np.testing.assert_allclose(post.m.ravel(), mean[n * d : (n + m) * d], atol=1e-10)
    np.testing.assert_allclose(post.mu, mean[(n + m) * d :], atol=1e-10)
    for g in range(m):
        at = slice((n + g) * d, (n + g) * d + d)
        of_mean = post.V[g] + post.F[g].T @ post.C @ post.F[g]
        np.testing.assert_allclose(of_mean, variance[at, at], atol=1e-10)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_variances_are_the_steps_of_the_whole_model(d):
    """Six steps with effective numbers and expected squares from the joint normal distribution."""
    groups = eh.Groups((*LABELS, "F", "F", "F"))  # of F there are six arms: more than four lanes
    n, m = groups.n_arms, len(groups)
    arms, contexts, rewards = some_rows(60, d, labels=groups.labels)
    arms = np.where(arms == 1, 0, arms)  # arm 1 is never seen
    policy = policy_of(labels=groups.labels, d=d)
    contexts /= np.sqrt((contexts**2).mean(axis=0))
    rewards = rewards / np.sqrt((rewards**2).mean())
    policy.absorb(arms, contexts, rewards)
    sizes = groups.sizes.astype(float)
    variances, freedom = variances_of(policy._state.own.settled, groups.of, sizes, d)

    second = contexts.T @ contexts / 60
    values, vectors = np.linalg.eigh(second)
    v, kappa2 = vectors[:, -1], 1.0 / max(values[-1], 1.0)
    fit = np.linalg.solve(contexts.T @ contexts, contexts.T @ rewards)
    left = (1.0 - rewards @ (contexts @ fit) / 60) * 60 / (60 - d)
    across = np.eye(d) - np.outer(v, v)
    first, first_tau2 = 0.01 * left, 0.01 * left / d
    sigma2, tau2, omega2, lambda2 = first, np.full(m, first_tau2), 0.01 * kappa2, 0.01 * kappa2
    for _ in range(6):
        Omega = kappa2 * np.outer(v, v) + omega2 * across
        Lambda = 100 * kappa2 * np.outer(v, v) + lambda2 * across
        data = (arms, contexts, rewards)
        mean, variance = conditioned(groups, d, data, sigma2, tau2, Omega, Lambda)
        block = variance.reshape(n + m + 1, d, n + m + 1, d).swapaxes(1, 2)
        theta, means, mu = np.split(mean.reshape(-1, d), [n, n + m])

        def between(i, j, block=block):
            """The variance of a difference."""
            return block[i, i] + block[j, j] - block[i, j] - block[j, i]

        fitted, spread, numbers = 0.0, np.zeros(m), np.zeros(m)
        for i, g in enumerate(groups.of):
            mine = contexts[arms == i]
            fitted += np.trace(mine @ block[i, i] @ mine.T) / sigma2
            spread[g] += ((theta[i] - means[g]) ** 2).sum()
            numbers[g] += d - np.trace(between(i, n + g)) / tau2[g]
        residual = ((rewards - (theta[arms] * contexts).sum(axis=1)) ** 2).sum()
        sigma2 = (residual + first) / (60 - fitted + 1.0)
        tau = (spread.sum() + first_tau2) / (numbers.sum() + 1.0)
        tau2 = (spread + d * tau) / (numbers + d)
        if d > 1:
            away = ((means - mu) @ across) ** 2
            squares = sum(np.trace(between(n + g, n + m) @ across) for g in range(m))
            omega2 = (away.sum() + squares) / (m * (d - 1) - 1)
            lambda2 = ((mu @ across) ** 2).sum() + np.trace(block[-1, -1] @ across)
            lambda2 /= d - 1
    np.testing.assert_allclose(variances.sigma2[0], sigma2, rtol=1e-6)
    np.testing.assert_allclose(variances.tau2, tau2, rtol=1e-6)
    np.testing.assert_allclose(freedom, [60 - fitted, *numbers], rtol=1e-6)
    Omega = kappa2 * np.outer(v, v) + omega2 * across
    np.testing.assert_allclose(np.linalg.inv(variances.omega_inverse), Omega, rtol=1e-5, atol=1e-9)


def test_steps_of_one_reward_are_the_posterior_of_all():
    policy = policy_of(d=4)
    arms, contexts, rewards = some_rows(200, 4)
    policy.absorb(arms[:100], contexts[:100], rewards[:100], rounds=range(1, 101))
    assert policy._state.own.common[LIMIT] < 100 < next_limit(policy._state.own.common[LIMIT])
    for t in range(100, 138):  # up to the round before the next limit
        policy.absorb(arms[t : t + 1], contexts[t : t + 1], rewards[t : t + 1], rounds=[t + 1])
    before = scores(policy)
    policy._state.own.common[STALE] = 1.0
    policy._settle(policy._rule, policy._state)
    np.testing.assert_allclose(scores(policy), before, rtol=1e-9, atol=1e-9)


def test_variances_are_found_in_large_data():
    """sigma 0.7 and tau 0.5: 200 arms leave a relative error of about 1/14 for tau."""
    labels = ("F", "M") * 100
    policy = policy_of(labels, d=3)
    policy.absorb(*some_rows(8000, 3, labels=labels))
    beliefs = policy.beliefs()
    np.testing.assert_allclose(beliefs.noise, 0.7, rtol=0.05)
    np.testing.assert_allclose(beliefs.spread / beliefs.units.mean(), 0.5, rtol=0.25)
    np.testing.assert_allclose(beliefs.means[0] - beliefs.means[1], -2.0, atol=0.35)


def test_known_noise_is_used():
    policy = policy_of(noise=2.0)
    policy.absorb(*some_rows(50))
    assert policy.beliefs().noise == pytest.approx(2.0)


# Order -----------------------------------------------------------------------------------------


def test_limits_grow_by_half():
    limits = [0.0]
    while limits[-1] < 1e6:
        limits.append(next_limit(limits[-1]))
    assert limits[:8] == [0, 1, 2, 4, 7, 11, 17, 26]
    assert all(b <= 1.5 * a + 1 for a, b in pairwise(limits))


@given(seed=st.integers(0, 10**6), number=st.integers(1, 60))
def test_late_batched_and_shuffled_rewards_give_the_same_state(seed, number):
    arms, contexts, rewards = some_rows(number, seed=seed)
    rounds = np.arange(1, number + 1)
    in_order, shuffled, batched = policy_of(), policy_of(), policy_of()
    for t in range(number):
        in_order.absorb(arms[[t]], contexts[[t]], rewards[[t]], rounds=[t + 1])
    generator = np.random.default_rng(seed)
    order = generator.permutation(number)
    for t in order:
        shuffled.absorb(arms[[t]], contexts[[t]], rewards[[t]], rounds=[int(rounds[t])])
    for part in np.array_split(generator.permutation(number), 3):
        if part.size:
            batched.absorb(arms[part], contexts[part], rewards[part], rounds=rounds[part].tolist())
    expected = scores(in_order)
    for other in (shuffled, batched):
        np.testing.assert_allclose(scores(other), expected, rtol=1e-8, atol=1e-8)
        own, its = in_order._state.own, other._state.own
        np.testing.assert_allclose(its.settled, own.settled, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(its.fresh, own.fresh, rtol=1e-12, atol=1e-12)
        assert not its.common[STALE]


@given(seed=st.integers(0, 10**6), number=st.integers(1, 30), first=st.integers(1, 900))
def test_whichever_reward_comes_first_the_state_is_that_of_their_set(seed, number, first):
    """Also if no decision of the early rounds has a reward, so that nothing is settled yet."""
    arms, contexts, rewards = some_rows(number, seed=seed)
    generator = np.random.default_rng(seed)
    rounds = first + generator.choice(3 * number, number, replace=False)
    one, other = policy_of(), policy_of()
    for t in range(number):
        one.absorb(arms[[t]], contexts[[t]], rewards[[t]], rounds=[int(rounds[t])])
        assert all(np.isfinite(table).all() for table in one.own)
    for t in generator.permutation(number):
        other.absorb(arms[[t]], contexts[[t]], rewards[[t]], rounds=[int(rounds[t])])
    np.testing.assert_allclose(scores(other), scores(one), rtol=1e-8, atol=1e-8)
    both = policy_of()
    both.absorb(arms[:1], contexts[:1], rewards[:1], rounds=rounds[:1].tolist())
    rest = policy_of()
    rest.absorb(arms[1:], contexts[1:], rewards[1:], rounds=rounds[1:].tolist())
    both.merge(rest)
    assert np.isfinite(scores(both)).all()


def test_a_late_reward_changes_the_variances_at_once():
    arms, contexts, rewards = some_rows(60)
    policy = policy_of()
    rounds = list(range(1, 61))
    late = 5
    kept = [t for t in range(60) if t != late]
    policy.absorb(arms[kept], contexts[kept], rewards[kept], rounds=[rounds[t] for t in kept])
    policy.absorb(arms[[late]], contexts[[late]], rewards[[late]], rounds=[rounds[late]])
    whole = policy_of()
    whole.absorb(arms, contexts, rewards, rounds=rounds)
    np.testing.assert_allclose(scores(policy), scores(whole), rtol=1e-9, atol=1e-9)


def test_updates_know_the_round_of_their_decision(tmp_path):
    """Decisions rewarded late and in a batch, logged, saved and replayed bit for bit."""
    groups = eh.Groups(["F", "F", "M", "M"], sensitive="F")
    generator = np.random.default_rng(4)
    with eh.log_to(tmp_path / "log.parquet", eh.PooledGroupFair(groups, 2, seed=3)) as logged:
        made = []
        for _ in range(80):
            made.append(logged.select(generator.random((4, 2))))
            if len(made) > 6:  # rewards of some come late, out of order
                decision = made.pop(int(generator.integers(len(made))))
                logged.update(decision, float(decision.context.sum() + generator.normal()))
        logged.update(made, [float(decision.context.sum()) for decision in made])
        text = json.dumps(to_dict(logged.policy))
    assert json.dumps(to_dict(eh.replay(tmp_path / "log.parquet"))) == text


def test_merging_is_learning_everything():
    arms, contexts, rewards = some_rows(90)
    here, there, whole = policy_of(), policy_of(seed=6), policy_of()
    here.absorb(arms[:30], contexts[:30], rewards[:30])
    there.absorb(arms[30:], contexts[30:], rewards[30:])
    whole.absorb(arms, contexts, rewards)
    here.merge(there)
    np.testing.assert_allclose(scores(here), scores(whole), rtol=1e-8, atol=1e-8)
    assert here.counts.tolist() == whole.counts.tolist()
    empty = policy_of()
    empty.merge(policy_of(seed=9))
    assert np.isinf(scores(empty)[1]).all()


def test_policies_that_ask_for_no_rounds_take_them_too():
    policy = eh.TopInterval(["F", "M"], n_features=1)
    policy.absorb([0, 1], np.ones((2, 1)), [1.0, 2.0], rounds=[1, 2])
    assert policy.counts.tolist() == [1, 1]
    with pytest.raises(ValueError, match="rounds has 1 number; give one for each of 2 rewards"):
        policy.absorb([0, 1], np.ones((2, 1)), [1.0, 2.0], rounds=[1])
    with pytest.raises(ValueError, match="rounds"):
        policy.absorb([0], np.ones((1, 1)), [1.0], rounds=[-1])


# Units, offsets, what was never seen -------------------------------------------------------------


def test_units_of_features_do_not_matter():
    arms, contexts, rewards = some_rows(80)
    factors = np.array([1.0, 1000.0, 1e-5])
    plain, scaled = policy_of(), policy_of()
    plain.absorb(arms, contexts, rewards)
    scaled.absorb(arms, contexts * factors, rewards)
    now = np.random.default_rng(1).random((7, 3))
    first, second = plain.select(now).scores.table, scaled.select(now * factors).scores.table
    np.testing.assert_allclose(second, first, rtol=1e-8, atol=1e-8)


def test_an_offset_of_all_rewards_changes_no_difference():
    """A constant feature explains the offset; only the prior of the bias is wider, as it should."""
    arms, contexts, rewards = some_rows(400)
    contexts[:, 0] = 1.0
    now = np.random.default_rng(1).random((7, 3))
    now[:, 0] = 1.0
    tables = []
    for offset in (0.0, 1e4):
        policy = policy_of()
        policy.absorb(arms, contexts, rewards + offset)
        table = policy.select(now).scores.table
        tables.append(np.vstack([table[0] - offset, table[1:4]]))
    np.testing.assert_allclose(tables[1][:2], tables[0][:2], atol=0.1)
    np.testing.assert_allclose(tables[1][2:], tables[0][2:], atol=0.3)


def test_features_that_are_always_zero_or_constant():
    arms, contexts, rewards = some_rows(80)
    contexts[:, 1], contexts[:, 2] = 0.0, 1.0
    policy = policy_of()
    policy.absorb(arms, contexts, rewards)
    assert np.isfinite(scores(policy)).all()
    table = policy.bias().to_frame()
    assert (table.low[table.feature == "x2"].to_numpy()[[0, 2]] == -np.inf).all()


def test_arms_and_groups_that_nobody_has_seen():
    policy = policy_of()
    arms, contexts, rewards = some_rows(60)
    seen = (arms != 4) & (arms != 6)  # arm 4 is all of group X, arm 6 one of three of M
    policy.absorb(arms[seen], contexts[seen], rewards[seen])
    table = scores(policy)
    assert np.isfinite(table).all()
    assert table[1, 6] > table[1, [1, 3]].max()
    chances = policy.propensities(np.random.default_rng(3).random((7, 3)))
    assert chances[4] == 1.0  # a group without any reward comes first
    without = policy.propensities(np.random.default_rng(3).random((7, 3)), available=[0, 1, 2])
    assert without.sum() == pytest.approx(1.0) and without[4] == 0.0


def test_a_group_of_one_arm_is_known_through_the_others():
    """Bias and worth cannot be told apart: the prior leaves the spread of an arm as doubt."""
    policy = policy_of()
    policy.absorb(*some_rows(3000))
    table = policy.bias().to_frame().set_index(["group", "feature"])
    assert table.floor["X", "x1"] > 1.3 * table.floor["F", "x1"]
    assert (
        table.high["X", "x1"] - table.low["X", "x1"] > table.high["F", "x1"] - table.low["F", "x1"]
    )


def test_rewards_of_zero_and_one():
    generator = np.random.default_rng(2)
    policy = eh.PooledGroupFair(["F", "F", "M", "M"], 1, reference="M", seed=1)
    arms = np.tile([0, 1, 2, 3], 50)
    rewards = (generator.random(200) < np.array([0.2, 0.3, 0.6, 0.7])[arms]).astype(float)
    policy.absorb(arms, np.ones((200, 1)), np.zeros(200))  # all of them 0 at first
    assert (policy.select(np.ones((4, 1))).scores.estimate == 0.0).all()
    policy.absorb(arms, np.ones((200, 1)), rewards)
    assert (policy.select(np.ones((4, 1))).scores.correction[:2] > 0.1).all()


# The public face ---------------------------------------------------------------------------------


def test_the_reference_may_be_a_group_or_groups_or_the_mean():
    rows = some_rows(200)
    corrections = {}
    for reference in ("M", ("M",), ["M", "X"], "mean", None):
        policy = policy_of(reference=reference)
        policy.absorb(*rows)
        corrections[str(reference)] = policy.select(np.ones((7, 3))).scores.correction
        again = from_dict(json.loads(json.dumps(to_dict(policy))))
        np.testing.assert_array_equal(
            again.select(np.ones((7, 3))).scores.correction, corrections[str(reference)]
        )
    np.testing.assert_array_equal(corrections["M"], corrections["('M',)"])
    np.testing.assert_array_equal(corrections["mean"], corrections["None"])
    assert corrections["M"][1] == 0.0 and corrections["['M', 'X']"][1] != 0.0
    assert len(set(corrections["mean"].round(6))) == 3
    two = eh.PooledGroupFair(eh.Groups(["F", "M"] * 2, sensitive="F"), 1)
    assert two._weights.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("reference", [0, 0.0, np.int64(0), "0", "black=0", [0], ("black=0",)])
def test_the_reference_may_be_a_group_of_a_column_of_numbers(reference):
    policy = eh.PooledGroupFair(["black=0", "black=1"] * 3, 1, reference=reference, seed=1)
    assert policy._weights.tolist() == [1.0, 0.0]
    again = from_dict(json.loads(json.dumps(to_dict(policy))))
    assert again._weights.tolist() == [1.0, 0.0]
    policy.absorb([0, 1, 2, 3, 4, 5] * 4, np.ones((24, 1)), np.arange(24.0))
    for other in (1, "1", "black=1"):
        frame = policy.bias(reference=other).to_frame().set_index("group")
        assert frame.loc["black=1", "estimate"] == 0.0 != frame.loc["black=0", "estimate"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"reference": "Z"}, "reference is 'Z'; allowed are 'mean', one of F, M, X"),
        ({"reference": []}, "reference is an empty list"),
        ({"probe": "often"}, "probe is 'often'; allowed is True or False"),
        ({"labels": ("F", "F")}, "groups are F alone; allowed are two or more"),
    ],
)
def test_bad_settings_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        policy_of(**settings)


def test_explanations_add_up_and_the_highest_score_is_chosen():
    policy = policy_of(probe=False)
    policy.absorb(*some_rows(60))
    generator = np.random.default_rng(0)
    bonuses = []
    for _ in range(50):
        decision = policy.select(generator.random((7, 3)))
        table = policy.explain(decision)
        np.testing.assert_allclose(table.estimate + table.correction + table.bonus, table.score)
        assert table.score.argmax() == decision.arm
        bonuses.append(table.bonus[0] / decision.scores.width[0])
    assert len(set(bonuses)) == 50 and min(bonuses) > 0.0
    with pytest.raises(ValueError, match="allowed is the result of select"):
        policy.explain(3)


def test_words_are_true_for_the_data_at_hand():
    policy = policy_of()
    assert policy.bias().to_words().startswith("Nothing has been learned yet.")
    arms, contexts, rewards = some_rows(1500)
    there = arms != 4
    policy.absorb(arms[there], contexts[there], rewards[there])
    words = policy.bias().to_words()
    table = policy.bias().to_frame()
    known = (table.why == "") & np.isfinite(table.low)
    clear = table[known & ((table.simultaneous_low > 0) | (table.simultaneous_high < 0))]
    assert words.count("Per unit of") == len(clear)
    for row in clear.itertuples():
        turn = "rises" if row.estimate > 0 else "falls"
        assert f"Per unit of {row.feature}, the feedback for group {row.group} {turn} by " in words
    assert "For group X there is not enough feedback yet" in words
    assert "group M is" not in words  # the reference has no bias against itself
    assert words.endswith("a true difference would look the same.")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert policy.bias().at(np.ones(3)).group.tolist() == ["F", "M", "X"]
    with pytest.raises(ValueError, match="contexts"):
        policy.bias().at(np.ones(2))
    assert "that for group F" in policy.bias(reference="F").to_words()
    assert "not identified" in eh.charts.to_svg(policy.bias().chart())
