"""The command line. Bad input ends with exit code 2 and one line that says what to do."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from evenhand import __version__

BAD_INPUT, INTERRUPTED = 2, 130
NEEDED = ("rich", "altair", "vl_convert", "pyarrow")  # by `paper`; they are extras


class _Parser(argparse.ArgumentParser):
    """One line for an error, without the usage before it."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message}; see {self.prog} --help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    try:
        options = _parser().parse_args(arguments)
        command: Callable[[argparse.Namespace], int] = options.command
        return command(options)
    except (ValueError, OSError, ImportError) as error:
        sys.stderr.write(f"evenhand: {_one_line(error)}\n")
        return BAD_INPUT
    except KeyboardInterrupt:
        sys.stderr.write("\nevenhand: stopped; run the same command again to go on from here\n")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="evenhand", description="Even-handed decisions from biased feedback.")
    parser.add_argument("--version", action="version", version=f"evenhand {__version__}")
    commands = parser.add_subparsers(dest="name", required=True, metavar="COMMAND")
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
    return parser


def _sweep_names() -> list[str]:
    """From the files' names: reading them would load half of the package for --help."""
    folder = Path(__file__).parent / "experiments" / "paper"
    return sorted(path.stem for path in folder.glob("*.toml"))


def _paper(options: argparse.Namespace) -> int:
    from evenhand import _checks

    if options.seeds is not None:
        _checks.whole("--seeds", options.seeds)
    if options.seed is not None:
        _checks.whole("--seed", options.seed, least=0)
    if options.workers is not None:
        _checks.whole("--workers", options.workers)
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ValueError(
            f"`evenhand paper` needs {', '.join(missing)}: pip install 'evenhand[all]'"
        )
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
    with _progress(total) as tell:
        done = run_paper(sweeps, options.out, readings, options.workers, options.dask, tell)
    for name, seconds in done.seconds.items():
        sys.stdout.write(f"{name}: {seconds:.1f} s\n")
    sys.stdout.write(f"{done.rounds:,} rounds; open {done.report}\n")
    return 0


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str, int], None]]:
    """A bar on the error stream, so that the output stays clean."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)

        def tell(what: str, rounds: int) -> None:
            bar.update(task, advance=rounds, description=what)

        yield tell


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
