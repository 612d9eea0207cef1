"""True rewards that come later: the posterior they lead to, and when they are learned."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand._compile import compiled
from evenhand.experiments.file import read_experiment
from evenhand.leastsquares._blend import blank_blend, evidence
from evenhand.policies.pooled_group_fair._layout import OF_TRUTH
from evenhand.policies.pooled_group_fair._posterior import (
    Data,
    Variances,
    blank_posterior,
    work_out,
)
from evenhand.policies.pooled_group_fair._true_posterior import (
    Truth,
    blank_seen,
    blend_in,
    corrected,
    information_of_truth,
)
from evenhand.policies.saving import _checksum, from_dict, to_dict
from evenhand.recording._replay import checksum
from evenhand.simulation._compiled_rounds import run
from evenhand.simulation._plain_rounds import each_round


@compiled
def _posterior_after_truth(data, variances, truth, weights, kappa2, free, sigma2):  # type: ignore[no-untyped-def]
    m, d = data.sizes.size, data.b.shape[1]
    post = blank_posterior(data.number.size, m, d)
    work_out(data, variances, post)
    seen, out = blank_seen(m, d), blank_blend(m * d, m * d, d, free)
    information_of_truth(data, variances, post, truth, sigma2, seen)
    blend_in(data, variances, post, weights, seen, kappa2, out)
    means, shifted, correction = np.empty(m * d), np.empty(m * d), np.empty(m * d)
    for k in range(m * d):
        means[k] = post.m[k // d, k % d]
    corrected(out, weights, means, m, d, free, shifted, correction)
    return out, shifted, correction, evidence(out.N, out.n, m * d, kappa2)


def _dense(variances, rows, weights, kappa2, free, sigma2, of):  # type: ignore[no-untyped-def]
    """Condition the joint normal of (mu, psi, delta, eta, psi_0, rewards) on all rewards at once.

    Returns the posterior of the means, of -psi_g, and the log-likelihood of all rewards.
    """
    n, m = len(of), len(weights)
    d = variances.omega_inverse.shape[0]
    blocks = 1 + m + n + m + 1  # mu, the groups' deviations, the arms' ones, eta, psi_0
    prior = np.zeros((blocks * d, blocks * d))

    def at(block: int) -> slice:
        return slice(block * d, (block + 1) * d)

    prior[at(0), at(0)] = np.linalg.inv(variances.lambda_inverse)
    for g in range(m):
        prior[at(1 + g), at(1 + g)] = np.linalg.inv(variances.omega_inverse)
        prior[at(1 + m + n + g), at(1 + m + n + g)] = kappa2 * np.eye(d)
    for i in range(n):
        prior[at(1 + m + i), at(1 + m + i)] = variances.tau2[of[i]] * np.eye(d)
    if free:
        prior[at(blocks - 1), at(blocks - 1)] = np.linalg.inv(variances.omega_inverse)

    def mean_of(g: int) -> np.ndarray:
        picked = np.zeros((d, blocks * d))
        picked[:, at(0)] = picked[:, at(1 + g)] = np.eye(d)
        return picked

    def bias_of(g: int) -> np.ndarray:
        picked = mean_of(g) - sum(weights[h] * mean_of(h) for h in range(m))
        picked[:, at(1 + m + n + g)] -= np.eye(d)
        for h in range(m):
            picked[:, at(1 + m + n + h)] += weights[h] * np.eye(d)
        picked[:, at(blocks - 1)] += np.eye(d)
        return picked

    design, noise, values = [], [], []
    for i, x, value, is_true in rows:
        picked = mean_of(of[i])
        picked[:, at(1 + m + i)] += np.eye(d)
        if is_true:
            picked = picked - bias_of(of[i])
        design.append(x @ picked)
        noise.append(sigma2 if is_true else variances.sigma2[0])
        values.append(value)
    H, y = np.array(design), np.array(values)
    covariance = H @ prior @ H.T + np.diag(noise)
    x = prior @ H.T @ np.linalg.solve(covariance, y)
    left = prior - prior @ H.T @ np.linalg.solve(covariance, H @ prior)
    means = np.concatenate([mean_of(g) @ x for g in range(m)])
    B = np.concatenate([bias_of(g) for g in range(m)])
    likelihood = -0.5 * (np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y))
    return means, -B @ x, B @ left @ B.T, likelihood


def _case(seed: int, weights: list[float]):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    m, d = len(weights), 2
    of = np.array([i % m for i in range(3 * m)])
    n = len(of)
    sums = [np.zeros((n, d, d)), np.zeros((n, d)), np.zeros(n), np.zeros(n)]
    true = [np.zeros((n, d, d)), np.zeros((n, d)), np.zeros(n), np.zeros(n)]
    rows = []
    for _ in range(60):
        i, x, value = rng.integers(n), rng.normal(size=d) + 1.0, rng.normal()
        is_true = bool(rng.random() < 0.3) and i != 1
        A, b, squares, count = true if is_true else sums
        A[i] += np.outer(x, x)
        b[i] += x * value
        squares[i] += value**2
        count[i] += 1
        rows.append((i, x, value, is_true))
    data = Data(*sums, of, np.bincount(of).astype(float))
    omega, shared = np.array([[0.5, 0.1], [0.1, 0.3]]), np.array([[2.0, 0.3], [0.3, 1.0]])
    least = [1.0 / np.linalg.eigvalsh(matrix)[-1] for matrix in (omega, shared)]
    variances = Variances(
        np.array([0.7]),
        np.linspace(0.2, 0.4, m),
        np.linalg.inv(omega),
        np.linalg.inv(shared),
        np.array(least),
    )
    return data, Truth(*true), variances, rows, of, np.array(weights)


@pytest.mark.parametrize("kappa2", [0.0, 0.05, 2.0])
@pytest.mark.parametrize("weights", [[0.0, 1.0], [0.25, 0.75, 0.0], [1 / 3, 1 / 3, 1 / 3]])
def test_the_posterior_is_that_of_all_rewards_at_once(weights: list[float], kappa2: float) -> None:
    """Means, bias, covariance and likelihood, beside dense conditioning of the joint normal."""
    free = min(weights) > 0.0
    data, truth, variances, rows, of, shares = _case(3, weights)
    posterior, means, correction, gain = _posterior_after_truth(
        data, variances, truth, shares, kappa2, free, 1.3
    )
    dense = _dense(variances, rows, shares, kappa2, free, 1.3, of)
    np.testing.assert_allclose(means, dense[0], atol=1e-10)
    np.testing.assert_allclose(correction, dense[1], atol=1e-10)
    m, d = len(weights), 2
    size = m * d
    to_bias = np.zeros((size, size + posterior.n.size))
    for g in range(m):
        for h in range(m):
            at = slice(g * d, (g + 1) * d)
            share = (1.0 if g == h else 0.0) - weights[h]
            to_bias[at, h * d : (h + 1) * d] += share * np.eye(d)
            to_bias[at, size + h * d : size + (h + 1) * d] -= share * np.eye(d)
        if free:
            to_bias[g * d : (g + 1) * d, 2 * size :] += posterior.root
    R, X, H = posterior.R, posterior.X, posterior.H
    joint = np.block([[R + X @ H @ X.T, -X @ H], [-(X @ H).T, H]])
    np.testing.assert_allclose(to_bias @ joint @ to_bias.T, dense[2], atol=1e-10)
    equal, at_0 = (
        _dense(variances, rows, shares, 0.0, free, 1.3, of),
        _posterior_after_truth(data, variances, truth, shares, 0.0, free, 1.3)[3],
    )
    assert gain - at_0 == pytest.approx(dense[3] - equal[3], abs=1e-9)


# The policy --------------------------------------------------------------------------------------


def _policy(**settings: Any) -> eh.PooledGroupFair:
    groups = eh.Groups(["F"] * 3 + ["M"] * 3, sensitive="F")
    return eh.PooledGroupFair(groups, 2, **{"seed": 3, **settings})


def _played(
    policy: eh.PooledGroupFair, number: int, seed: int = 0
) -> list[tuple[Any, float, float]]:
    """Decisions that wait, with their observed and true rewards."""
    rng = np.random.default_rng(0)
    worth, lost = 5.0 + rng.random((6, 2)), np.array([[3.0, 4.0]] * 3 + [[0.0, 0.0]] * 3)
    made = []
    for _ in range(number):
        decision = policy.select(rng.random((6, 2)))
        true = float(worth[decision.arm] @ decision.context)
        observed = true - float(lost[decision.arm] @ decision.context) + 0.3 * rng.normal()
        made.append((decision, observed, true + 0.3 * rng.normal()))
    return made


def _state(policy: eh.PooledGroupFair) -> list[np.ndarray]:
    return [*policy._state.own]


@given(st.randoms(use_true_random=False))
@settings(max_examples=15)
def test_the_order_of_true_rewards_does_not_matter(order: Random) -> None:
    """Observed and true rewards, shuffled against each other and in batches, give one state."""
    first, second = _policy(), _policy()
    made = _played(first, 40)
    for decision, observed, true in made:
        first.update(decision, observed)
        if decision.round % 3 == 0:
            first.update(decision, true_reward=true)
    tasks = [(decision, observed, None) for decision, observed, _ in made]
    tasks += [(decision, None, true) for decision, _, true in made if decision.round % 3 == 0]
    order.shuffle(tasks)
    for decision, observed, true in tasks:
        if true is None:
            decision.reward = None
            second.update(decision, observed)
        else:
            decision.reward = next(y for d, y, _ in made if d is decision)
            second.update(decision, true_reward=true)
    rounds = [decision.round for decision, _, _ in made if decision.round % 3 == 0]
    assert second.measured().number == len(rounds) and second.measured().since == rounds[0]
    contexts = np.random.default_rng(9).random((6, 2))
    for policy in (first, second):
        policy.round = 40
    both = [policy.select(contexts).scores.table for policy in (first, second)]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-8, atol=1e-8)


def test_many_true_rewards_at_once_are_the_same_as_one_by_one() -> None:
    first, second = _policy(), _policy()
    made = _played(first, 30)
    for decision, observed, _ in made:
        first.update(decision, observed)
        second.update(decision, observed)
    for decision, _, true in made[::2]:
        first.update(decision, true_reward=true)
    second.update([d for d, _, _ in made[::2]], true_reward=[z for _, _, z in made[::2]])
    for mine, its in zip(_state(first), _state(second), strict=True):
        np.testing.assert_array_equal(mine, its)


def test_both_rewards_in_one_call_and_a_true_reward_before_any_feedback() -> None:
    first, second = _policy(), _policy()
    made = _played(first, 12)
    first.update(made[0][0], true_reward=made[0][2])  # nothing else is known yet
    assert np.isfinite(first.select(np.ones((6, 2))).propensity)
    for decision, observed, true in made[1:]:
        first.update(decision, observed, true_reward=true)
    second.update(made[0][0], true_reward=made[0][2])
    for decision, observed, true in made[1:]:
        second.update(decision, observed)
        second.update(decision, true_reward=true)
    for mine, its in zip(_state(first), _state(second), strict=True):
        np.testing.assert_array_equal(mine, its)
    assert first.measured().number == 12


def test_what_was_learned_from_truth_is_saved_merged_and_copied(tmp_path: Path) -> None:
    policy = _policy()
    made = _played(policy, 30)
    halves = [_policy(), _policy()]
    for place, (decision, observed, true) in enumerate(made):
        for learner in (policy, halves[place % 2]):
            learner.update(decision, observed, true_reward=true)
    policy.save(tmp_path / "policy.json")
    loaded = eh.load(tmp_path / "policy.json")
    assert isinstance(loaded, eh.PooledGroupFair)
    for mine, its in zip(_state(policy), _state(loaded), strict=True):
        np.testing.assert_array_equal(mine, its)
    halves[0].merge(halves[1])
    np.testing.assert_allclose(halves[0].measured().bias, policy.measured().bias, rtol=1e-7)
    assert halves[0].measured().since == 1
    contexts = np.ones((6, 2))
    copied = deepcopy(policy)
    assert copied.select(contexts).arm == loaded.select(contexts).arm


def test_policies_saved_before_there_were_true_rewards_are_read(tmp_path: Path) -> None:
    policy = _policy()
    for decision, observed, _ in _played(policy, 20):
        policy.update(decision, observed)
    saved = to_dict(policy)
    own = {name: part for name, part in saved["own"].items() if name not in OF_TRUTH}
    settings_then = {k: v for k, v in saved["settings"].items() if k != "true_units"}
    then = {**saved, "own": own, "settings": settings_then}
    tables = [np.asarray(then["arms"]), np.asarray(then["groups"]), *map(np.asarray, own.values())]
    then["sha256"] = _checksum(then, tables)
    loaded = from_dict(then)
    for mine, its in zip(_state(policy), [*loaded._state.own], strict=True):
        np.testing.assert_array_equal(mine, its)
    del then["own"]["settled"]
    with pytest.raises(ValueError, match="damaged"):
        from_dict(then)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.nan, "true_reward is nan"),
        ("high", "true_reward is 'high'"),
        ([1.0, 2.0], r"true_reward has shape \(2,\); allowed is \(1,\)"),
    ],
)
def test_bad_true_rewards_are_refused_and_nothing_is_learned(given: Any, message: str) -> None:
    policy = _policy()
    [(decision, _, _)] = _played(policy, 1)
    with pytest.raises(ValueError, match=message):
        policy.update(decision, 1.0, true_reward=given)
    assert policy.measured().number == 0 and not policy.counts.any()


def test_policies_that_do_not_learn_from_truth_say_so() -> None:
    policy = eh.TopInterval(["F", "M"], n_features=1)
    decision = policy.select(np.ones((2, 1)))
    with pytest.raises(ValueError, match="TopInterval does not learn from true rewards"):
        policy.update(decision, true_reward=1.0)
    with pytest.raises(ValueError, match="reward is missing"):
        policy.update(decision)


@pytest.mark.parametrize("units", [(0.0, 1.0), (-1.0, 0.0), (1.0,), "guess", (1.0, np.inf), 3.0])
def test_wrong_units_are_refused(units: Any) -> None:
    with pytest.raises(ValueError, match="true_units is"):
        _policy(true_units=units)


def test_units_that_are_given_change_nothing_but_the_units() -> None:
    plain, scaled = _policy(), _policy(true_units=(0.01, -3.0))
    for decision, observed, true in _played(plain, 40):
        plain.update(decision, observed, true_reward=true)
        decision.reward = None
        scaled.update(decision, observed, true_reward=(true + 3.0) / 0.01)
    np.testing.assert_allclose(plain.measured().bias, scaled.measured().bias, rtol=1e-7)


def test_units_are_learned_from_the_reference() -> None:
    """True rewards in cents above a fee: 400 of them give the scale to about a percent."""
    policy = _policy(true_units="estimate")
    for decision, observed, true in _played(policy, 400):
        policy.update(decision, observed, true_reward=(true + 3.0) / 0.01)
    truth = policy.measured()
    assert truth.usable and truth.scale == pytest.approx(0.01, rel=0.03)
    np.testing.assert_allclose(truth.bias[0], [-3.0, -4.0], atol=0.4)
    with pytest.raises(ValueError, match="name a group as reference"):
        _policy(true_units="estimate", reference="mean")


def test_units_that_cannot_be_told_yet_are_not_used() -> None:
    policy, plain = _policy(true_units="estimate"), _policy()
    for decision, observed, true in _played(policy, 6):
        policy.update(decision, observed)
        plain.update(decision, observed)
        policy.update(decision, true_reward=true)
    contexts = np.ones((6, 2))
    plain.round = policy.round
    np.testing.assert_allclose(
        policy.select(contexts).scores.table, plain.select(contexts).scores.table, rtol=1e-9
    )
    assert "cannot be estimated yet" in policy.bias().to_words()
    first = _policy()
    first.update(_played(first, 1)[0][0], true_reward=1.0)
    assert "There is 1 true reward, the first of round 1. There is no feedback yet" in str(
        first.bias()
    )


# What is said ------------------------------------------------------------------------------------


def _run(seed: int, advantage: float = 0.0, **truth: Any) -> eh.PooledGroupFair:
    world = eh.SyntheticWorld(advantage=advantage).with_true_rewards(**truth)
    policy = eh.PooledGroupFair(world.groups, 2, seed=seed)
    for _ in each_round(policy, world, 1000, np.random.SeedSequence(seed)):
        pass
    return policy


def test_words_say_what_rests_on_truth() -> None:
    words = _policy().bias().to_words()
    assert "rests on the assumption" in words and "true reward" not in words
    kept = _run(3, share=0.05, delay=50).bias().to_words()
    assert "true rewards, the first of round" in kept
    assert "do not contradict it clearly enough" in kept and "WARNING" not in kept
    given_up = _run(3, advantage=6.0, share=0.05, delay=50).bias()
    assert "the assumption of equal averages is dropped" in given_up.to_words()
    table = given_up.to_frame().set_index(["group", "feature"])
    row = table.loc[("sensitive", "x1")]
    assert abs(row.estimate - row.by_truth) < abs(row.estimate - row.by_averages)


def test_arrival_that_depends_on_the_outcome_is_told() -> None:
    told = _run(3, share=0.05, delay=50, noise=0.5, common=1.0, by_outcome=1.0).bias().to_words()
    assert "WARNING" in told and "had better feedback" in told
    worse = _run(3, share=0.05, delay=50, noise=0.5, common=1.0, by_outcome=-1.0).bias().to_words()
    assert "WARNING" in worse and "had worse feedback" in worse


def test_arrival_cannot_be_tested_without_the_feedback_of_the_same_decisions() -> None:
    policy = _policy()
    for decision, observed, true in _played(policy, 40):
        policy.update(decision, observed)
        decision.reward = None
        policy.update(decision, true_reward=true)
    assert np.isnan(policy.measured().p_arrival)
    assert "could not be tested" in policy.bias().to_words()


@pytest.mark.slow
def test_equal_averages_are_rejected_at_the_nominal_rate_and_intervals_cover() -> None:
    """200 runs with 5 % of true rewards: rates of 5 % and coverage of 90 % within three and a half
    standard errors, which chance alone breaks once in a thousand."""
    rejected, arrived, covered = [], [], []
    world = eh.SyntheticWorld().with_true_rewards(0.05, 50)
    for seed in range(200):
        stream = np.random.SeedSequence(seed)
        policy = eh.PooledGroupFair(world.groups, 2, seed=seed)
        run(policy, world, 1000, stream)
        truth = policy.measured()
        psi = world.begin(np.random.default_rng(stream)).bias[0]
        estimate, width = truth.of_contexts(np.eye(2), np.zeros(2, dtype=np.int64), 0.9)
        rejected.append(truth.p_equal < 0.05)
        arrived.append(truth.p_arrival < 0.05)
        covered.append((np.abs(estimate - psi) <= width).mean())
    assert np.mean(rejected) <= 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / 200)
    assert np.mean(arrived) <= 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / 200)
    assert np.mean(covered) >= 0.9 - 3.5 * np.sqrt(0.9 * 0.1 / 200)


# Simulated, logged, replayed ---------------------------------------------------------------------


@pytest.mark.slow
def test_a_simulation_learns_true_rewards_as_a_live_policy_does() -> None:
    world = eh.SyntheticWorld(n_arms=6).with_true_rewards(
        0.3, delay=7, common=0.5, by_context=[1.0, -1.0], by_outcome=0.5, scale=2.0, offset=1.0
    )
    live, simulated = (
        eh.PooledGroupFair(world.groups, 2, true_units=(2.0, 1.0), seed=5) for _ in range(2)
    )
    run(simulated, world, 80, np.random.SeedSequence(4))
    arrived = [now.arrived for now in each_round(live, world, 80, np.random.SeedSequence(4))]
    assert sum(item is not None for item in arrived) == live.measured().number > 5
    assert all(item is None or item[0].round == t - 7 for t, item in enumerate(arrived, start=1))
    for mine, its in zip(_state(live), _state(simulated), strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.slow
def test_true_rewards_leave_everything_else_of_a_world_as_it_is() -> None:
    world = eh.SyntheticWorld(n_arms=6)
    with_truth = world.with_true_rewards(0.5, delay=3)
    assert world.true_rewards is None
    runs = [
        eh.simulate([eh.TopInterval], each, 50, replications=3, seed=1).runs.true_regret.tolist()
        for each in (world, with_truth)
    ]
    assert runs[0] == runs[1]
    never = world.with_true_rewards(0.0)
    pooled = [
        eh.simulate(
            [eh.PooledGroupFair], each, 50, replications=3, seed=1
        ).runs.true_regret.tolist()
        for each in (world, never)
    ]
    assert pooled[0] == pooled[1]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_log_with_true_rewards_is_replayed_bit_for_bit(tmp_path: Path, suffix: str) -> None:
    """With overrides, late rewards, snapshots, a restart, and true rewards by object, round, id."""
    path, rng = tmp_path / f"log.{suffix}", np.random.default_rng(0)
    logged = eh.log_to(path, _policy(), snapshot_every=40)
    made = []
    for t in range(60):
        decision = logged.select(rng.random((6, 2)))
        made.append(decision)
        if t % 7 == 3:
            logged.override(decision, (decision.arm + 1) % 6, rng.random(2))
        if t % 5:
            logged.update(decision, rng.normal())
        if t % 3 == 0 and t > 10:
            logged.true_reward(made[t - 10], rng.normal())
        if t == 30:
            logged.close()
            logged = eh.log_to(path)
    logged.update([t + 1 for t in range(60) if t % 5 == 0], np.zeros(12))
    logged.update([59, logged.id_of(60)], true_reward=[1.0, 2.0])
    with pytest.raises(ValueError, match="round 60 already has its true reward"):
        logged.true_reward(60, 1.0)
    with pytest.raises(ValueError, match="names a round twice"):
        logged.update([58, 58], true_reward=[1.0, 2.0])
    state = checksum(logged.policy)
    number = logged.policy.measured().number
    logged.close()
    assert checksum(eh.replay(path)) == state and number == 18
    with eh.log_to(path) as again:
        assert checksum(again.policy) == state
        with pytest.raises(ValueError, match="round 60 already has its true reward"):
            again.true_reward(60, 1.0)


def test_a_simulated_log_has_the_true_rewards_that_arrived(tmp_path: Path) -> None:
    world, path = eh.SyntheticWorld(n_arms=6).with_true_rewards(0.2, delay=5), tmp_path / "s.csv"
    log = eh.simulate_log(eh.PooledGroupFair, world, horizon=60, seed=1, path=path)
    again = eh.replay(path)
    assert isinstance(again, eh.PooledGroupFair)
    assert again.measured().number == log.true_reward.notna().sum() > 3
    assert log.true_reward[-5:].isna().all()


def test_an_experiment_file_says_which_decisions_get_true_rewards(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    text = "[run]\nhorizon = 20\n[world]\n{}true_delay = 5\n"
    file.write_text(text.format("true_share = 0.1\n"))
    [point] = read_experiment(file).points(eh.PAPER)
    assert point.world.true_rewards == (0.1, 5, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    file.write_text(text.format(""))
    with pytest.raises(ValueError, match="true_share"):
        read_experiment(file)
    file.write_text(text.format("true_share = 1.5\n"))
    with pytest.raises(ValueError, match=r"share is 1\.5"):
        read_experiment(file)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("rewards", ["all the same", "zero", "without noise", "one arm alone"])
def test_degenerate_data_leave_no_nan(rewards: str, scale: float) -> None:
    """Every score, the report and its words stay finite, whatever comes."""
    policy, rng = _policy(), np.random.default_rng(1)
    for t in range(25):
        contexts = scale * rng.random((6, 2))
        available = [0] if rewards == "one arm alone" else None
        decision = policy.select(contexts, available)
        worth = float(decision.context.sum()) / scale
        value = {"all the same": 1.0, "zero": 0.0}.get(rewards, worth)
        policy.update(decision, value)
        if t % 3 == 0:
            policy.update(decision, true_reward=value)
        scores = policy.select(contexts).scores
        assert np.isfinite(scores.correction).all() and np.isfinite(scores.estimate).all()
        policy.round -= 1
        measured = policy.measured()
        assert not measured.usable or np.isfinite(measured.bias).all()
        if t < 5 or t % 6 == 0:  # what is written takes longest
            words = policy.bias().to_words()
            assert "nan" not in words and "inf" not in words
