"""How often a policy ever favours a worse candidate. From the project's root:

python -m benchmarks.chaining [--controls] [--runs N] [--horizon T] [--write]

A run counts if in any of its rounds a candidate was more likely than one whose true expected reward
was as high or higher; all propensities of all rounds are compared. delta-fairness allows delta of
the runs, here 10 %. The first table is GroupFairIntervalChaining where its assumptions hold; the
controls are other policies, and worlds in which they do not. `--write` puts it into RESULTS.md.
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

    @property
    def is_ours(self) -> bool:
        """Whether it is the policy that is examined."""
        return getattr(self.policy, "func", self.policy) is Chaining


still = partial(Chaining, exploration="none")
FAIR = (
    Case("as it is, exploring by t^(-1/3)"),
    Case("no exploration", still),
    Case("noise estimated", partial(still, noise="estimate")),
    Case("arms more alike, coefficients in a range of 3", still, {"coefficient_range": 3.0}),
    Case("shared contexts", still, {"contexts": "shared"}),
    Case("constant contexts", still, {"contexts": "constant"}),
    Case(
        "three groups of 2, 3 and 5 arms, the last one right",
        partial(still, reference="group 3"),
        {"group_sizes": (2, 3, 5)},
    ),
    Case('chain="group"', partial(still, chain="group")),
)
CONTROLS = (
    Case("IntervalChaining", partial(eh.IntervalChaining, exploration="none")),
    Case("TopInterval", eh.TopInterval),
    Case("GroupFairTopInterval", eh.GroupFairTopInterval),
    Case("PooledGroupFair", eh.PooledGroupFair),
    Case("averages equal in distribution only", still, {"averages": "drawn"}),
    Case("the sensitive group better by 3", still, {"advantage": 3.0}),
    Case('reference="mean"', partial(still, reference="mean")),
)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaining", description=__doc__)
    parser.add_argument("--controls", action="store_true", help="the table that shows failures")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--horizon", type=int, default=1000)
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    options = parser.parse_args(arguments)
    lines: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    say("| | a worse candidate favoured | within a group | an interval missed |")
    say("| --- | --- | --- | --- |")
    for case in CONTROLS if options.controls else FAIR:
        runs = [watched(case, options.horizon, seed) for seed in range(options.runs)]
        counts = [f"{np.sum(column):,}" for column in zip(*runs, strict=True)]
        if not case.is_ours:
            counts[-1] = "-"
        say(f"| {case.name} | {' | '.join(counts)} |")
    if options.write:
        put(
            "chaining controls" if options.controls else "chaining",
            words(options) + "\n".join(lines),
        )


def words(options: argparse.Namespace) -> str:
    """What stands above a table."""
    runs, horizon, which = options.runs, options.horizon, " --controls" * options.controls
    command = f"python -m benchmarks.chaining{which} --runs {runs} --horizon {horizon} --write"
    made = f"Made on {date.today().isoformat()} by `{command}`"
    if not options.controls:
        return (
            "## How often GroupFairIntervalChaining ever favours a worse candidate\n\n"
            f"{made}. The columns count, of {runs:,} runs of {horizon:,} rounds, those in which a "
            "candidate was ever more likely than one whose true expected reward was as high; those "
            "in which that happened within a group; and those in which the interval of a corrected "
            "value ever missed the true expected reward. delta is 0.1, which allows "
            f"{runs // 10:,} runs. There are ten arms, half of them sensitive, two features, a "
            "bias of 10, and true averages that are exactly equal. "
            'With `chain="group"`, only the second column is promised.\n\n'
        )
    return (
        "## The same for other policies, and where assumptions fail\n\n"
        f"{made}. The last rows are GroupFairIntervalChaining without exploration where one of its "
        "assumptions is false.\n\n"
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


def worse_favoured(chances: NDArray[np.float64], true: NDArray[np.float64]) -> NDArray[np.bool_]:
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
