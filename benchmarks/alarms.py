"""How many audits of logs without any bias find one. From the project's root:

python -m benchmarks.alarms [--repeats N] [--kind WORDS] [--keep FILE] [--write]

Logs of several kinds are made without any bias, written as CSV or Parquet with group labels that an
engine might read as something else, and audited from the file with the settings of a user who
chooses nothing but columns. An alarm is what the summary says is beyond chance, at the average
context or on a feature; each may be at most 5 % of the audits. `--keep` keeps what was measured in
a file: a run that was stopped goes on where it was. `--write` puts the table into RESULTS.md.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import evenhand as eh
from benchmarks.kept import measured_logs
from benchmarks.sections import put
from evenhand.bias._findings import clear_features, clear_totals

ROWS = 600
MANY = 3000  # enough for a straight line to be told from a curve
LABELS = (
    ("True", "False"), ("yes", "no"), ("t", "f"), ("01", "02"), ("1", "1.0"), ("0", "1"),
    ("2024-01-02", "2024-01-03"), ("NULL", "NONE"), ("1e3", "1000"), ("on", "off"),
)  # fmt: skip


def base(rng: np.random.Generator, noise: np.ndarray) -> pd.DataFrame:
    """Two groups of unlike size, two features, and rewards that depend on the features alone."""
    n = len(noise)
    log = pd.DataFrame(rng.normal(size=(n, 2)), columns=["x0", "x1"])
    log["group"] = np.where(rng.random(n) < 0.35, "A", "B")
    log["reward"] = 1.0 + log["x0"] - 0.5 * log["x1"] + noise
    return log


def unequal(rng: np.random.Generator) -> pd.DataFrame:
    log = base(rng, np.zeros(ROWS))
    spread = np.where(log["group"] == "A", 3.0, 0.5) * (0.2 + np.abs(log["x0"]))
    return log.assign(reward=log["reward"] + spread * rng.normal(size=ROWS))


def tiny(rng: np.random.Generator) -> pd.DataFrame:
    log = unequal(rng)
    return log.assign(group=np.where(np.arange(ROWS) < 3, "C", log["group"]))


def shifting(rng: np.random.Generator) -> pd.DataFrame:
    """Rewards fall over time while the part of group A rises."""
    when = rng.random(3 * ROWS)
    log = base(rng, rng.normal(size=3 * ROWS) - 2.0 * when)
    log["group"] = np.where(rng.random(3 * ROWS) < 0.2 + 0.6 * when, "A", "B")
    return log.assign(timestamp=when)


def clusters(rng: np.random.Generator) -> pd.DataFrame:
    person = rng.integers(120, size=ROWS)
    log = base(rng, rng.normal(size=ROWS) + rng.normal(size=120)[person])
    return log.assign(person=person, group=np.where(person < 50, "A", "B"))


def curved(rng: np.random.Generator) -> pd.DataFrame:
    """Chances that are no straight line, and groups that differ in both features."""
    log = base(rng, np.zeros(MANY))
    log[["x0", "x1"]] += np.where(log["group"] == "A", 0.5, 0.0)[:, None]
    chance = 1.0 / (1.0 + np.exp(2.0 - 1.5 * log["x0"] - log["x1"]))
    return log.assign(reward=(rng.random(MANY) < chance).astype(int))


KINDS: dict[str, Callable[[np.random.Generator], pd.DataFrame]] = {
    "normal noise": lambda rng: base(rng, rng.normal(size=ROWS)),
    "rewards of 0 and 1, a flat chance": lambda rng: base(rng, np.zeros(ROWS)).assign(
        reward=rng.integers(2, size=ROWS)
    ),
    "rewards of 0 and 1, logistic, groups shifted": curved,
    "Student's t with 3 degrees": lambda rng: base(rng, rng.standard_t(3, size=ROWS)),
    "lognormal noise": lambda rng: base(rng, rng.lognormal(size=ROWS)),
    "unequal noise": unequal,
    "unequal noise, a third group of 3 rows": tiny,
    "level and mix shift together": shifting,
    "rows of persons": clusters,
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.alarms", description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--kind", default="", metavar="WORDS", help="only logs so named")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="of single logs, to go on with")
    parser.add_argument("--straight", action="store_true", help="without logistic models")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    options = parser.parse_args(arguments)
    if options.write and (options.kind or options.straight):
        parser.error("--write is for the whole table: leave --kind and --straight out")
    lines = ["| log | at the average context | on a feature |", "| --- | --- | --- |"]
    print("\n".join(lines), flush=True)
    for number, (name, make) in enumerate(KINDS.items()):
        if options.kind not in name:
            continue
        chosen = {"logistic": False} if options.straight else {}
        seeds = range(1000 * number, 1000 * number + options.repeats)
        measurements = measured_logs(name, partial(alarms, make, **chosen), seeds, options.keep)
        cells = " | ".join(f"{100 * rate:.1f} %" for rate in measurements.mean(axis=0))
        lines.append(f"| {name} | {cells} |")
        print(lines[-1], flush=True)
    if options.write:
        error = 100 * np.sqrt(0.05 * 0.95 / options.repeats)
        above = (
            "## How many audits of logs without bias find one\n\n"
            f"Made on {date.today().isoformat()} by `python -m benchmarks.alarms --repeats "
            f"{options.repeats} --write`: {options.repeats} logs a row, half of them CSV and half "
            "Parquet, with group labels that an engine might read as something else. At most 5 % "
            f"should, with a standard error of {error:.1f}.\n\n"
        )
        put("alarms", above + "\n".join(lines))


def alarms(
    make: Callable[[np.random.Generator], pd.DataFrame], seed: int, **chosen: bool
) -> tuple[bool, bool]:
    """Whether the audit of one log finds a bias: at the average context, and on a feature."""
    log = make(np.random.default_rng(seed))
    first, second = LABELS[seed // 2 % len(LABELS)]
    log["group"] = log["group"].map({"A": first, "B": second, "C": "third"})
    roles = {"cluster": "person"} if "person" in log else {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / ("log.csv" if seed % 2 else "log.parquet")
        if seed % 2:
            log.to_csv(path, index=False)
        else:
            log.to_parquet(path)
        audit = eh.audit(str(path), group="group", reward="reward", **roles, **chosen)
    report = audit.within if audit.believe == "within windows" else audit.bias
    assert report is not None
    assert set(audit.bias.groups) >= {first, second}, audit.bias.groups
    return bool(clear_totals(report)), bool(clear_features(report))


if __name__ == "__main__":
    main()
