"""`evenhand ...`, in this process or in one of its own."""

from __future__ import annotations

import io
import subprocess
import sys
import warnings
from contextlib import chdir, nullcontext, redirect_stderr, redirect_stdout

from evenhand.cli import main


def evenhand(*arguments, cwd=None) -> subprocess.CompletedProcess:
    """A command in this process, which has imported everything: a new one takes a second or two."""
    call, out, err = [str(argument) for argument in arguments], io.StringIO(), io.StringIO()
    with (
        chdir(cwd) if cwd else nullcontext(),
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")  # as a user has it: a warning is no error
        try:
            code = main(call)
        except SystemExit as end:  # --help and --version
            code = end.code
    return subprocess.CompletedProcess(call, code, out.getvalue(), err.getvalue())


def evenhand_process(*arguments, **options) -> subprocess.CompletedProcess:
    """A command as a user has it, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "evenhand", *map(str, arguments)],
        capture_output=True, text=True, check=False, **options,
    )  # fmt: skip
