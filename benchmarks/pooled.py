"""PooledGroupFair in many worlds: regret, shares, coverage and time. From the project's root:

    python -m benchmarks.pooled [--replications 100] [--only NAME] [--write]

Each world is played by GroupFairTopInterval as published and by PooledGroupFair with the last group
as reference, in the same rounds, beside the floor. After its rounds PooledGroupFair is asked for
intervals at new contexts, at a level of 90 %. Times are those of one worker, each policy in turn,
the best of three. `--write` puts the table into RESULTS.md.
"""

from __future__ import annotations

import argparse
import time
from datetime import date
from functools import partial

import numpy as np

import evenhand as eh
from benchmarks.sections import put
from evenhand.simulation._compiled_rounds import run

LEVEL = 0.9
BINARY = {"lowest_coefficient": 0.15, "coefficient_range": 0.35, "bias_mean": 0.1}
ALIKE = {"lowest_coefficient": 0.2, "coefficient_range": 0.25}  # a floor of 0.003
WORLDS = {  # settings of the world, rounds, and the goal for true regret a round
    "defaults": ({}, 1000, 0.13),
    "no bias": ({"bias_mean": 0.0}, 1000, 0.13),
    "2 of 10 sensitive": ({"n_sensitive": 2}, 1000, 0.13),
    "8 of 10 sensitive": ({"n_sensitive": 8}, 1000, 0.13),
    "features on scales 1 and 1000": ({"scales": [1.0, 1000.0]}, 1000, 0.13),
    "T = 100": ({}, 100, 0.55),
    "T = 10,000": ({}, 10_000, 0.08),
    "n = 100": ({"n_arms": 100}, 1000, 0.40),
    "d = 20": ({"n_features": 20}, 1000, 0.50),
    "d = 40": ({"n_features": 40}, 1000, 0.75),
    "spread 6 and 1": ({"spread": [6.0, 1.0], "averages": "equal"}, 1000, 0.065),
    "spread 6 and 1, T = 4,000": ({"spread": [6.0, 1.0], "averages": "equal"}, 4000, 0.02),
    "one outstanding arm": ({"outstanding": 12.0, "averages": "equal"}, 1000, 0.08),
    "one outstanding arm, T = 4,000": ({"outstanding": 12.0, "averages": "equal"}, 4000, 0.02),
    "3 groups": ({"group_sizes": [2, 3, 5]}, 1000, 0.20),
    "5 groups": ({"group_sizes": [2, 3, 4, 5, 6]}, 1000, 0.27),
    "t3 noise": ({"noise_shape": "t3"}, 1000, 0.14),
    "sigma = 5": ({"noise": 5.0}, 1000, 0.21),
    "rewards of 0 and 1": ({"rewards": "binary", "bias_range": 0.05, **BINARY}, 1000, 0.03),
    "rewards of 0 and 1, arms more alike": (
        {"rewards": "binary", "bias_range": 0.05, **BINARY, **ALIKE},
        1000,
        0.03,
    ),
    "shared contexts": ({"contexts": "shared"}, 1000, None),
    "no contexts": ({"contexts": "constant", "n_features": 1}, 1000, None),
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pooled", description=__doc__)
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--only", help="a single world, by its name")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    options = parser.parse_args(arguments)
    names = [options.only] if options.only else list(WORLDS)
    number = options.replications
    lines = [
        "| world | goal | paper's policy | PooledGroupFair | floor | arms | corrected | bias |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in names:
        lines.append(row(name, number))
        print(lines[-1], flush=True)
    lines += ["", *times()]
    print("\n".join(lines[-3:]))
    if options.write:
        put("pooled", words(number) + "\n".join(lines))


def words(replications: int) -> str:
    """What stands above the table."""
    return (
        "## PooledGroupFair in many worlds\n\n"
        f"Made on {date.today().isoformat()} by `python -m benchmarks.pooled --replications "
        f"{replications} --write`. True regret a round with its standard error; in brackets the "
        "largest distance of a group's share from proportional, in points. The paper's policy is "
        "GroupFairTopInterval or, for more than two groups, MultiGroupFairTopInterval. The last "
        f"columns say how often {LEVEL:.0%} intervals held: of arms, of corrected values, and of "
        "the bias at a context.\n\n"
    )


def row(name: str, replications: int) -> str:
    """A row of the table."""
    settings, horizon, goal = WORLDS[name]
    world = eh.SyntheticWorld(**settings)
    pooled = partial(eh.PooledGroupFair, reference=world.groups.names[-1])
    paper = eh.GroupFairTopInterval if len(world.groups) == 2 else eh.MultiGroupFairTopInterval
    played = eh.simulate({"paper": paper, "pooled": pooled}, world, horizon, replications, seed=11)
    floor = eh.simulate_floor(world, horizon, replications, seed=11)
    cells = [regret(played, "paper", world), regret(played, "pooled", world)]
    lowest = floor.runs.true_regret.mean()
    covered = coverage(world, horizon, replications)
    numbers = " | ".join(f"{value:.3f}" for value in covered)
    return f"| {name} | {goal or ''} | {cells[0]} | {cells[1]} | {lowest:.3f} | {numbers} |"


def regret(played: eh.Simulation, policy: str, world: eh.World) -> str:
    """Mean and standard error of true regret, and the distance of shares."""
    values = played.runs[played.runs.policy == policy].true_regret
    shares = played.groups[played.groups.policy == policy].groupby("group").share.mean()
    proportional = world.groups.sizes / world.n_arms
    away = np.abs(shares[list(world.groups.names)].to_numpy() - proportional).max()
    return f"{values.mean():.3f} ({values.sem():.3f}) [{100 * away:.1f}]"


def coverage(world: eh.SyntheticWorld, horizon: int, replications: int) -> np.ndarray:
    """How often intervals hold: for arms, for corrected values, for the bias at a context."""
    m = len(world.groups)
    first = [world.groups.labels.index(group) for group in world.groups.names]
    held = np.zeros((replications, 3))
    fresh = np.random.default_rng(9)
    for replication in range(replications):
        seeds = (77, replication)
        policy = eh.PooledGroupFair(
            world.groups, world.n_features, reference=world.groups.names[-1], seed=replication
        )
        run(policy, world, horizon, np.random.SeedSequence(seeds))
        truth = world.begin(np.random.default_rng(np.random.SeedSequence(seeds)))
        x = fresh.random((world.n_arms, world.n_features)) * np.asarray(world.scales or 1.0)
        if world.contexts == "constant":
            x[:] = 1.0
        worth, bias = (truth.coefficients * x).sum(1), (truth.bias * x).sum(1)
        estimate, width = policy.intervals(x, LEVEL)
        held[replication, 0] = np.mean(np.abs(estimate - worth - bias) <= width)
        estimate, width = policy.corrected_intervals(x, LEVEL)
        held[replication, 1] = np.mean(np.abs(estimate - worth) <= width)
        table, target = (
            policy.bias(level=LEVEL).at(x[0]).iloc[: m - 1],
            truth.bias[first[: m - 1]] @ x[0],
        )
        held[replication, 2] = np.mean((table.low <= target) & (target <= table.high))
    return held.mean(axis=0)


def times() -> list[str]:
    """Processor time a round beside GroupFairTopInterval, and that of live decisions."""
    world = eh.SyntheticWorld()
    lines = []
    for horizon, replications in ((1000, 200), (100_000, 4)):
        best = dict.fromkeys((eh.GroupFairTopInterval, eh.PooledGroupFair), np.inf)
        for _ in range(3):
            for kind in best:
                eh.simulate([kind], world, horizon, 1, workers=1)
                start = time.process_time()
                eh.simulate([kind], world, horizon, replications, seed=3, workers=1)
                spent = (time.process_time() - start) / (horizon * replications) * 1e6
                best[kind] = min(best[kind], spent)
        paper, pooled = best.values()
        lines.append(
            f"- A simulated round at n 10, d 2, T = {horizon:,}: {pooled:.2f} microseconds, "
            f"{pooled / paper:.2f} times GroupFairTopInterval's."
        )
    live = " and ".join(f"{live_round(n):.1f} at n {n}, d 5" for n in (10, 1000))
    return [*lines, f"- Live select + update: {live}, in microseconds."]


def live_round(n: int) -> float:
    """Microseconds of a live select + update at d = 5."""
    generator = np.random.default_rng(1)
    policy = eh.PooledGroupFair(eh.Groups(["F", "M"] * (n // 2), sensitive="F"), 5, seed=1)
    contexts, best = generator.random((64, n, 5)), np.inf
    for _ in range(6):
        start = time.process_time()
        for place in range(1000):
            decision = policy.select(contexts[place % 64])
            policy.update(decision, float(decision.context.sum()))
        best = min(best, (time.process_time() - start) / 1000 * 1e6)
    return best


if __name__ == "__main__":
    main()
