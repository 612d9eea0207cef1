"""PooledGroupFair with true rewards that come later: regret, tests and coverage. From the root:

    python -m benchmarks.truth [--replications 100] [--only NAME] [--write]
    python -m benchmarks.truth --general [--replications 100] [--only NAME] [--write]
    python -m benchmarks.truth --units [--replications 100] [--only NAME] [--write]

Each case is a world in which some decisions get a true reward 50 rounds later. It is played with
and without them, in the same rounds. After its rounds the policy is asked for the tests of equal
averages and of arrival, at 5 %, and for the bias of every feature, at a level of 90 %. `--general`
has worlds with several attributes, groups by round and candidates who come once. `--units` compares
units of true rewards that are given with those that are estimated. `--write` puts the table into
RESULTS.md.
"""

from __future__ import annotations

import argparse
from datetime import date
from functools import partial
from typing import Any

import numpy as np

import evenhand as eh
from benchmarks.pooled import BINARY
from benchmarks.sections import put
from evenhand.simulation._compiled_rounds import run
from evenhand.simulation._simulate import simulate

LEVEL, HORIZON = 0.9, 1000
FIVE = {"share": 0.05, "delay": 50}
BY_OUTCOME = {"by_outcome": 0.5, "noise": 0.5, "common": 1.0}
CASES: dict[str, tuple[dict[str, object], dict[str, object], float | None]] = {
    "1 %": ({}, {**FIVE, "share": 0.01}, None),
    "5 %": ({}, FIVE, 0.065),
    "10 %": ({}, {**FIVE, "share": 0.1}, None),
    "5 %, 500 rounds late": ({}, {**FIVE, "delay": 500}, None),
    "better by 3, 1 %": ({"advantage": 3.0}, {**FIVE, "share": 0.01}, None),
    "better by 3, 5 %": ({"advantage": 3.0}, FIVE, 0.11),
    "better by 3, 10 %": ({"advantage": 3.0}, {**FIVE, "share": 0.1}, None),
    "better by 3, 5 %, 500 rounds late": ({"advantage": 3.0}, {**FIVE, "delay": 500}, None),
    "better by 6, 1 %": ({"advantage": 6.0}, {**FIVE, "share": 0.01}, None),
    "better by 6, 5 %": ({"advantage": 6.0}, FIVE, 0.18),
    "better by 6, 10 %": ({"advantage": 6.0}, {**FIVE, "share": 0.1}, None),
    "averages exactly equal, 5 %": ({"averages": "equal"}, FIVE, None),
    "arrival by context": ({}, {**FIVE, "by_context": [2.0, -2.0]}, None),
    "better by 3, arrival by context": ({"advantage": 3.0}, {**FIVE, "by_context": 2.0}, None),
    "3 groups": ({"group_sizes": [2, 3, 5]}, FIVE, None),
    "5 groups": ({"group_sizes": [2, 3, 4, 5, 6]}, FIVE, None),
    "d = 5": ({"n_features": 5}, FIVE, None),
    "n = 100": ({"n_arms": 100}, FIVE, None),
    "t3 noise": ({"noise_shape": "t3"}, FIVE, None),
    "sigma = 5, 1 %": ({"noise": 5.0}, {**FIVE, "share": 0.01, "noise": 5.0}, None),
    "sigma = 5, 5 %": ({"noise": 5.0}, {**FIVE, "noise": 5.0}, None),
    "shared contexts": ({"contexts": "shared"}, FIVE, None),
    "rewards of 0 and 1": (
        {"rewards": "binary", "bias_range": 0.05, **BINARY},
        {**FIVE, "noise": 0.4},
        None,
    ),
    "the noise of feedback is in the truth": ({}, {**FIVE, "common": 1.0, "noise": 0.5}, None),
    "arrival by outcome, seen in feedback": ({}, {**FIVE, **BY_OUTCOME}, None),
    "arrival by outcome, not seen": ({}, {**FIVE, "by_outcome": 0.5}, None),
}

TWO = {"sex": ["F", "M"], "age": ["older", "young"]}
SIX = {"sex": ["F", "M"], "age": ["older", "middle", "young"]}
SHARES = {"sex": {"F": 0.5, "M": 0.5}}
BOTH: dict[str, Any] = {"reference": {"sex": "M", "age": "young"}}
ONCE: dict[str, Any] = {"reference": "M", "arms": "once"}


def _people(**settings: Any) -> eh.World:
    return eh.PeopleWorld(6, SHARES, **settings)


