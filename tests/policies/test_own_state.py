"""What a policy learns of its own: by a kernel, saved, copied, merged; and priors."""

import copy
import json
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import evenhand as eh
from evenhand.contracts import CONTRACTS
from evenhand.leastsquares import Prior, absorb, coefficients, merge, regressions
from evenhand.leastsquares._sums import sums
from evenhand.policies import POLICIES, saving
from evenhand.policies._kernels import kernel, learn, score, settle
from evenhand.policies._learned import with_more_arms
from evenhand.policies._scores import add_up, score_arms
from evenhand.policies._state import UPPER, absorb_reward, arm_count
from evenhand.policies.saving import from_dict, to_dict
from evenhand.recording._replay import checksum


class RecallRule(NamedTuple):
    """How much the sum of an arm's rewards counts."""

    weight: float


class Recalled(NamedTuple):
    total: NDArray[np.float64]
    seen: NDArray[np.int64]


@kernel(learn, RecallRule)
def _learn(rule, state, arm, group, x, reward):
    absorb_reward(state, arm, group, x, reward)
    state.own.total[arm] += reward
    state.own.seen[arm, group] += 1


@kernel(score, RecallRule)
def _score(rule, memory, t):
    score_arms(memory, t)
    add_up(memory)
    for i in range(memory.settings.n_arms):
        memory.work[UPPER, i] = rule.weight * memory.own.total[i] - arm_count(memory, i)


class Recaller(eh.Policy):
    """Plays by sums of its own, less how often it learned of an arm."""

    def learns(self):
        return Recalled(np.zeros(self.n_arms), np.zeros((self.n_arms, 2), dtype=np.int64))

    def rule(self):
        return RecallRule(2.0)


def make(**settings):
    return Recaller(["F", "F", "M", "M"], n_features=2, horizon=100, seed=1, **settings)


def taught(rows, **settings):
    policy, generator = make(**settings), np.random.default_rng(5)
    contexts, rewards = generator.random((40, 2)), generator.random(40)
    policy.absorb(np.arange(40)[rows] % 4, contexts[rows], rewards[rows])
    return policy


def test_a_learner_of_its_own_decides_by_what_it_learned():
    policy = make(exploration="none")
    policy.absorb([0, 0, 1], np.ones((3, 2)), [1.0, 2.0, 5.0])
    decision = policy.select(np.ones((4, 2)))
    assert decision.scores.upper.tolist() == [4.0, 9.0, 0.0, 0.0]
    assert policy.own.seen[:, 0].tolist() == [2, 1, 0, 0]


def test_it_is_saved_copied_and_hashed():
    policy = taught(slice(None))
    text = json.dumps(to_dict(policy))
    for other in (from_dict(json.loads(text)), copy.deepcopy(policy)):
        assert json.dumps(to_dict(other)) == text and checksum(other) == checksum(policy)
    policy.own.total[2] += 1e-9
    assert checksum(policy) != checksum(other)
    assert json.loads(text)["own"]["seen"] == [[10, 0], [10, 0], [0, 10], [0, 10]]


class Kept(NamedTuple):
    whole: NDArray[np.int64]
    least: NDArray[np.float64]


class Keeper(eh.Policy):
    """Keeps whole numbers of any size, and the least reward by arm."""

    def learns(self):
        return Kept(np.zeros(3, dtype=np.int64), np.full((2, 1), np.inf))

    def learn(self, arm, context, reward):
        self.own.least[arm] = min(self.own.least[arm], reward)

    def merge_own(self, mine, its):
        np.minimum(mine.least, its.least, out=mine.least)

    def score(self, contexts):
        return -self.own.whole[:2].astype(float)


def keeper(*whole):
    policy = Keeper(["F", "M"], n_features=1, exploration="none", seed=1)
    policy.own.whole[: len(whole)] = whole
    return policy


def test_every_bit_of_whole_numbers_and_infinities_is_saved():
    policy = keeper(2**53 + 1, -(2**63), 2**63 - 1)
    policy.absorb([1], [[1.0]], [0.1])
    text = json.dumps(to_dict(policy), allow_nan=False)
    again = from_dict(json.loads(text))
    assert again.own.whole.dtype == np.int64
    assert again.own.whole.tolist() == [2**53 + 1, -(2**63), 2**63 - 1]
    assert again.own.least.tolist() == [[np.inf], [0.1]]
    assert json.dumps(to_dict(again)) == text
    for name, value in (("whole", 2**53), ("least", ["-inf"])):
        saved = json.loads(text)
        saved["own"][name][0] = value
        with pytest.raises(ValueError, match="checksum"):
            from_dict(saved)


