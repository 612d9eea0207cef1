"""Whether the probe helps where contexts do not vary, with several attributes. From the root:

    python -m benchmarks.probe [--replications 200] [--write]

In a world of 2 x 2 intersections, all arms of a round have the same context, and the average of
every intersection is exactly the same. PooledGroupFair plays it with the probe and without, in the
same rounds. `--write` puts the table into RESULTS.md.
"""

from __future__ import annotations

import argparse
from datetime import date

import numpy as np

import evenhand as eh
from benchmarks.crossed import TWO
from benchmarks.sections import put
from evenhand.simulation._compiled_rounds import run
from evenhand.worlds.synthetic import LinearInstance, fill_uniform, world_kernel

SEED = 4242
MEAN = 35.0  # of the true coefficients of every intersection


class SharedInstance(LinearInstance):
    """All arms of a round have the same context; it is 1 if there is a single feature."""


@world_kernel(SharedInstance)
def _draw_round(instance, t, generator, contexts, observed, true):  # type: ignore[no-untyped-def]  # noqa: ARG001
    n, d = instance.coefficients.shape
    fill_uniform(generator, contexts)
    for i in range(n):
        worth = distortion = 0.0
        for k in range(d):
            contexts[i, k] = contexts[0, k] if d > 1 else 1.0
            worth += instance.coefficients[i, k] * contexts[i, k]
            distortion += instance.bias[i, k] * contexts[i, k]
        true[i] = worth
        observed[i] = worth + distortion


class SharedWorld(eh.CrossedWorld):
    """A world of attributes with shared contexts, and averages that are exactly equal."""

    def begin(self, generator: np.random.Generator) -> SharedInstance:
        """Draw the bias, then the coefficients, whose averages are made equal."""
        drawn = super().begin(generator)
        coefficients = drawn.coefficients.copy()
        for group in range(len(self.groups)):
            mine = self.groups.of == group
            coefficients[mine] += MEAN - coefficients[mine].mean(axis=0)
        return SharedInstance(coefficients, drawn.bias, drawn.noise)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.probe", description=__doc__)
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    options = parser.parse_args(arguments)
    lines = [
        "| features | rounds | with the probe | without | difference |",
        "|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for features in (1, 2):
        for horizon in (1000, 10_000):
            lines.append(row(features, horizon, options.replications))
            print(lines[-1], flush=True)
    if options.write:
        put("probe", about(options.replications) + "\n".join(lines))


def about(replications: int) -> str:
    return (
        "## The probe, with attributes and contexts that do not vary\n\n"
        f"{date.today()}, by `python -m benchmarks.probe --replications {replications} --write`: "
        "true regret a round, and the difference in the same rounds with its standard error.\n\n"
    )


def row(features: int, horizon: int, replications: int) -> str:
    world, regret = SharedWorld(TWO, [3, 2, 2, 3], n_features=features), np.zeros((replications, 2))
    for number in range(replications):
        for place, probe in enumerate((True, False)):
            stream = np.random.SeedSequence(SEED, spawn_key=(number,))
            of_world, of_policy = stream.spawn(2)
            seed = int(of_policy.generate_state(1, np.uint64)[0])
            policy = eh.PooledGroupFair(
                world.groups, features, reference=world.groups.names[-1], seed=seed, probe=probe
            )
            regret[number, place] = run(policy, world, horizon, of_world).totals[1] / horizon
    apart = regret[:, 0] - regret[:, 1]
    error = apart.std(ddof=1) / np.sqrt(replications)
    means = " | ".join(f"{mean:.3f}" for mean in regret.mean(axis=0))
    return f"| {features} | {horizon:,} | {means} | {apart.mean():.3f} ({error:.3f}) |"


if __name__ == "__main__":
    main()
