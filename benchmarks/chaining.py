"""How often a policy ever favours a worse candidate. From the project's root:

python -m benchmarks.chaining [--runs N] [--horizon T] [--write]

A run counts if in any of its rounds a candidate was more likely than one whose true expected reward
was as high or higher; all propensities of all rounds are compared. delta-fairness allows delta of
the runs, here 10 %. In the first worlds the true averages of groups are exactly equal, as is
assumed; the last rows break the assumptions one by one. `--write` puts the table into RESULTS.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import evenhand as eh
from benchmarks.sections import put

Chaining = eh.GroupFairIntervalChaining
ROUNDING = 1e-9


class Unfair(NamedTuple):
    """What happened in any round of a run."""

    all: bool  # a worse candidate was favoured
    same_group: bool  # over one of the same group
    missed: bool  # an interval did not hold the true expected reward


@dataclass(frozen=True)
class Case:
    """A policy, and what is unlike the paper's world with equal averages."""

    name: str
    policy: Callable[..., eh.Policy] = Chaining
    world: dict[str, object] = field(default_factory=dict)


CASES = (
    Case("GroupFairIntervalChaining"),
    Case("no exploration", partial(Chaining, exploration="none")),
    Case("noise estimated", partial(Chaining, noise="estimate")),
    Case("arms alike", partial(Chaining, exploration="none"), {"coefficient_range": 1.0}),
    Case("shared contexts", partial(Chaining, exploration="none"), {"contexts": "shared"}),
    Case("constant contexts", partial(Chaining, exploration="none"), {"contexts": "constant"}),
    Case(
        "three groups of 2, 3 and 5",
        partial(Chaining, exploration="none", reference="group 3"),
        {"group_sizes": (2, 3, 5)},
    ),
    Case("delta = 0.5", partial(Chaining, exploration="none", delta=0.5)),
    Case('chain="group"', partial(Chaining, chain="group", exploration="none")),
    Case("IntervalChaining", eh.IntervalChaining),
    Case("TopInterval", eh.TopInterval),
    Case("GroupFairTopInterval", eh.GroupFairTopInterval),
    Case("PooledGroupFair", eh.PooledGroupFair),
    Case("averages equal in distribution only", world={"averages": "drawn"}),
    Case('reference="mean"', partial(Chaining, reference="mean")),
)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaining", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--horizon", type=int, default=1000)
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    options = parser.parse_args(arguments)
    lines: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    say("| policy or world | a worse candidate favoured | in the same group | an interval missed |")
    say("| --- | --- | --- | --- |")
    for case in CASES:
        runs = [watched(case, options.horizon, seed) for seed in range(options.runs)]
        counts = [int(np.sum(column)) for column in zip(*runs, strict=True)]
        corrects = "Chaining" in case.name or getattr(case.policy, "func", case.policy) is Chaining
        cells = [str(counts[0]), str(counts[1]), str(counts[2]) if corrects else ""]
        say(f"| {case.name} | {' | '.join(cells)} |")
    if options.write:
        put("chaining", words(options.runs, options.horizon) + "\n".join(lines))


def words(runs: int, horizon: int) -> str:
    """What stands above the table."""
    return (
        "## How often a worse candidate is ever favoured\n\n"
        f"Made on {date.today().isoformat()} by `python -m benchmarks.chaining --runs {runs} "
        f"--horizon {horizon} --write`. Of {runs:,} runs of {horizon:,} rounds, those in which a "
        "candidate was ever more likely than one whose true expected reward was as high; then "
        "those in which that happened within a group, and those in which any interval of a "
        "corrected value ever missed the true expected reward. delta is 0.1, which allows "
        f"{runs // 10:,} runs. Ten arms, half of them sensitive, two features, a bias of 10, and "
        "true averages that are exactly equal, if not said otherwise; rows that name no policy "
        "are of GroupFairIntervalChaining.\n\n"
    )


def watched(case: Case, horizon: int, seed: int) -> Unfair:
    """One run, with all propensities of all rounds."""
    world = eh.SyntheticWorld(**{"averages": "equal", **case.world})  # type: ignore[arg-type]
    generator = np.random.default_rng(seed)
    instance = world.begin(generator)
    policy = case.policy(world.groups, world.n_features, horizon=horizon, seed=seed)
    n = world.n_arms
    chances, true = np.empty((horizon, n)), np.empty((horizon, n))
    off = np.empty((horizon, n))
    for t in range(horizon):
        contexts = contexts_of(world, generator)
        chances[t] = policy.propensities(contexts)
        true[t] = (instance.coefficients * contexts).sum(axis=1)
        decision = policy.select(contexts)
        scores = decision.scores
        middle = scores.estimate + scores.correction
        off[t] = np.abs(middle - true[t]) - (scores.width + scores.correction_width)
        arm = decision.arm
        observed = true[t, arm] + instance.bias[arm] @ contexts[arm]
        policy.update(decision, observed + world.noise * generator.standard_normal())
    of = world.groups.of
    worse = worse_favoured(chances, true)
    return Unfair(
        bool(worse.any()),
        bool((worse & (of[:, None] == of)).any()),
        bool((off > ROUNDING).any()),
    )


def worse_favoured(
    chances: NDArray[np.float64], true: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """By round and pair (i, j): i was more likely than j, though j was at least as good."""
    likelier = chances[:, :, None] > chances[:, None, :] + ROUNDING
    result: NDArray[np.bool_] = likelier & (true[:, :, None] <= true[:, None, :])
    return result


def contexts_of(world: eh.SyntheticWorld, generator: np.random.Generator) -> NDArray[np.float64]:
    """The contexts of a round, as the world says."""
    shape = (world.n_arms, world.n_features)
    if world.contexts == "constant":
        return np.ones(shape)
    if world.contexts == "shared":
        return np.tile(generator.random(world.n_features), (world.n_arms, 1))
    return generator.random(shape)


if __name__ == "__main__":
    main()
