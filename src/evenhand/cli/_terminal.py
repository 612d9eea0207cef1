"""Shared by commands: packages they need, messages, progress, checks of outputs, bugs.

If the error stream is not a terminal (a pipe, CI), plain lines replace the progress bar. An error
that is not the user's is reported as a bug, with its traceback kept in a file.
"""

from __future__ import annotations

import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import evenhand
from evenhand.errors import InputError, MissingExtraError

BAD_INPUT, BUG, INTERRUPTED = 2, 70, 130  # exit codes; 70 is EX_SOFTWARE of sysexits.h

EVERY = 10.0  # seconds between two lines about the same step


def needs(command: str, modules: Sequence[str], extra: str = "all") -> None:
    """Say what to install, rather than fail halfway with an import error."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"`evenhand {command}` needs {', '.join(missing)}: pip install 'evenhand[{extra}]'"
        )


def note(step: str) -> None:
    """Print what is being done, if no bar or spinner can show it."""
    if not sys.stderr.isatty():
        sys.stderr.write(f"{step}\n")
        sys.stderr.flush()


class Lines:
    """Progress as lines: one for every step, and more during a long step."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._what, self._last = "", 0.0

    def __call__(self, step: str, rounds: int) -> None:
        """Note what is being done, and how many more rounds are finished."""
        self._done += rounds
        now = time.monotonic()
        if step != self._what or now - self._last >= EVERY:
            self._what, self._last = step, now
            note(f"{100 * self._done // max(self._total, 1):3d} %  {step}")


@contextmanager
def progress(total: int) -> Iterator[Callable[[str, int], None]]:
    """A progress bar on the error stream, so that the output stays clean; or lines."""
    if not sys.stderr.isatty():
        yield Lines(total)
        return
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

        def tell(step: str, rounds: int) -> None:
            bar.update(task, advance=rounds, description=step)

        yield tell


@contextmanager
def waiting() -> Iterator[Callable[[str], None]]:
    """A spinner that shows what is being done; or a line for each step."""
    if not sys.stderr.isatty():
        yield note
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update


@contextmanager
def steps() -> Iterator[tuple[Callable[[str], None], Callable[[float], None]]]:
    """A bar for steps of unknown length: what is being done, and the percentage if it is known.

    It yields two functions: one to call when a step begins, and one to report its percentage.
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

        def begin(step: str) -> None:
            bar.update(task, description=step, total=None, completed=0, part="")

        def reach(percent: float) -> None:
            bar.update(task, total=100, completed=percent, part=f"{percent:.0f}%")

        yield begin, reach


def check_folder(out: Path, folders: Iterable[str] = (), files: Iterable[str] = ()) -> None:
    """Refuse a folder that cannot be made or written to.

    Args:
        out: the folder, which need not exist.
        folders: the names of folders that will be made in it.
        files: the names of files that will be written in it.
    """
    for folder in (out, *(out / name for name in folders)):
        _check_writable(out, folder)
    for name in files:
        _check_no_folder(out, out / name)


def check_file(out: Path) -> None:
    """Refuse a file that cannot be written."""
    _check_no_folder(out, out)
    _check_writable(out, out.parent)
    if out.exists():
        try:
            out.open("ab").close()
        except OSError as error:
            raise _refusal(out, f"it cannot be written ({error.strerror})") from error


def _check_no_folder(out: Path, path: Path) -> None:
    if path.is_dir():
        raise _refusal(out, f"{str(path)!r} is a folder, and a file would be written there")


def _check_writable(out: Path, folder: Path) -> None:
    """Check that a folder can be made and written to, in the nearest one that exists."""
    nearest = folder.absolute()
    try:
        while not nearest.exists():
            nearest = nearest.parent
        if not nearest.is_dir():
            raise _refusal(out, f"{str(nearest)!r} is a file, not a folder")
        tempfile.TemporaryFile(dir=nearest).close()
    except OSError as error:
        why = f"nothing can be written to {str(nearest)!r} ({error.strerror or error})"
        raise _refusal(out, why) from error


def _refusal(out: Path, why: str) -> InputError:
    return InputError(f"--out is {str(out)!r}, but {why}; name another place")


def in_own_code(error: Exception) -> str | None:
    """Where in a user's own policy an error comes from; None if it comes from elsewhere."""
    own = getattr(sys.modules.get("evenhand.experiments._user_policies"), "IMPORTED", {})
    frames = traceback.extract_tb(error.__traceback__)
    places = [frame for frame in frames if Path(frame.filename) in own]
    return f"{places[-1].filename}, line {places[-1].lineno}" if places else None


def kept(error: BaseException) -> str:
    """A line about a bug, whose traceback is kept in a file that only the user can read."""
    kind = type(error).__name__
    message = " ".join(str(error).split())
    text = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", prefix="evenhand-bug-", suffix=".txt", delete=False
        ) as file:
            file.write(f"evenhand {evenhand.__version__}\n{text}")
        where = f"the traceback is kept in {file.name}: please report it with that file"
    except OSError as full:  # the disk may be the problem
        where = f"the traceback could not be kept ({full.strerror}): please report it"
    about = f"{kind}: {message}" if message else kind
    return f"this is a bug in evenhand, not in your input: {about}; {where}"
