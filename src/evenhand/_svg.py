"""Pictures as SVG, drawn in this process or in one beside it.

vl-convert takes .4 s to start and holds the interpreter's lock for that time, so a thread gains
nothing. A command that will draw calls `start_beside` first, so that vl-convert starts while the
command does its other work. Without such a process, or if it ends, pictures are drawn here.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from contextlib import suppress
from threading import Lock
from typing import Any

# JSON in ASCII, one line per picture: no encoding of the system can change it.
PROGRAM = """
import json, sys, vl_convert
vl_convert.vegalite_to_svg({"mark": "point", "data": {"values": []}})
for line in sys.stdin:
    spec, version = json.loads(line)
    print(json.dumps(vl_convert.vegalite_to_svg(spec, vl_version=version)), flush=True)
"""
PATIENCE = 5.0  # seconds for the process to end

_asking = Lock()
_beside: tuple[int, subprocess.Popen[str]] | None = None  # with the id of its parent


def start_beside() -> None:
    """Start a process that draws, unless there is one. It ends when this one does."""
    global _beside
    if _beside is not None or not sys.executable:
        return
    with suppress(OSError):  # where no process may be started, pictures are drawn here
        process = subprocess.Popen(
            # -P: no file of the current folder is taken for a module.
            [sys.executable, "-P", "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        _beside = os.getpid(), process
        atexit.register(_end, process)


def svg_of(spec: str, version: str) -> str:
    """The picture of a Vega-Lite specification, by this version of Vega-Lite."""
    drawn = _asked(spec, version)
    if drawn is not None:
        return drawn
    import vl_convert as vlc

    svg: str = vlc.vegalite_to_svg(spec, vl_version=version)
    return svg


def _asked(spec: str, version: str) -> str | None:
    """The picture that the other process draws; None if there is none, or it has ended."""
    if _beside is None or _beside[0] != os.getpid():  # a fork must not share its pipes
        return None
    process: Any = _beside[1]
    with _asking, suppress(OSError, ValueError):
        process.stdin.write(json.dumps([spec, version]) + "\n")
        process.stdin.flush()
        drawn: str = json.loads(process.stdout.readline())
        return drawn
    return None


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(OSError):
        process.communicate(timeout=PATIENCE)