@pytest.mark.parametrize(
    ("whole", "checksum"),
    [
        ((5, -7), "cef6e252520212166d147468aeb5d722dc3af12864e809eaaa3d75b8d30b9a20"),
        ((2**53 + 1,), "7219ced535b82c6af6121081a700401a70a30c3a96ed8c6ad8f52a05d16a79cc"),
    ],
)
def test_files_whose_checksum_takes_whole_numbers_for_floats_load(whole, checksum):
    saved = to_dict(keeper(*whole))
    saved["own"]["least"], saved["sha256"] = [[0.5], [0.5]], checksum
    assert from_dict(saved).own.whole.tolist()[: len(whole)] == list(whole)


@pytest.mark.parametrize(
    "change",
    [
        lambda own: own.update(whole=[0, 0.5, 0]),
        lambda own: own.update(whole=[0, "inf", 0]),
        lambda own: own.update(least=[["1.5"], [2.0]]),
        lambda own: own.update(least=[[None], [2.0]]),
        lambda own: own.update(whole=[0, 2**63, 0]),
    ],
)
def test_what_is_no_number_of_its_own_is_told(change, monkeypatch):
    saved = to_dict(keeper())
    change(saved["own"])
    monkeypatch.setattr(saving, "_checksum", lambda head, tables: saved["sha256"])
    with pytest.raises(ValueError, match="damaged"):
        from_dict(saved)


def test_what_cannot_be_saved_is_told_and_not_only_left_out_of_snapshots(tmp_path):
    policy = keeper()
    with eh.log_to(tmp_path / "log.csv", policy, snapshot_every=1) as logged:
        policy.own.least[0] = np.nan
        with pytest.raises(ValueError, match="least, which the policy learned, has a NaN"):
            to_dict(policy)
        decision = logged.select(np.ones((2, 1)))
        with pytest.warns(UserWarning, match="cannot keep snapshots.*least.* has a NaN"):
            logged.update(decision, 1.0)
        policy.own.least[0] = np.inf


@pytest.mark.parametrize(
    "change",
    [
        lambda saved: saved["own"].pop("seen"),
        lambda saved: saved["own"].update(more=[1.0]),
        lambda saved: saved["own"].update(total=[1.0]),
        lambda saved: saved["own"]["total"].__setitem__(0, 3.0),
        lambda saved: saved.pop("own"),
    ],
)
def test_what_was_changed_is_told(change):
    saved = json.loads(json.dumps(to_dict(taught(slice(None)))))
    change(saved)
    with pytest.raises(ValueError, match="damaged"):
        from_dict(saved)


@pytest.mark.slow
def test_it_simulates_and_logs_like_any_other(tmp_path):
    world = eh.SyntheticWorld(n_arms=4, n_sensitive=2)
    frame = eh.simulate_log(Recaller, world, 50, seed=3, path=tmp_path / "log.csv")
    again = eh.replay(tmp_path / "log.csv")
    assert again.own.seen.sum() == len(frame) == 50
    runs = eh.simulate([Recaller], world, 50, replications=3, seed=3, workers=1).runs
    other = eh.simulate([Recaller], world, 50, replications=3, seed=3, workers=2).runs
    assert runs["true_regret"].tolist() == other["true_regret"].tolist()


@pytest.mark.parametrize("own", [None, (1.0,), Recalled([1.0], np.zeros(1)), [np.zeros(2)]])
def test_what_cannot_be_saved_is_refused_when_it_is_made(own, monkeypatch):
    monkeypatch.setattr(Recaller, "learns", lambda self: own)
    with pytest.raises(ValueError, match="NamedTuple of NumPy arrays"):
        _ = make().counts


