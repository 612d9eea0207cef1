"""Whether the errors of an audit are what they say, where that is hard. From the project's root:

python -m benchmarks.errors [--repeats N] [--kind WORDS] [--keep FILE] [--write]

Logs without any bias are made with time windows and with rows that belong together, and audited
with the settings of a user who names columns and nothing else. Of each kind the table says how
often intervals of 95 % hold the truth (of the bias in a window, of the bias within windows, of the
mean rewards and of the largest difference between them), and how often the test finds a change over
time where there is none, in at most 5 %. Standard errors are those of the means over logs.
`--keep` keeps what was measured in a file: a run that was stopped goes on where it was. `--write`
puts the table into RESULTS.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import evenhand as eh
from benchmarks.coverage import percent
from benchmarks.kept import measured_logs
from benchmarks.sections import put

ROWS, WINDOWS = 600, 6
MEAN = 2.0  # of all rewards
COLUMNS = ("in a window", "within windows", "mean rewards", "their difference", "changes found")


def base(rng: np.random.Generator, share: float = 0.35) -> pd.DataFrame:
    """Two groups, two features, and rewards that depend on the features alone."""
    log = pd.DataFrame(rng.normal(size=(ROWS, 2)), columns=["x0", "x1"])
    log["group"] = np.where(rng.random(ROWS) < share, "F", "M")
    log["timestamp"] = np.arange(ROWS)
    log["reward"] = MEAN + log["x0"] - 0.5 * log["x1"] + rng.normal(size=ROWS)
    return log


def mixed(rng: np.random.Generator) -> pd.DataFrame:
    """The part of a group wanders, so that it has hardly any rows in some windows."""
    log, level = base(rng), np.zeros(ROWS)
    for i in range(1, ROWS):
        level[i] = 0.99 * level[i - 1] + 0.14 * rng.normal()
    part = 1.0 / (1.0 + np.exp(0.5 - 1.2 * level))
    return log.assign(group=np.where(rng.random(ROWS) < part, "F", "M"))


def unequal(rng: np.random.Generator) -> pd.DataFrame:
    log = base(rng)
    spread = np.where(log["group"] == "F", 3.0, 0.5) * (0.2 + np.abs(log["x0"]))
    return log.assign(reward=log["reward"] + spread * rng.normal(size=ROWS))


def persons(
    rng: np.random.Generator, person: np.ndarray, crossing: bool = False, size: float = 1.0
) -> pd.DataFrame:
    """Rows of persons, each with a level of its own, and in one group unless they cross."""
    log, many = base(rng), int(person.max()) + 1
    if not crossing:
        log["group"] = np.where(rng.random(many) < 0.4, "F", "M")[person]
    log["reward"] += size * rng.normal(size=many)[person]
    return log.assign(person=person)


KINDS: dict[str, Callable[[np.random.Generator], pd.DataFrame]] = {
    "normal noise": base,
    "a group of 8 rows in a window": lambda rng: base(rng, 0.08),
    "the mix of groups wanders": mixed,
    "unequal noise": unequal,
    "persons, each in one window": lambda rng: persons(rng, np.arange(ROWS) // 5),
    "persons, each in all windows": lambda rng: persons(rng, rng.integers(60, size=ROWS)),
    "persons in both groups": lambda rng: persons(rng, rng.integers(60, size=ROWS), True),
    "24 persons": lambda rng: persons(rng, rng.integers(24, size=ROWS)),
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.errors", description=__doc__)
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--kind", default="", metavar="WORDS", help="only logs so named")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="of single logs, to go on with")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    options = parser.parse_args(arguments)
    if options.write and options.kind:
        parser.error("--write is for the whole table: leave --kind out")
    lines = [f"| log | {' | '.join(COLUMNS)} |", "| --- " * (len(COLUMNS) + 1) + "|"]
    print("\n".join(lines), flush=True)
    for number, (name, make) in enumerate(KINDS.items()):
        if options.kind not in name:
            continue
        seeds = range(10_000 * number, 10_000 * number + options.repeats)
        rows = measured_logs(name, partial(measured, make), seeds, options.keep)
        cells = [percent(column[~np.isnan(column)]) for column in rows.T]
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    if options.write:
        above = (
            "## Errors of windows and of rows that belong together\n\n"
            f"Made on {date.today().isoformat()} by `python -m benchmarks.errors --repeats "
            f"{options.repeats} --write`: {options.repeats} logs of {ROWS} rows and {WINDOWS} "
            "windows a row, in percent with standard errors. The nominal values are 95 for "
            "intervals, and at most 5 for changes.\n\n"
        )
        put("errors", above + "\n".join(lines))


def measured(make: Callable[[np.random.Generator], pd.DataFrame], seed: int) -> tuple[float, ...]:
    """What each column is of one log; NaN where nothing could be said."""
    log = make(np.random.default_rng(seed))
    roles = {"cluster": "person"} if "person" in log else {}
    audit = eh.audit(log, reference="M", windows=WINDOWS, **roles)
    assert audit.drift is not None and audit.changes is not None
    bias = audit.drift[audit.drift["group"] == "F"].dropna(subset="low")
    inside = np.nan
    if audit.within is not None:
        row = audit.within.by_group.loc["F"]
        inside = float(row["low"] <= 0.0 <= row["high"])
    means = audit.metrics.by_group.loc["mean_reward"]
    apart = audit.metrics.difference().loc["mean_reward"]
    return (
        float(((bias["low"] <= 0.0) & (bias["high"] >= 0.0)).mean()),
        inside,
        float(((means["low"] <= MEAN) & (means["high"] >= MEAN)).mean()),
        float(apart["low"] <= 0.0 <= apart["high"]),
        float(audit.changes["changes"].any()),
    )


if __name__ == "__main__":
    main()
