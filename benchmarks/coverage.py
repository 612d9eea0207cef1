"""How often the intervals of an audit hold what was put into the log. From the project's root:

python -m benchmarks.coverage [--repeats N] [--write]

Logs with a known bias vector are made and audited with the settings that a user has who chooses
nothing. A row says how often single intervals held the truth, how often all of a report did at
once, and how many audits of the same logs without any bias found one. Standard errors are those of
the means over logs. `--write` puts the table into RESULTS.md.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd

import evenhand as eh
from benchmarks.sections import put

LEVEL = 0.95
GROUPS = "ABCDEF"


@dataclass(frozen=True)
class Case:
    """A kind of log: its features, groups and rows, and what is unusual about it."""

    name: str
    features: int
    groups: int
    rows: int
    arms: bool = False  # with coefficients of their own, and chosen unequally
    noise: str = "equal"
    persons: int = 0  # with rows in any group, and a noise of their own


CASES = (
    Case("2 features", 2, 2, 400),
    Case("10 features, 3 groups", 10, 3, 1500),
    Case("40 features, 6 groups", 40, 6, 9000),
    Case("unequal arms", 2, 2, 600, arms=True),
    Case("unequal arms, 10 features, 3 groups", 10, 3, 6000, arms=True),
    Case("unequal arms, 40 features, 6 groups", 40, 6, 30_000, arms=True),
    Case("noise that grows with a feature", 5, 3, 1500, noise="unequal"),
    Case("rewards of 0 and 1", 5, 3, 1500, noise="binary"),
    Case("rows of persons, across groups", 5, 3, 1500, persons=200),
    Case("few rows", 10, 3, 150),
)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    options = parser.parse_args(arguments)
    lines: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    say("| log | rows | one interval | all at once | alarms without bias |")
    say("| --- | --- | --- | --- | --- |")
    for number, case in enumerate(CASES):
        measurements = [measured(case, 1000 * number + seed) for seed in range(options.repeats)]
        single, whole, alarm = np.array(measurements).T
        cells = " | ".join(percent(values) for values in (single, whole, alarm))
        say(f"| {case.name} | {case.rows:,} | {cells} |")
    if options.write:
        put("coverage", words(options.repeats) + "\n".join(lines))


def words(repeats: int) -> str:
    """What stands above the table."""
    return (
        "## How often intervals of an audit contain the truth\n\n"
        f"Made on {date.today().isoformat()} by `python -m benchmarks.coverage --repeats {repeats} "
        f"--write`, {repeats} logs a row, in percent with standard errors. The nominal values are "
        "95, at least 95, and at most 5.\n\n"
    )


def percent(values: np.ndarray) -> str:
    """The mean and its error, in percent."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{100 * values.mean():.1f} ± {100 * error:.1f}"


def measured(case: Case, seed: int) -> tuple[float, bool, bool]:
    """Coverage of one log, and whether the same log without bias raises an alarm."""
    rng = np.random.default_rng(case.features * 100 + case.groups)
    shape = (case.groups, case.features + 1)
    bias = rng.normal(size=shape) * (rng.random(shape) < 0.3)
    if case.noise == "binary":
        bias *= 0.05
    bias[-1] = 0.0
    table = audited(case, bias, seed)
    truth = bias[:-1].ravel()
    single = np.mean((table["low"] <= truth) & (truth <= table["high"]))
    whole = (table["simultaneous_low"] <= truth) & (truth <= table["simultaneous_high"])
    plain = audited(case, 0.0 * bias, seed)
    alarm = (plain["simultaneous_low"] > 0.0) | (plain["simultaneous_high"] < 0.0)
    return float(single), bool(whole.all()), bool(alarm.any())


def audited(case: Case, bias: np.ndarray, seed: int) -> pd.DataFrame:
    """The report on a log with this bias, without the rows of the reference."""
    roles = {"cluster": "person"} if case.persons else {}
    last = GROUPS[case.groups - 1]
    report = eh.audit(made(case, bias, seed), reference=last, **roles).bias
    table = report.to_frame()
    return table[table["group"] != last]


def made(case: Case, bias: np.ndarray, seed: int) -> pd.DataFrame:
    """A log: features correlated, groups of unlike size."""
    rng = np.random.default_rng(seed)
    n, d = case.rows, case.features
    sizes = np.arange(1.0, case.groups + 1.0)
    of = rng.choice(case.groups, size=n, p=sizes / sizes.sum())
    x = np.column_stack([np.ones(n), rng.normal(size=(n, d)) + 0.7 * rng.normal(size=(n, 1))])
    log = pd.DataFrame(x[:, 1:], columns=[f"x{k}" for k in range(d)])
    log["group"] = np.array(list(GROUPS))[of]
    vectors = np.full((n, d + 1), 1.0) + bias[of]
    if case.arms:
        arm = rng.choice(3, size=n, p=[0.6, 0.3, 0.1])
        own = np.random.default_rng(d).normal(size=(case.groups, 3, d + 1))
        vectors += (own - own.mean(axis=1, keepdims=True))[of, arm]
        log["arm"] = log["group"] + arm.astype(str)
    noise = rng.normal(size=n)
    mean = np.sum(x * vectors, axis=1)
    if case.noise == "unequal":
        noise *= np.abs(x[:, 1])
    if case.persons:
        log["person"] = rng.integers(case.persons, size=n)
        noise += rng.normal(size=case.persons)[log["person"]]
    log["reward"] = mean + noise
    if case.noise == "binary":
        chance = np.clip(0.5 + np.sum(x[:, 1:], axis=1) * 0.02 + np.sum(x * bias[of], axis=1), 0, 1)
        log["reward"] = (rng.random(n) < chance).astype(int)
    return log


if __name__ == "__main__":
    main()