@pytest.mark.parametrize(
    "settings", [{}, {"singular": "pseudo-inverse"}, {"ridge": 0.5}, {"noise": "estimate"}]
)
@pytest.mark.parametrize("cut", [0, 3, 20])
def test_merged_is_as_learned_together(settings, cut):
    """Also where designs are singular on one side, or on both."""
    together, first, other = (
        taught(rows, **settings) for rows in (slice(None), slice(cut), slice(cut, None))
    )
    first.merge(other)
    contexts = np.random.default_rng(8).random((4, 2))
    assert first.counts.tolist() == together.counts.tolist()
    for mine, whole in zip(first.intervals(contexts), together.intervals(contexts), strict=True):
        np.testing.assert_allclose(mine, whole, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(first.own.total, together.own.total)
    np.testing.assert_allclose(first._state.levels, together._state.levels, rtol=1e-8)


class Mean(NamedTuple):
    total: NDArray[np.float64]
    seen: NDArray[np.int64]
    mean: NDArray[np.float64]


class MeanRule(NamedTuple):
    pass


@kernel(learn, MeanRule)
def _learn_mean(rule, state, arm, group, x, reward):
    absorb_reward(state, arm, group, x, reward)
    state.own.total[arm] += reward
    state.own.seen[arm] += 1


@kernel(settle, MeanRule)
def _settle_mean(rule, state):
    for i in range(state.own.mean.size):
        state.own.mean[i] = state.own.total[i] / state.own.seen[i]


@kernel(score, MeanRule)
def _score_mean(rule, memory, t):
    score_arms(memory, t)
    add_up(memory)
    for i in range(memory.settings.n_arms):
        memory.work[UPPER, i] = memory.own.mean[i]


class Shrunk(eh.TopInterval):
    """Plays by the mean reward of an arm, which begins with two rewards of 1."""

    def learns(self):
        n = self.n_arms
        return Mean(np.full(n, 2.0), np.full(n, 2), np.ones(n))

    def merge_own(self, mine, its):
        super().merge_own(mine, its)
        mine.mean[...] = np.nan  # `settle` works it out

    def rule(self):
        return MeanRule()


def test_initial_values_count_once_and_what_follows_is_worked_out():
    """Two untaught policies merged are an untaught one, and two taught ones are as one."""
    one, two = (Shrunk(["F", "M"], n_features=1, seed=1) for _ in range(2))
    one.merge(two)
    assert [part.tolist() for part in one.own] == [[2.0, 2.0], [2, 2], [1.0, 1.0]]
    one.absorb([0], [[1.0]], [4.0])
    two.absorb([0, 1], [[1.0], [1.0]], [6.0, 7.0])
    one.merge(two)
    assert [part.tolist() for part in one.own] == [[12.0, 9.0], [4, 3], [3.0, 3.0]]
    assert [part.tolist() for part in two.own] == [[8.0, 9.0], [3, 3], [8.0 / 3.0, 3.0]]
    grown = with_more_arms(one, eh.Groups(["F", "M", "F"]))
    assert [part.tolist() for part in grown.own] == [
        [12.0, 9.0, 2.0],
        [4, 3, 2],
        [3.0, 3.0, 1.0],
    ]


def test_only_the_same_kind_is_merged():
    policy = make()
    for other, words in (
        (policy, "itself"),
        (make(delta=0.3), "delta"),
        (eh.TopInterval(["F", "F", "M", "M"], n_features=2), "TopInterval"),
    ):
        with pytest.raises(ValueError, match=words):
            policy.merge(other)


# In plain Python ------------------------------------------------------------------------------


class Totals(NamedTuple):
    total: NDArray[np.float64]


class Remembering(eh.Policy):
    """Plays by the sum of an arm's rewards, which begins at 1."""

    def learns(self):
        return Totals(np.ones(self.n_arms))

    def learn(self, arm, context, reward):
        self.own.total[arm] += reward * context[0]

    def score(self, contexts):
        return self.own.total


def remembering():
    return Remembering(["F", "M"], n_features=1, exploration="none", seed=1)


def test_a_plain_learner_is_saved_copied_and_merged(tmp_path):
    policy = remembering()
    policy.absorb([0, 1], [[1.0], [2.0]], [3.0, 4.0])
    decision = policy.select(np.ones((2, 1)))
    assert decision.arm == 1 and decision.scores.upper.tolist() == [4.0, 9.0]
    policy.update(decision, 0.5)
    with pytest.raises(ValueError, match="nan"):
        policy.update(decision, np.nan)
    assert policy.own.total.tolist() == [4.0, 9.5] and policy.counts.tolist() == [1, 2]
    text = json.dumps(to_dict(policy))
    for other in (from_dict(json.loads(text)), copy.deepcopy(policy)):
        assert json.dumps(to_dict(other)) == text
        other.absorb([0], [[1.0]], [1.0])
        assert policy.own.total.tolist() == [4.0, 9.5]
    twin = policy.clone()
    assert twin.own.total.tolist() == [1.0, 1.0]
    twin.absorb([0], [[1.0]], [1.0])
    policy.merge(twin)
    assert policy.own.total.tolist() == [5.0, 9.5]
    assert with_more_arms(policy, eh.Groups(["F", "M", "M"])).own.total.tolist() == [5.0, 9.5, 1.0]


def test_a_plain_learner_is_logged_and_simulated(tmp_path):
    with eh.log_to(tmp_path / "log.csv", remembering(), snapshot_every=1) as logged:
        for reward in (1.0, 2.0, -4.0, 0.5):
            logged.update(logged.select(np.ones((2, 1))), reward)
    assert eh.replay(tmp_path / "log.csv").own.total.tolist() == logged.own.total.tolist()
    with eh.log_to(tmp_path / "log.csv") as again:
        assert again.own.total.tolist() == logged.own.total.tolist()


class Forgetful(eh.Policy):
    """Keeps what it learns where nobody looks for it."""

    def __init__(self, groups, n_features, horizon=None, delta=0.1, **common):
        super().__init__(groups, n_features, horizon, delta, **common)
        self.total = np.zeros(self.n_arms)

    def update(self, decision, reward):
        super().update(decision, reward)
        self.total[decision.arm] += reward

    def score(self, contexts):
        return self.total


class Derived(Remembering):
    """Declares what its base learns, and not what it learns itself."""

    sum = 0.0

    def absorb(self, arms, contexts, rewards):
        super().absorb(arms, contexts, rewards)
        self.sum += float(np.sum(rewards))


class Clipped(Forgetful):
    """Its update keeps nothing, as it says."""

    def learns(self):
        return super().learns()

    def update(self, decision, reward):
        eh.Policy.update(self, decision, min(reward, 1.0))


@pytest.mark.parametrize(("kind", "method"), [(Forgetful, "update"), (Derived, "absorb")])
def test_what_would_be_lost_is_refused(kind, method, tmp_path):
    policy = kind(["F", "M"], n_features=1, seed=1)
    assert from_dict(to_dict(policy)).round == 0  # nothing to lose yet
    other = policy.clone()
    if method == "update":
        policy.update(policy.select(np.ones((2, 1))), 1.0)
    else:
        policy.absorb([0], [[1.0]], [1.0])
    for lossy in (
        lambda: to_dict(policy),
        lambda: policy.save(tmp_path / "policy.json"),
        lambda: policy.merge(other),
        lambda: other.merge(policy),
        lambda: with_more_arms(policy, eh.Groups(["F", "M", "M"])),
    ):
        with pytest.raises(eh.errors.InputError, match=f"has its own {method}.*method learns"):
            lossy()
    assert not list(tmp_path.iterdir())


def test_an_update_that_keeps_nothing_says_so():
    policy = Clipped(["F", "M"], n_features=1, seed=1)
    decision = policy.select(np.ones((2, 1)))
    policy.update(decision, 7.0)
    again = from_dict(to_dict(policy))
    assert decision.reward == 1.0 and again.counts.tolist() == policy.counts.tolist()


def test_a_compiled_policy_learns_by_a_kernel():
    with pytest.raises(eh.errors.InputError, match=r"Mixed has a rule.*@kernel\(learn"):

        class Mixed(Recaller):
            def learn(self, arm, context, reward):
                pass


# Priors ---------------------------------------------------------------------------------------

PRIOR = Prior(np.array([3.0, -1.0]), np.array([[4.0, 1.0], [1.0, 2.0]]))


def test_a_prior_by_hand():
    """(X'X + P)^-1 (X'y + P m), for arms and for groups, merged and read out."""
    rows = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0]])
    rewards = np.array([1.0, 4.0, -2.0])
    for shared in (False, True):
        fits, other = (regressions(2, 2, shared=shared, prior=PRIOR) for _ in range(2))
        np.testing.assert_allclose(coefficients(fits, 1), PRIOR.mean)
        for target, part in ((fits, slice(1)), (other, slice(1, 3))):
            for row, reward in zip(rows[part], rewards[part], strict=True):
                absorb(target, 1, row, reward)
        merge(fits, other, PRIOR)
        expected = np.linalg.solve(
            rows.T @ rows + PRIOR.precision, rows.T @ rewards + PRIOR.precision @ PRIOR.mean
        )
        np.testing.assert_allclose(coefficients(fits, 1), expected)
        added = sums(fits, PRIOR)
        np.testing.assert_allclose(added.gram[1], rows.T @ rows, atol=1e-12)
        np.testing.assert_allclose(added.moment[1], rows.T @ rewards, atol=1e-12)
        np.testing.assert_allclose(added.square[1], rewards @ rewards)
        assert added.n.tolist() == [0.0, 3.0]


