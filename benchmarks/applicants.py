"""Groups by probability, and a slate of people who come once, on real applications. From the root:

    python -m benchmarks.applicants [--replications 40] [--only NAME] [--write]

Applicants and their files are rows of the data set `mortgage`. What an application is worth is 100
times the chance at which a white applicant with the same file was approved. An analyst rates the
one that is chosen, with noise, and with a bias against some that we add, so that it is known.

First, six applicants a round, of whom only the district is known and not if they belong to a
minority. The districts are made up: each has a share of the minority, by which it is drawn whether
an applicant belongs to it, and then a real application of such a person. So the shares are
calibrated probabilities. Then four applicants a round, one of each sex and race.
`--write` puts the tables into RESULTS.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

import evenhand as eh
from benchmarks.mortgages import Mortgages, mortgages
from benchmarks.sections import put

ROUNDS, LEVEL, NOISE = 2000, 0.9, 10.0
NAMES = ["intercept", "obrat", "loanprc", "unem"]
BIAS = np.array([-15.0, -5.0, 0.0, 0.0])  # of the rating of a minority's application
WOMEN = np.array([-5.0, 0.0, 0.0, 0.0])  # what the sex adds, on a slate
REGIONS = {  # the shares of the minority in districts, as they are and as they are told
    "districts of 10, 30, 70 and 90 %": ([0.1, 0.3, 0.7, 0.9], [0.1, 0.3, 0.7, 0.9]),
    "districts of 30, 45, 55 and 70 %": ([0.3, 0.45, 0.55, 0.7], [0.3, 0.45, 0.55, 0.7]),
    "10 to 90 % told, 25 to 75 % true": ([0.25, 0.4, 0.6, 0.75], [0.1, 0.3, 0.7, 0.9]),
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.applicants", description=__doc__)
    parser.add_argument("--replications", type=int, default=40)
    parser.add_argument("--only", choices=PARTS, help="a single table")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    options = parser.parse_args(arguments)
    for name in [options.only] if options.only else PARTS:
        title, words, table = PARTS[name]
        made = (
            f"{date.today()}, by `python -m benchmarks.applicants --replications "
            f"{options.replications} --write`: {ROUNDS:,} rounds. "
        )
        lines = [f"## {title}", "", made + words, ""]
        for line in table(options.replications):
            lines.append(line)
            print(line, flush=True)
        if options.write:
            put(name, "\n".join(lines))


def districts_table(number: int) -> Iterator[str]:
    """Regret, share and bias with probabilities, the likelier group, and the group itself."""
    yield "| region | policy is told | regret | share | of the best | bias | ratio | coverage |"
    yield "|---|---|---|---|---|---|---|---|"
    data = mortgages()
    for region, (true, told) in REGIONS.items():
        for policy in ("the group", "probabilities", "the likelier group", "TopInterval"):
            runs = [districts_run(data, true, told, policy, seed) for seed in range(number)]
            yield f"| {region} | {policy} | {' | '.join(_cells(runs))} |"


def districts_run(
    data: Mortgages, true: list[float], told: list[float], kind: str, seed: int
) -> NDArray[np.float64]:
    """Sums of regret and of minority applicants, chosen and best, and what `_bias` says of it."""
    generator = np.random.default_rng(seed)
    groups = eh.Groups.per_round(6, {"race": ["minority", "white"]})
    policy = _policy(kind, groups, "white", seed)
    worth = 100.0 * data.files @ data.fair
    rows = np.flatnonzero(~data.white), np.flatnonzero(data.white)
    regret = taken = best = 0.0
    for _ in range(ROUNDS):
        district = generator.integers(len(true), size=6)
        minority = generator.random(6) < np.array(true)[district]
        people = np.where(minority, generator.choice(rows[0], 6), generator.choice(rows[1], 6))
        chance = np.array(told)[district]
        if kind == "the group":
            chance = minority.astype(float)
        elif kind == "the likelier group":
            chance = (chance > 0.5).astype(float)
        shares = np.column_stack([chance, 1.0 - chance])
        decision = policy.select(data.files[people], groups=shares)
        chosen = people[decision.arm]
        bias = BIAS @ data.files[chosen] * minority[decision.arm]
        policy.update(decision, worth[chosen] + bias + NOISE * generator.normal())
        regret += worth[people].max() - worth[chosen]
        taken += minority[decision.arm]
        best += minority[worth[people].argmax()]
    return np.array([regret, taken, best, *_bias(policy, "race: minority")])


def slate_table(number: int) -> Iterator[str]:
    """Regret, the share of the intersection with the largest bias, and that bias."""
    yield "| policy | regret | share | of the best | bias | ratio | coverage |"
    yield "|---|---|---|---|---|---|---|"
    data = mortgages()
    for kind in ("TopInterval", 'PooledGroupFair, `arms="once"`', "PooledGroupFair"):
        runs = [slate_run(data, kind, seed) for seed in range(number)]
        yield f"| {kind} | {' | '.join(_cells(runs))} |"


def slate_run(data: Mortgages, kind: str, seed: int) -> NDArray[np.float64]:
    """The same, of minority women."""
    generator = np.random.default_rng(seed)
    groups = eh.Groups.of_attributes(
        {"race": ["minority", "minority", "white", "white"], "sex": ["F", "M", "F", "M"]}
    )
    policy = _policy(kind, groups, "white & M", seed)
    worth = 100.0 * data.files @ data.fair
    seats = [
        np.flatnonzero((data.white == white) & (data.male == male))
        for white in (False, True)
        for male in (0.0, 1.0)
    ]
    regret = taken = best = 0.0
    for _ in range(ROUNDS):
        people = np.array([generator.choice(rows) for rows in seats])
        decision = policy.select(data.files[people])
        chosen = people[decision.arm]
        bias = (BIAS * ~data.white[chosen] + WOMEN * (1.0 - data.male[chosen])) @ data.files[chosen]
        policy.update(decision, worth[chosen] + bias + NOISE * generator.normal())
        regret += worth[people].max() - worth[chosen]
        taken += decision.arm == 0
        best += worth[people].argmax() == 0
    return np.array([regret, taken, best, *_bias(policy, "minority & F")])


def _policy(kind: str, groups: eh.Groups, reference: str, seed: int) -> eh.Policy:
    if kind == "TopInterval":
        return eh.TopInterval(groups, len(NAMES), exploration="none", seed=seed)
    arms: Any = "recurring" if kind == "PooledGroupFair" else "once"
    return eh.PooledGroupFair(groups, len(NAMES), reference=reference, arms=arms, seed=seed)


def _bias(policy: eh.Policy, group: str) -> tuple[float, float, float]:
    """At the average file: the estimate, over the truth, and if the interval holds the truth."""
    if not isinstance(policy, eh.PooledGroupFair):
        return np.nan, np.nan, np.nan
    frame = policy.bias(level=LEVEL, feature_names=NAMES).to_frame()
    row = frame[(frame["group"] == group) & (frame["feature"] == "intercept")].iloc[0]
    truth = BIAS[0] + (WOMEN[0] if group == "minority & F" else 0.0)
    return row["estimate"], row["estimate"] / truth, row["low"] <= truth <= row["high"]


def _cells(runs: list[NDArray[np.float64]]) -> list[str]:
    regret, share, best, bias, ratio, held = np.mean(runs, axis=0)
    error = np.std([run[0] for run in runs], ddof=1) / np.sqrt(len(runs)) / ROUNDS
    known = [f"{bias:.1f}", f"{ratio:.2f}", f"{held:.0%}"] if np.isfinite(bias) else [""] * 3
    shares = [f"{share / ROUNDS:.1%}", f"{best / ROUNDS:.1%}"]
    return [f"{regret / ROUNDS:.3f} ± {error:.3f}", *shares, *known]


PARTS: dict[str, tuple[str, str, Callable[[int], Iterator[str]]]] = {
    "districts": (
        "Probabilities of membership on mortgage applications",
        f"Regret in points a round with its standard error, the minority's share of the loans and "
        f"of the best applications, and the bias of its ratings at the average file ({BIAS[0]:g} "
        "in truth): the mean estimate, its ratio to the truth, and how often the "
        f"{LEVEL:.0%} interval contains the truth.",
        districts_table,
    ),
    "loan slate": (
        "A slate of loan applicants who come once",
        "The same where every round has an applicant of each race and sex. Shares and bias are "
        f"those of minority women ({BIAS[0] + WOMEN[0]:g} in truth).",
        slate_table,
    ),
}


if __name__ == "__main__":
    main()