def _slate(**settings: Any) -> eh.World:
    return eh.CrossedWorld(TWO, [1] * 4, bias_mean=[10.0, 5.0], arms="once", **settings)


GENERAL: dict[str, tuple[eh.World, dict[str, Any]]] = {
    "2 x 3": (eh.CrossedWorld(SIX, [2] * 6), BOTH),
    "2 x 3, F better by 3": (eh.CrossedWorld(SIX, [2] * 6, advantage=[3.0, 0.0]), BOTH),
    "2 x 3, F better by 6": (eh.CrossedWorld(SIX, [2] * 6, advantage=[6.0, 0.0]), BOTH),
    "2 x 3, F and older better by 3": (eh.CrossedWorld(SIX, [2] * 6, advantage=3.0), BOTH),
    "2 x 3, F better by 3, no reference": (
        eh.CrossedWorld(SIX, [2] * 6, advantage=[3.0, 0.0]),
        {"reference": "mean"},
    ),
    "2 x 2, interactions of 5, F better by 3": (
        eh.CrossedWorld(TWO, [3, 2, 2, 3], interaction=5.0, advantage=[3.0, 0.0]),
        BOTH,
    ),
    "slate of four, once": (_slate(), {**BOTH, "arms": "once"}),
    "slate of four, once, F better by 3": (
        _slate(advantage=[3.0, 0.0]),
        {**BOTH, "arms": "once"},
    ),
    "6 offices, sex told": (_people(), {"reference": "M"}),
    "6 offices, sex told, F better by 3": (_people(advantage=3.0), {"reference": "M"}),
    "6 offices, probabilities, F better by 3": (
        _people(advantage=3.0, concentration=1.0),
        {"reference": "M"},
    ),
    "6 candidates once": (_people(coefficient_range=0.0), ONCE),
    "6 candidates once, F better by 3": (_people(coefficient_range=0.0, advantage=3.0), ONCE),
}

HEAD = "| true rewards | goal | without | with | share | unequal | arrival | bias |"
UNITS = {"equal": {}, "better by 3": {"advantage": 3.0}, "better by 6": {"advantage": 6.0}}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth", description=__doc__)
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--only", help="a single case, by its name")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    parser.add_argument("--general", action="store_true", help="attributes, groups by round, once")
    parser.add_argument("--units", action="store_true", help="units that are given or estimated")
    options = parser.parse_args(arguments)
    cases: Any = CASES
    name, make, above, head = "truth", row, about, HEAD
    if options.general:
        name, cases, make, above = "general truth", GENERAL, general_row, about_general
    elif options.units:
        name, cases, make, above = "units of truth", UNITS, units_row, about_units
        head = "| the sensitive group is | no true rewards | units given | units estimated |"
    lines = [head, "|---" * (head.count("|") - 1) + "|"]
    print("\n".join(lines))
    for case in [options.only] if options.only else cases:
        lines.append(make(case, options.replications))
        print(lines[-1], flush=True)
    if options.write:
        put(name, above(options.replications) + "\n".join(lines))


def about(replications: int) -> str:
    return (
        "## True rewards that come later\n\n"
        f"{date.today()}, by `python -m benchmarks.truth --replications {replications} --write`: "
        f"PooledGroupFair, T = {HORIZON:,}. True regret a round with its standard error, without "
        "and with the true rewards; the share of the first group with them; how often the tests of "
        "equal averages and of arrival reject at 5 %; and the coverage of 90 % intervals of the "
        "bias of features. In the last two rows good outcomes are known more often than bad ones: "
        "no method that has only these rewards can correct for that.\n\n"
    )


def about_general(replications: int) -> str:
    return (
        "## True rewards with attributes, groups by round and candidates who come once\n\n"
        f"{date.today()}, by `python -m benchmarks.truth --general --replications {replications} "
        f"--write`: as above, with a true reward for 5 % of the decisions, 50 rounds later. The "
        "share is that of the first group where groups are fixed. The bias is that of "
        "intersections or, where groups come with the round, of the first level.\n\n"
    )


def about_units(replications: int) -> str:
    return (
        "## Units of true rewards\n\n"
        f"{date.today()}, by `python -m benchmarks.truth --units --replications {replications} "
        f"--write`: true regret a round with its standard error, T = {HORIZON:,}, with a true "
        "reward for 5 % of the decisions, 50 rounds later; the other group is the reference.\n\n"
    )


