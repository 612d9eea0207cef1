"""How many decisions a second the service makes, beside bare endpoints on the same store.

All servers run at once and are asked in turn, for several rounds, so that a busy machine is busy
for all of them. What counts are ratios. A bare endpoint is FastAPI with a typed body of the same
candidates, which inserts one row: with a commit of its own, or with one commit for all that wait.

    python -m benchmarks.service
    python -m benchmarks.service --store postgresql://postgres@127.0.0.1/load

`--write` puts the figures into RESULTS.md.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benchmarks.sections import put
from benchmarks.service_load import Load, bodies, config, paced
from benchmarks.service_times import conditions, times

TICK = os.sysconf("SC_CLK_TCK")
HERE = Path(__file__).parent


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


async def compare(options: argparse.Namespace, folder: Path) -> list[str]:
    """The lines of the report."""
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
    lines = report([*servers, both], half)
    if not options.store:
        size = (folder / "load.db").stat().st_size
        import sqlite3

        count = sqlite3.connect(folder / "load.db").execute("SELECT COUNT(*) FROM decisions")
        lines.append(f"{size / count.fetchone()[0]:.0f} bytes a decision, including rewards.")
    return lines


def report(servers: list[Server], half: float) -> list[str]:
    """A table of all, and what its last column means."""
    names = ("endpoint", "a second", "of the bare one that commits together",
             "of the bare one with a commit each", "CPU us", "p99 ms")  # fmt: skip
    lines = [f"| {' | '.join(names)} |", "|---|---|---|---|---|---|"]
    for server in servers:
        rate, cost = statistics.median(server.rates), statistics.median(server.costs)
        ratios = " | ".join(
            f"{np.median(np.divide(server.rates, other.rates)):.2f}" for other in servers[1:3]
        )
        p99 = f"{statistics.median(server.p99):.1f}" if server.p99 else ""
        lines.append(f"| {server.name} | {rate:,.0f} | {ratios} | {cost:.0f} | {p99} |")
    said = f"p99 at {half:,.0f} decisions a second, half of what evenhand can do."
    return [*lines, "", said]


def about(options: argparse.Namespace, kind: str) -> str:
    command = "python -m benchmarks.service --write"
    if options.store:
        command += " --store postgresql://..."
    return (
        f"## The service on {kind}\n\n{datetime.now(UTC):%Y-%m-%d}, by `{command}`: ten candidates "
        f"of five features, medians of {options.rounds} interleaved rounds of {options.number:,} "
        "requests on 64 connections; ratios are medians of those within a round. Bare endpoints "
        f"are FastAPI that inserts one row. {conditions()}\n\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=__doc__)
    parser.add_argument("--store", help="postgresql://...; an SQLite file unless given")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--number", type=int, default=4000, help="requests of each in a round")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a round at half load")
    parser.add_argument("--port", type=int, default=8431)
    parser.add_argument("--write", action="store_true", help="put the figures into RESULTS.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = asyncio.run(compare(options, Path(folder)))
        print("\n".join(lines), flush=True)
        more = times(Path(folder), options.store, options.port + 10)
        print("\n".join(more))
    if options.write:
        kind = "PostgreSQL" if options.store else "SQLite"
        text = about(options, kind) + "\n".join([*lines, *more])
        put(f"service on {kind}", text)


if __name__ == "__main__":
    main()
