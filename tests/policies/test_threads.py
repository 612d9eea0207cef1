"""Many threads decide on one policy while another learns: every decision is its own."""

import threading

import numpy as np
import pytest

import evenhand as eh

ARMS, FEATURES, DECIDERS = 6, 3, 8
GROUPS = eh.Groups(["F", "M"] * 3, sensitive="F")


class Plain(eh.Policy):
    """In plain Python, where threads are switched in the middle of a score."""

    def score(self, contexts):
        estimate, width = self.intervals(contexts)
        return estimate + width


def crowd(policy, number, learning):
    """`number` decisions by each of many threads; contexts that say whose they are."""
    start, made, errors = threading.Barrier(DECIDERS + 1), [], []

    def decide(who):
        mine = []
        start.wait()
        for k in range(number):
            contexts = 1.0 + who + np.arange(ARMS)[:, None] / 10 + np.full(FEATURES, k) / number
            mine.append((contexts, policy.select(contexts)))
        made.append(mine)

    def learn():
        generator = np.random.default_rng(1)
        start.wait()
        while len(made) < DECIDERS:
            policy.absorb([0, 1, 2], generator.random((3, FEATURES)), generator.random(3))
            policy.propensities(generator.random((ARMS, FEATURES)))

    def guarded(task, *what):
        try:
            task(*what)
        except BaseException as error:  # told by the test, not lost with the thread
            errors.append(error)
            start.abort()
            made.append([])

    tasks = [(decide, who) for who in range(DECIDERS)] + ([(learn,)] if learning else [])
    if not learning:
        start = threading.Barrier(DECIDERS)
    threads = [threading.Thread(target=guarded, args=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    return [pair for mine in made for pair in mine]


@pytest.mark.parametrize(
    ("kind", "number"),
    [(eh.GroupFairTopInterval, 2_000), (eh.NaiveFair, 2_000), (Plain, 300)],
)
def test_contexts_are_their_own_and_every_round_is_given_once(kind, number):
    policy = kind(GROUPS, FEATURES, horizon=100_000, seed=1)
    made = crowd(policy, number, learning=True)
    rounds = sorted(decision.round for _, decision in made)
    assert rounds == list(range(1, DECIDERS * number + 1))
    np.testing.assert_array_equal(
        [decision.context for _, decision in made],
        [contexts[decision.arm] for contexts, decision in made],
    )
    assert all(0.0 < decision.propensity <= 1.0 for _, decision in made)


@pytest.mark.slow
def test_scores_and_propensities_of_100_000_decisions_are_their_own():
    """Nothing is learned meanwhile, so each decision can be made again by a single thread."""
    policy = eh.GroupFairTopInterval(GROUPS, FEATURES, horizon=200_000, seed=1)
    rows = np.random.default_rng(2)
    policy.absorb(np.arange(60) % ARMS, rows.random((60, FEATURES)), rows.random(60))
    made = crowd(policy, 100_000 // DECIDERS, learning=False)
    alone = policy.clone()
    rows = np.random.default_rng(2)
    alone.absorb(np.arange(60) % ARMS, rows.random((60, FEATURES)), rows.random(60))
    for contexts, decision in sorted(made, key=lambda pair: pair[1].round):
        again = alone.select(contexts)
        assert (again.round, again.arm, again.propensity) == (
            decision.round,
            decision.arm,
            decision.propensity,
        )
        # As bytes: asking NumPy's testing 200,000 times takes longer than the decisions.
        assert again.scores.table.tobytes() == decision.scores.table.tobytes()
        assert again.context.tobytes() == decision.context.tobytes()
