"""The rules of the policies on cases small enough to verify by hand, and against oracles."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.policies._quantiles import normal_quantile
from evenhand.policies.interval_chaining import _closure, _two_passes

ONE = np.ones((4, 1))
TWO_GROUPS = eh.Groups(["F", "F", "M", "M"], sensitive="F")


def ready(kind, rewards=(1.0, 2.0, 7.0, 8.0), **settings):
    """A policy that has seen one reward of every arm at context 1."""
    groups = settings.pop("groups", TWO_GROUPS)
    settings = {"n_features": 1, "horizon": 100, "exploration": "none", "seed": 3, **settings}
    policy = kind(groups, **settings)
    n = policy.n_arms
    policy.absorb(np.arange(n), np.ones((n, 1)), rewards)
    return policy


def test_width_of_one_observation():
    # One observation at x = 1: variance 1, so the width is the quantile itself.
    scores = ready(eh.TopInterval).select(ONE).scores
    np.testing.assert_allclose(scores.width, normal_quantile(0.1 / (2 * 4 * 100)))
    np.testing.assert_allclose(scores.upper, scores.estimate + scores.width)


def test_width_goes_by_the_round_without_a_horizon():
    policy = ready(eh.TopInterval, horizon=None)
    for t in (1, 2, 3):
        width = policy.select(ONE).scores.width
        np.testing.assert_allclose(width, normal_quantile(0.1 / (2 * 4 * t)), rtol=1e-12)


def test_width_beyond_the_horizon_goes_on_by_the_round():
    policy = ready(eh.TopInterval, horizon=2)
    widths = [policy.select(ONE).scores.width[0] for _ in range(4)]
    levels = [0.1 / (2 * 4 * t) for t in (2, 2, 3, 4)]
    np.testing.assert_allclose(widths, [normal_quantile(p) for p in levels], rtol=1e-12)


def test_estimated_noise_waits_for_residuals():
    policy = ready(eh.TopInterval, noise="estimate")
    assert np.isinf(policy.select(ONE).scores.width).all()  # four fits, nothing left over
    policy.absorb([0], [[1.0]], [3.0])  # residuals 1 and -1 around 2: sigma^2 = 2 with 1 degree
    from scipy.stats import t

    width = policy.select(ONE).scores.width
    quantile = t.isf(0.1 / (2 * 4 * 100), 1)
    np.testing.assert_allclose(width[1], quantile * np.sqrt(2.0), rtol=1e-9)
    np.testing.assert_allclose(width[0], quantile * np.sqrt(2.0 / 2), rtol=1e-9)


def test_group_fair_corrects_the_sensitive_arms_only():
    scores = ready(eh.GroupFairTopInterval).select(ONE).scores
    # psi_F = 1.5, psi_M = 7.5; both fits have two observations: variance 1/2.
    b = normal_quantile(0.1 * 2 / (2 * 4 * 100)) * np.sqrt(0.5)
    np.testing.assert_allclose(scores.correction, [6.0, 6.0, 0.0, 0.0])
    np.testing.assert_allclose(scores.correction_width, [2 * b, 2 * b, 0.0, 0.0])
    total = scores.estimate + scores.width + scores.correction + scores.correction_width
    np.testing.assert_allclose(scores.upper, total)


def test_group_fair_known_offset_is_added():
    plain = ready(eh.GroupFairTopInterval).select(ONE).scores.correction
    moved = ready(eh.GroupFairTopInterval, offset=-2.5).select(ONE).scores.correction
    np.testing.assert_allclose(moved - plain, [-2.5, -2.5, 0.0, 0.0])


def test_group_fair_under_authors_code_uses_the_variance():
    settings = {"conventions": eh.AUTHORS_CODE}
    policy = ready(eh.GroupFairTopInterval, **settings)
    policy.absorb([0], [[2.0]], [2.0])  # arm 0: X'X = 5
    scores = policy.select(ONE).scores
    np.testing.assert_allclose(scores.width[0], normal_quantile(0.1 / 800) / 5)


def test_multi_group_mean_reference_by_hand():
    groups = eh.Groups(["a", "a", "b", "b", "c", "c"])
    policy = ready(eh.MultiGroupFairTopInterval, (1.0, 1.0, 2.0, 2.0, 6.0, 6.0), groups=groups)
    scores = policy.select(np.ones((6, 1))).scores
    np.testing.assert_allclose(scores.correction, [2, 2, 1, 1, -3, -3], atol=1e-12)
    b = normal_quantile(0.1 * 2 / (2 * 6 * 100)) * np.sqrt(0.5)
    np.testing.assert_allclose(scores.correction_width, b * (2 / 3 + 1 / 3 + 1 / 3))


def test_multi_group_with_two_groups_ranks_as_the_two_group_policy_does():
    # Both bring the groups to one reference; they differ by the same amount for every arm
    # where the widths of the groups are equal.
    two = ready(eh.GroupFairTopInterval).select(ONE).scores
    many = ready(eh.MultiGroupFairTopInterval).select(ONE).scores
    two_fair = two.estimate + two.correction
    many_fair = many.estimate + many.correction
    np.testing.assert_allclose(np.diff(many_fair), np.diff(two_fair), atol=1e-12)


@pytest.mark.slow
@given(st.floats(-100, 100), st.floats(-100, 100))
@settings(max_examples=25)
def test_constant_rho_cancels(first, second):
    rewards = (1.0, 2.0, 7.0, 8.0)
    told_first = ready(eh.MultiGroupFairTopInterval, rewards, reference=first)
    two = ready(eh.MultiGroupFairTopInterval, rewards, reference=second)
    upper, other = told_first.select(ONE).scores.upper, two.select(ONE).scores.upper
    np.testing.assert_allclose(np.diff(upper), np.diff(other), atol=1e-9)


def brute_force_chain(lower, upper):
    """The connected component, in the graph of overlapping intervals, of the highest upper end."""
    n = len(lower)
    chained = {int(np.argmax(upper))}
    while True:
        grown = chained | {
            i
            for i, j in itertools.product(range(n), chained)
            if lower[i] <= upper[j] and lower[j] <= upper[i]
        }
        if grown == chained:
            return chained
        chained = grown


intervals = st.lists(
    st.tuples(st.integers(-20, 20), st.one_of(st.integers(0, 12), st.just(np.inf))),
    min_size=1,
    max_size=12,
)


@given(intervals)
@settings(max_examples=400)
def test_chain_is_the_connected_component(pairs):
    middle = np.array([float(m) for m, _ in pairs])
    width = np.array([float(w) for _, w in pairs])
    lower, upper = middle - width, middle + width
    everyone = np.ones(len(pairs), dtype=bool)
    chained = _closure(lower, upper, everyone, int(np.argmax(upper)))
    assert set(np.flatnonzero(chained)) == brute_force_chain(lower, upper)


def test_chain_of_the_authors_code_misses_links():
    # Arm 1 reaches over the lower end of arm 0, which moves the span's lower end to arm 1's
    # *upper* end (5); arm 2 then ends below it and is left out, though it overlaps arm 1.
    lower, upper = np.array([4.0, 1.0, 0.0]), np.array([9.0, 5.0, 2.0])
    everyone = np.ones(3, dtype=bool)
    assert _closure(lower, upper, everyone, 0).tolist() == [True, True, True]
    assert _two_passes(lower, upper, everyone, 0).tolist() == [True, True, False]


def test_chain_of_the_authors_code_is_often_wrong():
    # How often depends on how the sets are drawn: 41 % of these.
    generator = np.random.default_rng(4)
    wrong = 0
    for _ in range(2000):
        middle, width = generator.uniform(0, 10, 8), generator.uniform(0, 1.5, 8)
        lower, upper = middle - width, middle + width
        top, everyone = int(np.argmax(upper)), np.ones(8, dtype=bool)
        wrong += (
            _closure(lower, upper, everyone, top) != _two_passes(lower, upper, everyone, top)
        ).any()
    assert wrong / 2000 > 0.2


def test_interval_chaining_keeps_to_available_arms():
    policy = ready(eh.IntervalChaining, (1.0, 2.0, 7.0, 50.0))
    assert policy.propensities(ONE).tolist() == [0.0, 0.0, 0.0, 1.0]
    without_best = policy.propensities(ONE, available=[0, 1, 2])
    np.testing.assert_allclose(without_best, [1 / 3, 1 / 3, 1 / 3, 0.0])


def test_naive_fair_group_chances():
    groups = eh.Groups(["F", "M", "M", "M"])
    rewards = (1.0, 2.0, 9.0, 3.0)
    uniform = ready(eh.NaiveFair, rewards, groups=groups)
    share = ready(eh.NaiveFair, rewards, groups=groups, group_choice="proportional")
    assert uniform.propensities(ONE).tolist() == [0.5, 0.0, 0.5, 0.0]
    assert share.propensities(ONE).tolist() == [0.25, 0.0, 0.75, 0.0]
    assert share.propensities(ONE, available=[0, 1]).tolist() == [0.5, 0.5, 0.0, 0.0]
    assert uniform.propensities(ONE, available=[1, 3]).tolist() == [0.0, 0.0, 0.0, 1.0]


def test_naive_fair_explores_inside_the_group_it_chose():
    groups = eh.Groups(["F", "M", "M", "M"])
    always = ready(eh.NaiveFair, groups=groups, exploration=1.0)
    np.testing.assert_allclose(always.propensities(ONE), [1 / 2, 1 / 6, 1 / 6, 1 / 6])


def test_thompson_propensity_of_two_normals():
    # P(N(1, s^2) > N(2, s^2)) = Phi(-1 / (s sqrt 2)) with s = 1 after one observation each.
    from scipy.stats import norm

    groups = eh.Groups(["F", "F"])
    policy = ready(eh.NaiveFair, (1.0, 2.0), groups=groups, inside="thompson")
    expected = norm.cdf(-1 / np.sqrt(2))
    np.testing.assert_allclose(
        policy.propensities(np.ones((2, 1))), [expected, 1 - expected], atol=1e-9
    )


def test_thompson_propensities_with_very_unequal_widths():
    groups = eh.Groups(["F", "F", "F"])
    policy = ready(eh.NaiveFair, (1.0, 1.2, 0.9), groups=groups, inside="thompson")
    policy.absorb([0] * 4000, np.ones((4000, 1)), np.full(4000, 1.0))
    chances = policy.propensities(np.ones((3, 1)))
    np.testing.assert_allclose(chances.sum(), 1.0, atol=1e-9)
    generator = np.random.default_rng(8)
    widths = policy.select(np.ones((3, 1))).scores.width
    draws = generator.normal([1.0, 1.2, 0.9], widths, size=(400_000, 3)).argmax(axis=1)
    # A frequency of 400,000 draws has a standard error of at most 0.0008: 5 of them, 1 in 10^6.
    np.testing.assert_allclose(np.bincount(draws, minlength=3) / 400_000, chances, atol=0.004)


def test_exploration_is_a_parameter():
    top = ready(eh.TopInterval, exploration=0.4)
    np.testing.assert_allclose(top.propensities(ONE), [0.1, 0.1, 0.1, 0.7])
    table = ready(eh.TopInterval, exploration=[1.0, 0.0])
    np.testing.assert_allclose(table.select(ONE).propensity, 0.25)
    assert table.select(ONE).arm == 3
    paper = ready(eh.TopInterval, exploration="paper")
    paper.round = 7
    np.testing.assert_allclose(paper.propensities(ONE), [0.125, 0.125, 0.125, 0.625])


def test_ties_go_to_the_first_under_authors_code():
    policy = eh.TopInterval(
        TWO_GROUPS, n_features=1, exploration="none", conventions=eh.AUTHORS_CODE, seed=1
    )
    assert policy.propensities(ONE).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert policy.propensities(ONE, available=[2, 3]).tolist() == [0.0, 0.0, 1.0, 0.0]


def test_decision_carries_what_a_log_needs():
    policy = ready(eh.GroupFairTopInterval)
    contexts = np.arange(4.0)[:, None]
    decision = policy.select(contexts)
    assert decision.round == 1 and decision.explored is False
    assert decision.context.tolist() == contexts[decision.arm].tolist()
    frame = decision.scores.to_frame()
    assert list(frame) == ["estimate", "width", "correction", "correction_width", "upper"]
    assert len(frame) == 4


def test_exact_least_squares_by_fractions():
    # Three rows in two dimensions, solved with fractions: nothing but the rotations can err.
    contexts = [[1, 2], [3, 1], [2, 5]]
    rewards = [4, 5, 11]
    a = sum(Fraction(x * x) for x, _ in contexts)
    b = sum(Fraction(x * y) for x, y in contexts)
    c = sum(Fraction(y * y) for _, y in contexts)
    p = sum(Fraction(x * r) for (x, _), r in zip(contexts, rewards, strict=True))
    q = sum(Fraction(y * r) for (_, y), r in zip(contexts, rewards, strict=True))
    determinant = a * c - b * b
    beta = [(c * p - b * q) / determinant, (a * q - b * p) / determinant]
    policy = eh.TopInterval(["F", "M"], n_features=2, horizon=10)
    policy.absorb([0, 0, 0], contexts, rewards)
    estimate, _ = policy.intervals([[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(estimate[0], float(beta[0]), rtol=1e-14)


@pytest.mark.parametrize(
    ("labels", "sensitive", "words"),
    [
        (["F", "M", "X"], "F", "exactly two"),
        (["F", "M", "M"], None, "sensitive"),
    ],
)
def test_group_fair_says_which_groups_it_needs(labels, sensitive, words):
    with pytest.raises(ValueError, match=words):
        eh.GroupFairTopInterval(eh.Groups(labels, sensitive), n_features=1)


def test_ridge_without_effect_is_refused():
    with pytest.raises(ValueError, match="no effect"):
        eh.TopInterval(["F", "M"], n_features=1, singular="infinite", ridge=1.0)


def test_ridge_prior_width_of_a_cold_arm():
    policy = eh.TopInterval(["F", "M"], n_features=2, horizon=10, ridge=0.25, exploration="none")
    scores = policy.select([[3.0, 4.0], [0.0, 0.0]]).scores
    quantile = normal_quantile(0.1 / (2 * 2 * 10))
    np.testing.assert_allclose(scores.width, [quantile * 5.0 / 0.5, 0.0])


def test_a_tiny_delta_has_a_width():
    for delta in (1e-308, 1e-100):
        scores = ready(eh.GroupFairTopInterval, delta=delta).select(ONE).scores
        assert np.isfinite(scores.upper).all()


def test_a_decision_whose_context_was_changed_is_refused():
    policy = ready(eh.TopInterval)
    before = policy.counts.sum()
    for bad in (np.nan, np.inf, 1e200):
        decision = policy.select(ONE)
        decision.context[0] = bad
        with pytest.raises(ValueError, match="decision has a context"):
            policy.update(decision, 1.0)
    for wrong in (3, None, [3]):
        with pytest.raises(ValueError, match="allowed is the result of select"):
            policy.update(wrong, 1.0)
    assert policy.counts.sum() == before


def test_words_and_ragged_rows_are_refused():
    policy = ready(eh.TopInterval)
    for contexts in ([["a"]] * 4, [[1.0], [2.0, 3.0], [1.0], [1.0]], None):
        with pytest.raises(ValueError, match="contexts"):
            policy.select(contexts)
    with pytest.raises(ValueError, match=r"reward is '1\.5'"):
        policy.update(policy.select(ONE), "1.5")


def test_features_of_very_different_size():
    # Income in cents beside a rate: ten orders of magnitude, without noise.
    generator = np.random.default_rng(5)
    rows = generator.random((200, 2)) * [1e8, 1e-2]
    rewards = rows @ [2e-8, 1e2]
    policy = eh.TopInterval(["F", "M"], n_features=2, horizon=10)
    policy.absorb(np.zeros(200, dtype=int), rows, rewards)
    estimate, _ = policy.intervals(rows[:2])
    np.testing.assert_allclose(estimate[0], rewards[0], rtol=1e-6)


def test_the_level_by_round_leaves_the_groups_at_the_horizon():
    # Algorithm 1: line 9 has t, lines 13 and 14 have T.
    from dataclasses import replace

    mine = replace(eh.PAPER, name="mine", level="round")
    policy = ready(eh.GroupFairTopInterval, conventions=mine)
    scores = policy.select(ONE).scores
    np.testing.assert_allclose(scores.width, normal_quantile(0.1 / (2 * 4 * 1)))
    b = normal_quantile(0.1 * 2 / (2 * 4 * 100)) * np.sqrt(0.5)
    np.testing.assert_allclose(scores.correction_width[:2], 2 * b)


def test_group_intervals_are_those_of_the_correction():
    policy = ready(eh.GroupFairTopInterval)
    estimates, widths = policy.group_intervals(ONE)
    scores = policy.select(ONE).scores
    np.testing.assert_allclose(scores.correction[:2], (estimates[1] - estimates[0])[:2])
    np.testing.assert_allclose(scores.correction_width[:2], widths.sum(axis=0)[:2])
    with pytest.raises(ValueError, match="learns_groups"):
        ready(eh.TopInterval).group_intervals(ONE)


@pytest.mark.parametrize(
    ("name", "value"),
    [("delta", 0.5), ("seed", 4), ("noise", 2.0), ("exploration", 0.5), ("offset", 1.0)],
)
def test_settings_cannot_be_assigned_where_they_would_do_nothing(name, value):
    policy = ready(eh.GroupFairTopInterval)
    before = policy.settings()
    with pytest.raises(AttributeError, match=rf"^{name} of a GroupFair.*policy.clone\({name}="):
        setattr(policy, name, value)
    assert policy.settings() == before
    assert policy.clone(**{name: value}).settings()[name] == value
    policy.round = 7  # not a setting
    assert policy.select(ONE).round == 8


class Fading(eh.Policy):
    """In plain Python a setting of one's own is read in every round."""

    def __init__(self, groups, n_features, horizon=None, delta=0.1, *, part=1.0, **common):
        super().__init__(groups, n_features, horizon, delta, **common)
        self.part = part

    def score(self, contexts):
        self.part *= 0.5
        estimate, width = self.intervals(contexts)
        return estimate + self.part * width


def test_a_policy_in_plain_python_may_change_settings_of_its_own():
    policy = ready(Fading)
    policy.select(ONE)
    assert policy.part == 0.5
    with pytest.raises(AttributeError, match="delta of a Fading"):
        policy.delta = 0.5


class TopIntervalInPython(eh.Policy):
    def score(self, contexts):
        estimate, width = self.intervals(contexts)
        return estimate + width


def test_plain_propensities_of_another_round_are_of_its_widths():
    """Without a horizon widths grow with the round, most of all that of the arm seen least."""
    kinds, at = (TopIntervalInPython, eh.TopInterval), {}
    for kind in kinds:
        policy = kind(["F", "M"], n_features=1, exploration="none", seed=1)
        policy.absorb([0] * 9 + [1] * 16, np.ones((25, 1)), [1.0] * 9 + [1.4] * 16)
        at[kind] = [policy.propensities(np.ones((2, 1)), round=t).tolist() for t in (1, 10**6)]
        assert policy.round == 0
    assert at[TopIntervalInPython] == at[eh.TopInterval] == [[0.0, 1.0], [1.0, 0.0]]
