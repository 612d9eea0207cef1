"""The identification floor: closed forms, worlds, and what is not identified."""

import numpy as np
import pytest

import evenhand as eh
from evenhand.simulation.floor import corrected
from evenhand.theory import identification_floor, unidentified


class NormalWorld(eh.SyntheticWorld):
    """A synthetic world with normal coefficients, as the theory assumes."""

    def _draw_coefficients(self, generator):
        deviations = np.broadcast_to(self.spread, len(self.groups))[self.groups.of]
        return self.middle + deviations[:, None] * generator.standard_normal(
            (self.n_arms, self.n_features)
        )


def test_what_is_not_identified_by_hand():
    assert unidentified([1, 4], [2.0, 4.0]) == pytest.approx([8**0.5, 0.0])
    assert unidentified([2, 3, 5], 1.0) == pytest.approx([0.7**0.5, (8 / 15) ** 0.5, 0.0])


def test_it_is_the_spread_of_the_differences_of_averages():
    generator = np.random.default_rng(1)
    draws = 3.0 * generator.standard_normal((20_000, 7))
    differences = draws[:, :2].mean(axis=1) - draws[:, 2:].mean(axis=1)
    assert differences.std() == pytest.approx(unidentified([2, 5], 3.0)[0], rel=0.02)


def test_two_single_arms_without_contexts_have_a_closed_form():
    """Both look the same, so the choice is blind: E max - E = tau / sqrt(pi)."""
    floor = identification_floor([1, 1], 2.0, [5.0], contexts=[[1.0]], draws=40_000, rounds=1)
    assert abs(floor.regret - 2.0 / np.pi**0.5) < 4.0 * floor.error < 0.05


def test_no_spread_no_floor_and_scaling():
    assert identification_floor([3, 4], 0.0, [1.0, 2.0], draws=50).regret == 0.0
    plain = identification_floor([3, 4], 1.0, [10.0, 10.0], draws=200, seed=3)
    large = identification_floor([3, 4], 5.0, [50.0, 50.0], draws=200, seed=3)
    assert large.regret == pytest.approx(5.0 * plain.regret)


@pytest.mark.parametrize(
    ("settings", "rest"),
    [
        ({"group_sizes": [5, 5], "spread": 3.0}, {}),
        ({"group_sizes": [2, 3, 5], "spread": [3.0, 2.0, 1.0]}, {}),
        ({"group_sizes": [2, 6], "spread": 3.0, "contexts": "shared"}, {"shared": True}),
        ({"group_sizes": [5, 5], "spread": 3.0, "contexts": "constant", "n_features": 1},
         {"contexts": [[1.0]]}),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_theory_agrees_with_simulated_worlds(settings, rest):
    """Two independent computations; four standard errors fail once in 16,000 seeds."""
    world = NormalWorld(**settings)
    average = [world.middle] * world.n_features
    floor = identification_floor(settings["group_sizes"], settings["spread"], average, **rest)
    runs = eh.simulate_floor(world, horizon=100, replications=2000, seed=8).runs["true_regret"]
    assert abs(runs.mean() - floor.regret) < 4.0 * np.hypot(runs.sem(), floor.error)
    assert floor.regret > 10.0 * floor.error


def test_the_measured_floor_is_an_oracle_by_brute_force():
    from evenhand.simulation._replications import streams_of
    from evenhand.worlds._instances import begin, compiled_draw

    world = eh.SyntheticWorld(group_sizes=[2, 3, 2])
    generator = np.random.default_rng(streams_of(6, 0)[0])
    instance, total, pulls = begin(world, generator), 0.0, np.zeros(7)
    x, observed, true = np.empty((7, 2)), np.empty(7), np.empty(7)
    known = instance.coefficients.copy()  # the bias cancels
    for g in range(3):
        mine, last = world.groups.of == g, instance.coefficients[world.groups.of == 2]
        known[mine] += last.mean(axis=0) - instance.coefficients[mine].mean(axis=0)
    for t in range(1, 201):
        compiled_draw(instance, t, generator, x, observed, true)
        arm = (known * x).sum(axis=1).argmax()
        total += true.max() - true[arm]
        pulls[arm] += 1
    result = eh.simulate_floor(world, horizon=200, replications=1, seed=6)
    assert result.runs["true_regret"][0] == pytest.approx(total / 200)
    assert result.arms["pulls"].tolist() == pulls.tolist()


def test_it_meets_the_worlds_of_the_policies():
    """Perceived regret of a round is what was best less what came, and the best is the same."""
    world = eh.SyntheticWorld(averages="equal", noise=0.0)
    floor = eh.simulate_floor(world, horizon=300, replications=5, seed=2).runs
    policy = eh.simulate([eh.TopInterval], world, horizon=300, replications=5, seed=2).runs
    assert (floor["true_regret"] < 1e-12).all() and (policy["true_regret"] > 0.1).all()
    assert (floor["perceived_regret"] > 0.0).all()


def test_the_reference_decides_what_is_corrected():
    groups = eh.Groups(["F", "M", "M"])
    observed = np.array([[1.0, 0.0], [4.0, 2.0], [6.0, 4.0]])
    assert corrected(observed, groups, 1).tolist() == [[5.0, 3.0], [4.0, 2.0], [6.0, 4.0]]
    assert corrected(observed, groups, 0).tolist() == [[1.0, 0.0], [0.0, -1.0], [2.0, 1.0]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([5], 1.0, [1.0]), "two groups or more"),
        (([5, 0], 1.0, [1.0]), "sizes is 0"),
        (([5, 5], [1.0, -1.0], [1.0]), "spread"),
        (([5, 5], [1.0, 1.0, 1.0], [1.0]), "or 2 of them"),
        (([5, 5], 1.0, [1.0, 2.0], [[1.0]]), "rows of 2 features"),
    ],
)
def test_mistakes_are_told_in_a_line(arguments, words):
    with pytest.raises(eh.InputError) as error:
        identification_floor(*arguments)
    assert words in str(error.value)


def test_worlds_without_known_coefficients_have_no_floor():
    import pandas as pd

    people = pd.DataFrame({"sex": ["F", "M"] * 100, "x": np.arange(200.0), "y": np.arange(200.0)})
    with pytest.warns(UserWarning):
        world = eh.TableWorld(people, group="sex", arms="sex", reward="y", features=["x"])
    with pytest.raises(eh.InputError, match="true coefficients are not known"):
        eh.simulate_floor(world, horizon=10, replications=1)
