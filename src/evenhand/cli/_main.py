"""The command line. Bad input ends with exit code 2 and one line that says what to do.

A bug in evenhand ends with exit code 70 and says so, so that nobody looks for a mistake in their
input.

Each command has its own file with `add(commands)`, which declares its options. A command
imports what it needs when it runs, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import Any, NoReturn

from evenhand import __version__
from evenhand.cli import _terminal, audit, data, demo, init, ledger, paper, run, serve, value
from evenhand.cli._terminal import BAD_INPUT, BUG, INTERRUPTED
from evenhand.errors import EvenhandError, InputError, InputWarning, is_outside, speaking

TOO_LARGE = "not enough memory; give fewer arms, features, rows or replications"
COMMANDS = (demo, audit, value, serve, ledger, paper, run, init, data)


class _Once(argparse.Action):
    """A value that may be given once: of two, the first would be lost silently."""

    seen: argparse.Namespace | None = None

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Keep the value, or raise an error if there is one already."""
        if option_string is not None and self.seen is namespace:
            raise InputError(
                f"{option_string} is given twice, as {quote(str(getattr(namespace, self.dest)))} "
                f"and as {quote(str(values))}; give it once"
            )
        self.seen = namespace
        setattr(namespace, self.dest, values)


class _Parser(argparse.ArgumentParser):
    """Errors in one line, without the usage message."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for action in (None, "store"):
            self.register("action", action, _Once)

    def error(self, message: str) -> NoReturn:
        kind = re.fullmatch(r"argument ([^:]+): invalid (float|int) value: (.*)", message)
        if kind:  # in our words
            allowed = {"float": "a number", "int": "a whole number"}[kind[2]]
            raise InputError(f"{kind[1]} is {kind[3]}; allowed is {allowed}")
        raise InputError(f"{message}; see {self.prog} --help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit code."""
    options = argparse.Namespace()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn  # type: ignore[assignment]
            options = parser().parse_args(arguments)
            command: Callable[[argparse.Namespace], int] = options.command
            with speaking("command line", options.flags):
                return command(options)
    except Exception as error:
        with speaking("command line", getattr(options, "flags", ())):
            code, line = _verdict(error)
        sys.stderr.write(f"evenhand: {line}\n")
        return code
    except KeyboardInterrupt:
        resumed = getattr(options, "resumed", False)
        more = "; run the same command again to continue" if resumed else ""
        with _undisturbed():
            sys.stderr.write(f"\nevenhand: stopped{more}\n")
            sys.stderr.flush()
        return INTERRUPTED


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    root = _Parser(prog="evenhand", description="Even-handed decisions from biased feedback.")
    root.add_argument("--version", action="version", version=f"evenhand {__version__}")
    commands = root.add_subparsers(dest="name", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add(commands)
    for command in commands.choices.values():
        command.set_defaults(flags=_flags(command))
    return root


def _flags(command: argparse.ArgumentParser) -> set[str]:
    """The flags of a command and its arguments, such as LOG: errors may suggest these."""
    flags: set[str] = set()
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            flags.update(*(_flags(task) for task in action.choices.values()))
        else:
            flags.update(action.option_strings or [str(action.metavar)])
    return flags


def _verdict(error: Exception) -> tuple[int, str]:
    """The exit code of an error, and a line about it."""
    if isinstance(error, (EvenhandError, InputWarning)) or (
        isinstance(error, OSError) and is_outside(error)
    ):
        return BAD_INPUT, _one_line(error)
    if isinstance(error, MemoryError):
        return BAD_INPUT, f"{TOO_LARGE} ({_one_line(error)})"
    place = _terminal.in_own_code(error)
    if place is not None:
        return BAD_INPUT, f"{place}: {type(error).__name__}: {_one_line(error)}; correct that file"
    return BUG, _terminal.kept(error)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore Ctrl-C inside the block: people press it twice, and the line should be complete."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _warn(message: Warning | str, *_: object) -> None:
    """Print a warning in one line, without its place in the code."""
    sys.stderr.write(f"evenhand: warning: {' '.join(str(message).split())}\n")


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
