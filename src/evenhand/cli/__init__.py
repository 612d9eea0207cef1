"""The command line. Bad input ends with exit code 2 and one line that says what to do.

Each command is a file of its own with `add(commands)`, which declares its options. What a command
needs is imported when it runs, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from shlex import quote
from typing import Any, NoReturn

from evenhand import __version__
from evenhand.cli import audit, data, demo, init, paper, run, value

BAD_INPUT, INTERRUPTED = 2, 130
COMMANDS = (demo, audit, value, paper, run, init, data)


class _Once(argparse.Action):
    """A value that may be given once: of two, the first would be lost without a word."""

    seen: argparse.Namespace | None = None

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Keep the value, or say that there is one already."""
        if option_string is not None and self.seen is namespace:
            raise ValueError(
                f"{option_string} is given twice, as {quote(str(getattr(namespace, self.dest)))} "
                f"and as {quote(str(values))}; allowed is one: leave the other out"
            )
        self.seen = namespace
        setattr(namespace, self.dest, values)


class _Parser(argparse.ArgumentParser):
    """One line for an error, without the usage before it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for action in (None, "store"):
            self.register("action", action, _Once)

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message}; see {self.prog} --help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn  # type: ignore[assignment]
            options = parser().parse_args(arguments)
            command: Callable[[argparse.Namespace], int] = options.command
            return command(options)
    except (ValueError, OSError, ImportError) as error:
        sys.stderr.write(f"evenhand: {_one_line(error)}\n")
        return BAD_INPUT
    except KeyboardInterrupt:
        sys.stderr.write("\nevenhand: stopped; run the same command again to go on from here\n")
        return INTERRUPTED


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    whole = _Parser(prog="evenhand", description="Even-handed decisions from biased feedback.")
    whole.add_argument("--version", action="version", version=f"evenhand {__version__}")
    commands = whole.add_subparsers(dest="name", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return whole


def _warn(message: Warning | str, *_: object) -> None:
    """A warning is one line as well, without the place in the code."""
    sys.stderr.write(f"evenhand: warning: {' '.join(str(message).split())}\n")


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
