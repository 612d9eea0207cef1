"""How far a simulated round is from a bare loop that does the same and nothing else.

    python -m benchmarks.limit [--rounds 100000] [--repeats 5] [--write]

The bare loop is GroupFairTopInterval in the paper's world as one would write it down for a single
n and d: inverses updated in place, no singular designs, no scales, no ridge, no choice of anything,
sums in any order. What `evenhand` needs beyond that is what its safety costs. Both run in turn, and
the best of several is taken of each.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numba
import numpy as np
from numpy.typing import NDArray

import evenhand as eh
from benchmarks.sections import put
from evenhand.simulation import _compiled_rounds as loop

CELLS = ((10, 2), (100, 2), (10, 20))
Table = NDArray[np.float64]


@numba.njit(fastmath=True, error_model="numpy", nogil=True, cache=False)
def bare(n, d, rounds, first, generator, beta, psi, arms, groups, totals):  # type: ignore[no-untyped-def]
    """Rounds of one replication. `arms` and `groups` hold an inverse (d, d) and a vector b each."""
    half, quantile, root = n // 2, 4.0, 1.0
    contexts, upper = np.empty((n, d)), np.empty(n)
    inverse, vector = arms
    of_group, of_groups = groups
    for t in range(first, first + rounds):
        best_true = best_observed = -np.inf
        for i in range(n):
            worth = observed = 0.0
            for k in range(d):
                x = generator.random()
                contexts[i, k] = x
                worth += beta[i, k] * x
                observed += (beta[i, k] + psi[i, k]) * x
            upper[i] = observed
            best_true, best_observed = max(best_true, worth), max(best_observed, observed)
        noise = generator.standard_normal()
        arm = -1
        if generator.random() < (t + 1.0) ** (-1.0 / 3.0):
            arm = int(generator.random() * n)
        seen = upper[arm] if arm >= 0 else 0.0
        if arm < 0:
            top = -np.inf
            for i in range(n):
                estimate = squared = 0.0
                for k in range(d):
                    estimate += vector[i, k] * contexts[i, k]
                    part = 0.0
                    for j in range(d):
                        part += inverse[i, k, j] * contexts[i, j]
                    squared += part * contexts[i, k]
                score = estimate + quantile * root * np.sqrt(squared)
                if i < half:
                    for g in range(2):
                        estimate = squared = 0.0
                        for k in range(d):
                            estimate += of_groups[g, k] * contexts[i, k]
                            part = 0.0
                            for j in range(d):
                                part += of_group[g, k, j] * contexts[i, j]
                            squared += part * contexts[i, k]
                        score += (2 * g - 1) * estimate + quantile * root * np.sqrt(squared)
                if score > top:
                    top, arm = score, i
            seen = upper[arm]
        reward, worth = seen + noise, 0.0
        for k in range(d):
            worth += beta[arm, k] * contexts[arm, k]
        totals[0] += best_observed - reward
        totals[1] += best_true - worth
        _learn(inverse[arm], vector[arm], contexts[arm], reward)
        g = 0 if arm < half else 1
        _learn(of_group[g], of_groups[g], contexts[arm], reward)


@numba.njit(fastmath=True, error_model="numpy", nogil=True, cache=False)
def _learn(inverse, vector, x, y):  # type: ignore[no-untyped-def]
    """Sherman and Morrison's update."""
    d = x.size
    px, spread, left = np.empty(d), 1.0, y
    for k in range(d):
        part = 0.0
        for j in range(d):
            part += inverse[k, j] * x[j]
        px[k] = part
        spread += part * x[k]
        left -= vector[k] * x[k]
    for k in range(d):
        scaled = px[k] / spread
        vector[k] += scaled * left
        for j in range(d):
            inverse[k, j] -= scaled * px[j]


def bare_replication(n: int, d: int, rounds: int, seed: int) -> None:
    """A replication of the bare loop, with all that it needs."""
    generator = np.random.default_rng(seed)
    psi = np.zeros((n, d))
    psi[: n // 2] = -(9.5 + generator.random(d))
    beta = 30.0 + 10.0 * generator.random((n, d))
    arms = np.tile(1e6 * np.eye(d), (n, 1, 1)), np.zeros((n, d))
    groups = np.tile(1e6 * np.eye(d), (2, 1, 1)), np.zeros((2, d))
    bare(n, d, rounds, 1, generator, beta, psi, arms, groups, np.zeros(2))


def ours(n: int, d: int, rounds: int, seed: int) -> None:
    world = eh.SyntheticWorld(n_arms=n, n_features=d, n_sensitive=n // 2)
    policy = eh.GroupFairTopInterval(world.groups, d, horizon=rounds, seed=seed)
    loop.run(policy, world, rounds, np.random.SeedSequence(seed))


def best_of(repeats: int, *tasks: Callable[[], None]) -> list[float]:
    """The best of several runs of each task, in turn."""
    seconds = [np.inf] * len(tasks)
    for _ in range(repeats):
        for at, task in enumerate(tasks):
            begin = time.perf_counter()
            task()
            seconds[at] = min(seconds[at], time.perf_counter() - begin)
    return seconds


def long(n: int, d: int, rounds: int, repeats: int) -> tuple[float, float]:
    """Microseconds per round of one long replication: the bare loop, and ours."""
    for play in (bare_replication, ours):
        play(n, d, 10, 1)  # compiled off the clock
    seconds = best_of(
        repeats, lambda: bare_replication(n, d, rounds, 1), lambda: ours(n, d, rounds, 1)
    )
    return 1e6 * seconds[0] / rounds, 1e6 * seconds[1] / rounds


def many(n: int, d: int, rounds: int, replications: int, repeats: int) -> tuple[float, float]:
    """The same of many short replications, ours through `eh.simulate` with one worker."""
    world = eh.SyntheticWorld(n_arms=n, n_features=d, n_sensitive=n // 2)

    def by_hand() -> None:
        for seed in range(replications):
            bare_replication(n, d, rounds, seed)

    def simulated() -> None:
        eh.simulate([eh.GroupFairTopInterval], world, rounds, replications, seed=1, workers=1)

    seconds = best_of(repeats, by_hand, simulated)
    return 1e6 * seconds[0] / rounds / replications, 1e6 * seconds[1] / rounds / replications


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limit", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100_000, help="of the long replication")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    options = parser.parse_args(arguments)
    rows = [
        (f"n = {n}, d = {d}, T = {options.rounds:,}", *long(n, d, options.rounds, options.repeats))
        for n, d in CELLS
    ]
    short = many(10, 2, 1_000, 1_000, options.repeats)
    rows.append(("n = 10, d = 2, 1,000 replications of T = 1,000 by `eh.simulate`", *short))
    lines = ["| | bare loop | evenhand | ratio |", "|---|---|---|---|"]
    lines += [f"| {what} | {a:.2f} | {b:.2f} | {b / a:.2f} |" for what, a, b in rows]
    text = "\n".join(
        [
            "## Beside a bare loop",
            "",
            "Microseconds per simulated round of GroupFairTopInterval on one core, beside a loop "
            "written for one n and d that does the same without any checks, in the same run, best "
            f"of {options.repeats}. Written by `python -m benchmarks.limit --write`.",
            "",
            *lines,
        ]
    )
    print(text)
    if options.write:
        put("limit", text)


if __name__ == "__main__":
    main()
