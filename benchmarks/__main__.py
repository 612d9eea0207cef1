"""Measure everything, print it, and write it to RESULTS.md. From the project's root:

python -m benchmarks [--quick] [--without-others] [--out FILE]
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from importlib.metadata import version
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import evenhand as eh
from benchmarks import live, others, report, simulated
from benchmarks.peers.harness import yardstick
from benchmarks.sections import RESULTS, kept
from evenhand.simulation._workers import available_cores

Row = dict[str, Any]

SECTIONS = ("simulated", "ages", "long", "settings", "through_simulate", "others")


class Plan(NamedTuple):
    """What to measure, and how long."""

    cells: Sequence[tuple[int, int]]  # n and d
    kinds: Mapping[str, type[eh.Policy]]
    settings: Iterable[str]
    seconds: float  # of a repeat
    repeats: int
    last: int  # round of the long run
    libraries: bool
    patience: float  # seconds for measuring again what was disturbed


def full() -> Plan:
    cells = [(n, d) for n in simulated.ARMS for d in simulated.FEATURES]
    return Plan(cells, simulated.policies(), live.SETTINGS, 0.03, 5, 1_000_000, True, 90.0)


def quick() -> Plan:
    cells = [(10, 2), (10, 5), (1000, 5)]
    return Plan(cells, simulated.policies(), live.SETTINGS, 0.01, 3, 100_000, True, 0.0)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="coarse, and nothing is written")
    parser.add_argument("--without-others", action="store_true", help="leave other libraries out")
    parser.add_argument("--out", type=Path, help="where to write the page (RESULTS.md)")
    options = parser.parse_args(arguments)
    plan = quick() if options.quick else full()
    plan = plan._replace(libraries=not options.without_others)
    results = measure_all(plan, options.quick, progress())
    page = report.page(results)
    print(page)
    out = options.out or (None if options.quick or options.without_others else RESULTS)
    if out is not None:
        out.write_text(page + kept(out), encoding="utf-8")


def measure_all(plan: Plan, is_quick: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    """All figures, in the form that `report.page` reads.

    Every task gives rows for sections of the page. Tasks whose rows were disturbed are done again
    after all others, when whatever disturbed them may be over; the better figure is kept.
    """
    facts = machine()  # now: the load that others make, not ours
    tell("compiling")
    simulated.compile_for(plan.kinds.values())
    todo = tasks(plan, is_quick)
    if plan.libraries:
        tell("on the first run, other libraries are installed when it is their turn: minutes")
    rows: dict[str, list[Row]] = {}
    for name, task in todo.items():
        tell(name)
        rows[name] = task()
    quiet = report.quietest(row for name in rows for row in rows[name])
    begin = time.perf_counter()
    for name, task in reversed(todo.items()):  # from the libraries on, which take seconds each
        late = time.perf_counter() - begin > plan.patience
        if not late and any(report.is_disturbed(row, quiet) for row in rows[name]):
            tell(f"{name} (again)")
            rows[name] = better(rows[name], task())
    measured = [row for name in rows for row in rows[name]]
    sections = {
        section: [row for row in measured if row["section"] == section] for section in SECTIONS
    }
    return {
        "date": date.today().isoformat(),
        "command": "python -m benchmarks --quick" if is_quick else "make bench",
        "machine": facts,
        **sections,
    }


def better(old: list[Row], new: list[Row]) -> list[Row]:
    """Row by row, the one with the best repeat; a row without figures gives way to any."""
    return [min(pair, key=lambda row: row.get("best", inf)) for pair in zip(old, new, strict=True)]


def tasks(plan: Plan, is_quick: bool) -> dict[str, Callable[[], list[Row]]]:
    """By name, what is to be measured."""
    made: dict[str, Callable[[], list[Row]]] = {}
    for n, d in plan.cells:
        for policy in plan.kinds:
            made[f"n = {n}, d = {d}: {policy}"] = partial(cell, plan, policy, n, d)
    made["a long run"] = partial(long_run, plan)
    made["settings"] = partial(settings, plan)
    made["evenhand.simulate"] = partial(through_simulate, plan)
    if plan.libraries:
        for name, task in others.tasks(is_quick).items():
            made[name] = partial(library, task)
    return made


def cell(plan: Plan, policy: str, n: int, d: int) -> list[Row]:
    """One policy at one n and d: a replication, and simulated and live rounds early and late."""
    kind, key = plan.kinds[policy], {"policy": policy, "n": n, "d": d}
    figures = simulated.replication(kind, n, d, 2 * plan.seconds, plan.repeats)
    rows = [{"section": "simulated", **key, **figures}]
    life = simulated.Life(kind, n, d)
    for t, age in (("early", simulated.EARLY), ("late", simulated.LATE)):
        life.age(age)
        for what, figures in (
            ("simulated", life.simulated(plan.seconds, plan.repeats)),
            ("live", live.live(life, plan.seconds, plan.repeats)),
        ):
            rows.append({"section": "ages", **key, "kind": what, "t": t, **figures})
    return rows


def long_run(plan: Plan) -> list[Row]:
    measured = simulated.long_run(plan.seconds, 2 * plan.repeats, plan.last)
    return [{"section": "long", **row} for row in measured]


def settings(plan: Plan) -> list[Row]:
    measured = live.settings(plan.settings, plan.seconds, plan.repeats)
    return [{"section": "settings", **row} for row in measured]


def through_simulate(plan: Plan) -> list[Row]:
    figures = simulated.through_simulate(eh.GroupFairTopInterval, 10, 2, plan.repeats)
    return [{"section": "through_simulate", **figures}]


def library(task: Callable[[], Row]) -> list[Row]:
    return [{"section": "others", **task()}]


def machine() -> dict[str, str]:
    """What ran it; nothing that names it."""
    facts = {
        "CPU": cpu(),
        "cores": str(available_cores()),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba", "evenhand")},
        "a yardstick at the start": f"{min(yardstick() for _ in range(20)):.2f} microseconds",
    }
    if hasattr(os, "getloadavg"):
        facts["load at the start"] = f"{os.getloadavg()[0]:.1f}"
    return facts


def cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


def progress() -> Callable[[str], None]:
    """Lines on the error stream, with the seconds since the start."""
    begin = time.perf_counter()

    def tell(text: str) -> None:
        print(f"{time.perf_counter() - begin:6.1f} s  {text}", file=sys.stderr, flush=True)

    return tell


if __name__ == "__main__":
    main()
