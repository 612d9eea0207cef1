"""True rewards with attributes, groups by round and arms that come once."""

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
from evenhand._membership import membership
from evenhand.leastsquares._blend import blank_blend, evidence
from evenhand.policies.pooled_group_fair._layout import OF_TRUTH
from evenhand.policies.pooled_group_fair.general._layout import OF_GENERAL_TRUTH
from evenhand.policies.pooled_group_fair.general._posterior import (
    Variances,
    add_in_units,
    blank_data,
    blank_posterior,
    work_out,
)
from evenhand.policies.pooled_group_fair.general._true_posterior import after_truth, blend_in
from evenhand.policies.saving import _checksum, from_dict, to_dict
from evenhand.recording._replay import checksum
from evenhand.simulation._compiled_rounds import run
from evenhand.simulation._plain_rounds import each_round

D = 2
SEX = {"sex": ["F", "M"]}
BOTH = {"sex": ["F", "M"], "age": ["old", "young"]}
TABLE = {"sex": ["F", "F", "M", "M", "F", "M", "M"], "age": ["o", "y", "o", "y", "o", "y", "y"]}


def crossed(**more: Any) -> eh.PooledGroupFair:
    reference = {"sex": "M", "age": "y"}
    return eh.PooledGroupFair(
        eh.Groups.of_attributes(TABLE), D, **{"seed": 3, "reference": reference, **more}
    )


def by_round(**more: Any) -> eh.PooledGroupFair:
    groups = eh.Groups.per_round(4, SEX)
    return eh.PooledGroupFair(groups, D, **{"seed": 3, "reference": "M", **more})


def once(**more: Any) -> eh.PooledGroupFair:
    return by_round(arms="once", **more)


def crossed_once(**more: Any) -> eh.PooledGroupFair:
    return crossed(arms="once", **more)


FORMS = [crossed, by_round, once, crossed_once]


def some_groups(policy: eh.PooledGroupFair, rng: np.random.Generator) -> Any:
    """Labels, None and probabilities for the candidates of a round, where they come with it."""
    if not policy.groups.changes:
        return None
    chance = float(rng.random())
    kinds: list[Any] = ["F", "M", None, {"F": chance, "M": 1.0 - chance}]
    return [kinds[kind] for kind in rng.integers(4, size=policy.n_arms)]


# The posterior -----------------------------------------------------------------------------------


@compiled
def _after_truth(sums, of_arms, true, of_true, kinds, variances, ref, free, sigma2, kappa2):  # type: ignore[no-untyped-def]
    d, n, size = variances.v.size, of_arms.shape[0], kinds.size * variances.v.size
    data, truth = blank_data(n, size, d), blank_data(n, size, d)
    add_in_units(data, sums, of_arms, np.ones(d), 1.0)
    add_in_units(truth, true, of_true, np.ones(d), 1.0)
    post, out = blank_posterior(n, size, d), blank_blend(size, size - d, d, free)
    work_out(data, kinds, variances, post)
    none = np.empty((0, 0))
    blend_in(data, kinds, variances, post, truth, ref, none, sigma2, kappa2, out)
    M, e = np.empty(size), np.empty(out.n.size)
    after_truth(out, post.M, M, e)
    return out, M, e, evidence(out.N, out.n, size - d, kappa2)