class Believing(eh.TopInterval):
    """TopInterval that begins with a prior."""

    def prior(self):
        return PRIOR


def test_a_policy_with_a_prior():
    policy = Believing(["F", "M"], n_features=2, horizon=100, seed=1)
    estimate, width = policy.intervals(np.array([[1.0, 0.0], [0.0, 1.0]]))
    np.testing.assert_allclose(estimate, PRIOR.mean)
    assert np.isfinite(width).all()
    policy.absorb([0, 1, 1], np.ones((3, 2)), [1.0, 2.0, 3.0])
    text = json.dumps(to_dict(policy))
    assert json.dumps(to_dict(from_dict(json.loads(text)))) == text


def test_a_prior_may_be_given_as_lists(monkeypatch):
    one, two = Believing(["F"], n_features=2, seed=1), Believing(["F"], n_features=2, seed=1)
    monkeypatch.setattr(Believing, "prior", lambda self: Prior([3, -1], [[4, 1], [1, 2]]))
    three = Believing(["F"], n_features=2, seed=1)
    rows, rewards = [[1.0, 2.0], [0.5, 0.0]], [1.0, 4.0]
    for policy in (one, three):
        policy.absorb([0, 0], rows, rewards)
    two.merge(three)
    for policy in (two, three):
        np.testing.assert_allclose(policy._state.arms.table, one._state.arms.table, atol=1e-12)
    assert three.bias().to_dict() == one.bias().to_dict()


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ((PRIOR.mean, PRIOR.precision), r"the prior is .*; allowed is Prior"),
        (Prior(np.zeros(3), PRIOR.precision), r"mean has shape \(3,\); allowed is \(2,\)"),
        (Prior(PRIOR.mean, np.eye(3)), r"precision has shape \(3, 3\); allowed is \(2, 2\)"),
        (Prior(np.array([np.nan, 0.0]), np.eye(2)), "mean has a NaN"),
        (Prior(PRIOR.mean, np.full((2, 2), np.inf)), "precision has a NaN or an infinity"),
        (Prior(PRIOR.mean, np.array([[2.0, 1.0], [0.0, 2.0]])), "precision is not symmetric"),
        (Prior(PRIOR.mean, np.ones((2, 2))), "precision is not positive definite"),
        (Prior(PRIOR.mean, -np.eye(2)), "precision is not positive definite"),
        (Prior("ab", np.eye(2)), "mean is not a table of numbers"),
    ],
)
def test_a_prior_that_is_no_distribution_is_refused(prior, words, monkeypatch):
    monkeypatch.setattr(Believing, "prior", lambda self: prior)
    policy = Believing(["F", "M"], n_features=2)
    for use in (lambda: policy.select(np.ones((2, 2))), lambda: to_dict(policy)):
        with pytest.raises(eh.errors.InputError, match=words) as error:
            use()
        assert "\n" not in str(error.value)
    with pytest.raises(eh.errors.InputError, match=words):
        regressions(1, 2, prior=prior)


