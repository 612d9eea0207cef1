"""Several attributes, membership by round and arms that come once. From the project's root:

    python -m benchmarks.crossed [--replications 100] [--only NAME] [--write]

First regret: PooledGroupFair with the attributes beside the same policy with intersections as its
groups, and TopInterval, in the same rounds; the last intersection is the reference. Then how often
the intervals of intersections hold their bias. Then what is learned where only probabilities of
membership are told, which are calibrated: the bias by feature with these probabilities, and with
the likelier level in their place, from the same rewards. `--write` puts the tables into RESULTS.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from typing import Any

import numpy as np

import evenhand as eh
from benchmarks.sections import put
from evenhand.simulation._compiled_rounds import run
from evenhand.simulation._plain_rounds import each_round
from evenhand.simulation._simulate import simulate

LEVEL, HORIZON, SEED = 0.9, 1000, 77
TWO = {"sex": ["F", "M"], "age": ["older", "young"]}
SIX = {"sex": ["F", "M"], "age": ["older", "middle", "young"]}
NINE = {"age": ["older", "middle", "young"], "region": ["N", "E", "S"]}
TWELVE = {"age": ["older", "middle", "young"], "region": ["N", "E", "S", "W"]}
WORLDS: dict[str, tuple[eh.World, str]] = {  # and the goal
    "2 x 3, two arms each": (eh.CrossedWorld(SIX, [2] * 6), "0.28"),
    "2 x 2, 10 arms": (eh.CrossedWorld(TWO, [3, 2, 2, 3]), ""),
    "3 x 4, mostly single arms": (eh.CrossedWorld(TWELVE, [1] * 10 + [2, 2]), "0.42"),
    "2 x 3, interactions of 1": (eh.CrossedWorld(SIX, [2] * 6, interaction=1.0), ""),
    "2 x 3, interactions of 5": (eh.CrossedWorld(SIX, [2] * 6, interaction=5.0), "cells + 5 %"),
    "2 x 3, interactions of 10": (eh.CrossedWorld(SIX, [2] * 6, interaction=10.0), "cells + 5 %"),
    "2 x 2, interactions of 10": (
        eh.CrossedWorld(TWO, [3, 2, 2, 3], interaction=10.0),
        "cells + 5 %",
    ),
}
SHARES = {"sex": {"F": 0.5, "M": 0.5}}
PAIR = {**SHARES, "age": {"older": 0.5, "young": 0.5}}
PEOPLE: dict[str, tuple[eh.World, str]] = {
    "slate of four, once": (
        eh.CrossedWorld(TWO, [1] * 4, bias_mean=[10.0, 5.0], arms="once"),
        "M & young",
    ),
    "6 offices, sex told": (eh.PeopleWorld(6, SHARES), "M"),
    "6 offices, a fifth did not say": (eh.PeopleWorld(6, SHARES, missing=0.2), "M"),
    "6 offices, probabilities": (eh.PeopleWorld(6, SHARES, concentration=1.0), "M"),
    "6 candidates once, sex told": (eh.PeopleWorld(6, SHARES, coefficient_range=0.0), "M"),
    "6 candidates once, probabilities": (
        eh.PeopleWorld(6, SHARES, concentration=1.0, coefficient_range=0.0),
        "M",
    ),
}
CELLS: dict[str, tuple[eh.World, str]] = {  # and whether arms come once
    **{
        f"{name}, interactions of {size:g}": (
            eh.CrossedWorld(of, sizes, interaction=size),
            "recurring",
        )
        for name, of, sizes, interactions in (
            ("2 x 2, 10 arms", TWO, [3, 2, 2, 3], (0.0, 5.0, 10.0)),
            ("2 x 3, two arms each", SIX, [2] * 6, (0.0, 5.0)),
            ("3 x 3, two arms each", NINE, [2] * 9, (0.0, 5.0)),
            ("3 x 4, mostly single arms", TWELVE, [1] * 10 + [2, 2], (0.0, 5.0)),
        )
        for size in interactions
    },
    "2 x 2, single arms": (eh.CrossedWorld(TWO, [1] * 4), "recurring"),
    "3 x 3, single arms": (eh.CrossedWorld(NINE, [1] * 9), "recurring"),
    **{
        f"3 x 3, once, interactions of {size:g}": (
            eh.CrossedWorld(NINE, [1] * 9, interaction=size, arms="once"),
            "once",
        )
        for size in (0.0, 5.0)
    },
    "2 x 2, groups by round": (eh.PeopleWorld(6, PAIR), "recurring"),
    "2 x 2, groups by round, once": (eh.PeopleWorld(6, PAIR, coefficient_range=0.0), "once"),
}


TOP = partial(eh.TopInterval, exploration="none")


class Cells(eh.PooledGroupFair):
    """The same policy, for which every intersection is a group without relatives."""

    def __init__(self, groups: Any, n_features: int, **settings: Any) -> None:
        super().__init__(eh.Groups(groups.labels), n_features, **settings)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crossed", description=__doc__)
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--only", choices=PARTS, help="a single table")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    options = parser.parse_args(arguments)
    for name in [options.only] if options.only else PARTS:
        title, words, table = PARTS[name]
        lines = [f"## {title}", "", _made(name, options.replications) + words, ""]
        for line in table(options.replications):
            lines.append(line)
            print(line, flush=True)
        if options.write:
            put(name, "\n".join(lines))


def _made(name: str, number: int) -> str:
    return (
        f"Made on {date.today().isoformat()} by `python -m benchmarks.crossed --only {name} "
        f"--replications {number} --write`; T = {HORIZON:,}. "
    )


def attributes_table(number: int) -> Iterator[str]:
    """Regret with attributes, and with intersections as groups."""
    yield "| world | goal | attributes | cells as groups | TopInterval, no exploration |"
    yield "|---|---|---|---|---|"
    for name, (world, goal) in WORLDS.items():
        last = world.groups.names[-1]
        policies = {
            "attributes": partial(eh.PooledGroupFair, reference=last),
            "cells": partial(Cells, reference=last),
            "top": TOP,
        }
        yield f"| {name} | {goal} | {' | '.join(_regrets(policies, world, number))} |"


def people_table(number: int) -> Iterator[str]:
    """Regret where candidates come with their groups, or come once."""
    yield "| candidates | arms recur | arms come once | TopInterval, no exploration |"
    yield "|---|---|---|---|"
    for name, (world, reference) in PEOPLE.items():
        policies = {
            "recurring": partial(eh.PooledGroupFair, reference=reference),
            "once": partial(eh.PooledGroupFair, reference=reference, arms="once"),
            "top": TOP,
        }
        yield f"| {name} | {' | '.join(_regrets(policies, world, number))} |"


def cells_table(number: int) -> Iterator[str]:
    """How often intervals of intersections hold their bias, and how wide they are."""
    yield "| world | coverage | half width | mean error |"
    yield "|---|---|---|---|"
    for name, (world, arms) in CELLS.items():
        coverage, width, error = np.array(
            [_of_cells(world, arms, HORIZON, SEED, row) for row in range(number)]
        ).T
        spread = coverage.std() / np.sqrt(number)
        means = f"{coverage.mean():.3f} ({spread:.3f}) | {width.mean():.2f} | {error.mean():.2f}"
        yield f"| {name} | {means} |"


def probabilities_table(number: int) -> Iterator[str]:
    """Coverage and ratio of the bias with probabilities, and with the likelier level."""
    yield "| world | probabilities: coverage | ratio | likelier level: coverage | ratio |"
    yield "|---|---|---|---|---|"
    for concentration in (0.5, 1.0, 4.0):
        for once in (False, True):
            words = "candidates once" if once else "6 offices"
            cells = _coverage(concentration, once, number)
            yield f"| {words}, concentration {concentration:g} | {' | '.join(cells)} |"


PARTS: dict[str, tuple[str, str, Callable[[int], Iterator[str]]]] = {
    "attributes": (
        "Several attributes",
        "True regret a round with its standard error.",
        attributes_table,
    ),
    "people": (
        "Groups by round, and candidates who come once",
        "True regret a round with its standard error.",
        people_table,
    ),
    "cells": (
        "Intervals of intersections",
        f"How often the {100 * LEVEL:g} % interval of the bias of an intersection by feature "
        "contains the truth, with its standard error, the mean half-width, and the mean error of "
        "the estimate; means over intersections in a replication, then over replications.",
        cells_table,
    ),
    "probabilities": (
        "Probabilities of membership",
        f"The bias of F by feature where only calibrated probabilities are known: how often its "
        f"{100 * LEVEL:g} % interval contains the truth, and the mean of estimate over truth; with "
        "the probabilities, and with the likelier level in their place, after the same rewards.",
        probabilities_table,
    ),
}


def _regrets(policies: dict[str, Any], world: eh.World, number: int) -> list[str]:
    runs = simulate(policies, world, HORIZON, number, seed=SEED, workers=1).runs
    regret = runs.groupby("policy", sort=False)["true_regret"]
    errors = regret.std() / np.sqrt(number)
    return [f"{mean:.3f} ({error:.3f})" for mean, error in zip(regret.mean(), errors, strict=True)]


def _of_cells(
    world: eh.World, arms: str, horizon: int, seed: int, row: int
) -> tuple[float, float, float]:
    """Of the bias of intersections in one replication: coverage, half width and error."""
    stream = np.random.SeedSequence(seed, spawn_key=(row,))
    instance: Any = world.begin(np.random.default_rng(stream))
    young: Any = {"sex": "M", "age": "young"}
    reference = young if world.groups.changes else world.groups.names[-1]
    policy = eh.PooledGroupFair(
        world.groups, world.n_features, reference=reference, arms=arms, seed=row
    )
    run(policy, world, horizon, stream)
    if world.groups.changes:  # the effects of F, M, older, young
        pairs = (("F & older", (0, 2)), ("F & young", (0, 3)), ("M & older", (1, 2)))
        truths = {name: instance.effects[list(levels)].sum(axis=0) for name, levels in pairs}
    else:
        names = world.groups.names[:-1]
        truths = {name: instance.bias[world.groups.of == g][0] for g, name in enumerate(names)}
    table = policy.bias(level=LEVEL).to_frame().set_index("group")
    low, high, estimate = (
        np.array([table.loc[name, column] for name in truths], dtype=np.float64)
        for column in ("low", "high", "estimate")
    )
    truth = np.array(list(truths.values()))
    held = (low <= truth) & (truth <= high)
    return held.mean(), (0.5 * (high - low)).mean(), np.abs(estimate - truth).mean()


def _coverage(concentration: float, once: bool, number: int) -> list[str]:
    """Of the bias by feature: with probabilities, and with the likelier level."""
    spread = 0.0 if once else 10.0
    world = eh.PeopleWorld(6, SHARES, concentration=concentration, coefficient_range=spread)
    arms = "once" if once else "recurring"
    held: dict[str, list[bool]] = {"as told": [], "likelier": []}
    ratio: dict[str, list[float]] = {"as told": [], "likelier": []}
    for row in range(number):
        stream = np.random.SeedSequence(SEED, spawn_key=(row,))
        truth = world.begin(np.random.default_rng(stream)).effects[0]
        policy = eh.PooledGroupFair(world.groups, 2, reference="M", arms=arms, seed=row)
        other = policy.clone()
        made, rewards = [], []
        for now in each_round(policy, world, HORIZON, stream):
            made.append((now.decision.arm, now.decision.row))
            rewards.append(now.reward)
        rows = np.array([row for _, row in made])
        rows[:, 2:4] = (rows[:, 2:4] > 0.5).astype(np.float64)
        rows[:, 3] = 1.0 - rows[:, 2]
        other.absorb([arm for arm, _ in made], rows, rewards)
        for name, learner in (("as told", policy), ("likelier", other)):
            frame = learner.bias(level=LEVEL).to_frame()
            mine = frame[frame.group == "sex: F"]
            held[name] += ((mine.low <= truth) & (truth <= mine.high)).tolist()
            ratio[name] += (mine.estimate / truth).tolist()
    return [
        text
        for name in held
        for text in (f"{np.mean(held[name]):.3f}", f"{np.mean(ratio[name]):.3f}")
    ]


if __name__ == "__main__":
    main()
