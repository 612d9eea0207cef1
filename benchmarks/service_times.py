"""How long the service takes to be ready after kill -9, and a replica to see a reward.

`python -m benchmarks.service` measures them as well, after its load.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import httpx

from benchmarks.service_load import ARMS, FEATURES, config

KILLS, REWARDS, BEFORE = 5, 20, 200


class Served:
    """`evenhand serve` in a process of its own, and a client of it."""

    def __init__(self, path: Path, port: int, key: str) -> None:
        self.path, self.url = path, f"http://127.0.0.1:{port}"
        self.client = httpx.Client(headers={"Authorization": f"Bearer {key}"}, timeout=60)

    def start(self) -> float:
        """Seconds from the start of the process until it is ready."""
        began = time.perf_counter()
        run = [sys.executable, "-m", "evenhand", "serve", str(self.path)]
        self.process = subprocess.Popen(run, stdout=subprocess.DEVNULL)
        while True:
            assert self.process.poll() is None, "it ended"
            try:
                if self.client.get(f"{self.url}/readyz").status_code == 200:
                    return time.perf_counter() - began
            except httpx.TransportError:
                time.sleep(0.01)

    def end(self, how: int = signal.SIGTERM) -> None:
        """End it; by SIGKILL it has no time for anything."""
        self.process.send_signal(how)
        self.process.wait()

    def decide(self) -> str:
        """The id of a new decision."""
        features = [0.5] * FEATURES
        body = {"candidates": [{"arm": f"arm{k}", "features": features} for k in range(ARMS)]}
        return str(self.client.post(f"{self.url}/v1/decisions", json=body).json()["id"])

    def reward(self, id: str) -> None:
        """Give it a reward."""
        path = f"{self.url}/v1/decisions/{id}/reward"
        self.client.put(path, json={"observed": 1.0}).raise_for_status()

    def learned(self) -> int:
        """How many rewards this process has learned."""
        return int(self.client.get(f"{self.url}/v1/model/versions").json()["learned"])


def new_key(path: Path) -> str:
    """A key with all that is asked here."""
    run = [sys.executable, "-m", "evenhand", "serve", str(path), "--key", "times=admin"]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()[-1]


def times(folder: Path, store: str | None, port: int) -> list[str]:
    """Both, in sentences."""
    path = config(folder, store or "sqlite:times.db", port, name="times.toml")
    server = Served(path, port, new_key(path))
    server.start()
    seconds = []
    for _ in range(KILLS):
        for _ in range(BEFORE):
            server.reward(server.decide())
        server.end(signal.SIGKILL)
        seconds.append(server.start())
    said = [
        f"Ready after kill -9, from the start of the process to the first 200 of /readyz: "
        f"{statistics.median(seconds):.1f} s (median of {KILLS}; "
        f"{min(seconds):.1f} to {max(seconds):.1f})."
    ]
    if store:
        said.append(_replica(folder, store, server, port + 1))
    server.end()
    return said


def _replica(folder: Path, store: str, first: Served, port: int) -> str:
    path = config(folder, store, port, name="second.toml")
    second = Served(path, port, new_key(path))
    second.start()
    waits = []
    for _ in range(REWARDS):
        id, before = first.decide(), second.learned()
        first.reward(id)
        began = time.perf_counter()
        while second.learned() == before:
            pass
        waits.append(1e3 * (time.perf_counter() - began))
    second.end()
    return (
        f"A second replica has learned a reward {statistics.median(waits):.0f} ms after it was "
        f"acknowledged (median of {REWARDS}; up to {max(waits):.0f})."
    )


def conditions() -> str:
    """What the figures depend on besides the code."""
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} when it ended."