def test_noise_with_a_prior_is_unbiased():
    """E[criterion] = n sigma^2 when coefficients are drawn from the prior; 400 draws, 4 errors."""
    generator, variances = np.random.default_rng(3), []
    root = np.linalg.cholesky(np.linalg.inv(PRIOR.precision))
    for _ in range(400):
        beta = PRIOR.mean + 0.5 * root @ generator.standard_normal(2)
        policy = Believing(["F"], n_features=2, noise="estimate", seed=1)
        rows = generator.standard_normal((5, 2))
        policy.absorb([0] * 5, rows, rows @ beta + 0.5 * generator.standard_normal(5))
        variances.append(policy._state.levels[2, 0])
    assert abs(np.mean(variances) - 0.25) < 4 * np.std(variances) / 20


@pytest.mark.slow
def test_a_compiled_policy_of_a_users_keeps_the_promises():
    """All but two: it has no widths, so it need not try every arm, and it counts in no unit."""
    others = {"starts_cold", "scaling_rewards_scales_scores"}
    kept = [contract for contract in CONTRACTS if contract.__name__ not in others]
    assert len(kept) == len(CONTRACTS) - 2
    for contract in kept:
        contract(Recaller)


@pytest.mark.slow
def test_types_of_the_users_stay_out_of_our_cache(tmp_path):
    """After this file's policy was compiled, a process that cannot import it runs our own."""
    make().select(np.ones((4, 2)))
    eh.simulate(
        [Recaller], eh.SyntheticWorld(n_arms=4, n_sensitive=2), 5, replications=1, workers=1
    )
    code = (
        "import numpy as np, evenhand as eh\n"
        "policy = eh.NaiveFair(['F', 'M'], n_features=2, horizon=9, seed=1)\n"
        "policy.update(policy.select(np.ones((2, 2))), 1.0)\n"
        "policy.propensities(np.ones((2, 2)))\n"
        "world = eh.SyntheticWorld(n_arms=4, n_sensitive=2)\n"
        "eh.simulate([eh.NaiveFair], world, 5, replications=1, workers=1)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("name", ["score", "learn"])
def test_plain_python_beside_a_rule_is_refused(name):
    """It would never be called, and nobody would notice."""
    with pytest.raises(eh.InputError, match=rf"Mine has a rule, and a method {name} in plain"):
        type("Mine", (eh.TopInterval,), {name: lambda *_: None})


class Elsewhere(eh.Policy):
    """Learns, and declares nothing: what it knows would be lost by a snapshot."""

    def learn(self, arm, context, reward):
        self.__dict__.setdefault("total", np.zeros(self.n_arms))[arm] += reward

    def score(self, contexts):
        return self.__dict__.get("total", np.zeros(self.n_arms))


def test_a_learner_that_declares_nothing_is_not_saved(tmp_path):
    path = tmp_path / "log.csv"
    with eh.log_to(path, Elsewhere(["F", "M"], n_features=1, seed=1), snapshot_every=1) as logged:
        for reward in (1.0, 3.0):
            logged.absorb([0], [[1.0]], [reward])
    with pytest.raises(eh.InputError, match=r"has its own learn, .* in the method learns, or"):
        to_dict(logged.policy)
    with eh.log_to(path) as again:  # no snapshot has less than the log
        assert again.policy.total.tolist() == eh.replay(path).total.tolist() == [4.0, 0.0]


class Shared(NamedTuple):
    total: np.ndarray


STARTS = Shared(np.ones(2))


class FromShared(eh.Policy):
    """Its `learns` returns the same arrays every time."""

    def learns(self):
        return STARTS

    def learn(self, arm, context, reward):
        self.own.total[arm] += reward

    def score(self, contexts):
        return self.own.total


def test_what_learns_returns_is_copied():
    policy = FromShared(["F", "M"], n_features=1, seed=1)
    policy.absorb([0], [[1.0]], [10.0])
    assert policy.own.total.tolist() == [11.0, 1.0] and STARTS.total.tolist() == [1.0, 1.0]
    assert policy.clone().own.total.tolist() == [1.0, 1.0]
    other = policy.clone()
    other.absorb([1], [[1.0]], [5.0])
    policy.merge(other)
    assert policy.own.total.tolist() == [11.0, 6.0]


class _Hidden(eh.TopInterval):
    pass


def test_a_class_that_would_not_be_found_is_not_saved(tmp_path):
    policy = _Hidden(["F", "M"], n_features=1)
    for write in (
        lambda: policy.save(tmp_path / "p.json"),
        lambda: eh.log_to(tmp_path / "l.csv", policy),
    ):
        with pytest.raises(eh.InputError, match=r"_Hidden cannot be saved, .* underscore"):
            write()
    assert not list(tmp_path.iterdir())


def test_two_classes_of_one_name_are_not_confused(tmp_path, monkeypatch):
    """In any order of their imports: nothing says which of them wrote a file."""
    monkeypatch.setattr("evenhand.policies._settings.TWINS", twins := {})
    monkeypatch.setattr("evenhand.policies.base.TWINS", twins)
    monkeypatch.setattr("evenhand.policies.saving.TWINS", twins)
    kinds = [type("Twin", (eh.TopInterval,), {"__module__": name}) for name in ("team_a", "team_a")]
    policy = kinds[1](["F", "M"], n_features=1)
    policy.save(tmp_path / "p.json")
    assert type(eh.load(tmp_path / "p.json")) is kinds[1]  # the newer of a notebook's cells
    type("Twin", (eh.TopInterval,), {"__module__": "team_b"})
    for call in (lambda: eh.load(tmp_path / "p.json"), lambda: policy.save(tmp_path / "p.json")):
        with pytest.raises(eh.InputError, match=r"'Twin', which several classes .* team_a, team_b"):
            call()
    del POLICIES["Twin"]
