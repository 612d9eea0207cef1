"""Servers that start in a fraction of a second: children of a process that has imported all.

They are processes like any other, and are killed like any other.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx

import waiting
from serving import Server

_NURSERY = """
import gc, os, signal, sys
from pathlib import Path
import numpy as np
import uvicorn, uvicorn.loops.auto, uvicorn.lifespan.on, uvicorn.protocols.http.auto
import uvicorn.protocols.websockets.auto, uvicorn.loops.uvloop  # which it imports when it starts
from evenhand.service import _operator_commands
from evenhand.service.config import load
from evenhand.service import _policy_calls
known = set()

def warm(config):  # compile, or find compiled code
    policy = load(Path(config)).policy()
    kind = type(policy), policy.groups.changes, len(policy.groups.attributes)
    if kind not in known:
        known.add(kind)
        rows = np.ones((policy.n_arms, policy.n_features))
        unknown, names = [None] * policy.n_arms, [part.name for part in policy.groups.attributes]
        groups = dict.fromkeys(names, unknown) if len(names) > 1 else unknown
        given = {"groups": groups} if policy.groups.changes else {}
        policy.propensities(rows, **given); policy.update(policy.select(rows, **given), 1.0)

def bury(*_):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass

signal.signal(signal.SIGCHLD, bury)
print("ready", flush=True)
for line in sys.stdin:
    config, log = line.split()
    warm(config)
    gc.freeze()  # or every child looks through all of this, and so copies it
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1); os.dup2(out, 2)
        os.close(0)
        try:
            _operator_commands.serve(Path(config), None)
        finally:
            os._exit(3)
    print(child, flush=True)
"""


class Nursery:
    """Where servers are forked."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _NURSERY], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout.readline() == "ready\n"

    def fork(self, config: Path, log: Path) -> int:
        self.process.stdin.write(f"{config} {log}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Forked(Server):
    """A server out of a nursery."""

    def __init__(self, nursery: Nursery, config: Path, key: str) -> None:
        super().__init__(config, key)
        self.up = threading.Event()  # it takes requests, as far as the tests know
        self.nursery, self.pid, self.path = nursery, 0, config.with_suffix(".log")

    def start(self) -> Forked:
        self.begin()
        self.wait_ready()
        return self

    def begin(self) -> None:
        self.pid = self.nursery.fork(self.config, self.path)

    def alive(self) -> bool:
        if not self.pid:  # not begun; to signal 0 would be to signal all of this process's group
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def wait_ready(self) -> None:
        while True:
            try:
                if waiting.get(f"{self.url}/readyz").status_code == 200:
                    self.up.set()
                    return
            except httpx.TransportError:
                assert self.alive(), self.path.read_text()
            waiting.pause(0.01)

    def printed(self) -> str:
        return self.path.read_text()

    def kill(self) -> None:
        assert self.alive(), self.path.read_text()  # or the fault would not bite
        self.up.clear()
        os.kill(self.pid, signal.SIGKILL)
        while self.alive():
            waiting.pause(0.002)

    def stop(self) -> None:
        if self.alive():
            os.kill(self.pid, signal.SIGTERM)
            while self.alive():
                waiting.pause(0.01)
