"""Measure everything, print it, and write it to RESULTS.md. From the project's root:

python -m benchmarks [--quick] [--without-others] [--out FILE]
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import evenhand as eh
from benchmarks import live, others, report, simulated
from benchmarks.peers.harness import yardstick
from evenhand.simulation.run import available_cores

RESULTS = Path(__file__).parent / "RESULTS.md"
CELLS = [(n, d) for n in simulated.ARMS for d in simulated.FEATURES]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="coarse, and nothing is written")
    parser.add_argument("--without-others", action="store_true", help="leave other libraries out")
    parser.add_argument("--out", type=Path, help="where to write the page (RESULTS.md)")
    options = parser.parse_args(arguments)
    results = measure_all(options.quick, options.without_others, progress())
    page = report.page(results)
    print(page)
    out = options.out or (None if options.quick or options.without_others else RESULTS)
    if out is not None:
        out.write_text(page, encoding="utf-8")


def measure_all(quick: bool, without_others: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    """All figures, in the form that `report.page` reads."""
    facts = machine()  # before: the load that others make, not ours
    tell("compiling")
    simulated.compile_all()
    seconds, repeats = (0.01, 3) if quick else (0.1, 5)
    policies = simulated.policies()
    cells = [(10, 2), (10, 5), (1000, 5)] if quick else CELLS
    replications: list[dict[str, Any]] = []
    ages: list[dict[str, Any]] = []
    for n, d in cells:
        for name, kind in policies.items():
            tell(f"n = {n}, d = {d}: {name}")
            key = {"policy": name, "n": n, "d": d}
            replications.append({**key, **simulated.replication(kind, n, d, seconds, repeats)})
            ages += measure_ages(kind, key, 0.4 * seconds, repeats)
    tell("a long run, and settings")
    until = 100_000 if quick else 1_000_000
    long = list(simulated.long_run(0.4 * seconds, 2 * repeats, until))
    settings = list(live.settings(0.4 * seconds, repeats))
    through = simulated.through_simulate(eh.GroupFairTopInterval, 10, 2, repeats)
    beside = []
    if not without_others:
        tell("other libraries (on the first run they are installed: minutes)")
        beside = list(others.measure_all(quick, tell))
    return {
        "date": date.today().isoformat(),
        "command": "make bench" if not quick else "python -m benchmarks --quick",
        "machine": facts,
        "simulated": replications,
        "ages": ages,
        "long": long,
        "settings": settings,
        "through_simulate": through,
        "others": beside,
    }


def measure_ages(
    kind: type[eh.Policy], key: dict[str, Any], seconds: float, repeats: int
) -> list[dict[str, Any]]:
    """Simulated and live rounds of one policy, early and late."""
    life = simulated.Life(kind, key["n"], key["d"])
    rows = []
    for name, t in (("early", simulated.EARLY), ("late", simulated.LATE)):
        life.age(t)
        for what, measured in (
            ("simulated", life.simulated(seconds, repeats)),
            ("live", live.live(life, seconds, repeats)),
        ):
            rows.append({**key, "kind": what, "t": name, **measured})
    return rows


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