def _dense(design, variances, rows, reference, kappa2, free, sigma2, recurs, n_arms):  # type: ignore[no-untyped-def]
    """Condition the joint normal of (M, eta, psi_0, delta) on all rewards at once."""
    q, v = design.kinds.size, variances.v
    blocks = 2 * q + n_arms  # M; psi_0 in the place of eta of the first column, then eta; delta
    prior = np.zeros((blocks * D, blocks * D))

    def at(block: int) -> slice:
        return slice(block * D, (block + 1) * D)

    omega = np.zeros((D, D))
    for kind in range(variances.along.size):
        along, across = variances.along[kind], variances.across[kind]
        block = across * np.eye(D) + (along - across) * np.outer(v, v)
        for column in np.flatnonzero(design.kinds == kind):
            prior[at(column), at(column)] = block
        if 0 < kind < variances.along.size - 1:
            omega += block
    prior[at(q), at(q)] = omega if free else 0.0
    for column in range(1, q):
        prior[at(q + column), at(q + column)] = kappa2 * np.eye(D)
    for i in range(n_arms):
        prior[at(2 * q + i), at(2 * q + i)] = variances.tau2[0] * np.eye(D) if recurs else 0.0
    H, noise, values = [], [], []
    for i, x, weights, value, is_true in rows:
        row = np.zeros((blocks, D))
        row[:q] = np.outer(reference if is_true else weights, x)
        if is_true:
            row[q : 2 * q] = np.outer(weights - reference, x)
            row[q] = -x
        row[2 * q + i] = x
        H.append(row.ravel())
        noise.append(sigma2 if is_true else variances.sigma2[0])
        values.append(value)
    matrix, y = np.array(H), np.array(values)
    covariance = matrix @ prior @ matrix.T + np.diag(noise)
    gain = prior @ matrix.T @ np.linalg.inv(covariance)
    likelihood = -0.5 * (np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y))
    return gain @ y, prior - gain @ matrix @ prior, likelihood


@pytest.mark.parametrize("kappa2", [0.0, 0.05, 2.0])
@pytest.mark.parametrize("reference", ["named", "mean"])
@pytest.mark.parametrize("form", FORMS)
def test_the_posterior_is_that_of_all_rewards_at_once(
    form: Any, reference: str, kappa2: float
) -> None:
    """M, e, what is the arms' own, covariance and likelihood, beside dense conditioning."""
    policy = form() if reference == "named" else form(reference="mean")
    rng, rows, design = np.random.default_rng(5), [], policy._design
    free = reference == "mean"
    for _ in range(90):
        arm, x, value = int(rng.integers(policy.n_arms)), rng.normal(size=D) + 1.0, rng.normal()
        told, is_true = some_groups(policy, rng), bool(rng.random() < 0.3) and arm != 1
        levels = design.levels
        if told is not None:
            levels = membership(policy.groups, told, policy.n_arms)
        row = np.concatenate([x, levels[arm]]) if told is not None else x
        if is_true:
            policy._teach_true(
                policy._rule, policy._state, arm, 0, row, value, np.nan, len(rows) + 1, True
            )
        else:
            policy._teach(policy._rule, policy._state, arm, 0, row, value, len(rows) + 1, True)
        rows.append((arm, x, design.weights(levels[arm : arm + 1])[0], value, is_true))
    kinds = design.cells.shape[1] + 2
    v = np.array([0.6, 0.8])
    variances = Variances(
        np.array([0.7]),
        np.array([0.3]),
        np.linspace(4.0, 0.5, kinds),
        np.linspace(2.0, 0.4, kinds),
        v,
    )
    recurs, weights = policy.arms == "recurring", policy._weights
    own = policy._state.own
    sums, of_arms = own.settled + own.fresh, own.settled_arms + own.fresh_arms
    out, M, e, gain = _after_truth(
        sums, of_arms, own.true, own.true_arms, design.kinds, variances, weights, free, 1.3, kappa2
    )
    mean, left, likely = _dense(
        design, variances, rows, weights, kappa2, free, 1.3, recurs, policy.n_arms
    )
    size, etas = M.size, M.size - D
    np.testing.assert_allclose(M, mean[:size], atol=1e-9)
    np.testing.assert_allclose(e[:etas], mean[size + D : 2 * size], atol=1e-9)
    if free:
        np.testing.assert_allclose(e[etas:], mean[size : size + D], atol=1e-9)
    # The covariance of M and e, with psi_0 behind eta.
    order = [*range(size), *range(size + D, 2 * size), *(range(size, size + D) if free else ())]
    R, X, H = out.R, out.X, out.H.copy()
    joint = np.block([[R + X @ H @ X.T, -X @ H], [-(X @ H).T, H]])
    to_psi = np.eye(len(joint))
    if free:
        to_psi[-D:, -D:] = out.root
    np.testing.assert_allclose(to_psi @ joint @ to_psi.T, left[np.ix_(order, order)], atol=1e-9)
    at_0 = _dense(design, variances, rows, weights, 0.0, free, 1.3, recurs, policy.n_arms)[2]
    before = _after_truth(
        sums, of_arms, own.true, own.true_arms, design.kinds, variances, weights, free, 1.3, 0.0
    )[3]
    assert gain - before == pytest.approx(likely - at_0, abs=1e-8)