def units_row(name: str, replications: int) -> str:
    world = eh.SyntheticWorld(**UNITS[name])
    named = partial(eh.PooledGroupFair, reference="other")
    regrets = simulate({"none": named}, world, HORIZON, replications, seed=5).runs.true_regret
    means = [_mean(regrets)]
    for units in ((1.0, 0.0), "estimate"):
        policies = {"with": partial(named, true_units=units)}
        truth = world.with_true_rewards(**FIVE)  # type: ignore[arg-type]
        regrets = simulate(policies, truth, HORIZON, replications, seed=5).runs.true_regret
        means.append(_mean(regrets))
    return f"| {name} | {' | '.join(means)} |"


def general_row(name: str, replications: int) -> str:
    plain_world, settings = GENERAL[name]
    policies = {"without": partial(eh.PooledGroupFair, **settings)}
    plain = simulate(policies, plain_world, HORIZON, replications, seed=5).runs
    world = plain_world.with_true_rewards(**FIVE)  # type: ignore[arg-type]
    regret, share, unequal, arrival, covered = [], [], [], [], []
    for number in range(replications):
        stream = np.random.SeedSequence(5, spawn_key=(number,))
        of_world, of_policy = stream.spawn(2)
        seed = int(of_policy.generate_state(1, np.uint64)[0])
        policy = eh.PooledGroupFair(world.groups, world.n_features, seed=seed, **settings)
        result = run(policy, world, HORIZON, of_world)
        regret.append(result.totals[1] / HORIZON)
        if not world.groups.changes:
            share.append(result.pulls[world.groups.of == 0].sum() / HORIZON)
        measured = policy.measured()
        unequal.append(measured.p_equal < 0.05)
        arrival.append(measured.p_arrival < 0.05)
        instance: Any = world.begin(np.random.default_rng(of_world))
        table = policy.bias(level=LEVEL).to_frame()
        table = table[table.why == ""].set_index("group")
        if world.groups.changes:
            rows = [("sex: F", instance.effects[0])]
        else:
            of = world.groups.of
            rows = [
                (label, instance.bias[of == g][0])
                for g, label in enumerate(world.groups.names)
                if label in table.index
            ]
        for label, bias in rows:
            mine = table.loc[label]
            covered.append(((mine.low <= bias) & (bias <= mine.high)).mean())
    shares = f"{100 * np.mean(share):.1f} %" if share else ""
    return (
        f"| {name} | | {_mean(plain.true_regret)} | {_mean(regret)} | {shares} "
        f"| {100 * np.mean(unequal):.0f} % | {100 * np.mean(arrival):.0f} % "
        f"| {100 * np.mean(covered):.0f} % |"
    )


def row(name: str, replications: int) -> str:
    settings, truth, goal = CASES[name]
    world = eh.SyntheticWorld(**settings)
    plain = eh.simulate([eh.PooledGroupFair], world, HORIZON, replications, seed=5).runs
    world = world.with_true_rewards(**truth)
    regret, share, unequal, arrival, covered = [], [], [], [], []
    groups = [g for g in range(len(world.groups)) if world.groups.names[g] != "other"]
    for number in range(replications):
        stream = np.random.SeedSequence(5, spawn_key=(number,))
        of_world, of_policy = stream.spawn(2)
        seed = int(of_policy.generate_state(1, np.uint64)[0])
        policy = eh.PooledGroupFair(world.groups, world.n_features, seed=seed)
        result = run(policy, world, HORIZON, of_world)
        regret.append(result.totals[1] / HORIZON)
        share.append(result.pulls[world.groups.of == 0].sum() / HORIZON)
        measured = policy.measured()
        if not measured.usable:
            continue
        bias = world.begin(np.random.default_rng(of_world)).bias  # type: ignore[attr-defined]
        unequal.append(measured.p_equal < 0.05)
        arrival.append(measured.p_arrival < 0.05)
        for g in groups:
            rows, which = np.eye(world.n_features), np.full(world.n_features, g)
            estimate, width = measured.of_contexts(rows, which, LEVEL)
            covered.append((np.abs(estimate - bias[world.groups.of == g][0]) <= width).mean())
    return (
        f"| {name} | {goal or ''} | {_mean(plain.true_regret)} | {_mean(regret)} "
        f"| {100 * np.mean(share):.1f} % | {100 * np.mean(unequal):.0f} % "
        f"| {100 * np.mean(arrival):.0f} % | {100 * np.mean(covered):.0f} % |"
    )


def _mean(values: object) -> str:
    numbers = np.asarray(values, dtype=float)
    return f"{numbers.mean():.3f} ± {numbers.std(ddof=1) / np.sqrt(len(numbers)):.3f}"


if __name__ == "__main__":
    main()
