"""What long commands share: a bar on the error stream, and a word about extras."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec


def needs(command: str, modules: Sequence[str]) -> None:
    """Say what to install, in place of an import error halfway."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise ValueError(
            f"`evenhand {command}` needs {', '.join(missing)}: pip install 'evenhand[all]'"
        )


@contextmanager
def progress(total: int) -> Iterator[Callable[[str, int], None]]:
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


@contextmanager
def steps() -> Iterator[tuple[Callable[[str], None], Callable[[float], None]]]:
    """A bar for steps of unknown length: what is being done, and the percentage where it is known.

    Two functions come with it: one that is told when a step begins, and one how far it is.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(bar_width=30),
        TextColumn("{task.fields[part]:>4}", style="progress.percentage"),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, part="")

        def begin(what: str) -> None:
            bar.update(task, description=what, total=None, completed=0, part="")

        def reach(percent: float) -> None:
            bar.update(task, total=100, completed=percent, part=f"{percent:.0f}%")

        yield begin, reach