# The policy --------------------------------------------------------------------------------------


def played(policy: eh.PooledGroupFair, number: int) -> list[tuple[Any, float, float]]:
    """Decisions that wait, with their observed and true rewards; F loses 3 and 4."""
    rng = np.random.default_rng(0)
    worth, made = 5.0 + rng.random((policy.n_arms, D)), []
    if policy.arms == "once":
        worth[:] = worth[0]
    for _ in range(number):
        contexts, told = rng.random((policy.n_arms, D)), some_groups(policy, rng)
        decision = policy.select(contexts, groups=told)
        if told is None:
            of_f = policy.groups.labels[decision.arm].startswith("F")
        else:
            of_f = decision.groups[decision.arm][0] > rng.random()
        true = float(worth[decision.arm] @ decision.context)
        lost = float(np.array([3.0, 4.0]) @ decision.context) * of_f
        made.append((decision, true - lost + 0.3 * rng.normal(), true + 0.3 * rng.normal()))
    return made


def same_state(first: eh.PooledGroupFair, second: eh.PooledGroupFair) -> None:
    for mine, its in zip(first._state.own, second._state.own, strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("form", FORMS)
@given(st.randoms(use_true_random=False))
@settings(max_examples=6)
def test_the_order_of_true_rewards_does_not_matter(form: Any, order: Random) -> None:
    """Observed and true rewards, shuffled against each other, give one state."""
    first, second = form(), form()
    made = played(first, 40)
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
    rng = np.random.default_rng(9)
    contexts, told = rng.random((first.n_arms, D)), some_groups(first, rng)
    for policy in (first, second):
        policy.round = 40
    both = [policy.select(contexts, groups=told).scores.table for policy in (first, second)]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-8, atol=1e-8)
    assert second.measured().number == 13 and second.measured().since == 3


@pytest.mark.parametrize("form", FORMS)
def test_many_at_once_are_the_same_as_one_by_one(form: Any) -> None:
    first, second = form(), form()
    made = played(first, 30)
    first.update(made[0][0], true_reward=made[0][2])  # before any feedback
    assert first.measured().number == 1 and not first.measured().usable
    second.update(made[0][0], true_reward=made[0][2])
    for decision, observed, _ in made:
        first.update(decision, observed)
        second.update(decision, observed)
    for decision, _, true in made[2::2]:
        first.update(decision, true_reward=true)
    second.update([d for d, _, _ in made[2::2]], true_reward=[z for _, _, z in made[2::2]])
    same_state(first, second)


@pytest.mark.parametrize("form", FORMS)
def test_what_was_learned_is_saved_copied_cloned_and_merged(form: Any, tmp_path: Path) -> None:
    policy, halves = form(), [form(), form()]
    for place, (decision, observed, true) in enumerate(played(policy, 30)):
        for learner in (policy, halves[place % 2]):
            learner.update(decision, observed, true_reward=true)
    policy.save(tmp_path / "policy.json")
    loaded = eh.load(tmp_path / "policy.json")
    assert isinstance(loaded, eh.PooledGroupFair)
    same_state(policy, loaded)
    same_state(policy, deepcopy(policy))
    assert policy.clone().measured().number == 0
    halves[0].merge(halves[1])
    np.testing.assert_allclose(
        halves[0].measured().bias, policy.measured().bias, rtol=1e-7, atol=1e-9
    )
    assert halves[0].measured().since == 1 and halves[0].measured().number == 30


