"""Code in processes of its own that start at once: children of a process that has imported all.

They are processes like any other: they are killed, run into limits, and fork.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path

_WARM = """
import json, os, sys, traceback
import evenhand as eh
from log_scripts import Calls, make
Calls(1).many(make(), 20)  # compile, or find compiled code
print("ready", flush=True)
for line in sys.stdin:
    code, out = json.loads(line)
    child = os.fork()
    if child == 0:
        written = os.open(out, os.O_WRONLY)
        os.dup2(written, 1); os.dup2(written, 2)
        ended = 1
        try:
            exec(code, {"__name__": "__main__"})
            ended = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush(); sys.stderr.flush()
            os._exit(ended)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Warm:
    """Where processes are forked, one at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._numbers = folder, count()
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _WARM], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        )  # fmt: skip
        assert self._process.stdout.readline() == "ready\n"

    def start(self, code: str) -> tuple[int, Path]:
        """A process that runs the code: its id, and a pipe with what it writes."""
        pipe = self.folder / f"pipe{next(self._numbers)}"
        os.mkfifo(pipe)
        self._process.stdin.write(json.dumps([code, str(pipe)]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline()), pipe

    def ended(self) -> int:
        """The exit code of the process; if it was killed, the signal with a minus."""
        return int(self._process.stdout.readline())

    def run(self, code: str) -> str:
        """What a process writes that must end well."""
        text = self.start(code)[1].read_text()
        assert self.ended() == 0, text
        return text

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
