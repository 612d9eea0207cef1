"""`evenhand paper`: the paper's sweeps and a report."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from evenhand.cli.progress import needs, progress

NEEDED = ("rich", "altair", "vl_convert", "pyarrow")  # they are extras


def add(commands: Any) -> None:
    """Declare the command."""
    paper = commands.add_parser(
        "paper",
        help="run the paper's synthetic sweeps and write a report",
        description="Run the paper's synthetic sweeps, draw every figure beside the published "
        "curves and check the paper's claims. Finished parts are kept: run it again to go on.",
    )
    paper.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="NAME",
        help="only this one; may be repeated",
    )
    paper.add_argument(
        "--seeds", type=int, metavar="N", help="replications per point (the paper has 80)"
    )
    paper.add_argument("--seed", type=int, metavar="S", help="of all random numbers (default 1)")
    paper.add_argument(
        "--out", type=Path, default=Path("paper-report"), metavar="DIR", help="default paper-report"
    )
    paper.add_argument(
        "--conventions",
        choices=["AUTHORS_CODE", "PAPER", "both"],
        default="both",
        help="which reading of the paper (default both)",
    )
    paper.add_argument("--workers", type=int, metavar="N", help="threads (default: all cores)")
    paper.add_argument("--dask", metavar="ADDRESS", help="run on the cluster of this scheduler")
    paper.set_defaults(command=_paper)


def _paper(options: argparse.Namespace) -> int:
    from evenhand import _checks

    if options.seeds is not None:
        _checks.whole("--seeds", options.seeds)
    if options.seed is not None:
        _checks.whole("--seed", options.seed, least=0)
    if options.workers is not None:
        _checks.whole("--workers", options.workers)
    needs("paper", NEEDED)
    from evenhand.conventions import BY_NAME
    from evenhand.experiments.paper_run import chosen_sweeps, run_paper

    sweeps = chosen_sweeps(options.sweep, options.seeds, options.seed)
    both = options.conventions == "both"
    readings = [
        BY_NAME[name] for name in ("AUTHORS_CODE", "PAPER") if both or name == options.conventions
    ]
    total = sum(
        sweep.rounds(reading)
        for sweep in sweeps
        for reading in readings
        if reading.name in sweep.conventions
    )
    with progress(total) as tell:
        done = run_paper(sweeps, options.out, readings, options.workers, options.dask, tell)
    for name, seconds in done.seconds.items():
        sys.stdout.write(f"{name}: {seconds:.1f} s\n")
    sys.stdout.write(f"{done.rounds:,} rounds; open {done.report}\n")
    return 0