def test_policies_saved_before_there_were_true_rewards_are_read() -> None:
    policy = crossed()
    for decision, observed, _ in played(policy, 20):
        policy.update(decision, observed)
    saved = to_dict(policy)
    later = (*OF_TRUTH, *OF_GENERAL_TRUTH)
    own = {name: part for name, part in saved["own"].items() if name not in later}
    then = {**saved, "own": own}
    tables = [np.asarray(then["arms"]), np.asarray(then["groups"]), *map(np.asarray, own.values())]
    then["sha256"] = _checksum(then, tables)
    loaded = from_dict(then)
    assert isinstance(loaded, eh.PooledGroupFair)
    same_state(policy, loaded)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_units_are_given_or_learned_from_the_reference(form: Any) -> None:
    plain, scaled, learned = form(), form(true_units=(0.01, -3.0)), form(true_units="estimate")
    for decision, observed, true in played(plain, 400):
        plain.update(decision, observed, true_reward=true)
        for policy in (scaled, learned):
            decision.reward = None
            policy.update(decision, observed, true_reward=(true + 3.0) / 0.01)
    np.testing.assert_allclose(plain.measured().bias, scaled.measured().bias, rtol=1e-6, atol=1e-8)
    truth = learned.measured()
    assert truth.usable and truth.scale == pytest.approx(0.01, rel=0.05)
    with pytest.raises(ValueError, match="name a group as reference"):
        form(true_units="estimate", reference="mean")


def test_units_that_cannot_be_told_yet_are_not_used() -> None:
    policy, plain = crossed(true_units="estimate"), crossed()
    for decision, observed, true in played(policy, 6):
        plain.update(decision, observed)
        policy.update(decision, observed, true_reward=true)
    contexts = np.ones((policy.n_arms, D))
    plain.round = policy.round
    np.testing.assert_allclose(
        policy.select(contexts).scores.table, plain.select(contexts).scores.table, rtol=1e-9
    )
    assert "cannot be estimated yet" in policy.bias().to_words()


# What is said ------------------------------------------------------------------------------------


def after_run(world: eh.World, seed: int = 3, **more: Any) -> eh.PooledGroupFair:
    policy = eh.PooledGroupFair(world.groups, 2, seed=seed, **more)
    run(policy, world, 600, np.random.SeedSequence(seed))
    return policy


@pytest.mark.parametrize(
    ("world", "more"),
    [
        (eh.CrossedWorld(BOTH, [2] * 4), {"reference": {"sex": "M", "age": "young"}}),
        (eh.PeopleWorld(4, {"sex": {"F": 0.5, "M": 0.5}}), {"reference": "M"}),
        (
            eh.PeopleWorld(4, {"sex": {"F": 0.5, "M": 0.5}}, coefficient_range=0.0),
            {"reference": "M", "arms": "once"},
        ),
    ],
)
def test_words_say_what_rests_on_truth(world: Any, more: Any) -> None:
    alone = after_run(world, **more).bias().to_words()
    assert "rests on the assumption" in alone and "true reward" not in alone
    kept = after_run(world.with_true_rewards(0.1, 20), **more).bias()
    assert "true rewards, the first of round" in kept.to_words()
    assert "do not contradict it clearly enough" in kept.to_words()
    world.advantage = (6.0, 0.0) if isinstance(world, eh.CrossedWorld) else 6.0
    policy = after_run(world.with_true_rewards(0.1, 20), **more)
    given_up = policy.bias()
    assert "the assumption of equal averages is dropped" in given_up.to_words()
    assert policy.measured().p_equal < 0.05
    row = given_up.to_frame().set_index(["group", "feature"]).loc[("sex: F", "x1")]
    assert abs(row.estimate - row.by_truth) < abs(row.estimate - row.by_averages)
    assert row.low <= -9.0 and row.high >= -11.0  # it is between -9.5 and -10.5
    estimate, width = policy.corrected_intervals(
        np.ones((policy.n_arms, 2)), groups=["F"] * 4 if policy.groups.changes else None
    )
    assert np.isfinite(estimate).all() and (width > 0.0).all()
    world.advantage = (0.0, 0.0) if isinstance(world, eh.CrossedWorld) else 0.0


def test_arrival_that_depends_on_the_outcome_is_told() -> None:
    world = eh.PeopleWorld(4, {"sex": {"F": 0.5, "M": 0.5}})
    told = world.with_true_rewards(0.1, 20, noise=0.5, common=1.0, by_outcome=1.0)
    words = after_run(told, reference="M").bias().to_words()
    assert "WARNING" in words and "had better feedback" in words


