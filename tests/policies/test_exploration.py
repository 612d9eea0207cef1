"""When to explore: every way to say it, and what a wrong one is told."""

from __future__ import annotations

import numpy as np
import pytest

import evenhand as eh
from evenhand.policies.exploration import probability, schedule

ALLOWED = (
    "; allowed are 'paper' (t^(-1/3)), 'none', a probability between 0 and 1, "
    "or a list or function that gives one for every round"
)


def probabilities(exploration, horizon, rounds):
    plan = schedule(exploration, horizon)
    return [probability(plan, t) for t in rounds]


def test_the_papers_falls_with_the_cube_root():
    rounds = [1, 8, 27, 1000, 10**6]
    expected = [1.0, 1 / 2, 1 / 3, 1 / 10, 1 / 100]
    assert probabilities("paper", None, rounds) == pytest.approx(expected, rel=1e-14)


def test_the_papers_needs_no_horizon_and_does_not_follow_it():
    assert schedule("paper", None)[:2] == schedule("paper", 10)[:2]


def test_none_never_explores():
    assert probabilities("none", 10, [1, 2, 10**9]) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("constant", [0, 0.0, 0.25, 1, 1.0, np.float64(0.25)])
def test_a_constant_is_kept(constant):
    assert probabilities(constant, None, [1, 2, 10**9]) == [constant] * 3


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_a_list_is_read_by_round_and_its_last_entry_held(kind):
    given = kind([1.0, 0.5, 0.125])
    assert probabilities(given, None, [1, 2, 3, 4, 10**9]) == [1.0, 0.5, 0.125, 0.125, 0.125]


def test_a_list_of_zeros_and_ones_is_allowed():
    assert probabilities([1, 0], None, [1, 2, 3]) == [1.0, 0.0, 0.0]


def test_a_function_is_asked_for_rounds_one_to_the_horizon():
    asked = []

    def halve(t):
        asked.append(t)
        return 2.0**-t

    assert probabilities(halve, 4, [1, 2, 3, 4, 5]) == [0.5, 0.25, 0.125, 0.0625, 0.0625]
    assert asked == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("exploration", "shown"),
    [
        ("papr", "'papr'"),
        ("", "''"),
        (-0.1, "-0.1"),
        (1.5, "1.5"),
        (2, "2"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        ([], "'an empty list'"),
        ([0.5, 1.5, 0.5], "1.5"),
        ([0.5, float("nan")], "nan"),
        ([0.5, float("inf")], "inf"),
        (lambda t: 1.0 - t, "-1.0"),
        (lambda t: 2.0 * t, "2.0"),
    ],
)
def test_errors_name_the_value_and_what_is_allowed(exploration, shown):
    with pytest.raises(ValueError) as error:
        schedule(exploration, 10)
    assert str(error.value) == f"exploration is {shown}{ALLOWED}"


def test_a_function_without_a_horizon_is_an_error():
    with pytest.raises(ValueError) as error:
        schedule(lambda t: 1 / t, None)
    assert str(error.value) == (
        "exploration given as a function needs a horizon: give horizon=ROUNDS, "
        "or a list of probabilities whose last one is kept"
    )


def test_a_policy_tells_at_once():
    with pytest.raises(ValueError, match="exploration is 3; allowed are 'paper'"):
        eh.TopInterval(["F", "M"], n_features=1, exploration=3)


def test_decisions_follow_the_schedule():
    """Rounds with probability 1 explore, those with 0 do not, and the propensity mixes the two."""
    policy = eh.TopInterval(
        ["F", "F", "M", "M"], n_features=1, horizon=10, exploration=[1.0, 0.0, 0.5], seed=3
    )
    contexts = np.ones((4, 1))
    policy.absorb(range(4), contexts, rewards=[0.0, 0.0, 0.0, 9.0])
    first, second = policy.select(contexts), policy.select(contexts)
    assert (first.explored, first.propensity) == (True, 0.25)
    assert (second.explored, second.arm, second.propensity) == (False, 3, 1.0)
    # Half of the time at random, half of the time the best one, which is arm 3.
    assert policy.propensities(contexts).tolist() == [0.125, 0.125, 0.125, 0.625]


def test_explored_rounds_are_as_frequent_as_said():
    """10,000 rounds at 0.3; four standard errors, which a right policy leaves in 1 of 16,000."""
    policy = eh.TopInterval(["F", "M"], n_features=1, exploration=0.3, seed=5)
    explored = [policy.select(np.ones((2, 1))).explored for _ in range(10_000)]
    assert abs(np.mean(explored) - 0.3) < 4 * np.sqrt(0.3 * 0.7 / 10_000)
