"""Many threads use one policy while another learns: every decision is its own, no read is torn."""

import copy
import sys
import threading
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import evenhand as eh
from evenhand.policies.saving import from_dict, to_dict

ARMS, FEATURES, DECIDERS = 6, 3, 8
GROUPS = eh.Groups(["F", "M"] * 3, sensitive="F")
BETA = np.array([1.0, -2.0, 0.7])


@pytest.fixture(autouse=True)
def threads_that_switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class Seen(NamedTuple):
    rewards: NDArray[np.float64]


class PlainSum(eh.Policy):
    """In plain Python, where threads are switched in the middle of a score.

    The correction is the round, and what it learns of its own are counts.
    """

    def learns(self):
        return Seen(np.zeros(self.n_arms))

    def learn(self, arm, context, reward):
        self.own.rewards[arm] += 1.0

    def score(self, contexts):
        estimate, width = self.intervals(contexts)
        rounds = np.full(self.n_arms, self.round + 1.0)
        seen = self.own.rewards - self.counts  # 0, unless another thread is learning
        return np.vstack([estimate, width, rounds, seen, estimate + width + rounds + seen])


def together(*tasks):
    """Run the tasks in threads of their own, from the same moment on."""
    start, errors = threading.Barrier(len(tasks)), []

    def guarded(task):
        try:
            start.wait()
            task()
        except BaseException as error:  # told by the test, not lost with the thread
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def some_rows(generator, number):
    """Rows to learn from whose rewards are BETA . x, so no data move a coefficient."""
    contexts = 1.0 + generator.random((number, FEATURES))
    return np.arange(number) % ARMS, contexts, contexts @ BETA


def decided_while_learning(policy, number):
    """`number` decisions by each of many threads while another learns, and their contexts."""
    made, left = [], list(range(DECIDERS))

    def decide(who):
        mine = []
        try:
            for k in range(number):
                contexts = 1.0 + who + np.arange(ARMS)[:, None] / 10 + np.full(FEATURES, k) / number
                contexts[:, 0] *= 1.5
                mine.append((contexts, policy.select(contexts)))
        finally:
            made.extend(mine)
            left.pop()

    def learn():
        generator = np.random.default_rng(1)
        while left:
            policy.absorb(*some_rows(generator, ARMS))
            policy.propensities(generator.random((ARMS, FEATURES)))

    policy.absorb(*some_rows(np.random.default_rng(2), 5 * ARMS))
    together(learn, *(lambda who=who: decide(who) for who in range(DECIDERS)))
    return made


def check_each(policy, made):
    """Contexts, rounds, scores and propensities belong together, whatever was learned meanwhile.

    Rewards have no noise, so the estimate of an arm is BETA . x at any time. The propensity follows
    from the upper bounds and from the round, on which exploration depends.
    """
    decisions = [decision for _, decision in made]
    contexts = np.array([rows for rows, _ in made])
    rounds = np.array([decision.round for decision in decisions])
    arms = np.array([decision.arm for decision in decisions])
    scores = np.array([decision.scores.table for decision in decisions])
    estimate, width, correction, correction_width, upper = np.moveaxis(scores, 1, 0)
    each = np.arange(len(made))
    assert sorted(rounds) == list(range(1, len(made) + 1))
    np.testing.assert_array_equal([item.context for item in decisions], contexts[each, arms])
    np.testing.assert_allclose(estimate, contexts @ BETA, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(upper, estimate + width + correction + correction_width, rtol=1e-12)
    if isinstance(policy, PlainSum):
        np.testing.assert_array_equal(correction, np.repeat(rounds[:, None], ARMS, axis=1))
        assert not correction_width.any()
    best = upper == upper.max(axis=1, keepdims=True)
    explores = rounds ** (-1.0 / 3.0)
    chance = explores / ARMS + (1.0 - explores) * best[each, arms] / best.sum(axis=1)
    np.testing.assert_allclose([item.propensity for item in decisions], chance, rtol=1e-9)


@pytest.mark.parametrize("horizon", [None, 100_000])
@pytest.mark.parametrize(
    ("kind", "number"), [(eh.TopInterval, 500), (eh.GroupFairTopInterval, 500), (PlainSum, 100)]
)
def test_every_decision_is_its_own_while_another_thread_learns(kind, number, horizon):
    policy = kind(GROUPS, FEATURES, horizon=horizon, seed=1)
    check_each(policy, decided_while_learning(policy, number))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [eh.GroupFairTopInterval, PlainSum])
def test_100_000_decisions_are_their_own_while_another_thread_learns(kind):
    policy = kind(GROUPS, FEATURES, seed=1)
    check_each(policy, decided_while_learning(policy, 100_000 // DECIDERS))


@pytest.mark.parametrize("kind", [eh.GroupFairTopInterval, PlainSum])
def test_what_is_saved_copied_or_read_is_of_one_moment(kind):
    """Batches have a row per arm, so no count is ahead of another in any state between batches."""
    policy, done = kind(GROUPS, FEATURES, seed=1), []
    rows = some_rows(np.random.default_rng(1), 50 * ARMS)

    def learn():
        try:
            for _ in range(40):
                policy.absorb(*rows)
        finally:
            done.append(True)

    def read():
        other = policy.clone()
        while not done:
            states = [from_dict(to_dict(policy)), copy.deepcopy(policy), policy.clone()]
            states[-1].merge(policy)
            for state in states:
                counts = state.counts.tolist()
                assert counts == [counts[0]] * ARMS and counts[0] % 50 == 0
                if kind is PlainSum:
                    assert state.own.rewards.tolist() == counts
                else:
                    groups = state._state.groups
                    assert eh.leastsquares.counts(groups).tolist() == [3 * counts[0]] * 2
            counts = policy.counts.tolist()
            assert counts == [counts[0]] * ARMS
            other.merge(states[0])

    policy.absorb(*rows)
    together(learn, read)
    assert policy.counts.tolist() == [41 * 50] * ARMS


def test_two_policies_are_merged_into_each_other():
    """By two threads at once, without a deadlock; each has what the other had at some moment."""
    one, two = (eh.TopInterval(GROUPS, FEATURES, seed=1) for _ in range(2))
    one.absorb(*some_rows(np.random.default_rng(1), ARMS))
    two.absorb(*some_rows(np.random.default_rng(2), 2 * ARMS))

    def merging(into, other):
        return lambda: [into.merge(other) for _ in range(10)]

    together(merging(one, two), merging(two, one))
    contexts = 1.0 + np.random.default_rng(3).random((ARMS, FEATURES))
    for policy in (one, two):
        np.testing.assert_allclose(policy.intervals(contexts)[0], contexts @ BETA, rtol=1e-8)


def test_the_own_arrays_are_read_while_another_thread_decides():
    """Neither waits for a lock that the other has, on the first use of both."""
    scoring, go_on = threading.Event(), threading.Event()

    class Waiting(eh.Policy):
        def score(self, contexts):
            scoring.set()
            go_on.wait()
            return np.zeros(self.n_arms)

    policy = Waiting(["F", "M"], n_features=1, seed=1)
    deciding = threading.Thread(target=lambda: policy.select([[1.0], [2.0]]), daemon=True)
    deciding.start()
    scoring.wait()
    reading = threading.Thread(target=lambda: policy.own, daemon=True)
    reading.start()
    go_on.set()
    for thread in (deciding, reading):
        thread.join()