# Simulated, logged, replayed ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("world", "arms"),
    [
        (eh.CrossedWorld(BOTH, [2, 1, 1, 2]), "recurring"),
        (eh.CrossedWorld(BOTH, [1] * 4, arms="once"), "once"),
        (
            eh.PeopleWorld(4, {"sex": {"F": 0.5, "M": 0.5}}, concentration=1.0, missing=0.2),
            "recurring",
        ),
        (eh.PeopleWorld(4, {"sex": {"F": 0.5, "M": 0.5}}, missing=0.2), "once"),
    ],
)
def test_a_simulation_learns_true_rewards_as_a_live_policy_does(
    world: eh.World, arms: str, tmp_path: Path
) -> None:
    world = world.with_true_rewards(
        0.3, delay=7, common=0.5, by_context=[1.0, -1.0], by_outcome=0.5, scale=2.0, offset=1.0
    )
    live, simulated = (
        eh.PooledGroupFair(world.groups, 2, true_units=(2.0, 1.0), arms=arms, seed=5)
        for _ in range(2)
    )
    run(simulated, world, 80, np.random.SeedSequence(4))
    arrived = [now.arrived for now in each_round(live, world, 80, np.random.SeedSequence(4))]
    assert sum(item is not None for item in arrived) == live.measured().number > 5
    same_state(live, simulated)
    path = tmp_path / "s.csv"
    log = eh.simulate_log(eh.PooledGroupFair, world, horizon=60, seed=1, path=path, arms=arms)
    again = eh.replay(path)
    assert isinstance(again, eh.PooledGroupFair)
    assert again.measured().number == log.true_reward.notna().sum() > 3


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_log_with_true_rewards_is_replayed_bit_for_bit(form: Any, tmp_path: Path) -> None:
    """With late rewards, snapshots, a restart, and true rewards by object, round and id."""
    path, rng, made = tmp_path / "log.csv", np.random.default_rng(0), []
    logged = eh.log_to(path, form(), snapshot_every=40)
    for t in range(60):
        told = some_groups(logged.policy, rng)
        decision = logged.select(rng.random((logged.policy.n_arms, D)), groups=told)
        made.append(decision)
        if t % 5:
            logged.update(decision, rng.normal())
        if t % 3 == 0 and t > 10:
            logged.true_reward(made[t - 10], rng.normal())
        if t == 30:
            logged.close()
            logged = eh.log_to(path)
    logged.update([t + 1 for t in range(60) if t % 5 == 0], np.zeros(12))
    logged.update([59, logged.id_of(60)], true_reward=[1.0, 2.0])
    state, number = checksum(logged.policy), logged.policy.measured().number
    logged.close()
    assert checksum(eh.replay(path)) == state and number == 18


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("rewards", ["all the same", "zero", "without noise", "one arm alone"])
@pytest.mark.parametrize("form", FORMS)
def test_degenerate_data_leave_no_nan(form: Any, rewards: str, scale: float) -> None:
    """Every score, the report and its words stay finite, whatever comes."""
    policy, rng = form(), np.random.default_rng(1)
    for t in range(20):
        contexts = scale * rng.random((policy.n_arms, D))
        available, told = [0] if rewards == "one arm alone" else None, some_groups(policy, rng)
        decision = policy.select(contexts, available, groups=told)
        worth = float(decision.context.sum()) / scale
        value = {"all the same": 1.0, "zero": 0.0}.get(rewards, worth)
        policy.update(decision, value)
        if t % 3 == 0:
            policy.update(decision, true_reward=value)
        scores = policy.select(contexts, groups=told).scores
        assert np.isfinite(scores.correction).all() and np.isfinite(scores.estimate).all()
        policy.round -= 1
        measured = policy.measured()
        assert not measured.usable or np.isfinite(measured.bias).all()
        if t < 5 or t % 6 == 0:  # what is written takes longest
            words = policy.bias().to_words()
            assert "nan" not in words and "inf" not in words
