"""GroupFairIntervalChaining: corrected intervals, and chains over all arms or in a group."""

import numpy as np
import pytest
from scipy.stats import norm, t

import evenhand as eh

FOUR = eh.Groups(["F", "F", "M", "M"], sensitive="F")
EIGHT = eh.Groups(list("aabbbccc"))


def ready(rewards, **settings):
    """A policy with 9 rewards for each of four arms at the context 1."""
    settings = {"horizon": 100, "exploration": "none", "seed": 1, **settings}
    policy = eh.GroupFairIntervalChaining(FOUR, n_features=1, **settings)
    policy.absorb([0, 1, 2, 3] * 9, np.ones((36, 1)), list(rewards) * 9)
    return policy


def interval_of(scores):
    return scores.estimate + scores.correction, scores.width + scores.correction_width


@pytest.mark.parametrize("reference", ["mean", "b", "c"])
@pytest.mark.parametrize("noise", [2.0, "estimate"])
@pytest.mark.parametrize("chain", ["all", "group"])
def test_intervals_are_those_of_the_weighted_sum_of_all_arms(reference, noise, chain):
    generator = np.random.default_rng(3)
    arms, contexts = generator.integers(0, 8, 200), generator.standard_normal((200, 3))
    rewards, now = generator.standard_normal(200), generator.standard_normal((8, 3))
    policy = eh.GroupFairIntervalChaining(
        EIGHT, n_features=3, horizon=100, reference=reference, noise=noise, chain=chain
    )
    policy.absorb(arms, contexts, rewards)
    middle, width = interval_of(policy.select(now).scores)

    fits, squares = [], 0.0
    for i in range(8):
        x, y = contexts[arms == i], rewards[arms == i]
        inverse = np.linalg.inv(x.T @ x)
        fits.append((inverse @ x.T @ y, inverse))
        squares += ((y - x @ fits[i][0]) ** 2).sum()
    level, freedom = 0.1 / (2 * 8 * 100), 200 - 8 * 3
    factor = 2.0 * norm.isf(level)
    if noise == "estimate":
        factor = np.sqrt(squares / freedom) * t.isf(level, freedom)
    in_group = EIGHT.of[:, None] == EIGHT.of
    average = in_group / in_group.sum(axis=1, keepdims=True)
    towards = np.full(3, 1 / 3) if reference == "mean" else np.eye(3)[EIGHT.index(reference)]
    weights = np.eye(8) - average + (towards / EIGHT.sizes)[EIGHT.of]
    for i in range(8):
        values = np.array([beta @ now[i] for beta, _ in fits])
        variances = np.array([now[i] @ inverse @ now[i] for _, inverse in fits])
        assert middle[i] == pytest.approx(weights[i] @ values, abs=1e-9)
        variance = weights[i] ** 2 @ variances
        if chain == "group" and EIGHT.names[EIGHT.of[i]] == reference:
            # As if it were corrected towards the mean of the averages of the other groups.
            towards_others = (~in_group[i]) / EIGHT.sizes[EIGHT.of]
            of_arm = (np.eye(8)[i] - average[i]) ** 2 @ variances
            variance = of_arm + towards_others**2 @ variances / 2
        expected = factor * np.sqrt(max(variance, variances[i]))
        assert width[i] == pytest.approx(expected, abs=1e-9)


def test_chains_by_hand():
    # By 6 the sensitive arms are corrected: 7, 11, 7, 11, each with a width of 1.22.
    rewards = (1.0, 5.0, 7.0, 11.0)
    assert ready(rewards).propensities(np.ones((4, 1))).tolist() == [0.0, 0.5, 0.0, 0.5]
    # The averages are 2.1 and 9.1; corrected: 9.0, 9.2, 9.1, 9.1, so all are chained.
    alike = (2.0, 2.2, 9.1, 9.1)
    assert ready(alike).propensities(np.ones((4, 1))).tolist() == [0.25] * 4
    of_best = ready(alike, chain="group").propensities(np.ones((4, 1)))
    assert of_best.tolist() == [0.5, 0.5, 0.0, 0.0]


def test_a_tie_between_groups_is_broken_at_random():
    before = eh.GroupFairIntervalChaining(
        EIGHT, n_features=1, horizon=10, chain="group", exploration="none"
    )
    # Nothing is known, so every arm is the best with the same chance, and all of a group chain.
    np.testing.assert_allclose(before.propensities(np.ones((8, 1))), 1 / 8)
    first = before.clone(conventions=eh.AUTHORS_CODE, singular="infinite")
    np.testing.assert_allclose(first.propensities(np.ones((8, 1))), [0.5, 0.5, 0, 0, 0, 0, 0, 0])


def test_a_chain_in_the_group_is_that_of_its_own_intervals():
    """The group of the highest upper end; in it, the connected component (brute force)."""
    generator = np.random.default_rng(5)
    arms, contexts = generator.integers(0, 8, 80), generator.standard_normal((80, 2))
    policy = eh.GroupFairIntervalChaining(
        EIGHT, n_features=2, horizon=100, chain="group", exploration="none", reference="b"
    )
    policy.absorb(arms, contexts, contexts.sum(axis=1) + arms + generator.standard_normal(80))
    lengths = set()
    for _ in range(200):
        now = 3.0 * generator.standard_normal((8, 2))
        middle, width = interval_of(policy.select(now).scores)
        top = int(np.argmax(middle + width))
        chain = {top}
        while True:
            more = {
                i
                for i in np.flatnonzero(EIGHT.of == EIGHT.of[top])
                for j in chain
                if abs(middle[i] - middle[j]) <= width[i] + width[j]
            }
            if more <= chain:
                break
            chain |= more
        expected = np.isin(np.arange(8), list(chain)) / len(chain)
        np.testing.assert_allclose(policy.propensities(now), expected)
        lengths.add(len(chain))
    assert lengths == {1, 2, 3}


def test_a_single_arm_is_judged_as_the_average_of_the_reference():
    with pytest.warns(UserWarning, match="single arm"):
        policy = eh.GroupFairIntervalChaining(
            eh.Groups(["F", "M", "M"], sensitive="F"), n_features=1, horizon=100
        )
    policy.absorb([0, 1, 2] * 4, np.ones((12, 1)), [9.0, 1.0, 3.0] * 4)
    middle, width = interval_of(policy.select(np.ones((3, 1))).scores)
    np.testing.assert_allclose(middle, [2.0, 1.0, 3.0])
    assert np.isfinite(width).all()


def test_bad_settings():
    with pytest.raises(eh.InputError, match=r"chain is 'both'; allowed .*all.*group"):
        eh.GroupFairIntervalChaining(FOUR, n_features=1, chain="both")
    with pytest.raises(eh.InputError, match="reference is 'X'; allowed are 'mean' or one of F, M"):
        eh.GroupFairIntervalChaining(FOUR, n_features=1, reference="X")
    with pytest.raises(eh.InputError, match="groups are F alone"):
        eh.GroupFairIntervalChaining(["F", "F"], n_features=1)


def test_saving_keeps_the_reference(tmp_path):
    policy = eh.GroupFairIntervalChaining(
        EIGHT, n_features=1, horizon=9, reference="b", chain="group"
    )
    policy.save(tmp_path / "policy.json")
    again = eh.load(tmp_path / "policy.json")
    assert again.settings() == policy.settings()
