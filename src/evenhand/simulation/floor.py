"""The identification floor, measured: the regret that even perfect knowledge of feedback leaves.

A decision maker is given every arm's observed coefficients, theta_i = beta_i + psi_g(i), and
assumes that the true averages of the groups are equal, as it must to learn from biased feedback
alone. It chooses the arm with the highest (theta_i - average of its group + average of the
reference group) . x. The bias cancels. What is left is the difference of the groups' true averages,
which it mistakes for bias: zero if they are exactly equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._compile import compiled, for_sources
from evenhand._compile.generics import telling
from evenhand.errors import InputError
from evenhand.groups import Groups
from evenhand.simulation._compiled_rounds import N_TOTALS, Run, note
from evenhand.simulation._replications import Part, Runs, streams_of
from evenhand.simulation._simulate import named_worlds
from evenhand.simulation.results import Simulation
from evenhand.worlds._instances import begin
from evenhand.worlds.base import World, draw_noise, draw_round, receive, world_sources

FLOOR = "floor"


def simulate_floor(
    worlds: World | Mapping[str, World],
    horizon: int,
    replications: int = 80,
    seed: int = 0,
    reference: object = None,
) -> Simulation:
    """Play the decision maker that knows all but the bias, in the rounds that `simulate` plays.

    With the same seed its runs meet the same worlds, contexts and noise as those of any policy, so
    they can be shown next to these in a table. Ties go to the first arm.

    Args:
        worlds: a world, or a mapping from names to worlds. They are linear: their instances have
            `coefficients` and `bias`, as those of SyntheticWorld and LinearWorld.
        horizon: the number of rounds.
        replications: the number of replications.
        seed: the seed of all random numbers.
        reference: the group that the others are corrected to. The default is the last one, which
            has no bias in a SyntheticWorld.

    Example:
        >>> import evenhand as eh
        >>> worlds = {"drawn": eh.SyntheticWorld(), "equal": eh.SyntheticWorld(averages="equal")}
        >>> runs = eh.simulate_floor(worlds, horizon=500, replications=40, seed=1).runs
        >>> runs.groupby("world")["true_regret"].mean().round(2).to_dict()
        {'drawn': 0.06, 'equal': 0.0}
    """
    places = named_worlds(worlds)
    rounds = _checks.whole("horizon", horizon)
    number = _checks.whole("replications", replications)
    seed = _checks.whole("seed", seed, least=0, most=_checks.LARGEST_SEED)
    parts = []
    for name, world in places.items():
        group = len(world.groups) - 1 if reference is None else world.groups.index(reference)
        runs = Runs(
            np.zeros((number, N_TOTALS)),
            np.zeros((number, world.n_arms), dtype=np.int64),
            np.empty((0, 5)),
        )
        for row in range(number):
            out = Run(runs.totals[row], runs.pulls[row], runs.trace)
            _play(world, group, rounds, streams_of(seed, row)[0], out)
        parts.append(Part(FLOOR, name, range(number), runs))
    return Simulation(rounds, parts, {name: world.groups for name, world in places.items()})


def corrected(observed: NDArray[np.float64], groups: Groups, reference: int) -> NDArray[np.float64]:
    """Observed coefficients, with the average of the reference in place of each group's own.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> from evenhand.simulation.floor import corrected
        >>> groups = eh.Groups(["F", "F", "M", "M"])
        >>> corrected(np.array([[1.0], [3.0], [7.0], [9.0]]), groups, reference=1).tolist()
        [[7.0], [9.0], [7.0], [9.0]]
    """
    averages = np.array([observed[groups.of == g].mean(axis=0) for g in range(len(groups))])
    moved: NDArray[np.float64] = observed + (averages[reference] - averages)[groups.of]
    return moved


def _play(
    world: World, reference: int, horizon: int, stream: np.random.SeedSequence, out: Run
) -> None:
    generator = np.random.default_rng(stream)
    instance: Any = begin(world, generator)
    if not {"coefficients", "bias"} <= set(instance._fields):
        raise InputError(
            f"worlds has a {type(world).__name__}, whose true coefficients are not known; allowed "
            "are worlds whose instances have coefficients and bias, such as SyntheticWorld"
        )
    # What feedback would show in the end: theta_i = beta_i + psi_g(i).
    known = corrected(instance.coefficients + instance.bias, world.groups, reference)
    play = for_sources(_rounds, world_sources(type(instance)))
    contexts = np.empty((world.n_arms, world.row_length))
    observed, true = np.empty(world.n_arms), np.empty(world.n_arms)
    with telling(f"the floor in {type(world).__name__}"):
        play(instance, known, generator, horizon, contexts, observed, true, out)


@compiled
def _rounds(instance, known, generator, horizon, contexts, observed, true, out):  # type: ignore[no-untyped-def]
    """Contexts, the best arm by the known coefficients, and its regret."""
    n, d = known.shape
    for t in range(1, horizon + 1):
        draw_round(instance, t, generator, contexts, observed, true)
        # Drawn although the choice needs no reward, so that the generator stays in step with that
        # of any policy.
        noise = draw_noise(instance, t, generator)
        arm, top = 0, -np.inf
        for i in range(n):
            value = 0.0
            for k in range(d):
                value += known[i, k] * contexts[i, k]
            if value > top:
                arm, top = i, value
        reward = receive(instance, t, arm, observed[arm], noise)
        note(out, t - 1, arm, False, reward, observed, true)
