"""How many decisions a second the service makes, beside bare endpoints on the same store.

All servers run at once and are asked in turn, for several rounds, so that a busy machine is busy
for all of them. What counts are ratios. A bare endpoint is FastAPI with a typed body of the same
candidates, which inserts one row: with a commit of its own, or with one commit for all that wait.

    python -m benchmarks.service
    python -m benchmarks.service --store postgresql://postgres@127.0.0.1/load
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ARMS, FEATURES, CONNECTIONS = 10, 5, 64
TICK = os.sysconf("SC_CLK_TCK")
HERE = Path(__file__).parent


def config(folder: Path, store: str, port: int) -> Path:
    lines = ['title = "Load"', f'store = "{store}"', 'wait = "30 days"', "intercept = false"]
    lines += [f"[features.x{k}]\nlow = -10\nhigh = 10" for k in range(FEATURES)]
    lines += ["[arms]", *(f'arm{k} = "{"F" if k % 2 else "M"}"' for k in range(ARMS))]
    lines += ["[review]\nshare = 0.0", f"[server]\nport = {port}\nqueue = 100000"]
    path = folder / "load.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def bodies(number: int) -> list[bytes]:
    rng = np.random.default_rng(1)
    names = [f"x{k}" for k in range(FEATURES)]
    listed = []
    for _ in range(number):
        rows = rng.normal(size=(ARMS, FEATURES)).round(3).tolist()
        candidates = [
            {"arm": f"arm{k}", "features": dict(zip(names, row, strict=True))}
            for k, row in enumerate(rows)
        ]
        listed.append(json.dumps({"candidates": candidates}).encode())
    return listed


def request(method: str, path: str, body: bytes, key: str) -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Connection(asyncio.Protocol):
    """One request after another, as fast as answers come."""

    def __init__(self, load: Load) -> None:
        self.load, self.buffer = load, b""

    def connection_made(self, transport) -> None:
        self.transport = transport
        self.next(None)

    def next(self, answer: bytes | None) -> None:
        data = self.load.take(answer)
        if data is None:
            self.transport.close()
            return
        self.began = time.perf_counter()
        self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        length = int(re.search(rb"content-length: (\d+)", self.buffer[:end], re.IGNORECASE)[1])
        if len(self.buffer) < end + 4 + length:
            return
        answer, self.buffer = self.buffer, b""
        assert answer[9:11] == b"20", answer[:300]
        self.load.times.append(time.perf_counter() - self.began)
        self.next(answer)

    def connection_lost(self, _) -> None:
        self.load.open -= 1
        if not self.load.open:
            self.load.done.set()


class Load:
    """Decisions, each followed by its reward if `rewards`."""

    def __init__(self, number: int, key: str, given: list[bytes], rewards: bool = False) -> None:
        self.left, self.key, self.given, self.rewards = number, key, given, rewards
        self.times: list[float] = []
        self.sent = 0

    def take(self, answer: bytes | None) -> bytes | None:
        if self.rewards and answer is not None and (found := re.search(rb'"id":"([^"]+)"', answer)):
            path = f"/v1/decisions/{found[1].decode()}/reward"
            return request("PUT", path, b'{"observed":0.5}', self.key)
        if self.left <= 0:
            return None
        self.left -= 1
        self.sent += 1
        return request("POST", "/v1/decisions", self.given[self.sent % len(self.given)], self.key)

    async def run(self, port: int, connections: int = CONNECTIONS) -> float:
        self.open, self.done = connections, asyncio.Event()
        began = time.perf_counter()
        loop = asyncio.get_running_loop()
        for _ in range(connections):
            await loop.create_connection(lambda: Connection(self), "127.0.0.1", port)
        await self.done.wait()
        return time.perf_counter() - began


async def paced(
    port: int, key: str, given: list[bytes], rate: float, seconds: float
) -> list[float]:
    """Latencies at a fixed rate; a request that has to wait for its turn has waited."""
    times: list[float] = []
    free: asyncio.Queue = asyncio.Queue()
    for _ in range(CONNECTIONS):
        free.put_nowait(await asyncio.open_connection("127.0.0.1", port))

    async def ask(data: bytes, due: float) -> None:
        reader, writer = await free.get()
        writer.write(data)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head, re.IGNORECASE)[1])
        await reader.readexactly(length)
        times.append(time.perf_counter() - due)
        free.put_nowait((reader, writer))

    began, tasks = time.perf_counter(), []
    for number in range(int(rate * seconds)):
        due = began + number / rate
        await asyncio.sleep(max(due - time.perf_counter(), 0.0))
        data = request("POST", "/v1/decisions", given[number % len(given)], key)
        tasks.append(asyncio.create_task(ask(data, due)))
    await asyncio.gather(*tasks)
    while not free.empty():
        free.get_nowait()[1].close()
    return times


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Server:
    def __init__(self, name: str, command: list[str], port: int, key: str = "none") -> None:
        self.name, self.port, self.key = name, port, key
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.rates: list[float] = []
        self.costs: list[float] = []
        self.p99: list[float] = []

    async def ready(self) -> None:
        while True:
            assert self.process.poll() is None, f"{self.name} ended"
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return
            except OSError:
                await asyncio.sleep(0.05)


async def compare(options: argparse.Namespace, folder: Path) -> None:
    given = bodies(200)
    ports = [options.port + k for k in range(3)]
    ours = config(folder, options.store or "sqlite:load.db", ports[0])
    run = [sys.executable, "-m", "evenhand", "serve", str(ours)]
    made = subprocess.run([*run, "--key", "load=decide,reward"], capture_output=True, text=True)
    key = made.stdout.split()[-1]
    store = options.store or str(folder / "bare.db")
    bare = [sys.executable, "-m", "benchmarks.bare_service", store]
    servers = [
        Server("evenhand", run, ports[0], key),
        Server("bare, commits together", [*bare, "together", str(ports[1])], ports[1]),
        Server("bare, a commit each", [*bare, "each", str(ports[2])], ports[2]),
    ]
    both = Server.__new__(Server)
    both.name, both.rates, both.costs, both.p99 = "evenhand, decide and reward", [], [], []
    try:
        for server in servers:
            await server.ready()
            await Load(500, server.key, given).run(server.port)
        for _ in range(options.rounds):
            for server in servers:
                before = cpu(server.process.pid)
                seconds = await Load(options.number, server.key, given).run(server.port)
                used = cpu(server.process.pid) - before
                server.rates.append(options.number / seconds)
                server.costs.append(1e6 * used / options.number)
            before = cpu(servers[0].process.pid)
            seconds = await Load(options.number // 2, key, given, rewards=True).run(ports[0])
            used = cpu(servers[0].process.pid) - before
            both.rates.append(options.number / 2 / seconds)
            both.costs.append(1e6 * used / (options.number / 2))
        half = statistics.median(servers[0].rates) / 2
        for _ in range(options.rounds):
            for server in servers[:2]:
                times = await paced(server.port, server.key, given, half, options.seconds)
                server.p99.append(1e3 * float(np.quantile(times, 0.99)))
    finally:
        for server in servers:
            server.process.send_signal(signal.SIGTERM)
        for server in servers:
            server.process.wait()
    report([*servers, both], half)
    if not options.store:
        size = (folder / "load.db").stat().st_size
        import sqlite3

        count = sqlite3.connect(folder / "load.db").execute("SELECT COUNT(*) FROM decisions")
        print(f"{size / count.fetchone()[0]:.0f} bytes a decision, rewards included")


def report(servers: list[Server], half: float) -> None:
    base = servers[1]
    names = ("endpoint", "a second", "of the bare one that commits together", "CPU us", "p99 ms")
    print(f"| {' | '.join(names)} |")
    print("|---|---|---|---|---|")
    for server in servers:
        rate, cost = statistics.median(server.rates), statistics.median(server.costs)
        ratio = statistics.median(a / b for a, b in zip(server.rates, base.rates, strict=True))
        p99 = f"{statistics.median(server.p99):.1f}" if server.p99 else ""
        print(f"| {server.name} | {rate:,.0f} | {ratio:.2f} | {cost:.0f} | {p99} |")
    print(f"p99 at {half:,.0f} decisions a second, half of what evenhand can do")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", help="postgresql://...; an SQLite file unless given")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--number", type=int, default=4000, help="requests of each in a round")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a round at half load")
    parser.add_argument("--port", type=int, default=8431)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare(options, Path(folder)))


if __name__ == "__main__":
    main()
